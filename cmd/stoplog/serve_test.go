package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// server is the `stoplog serve` that a script has running.
type server struct {
	cmd     *exec.Cmd
	stderr  strings.Builder
	address string
}

type serverKey struct{}

func running(ts *testscript.TestScript) *server { return ts.Value(serverKey{}).(*server) }

// scriptServing starts a server on a free port and waits until it listens.
func scriptServing(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serving FLAG…")
	}
	s := running(ts)
	*s = server{cmd: exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, args...)...)}
	s.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		s.cmd.Env = append(s.cmd.Env, name+"="+ts.Getenv(name))
	}
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		s.cmd.Wait()
		ts.Fatalf("the server says no address: %v\n%s", err, s.stderr.String())
	}
	var said struct{ Address string }
	ts.Check(json.Unmarshal(line, &said))
	s.address = said.Address
}

// scriptAsk asks the server, and has its answer as stdout: the status, then the
// body.
func scriptAsk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: ask PATH [BODY [PROFILE]]")
	}
	io.WriteString(ts.Stdout(), asked(ts, args))
}

// scriptBecomes asks the server until its answer matches.
func scriptBecomes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: becomes PATTERN PATH BODY")
	}
	pattern := regexp.MustCompile(args[0])
	for deadline := time.Now().Add(30 * time.Second); ; {
		answer := asked(ts, args[1:])
		if pattern.MatchString(answer) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after half a minute the answer is still %s", answer)
		}
	}
}

// asked is the server's answer to PATH [BODY [PROFILE]]: the status, then the body.
func asked(ts *testscript.TestScript, args []string) string {
	url := "http://" + running(ts).address + args[0]
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if len(args) > 1 {
		req, err = http.NewRequest(http.MethodPost, url, strings.NewReader(args[1]))
	}
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if len(args) > 2 {
		req.Header.Set("Stoplog-Profile", args[2])
	}
	if key := ts.Getenv("KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return fmt.Sprintf("%d\n%s\n", resp.StatusCode, body)
}

// scriptEnds ends the server as a person would, and has its talk as stderr.
func scriptEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ends CODE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := running(ts)
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	err = s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	io.WriteString(ts.Stderr(), s.stderr.String())
	if code := s.cmd.ProcessState.ExitCode(); code != want {
		ts.Fatalf("the server ended with %v, want exit code %d", s.cmd.ProcessState, want)
	}
}
