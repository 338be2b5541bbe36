package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestServeEndsAfterItsAnswers has a person's first signal come in the middle of
// a stream: the client gets all of it, then the process ends, exit 0. The
// address is the one line on stdout.
func TestServeEndsAfterItsAnswers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--config", "../../examples/stoplog.yaml")
	cmd.Env = []string{"XDG_STATE_HOME=" + t.TempDir()}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	m := regexp.MustCompile(`^listening on (http://127\.0\.0\.1:\d+)\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	resp, err := http.Post(m[1]+"/openai/v1/chat/completions", "application/json", strings.NewReader(`{"model":"demo-clean","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	first, err := body.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(body)
	if err != nil || !strings.HasPrefix(first, "data: ") || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream is %q … %q, %v", first, rest[max(0, len(rest)-80):], err)
	}
	more, err := io.ReadAll(lines)
	if err != nil || len(more) > 0 {
		t.Errorf("stdout goes on with %q, %v", more, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if _, err := http.Get(m[1] + "/healthz"); err == nil {
		t.Error("it still serves")
	}
}
