package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sh(script string) string {
	b, err := json.Marshal(map[string][]string{"argv": {"sh", "-c", script}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestRunCommand(t *testing.T) {
	t.Setenv("TZ", "UTC")
	t.Setenv("STOPLOG_TEST_KEY", "hunter2")
	w := workdir(t)
	for _, c := range []struct{ args, want string }{
		{`{"argv":["echo","a b","$HOME","*"]}`, "a b $HOME *\n"},
		{`{"argv":["pwd"]}`, w.Path() + "\n"},
		{`{"argv":["cat"]}`, ""}, // there is nothing to read
		{sh("echo out; echo err >&2; exit 3"), "failed: out\nerr\n[exit status 3]"},
		{sh("kill -9 $$"), "failed: [ended by signal: killed]"},
		{sh("env | sed 's/=.*//' | grep -v -x -e PWD -e SHLVL -e _ -e OLDPWD | grep -v -x -e PATH -e HOME -e LANG -e TERM -e TZ; echo TZ=$TZ"), "TZ=UTC\n"},
		{sh(`printf 'a\000b\377'`), "a\ufffdb\ufffd"},
		{`{"argv":[]}`, "failed: refused: /argv must have 1 item or more"},
		{`{"argv":[""]}`, "failed: argv names no program"},
		{`{"argv":"ls -l"}`, "failed: refused: /argv must be array, and is string"},
		{`{"argv":["no-such-program"]}`, `failed: the command was not started: exec: "no-such-program": executable file not found in $PATH`},
		{`{"argv":["./hello"]}`, "failed: the command was not started: fork/exec ./hello: permission denied"},
		{`{"argv":["echo","a\u0000b"]}`, "failed: the command was not started: fork/exec /usr/bin/echo: invalid argument"},
	} {
		got := told(run(t, w, "run_command", c.args))
		if strings.Contains(c.want, "fork/exec /") { // where echo is differs
			got = "failed: the command was not started: fork/exec /usr/bin/echo" + got[max(0, strings.LastIndex(got, ": ")):]
		}
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}

func TestRunCommandFloods(t *testing.T) {
	out := run(t, workdir(t), "run_command", sh("head -c 3000000 /dev/zero | tr '\\0' x"))
	if shown := len(out.Text) - out.After; shown != MaxText || out.After != contextBytes || !out.Cut || out.Note != "[cut: 65536 of 3000000 bytes]" {
		t.Errorf("%d bytes and %d after, cut: %v, %q", shown, out.After, out.Cut, out.Note)
	}
}

// start runs a script that writes the pid of a grandchild to a file, and returns
// what the tool makes of it, and that pid.
func start(t *testing.T, ctx context.Context, limit time.Duration, script string) (Output, int, error) {
	t.Helper()
	dir := t.TempDir()
	out, err := runCommand{dir, limit}.Run(ctx, json.RawMessage(sh(script)))
	text, readErr := os.ReadFile(filepath.Join(dir, "pid"))
	if readErr != nil {
		t.Fatalf("the script did not begin: %v", readErr)
	}
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if convErr != nil {
		t.Fatal(convErr)
	}
	return out, pid, err
}

// gone waits until a process has ended; whoever inherits it may be slow to reap.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return
		}
		if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, "Z") {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d was left behind", pid)
}

func TestRunCommandHangs(t *testing.T) {
	out, pid, err := start(t, t.Context(), 500*time.Millisecond, "echo begun; sleep 1000 & echo $! >pid; wait")
	if err != nil || told(out) != "failed: begun\n[killed: it ran for longer than 500ms]" {
		t.Errorf("%q, %v", told(out), err)
	}
	gone(t, pid)
}

// charmbracelet/crush#3878: a grandchild that holds the pipe made Wait hang.
func TestRunCommandLeavesGrandchild(t *testing.T) {
	out, pid, err := start(t, t.Context(), commandLimit, "sleep 1000 & echo $! >pid; echo done")
	if err != nil || told(out) != "done\n" {
		t.Errorf("%q, %v", told(out), err)
	}
	gone(t, pid)
}

// One that left the group is not ours to kill, and holds up nothing.
func TestRunCommandLeavesSession(t *testing.T) {
	out, pid, err := start(t, t.Context(), commandLimit, "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' & while [ ! -e pid ]; do :; done; echo done")
	if err != nil || told(out) != "done\n" {
		t.Errorf("%q, %v", told(out), err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process in a session of its own: %v", err)
	}
}

func TestRunCommandCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	began := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		os.ReadFile(began) // returns when the script has written its pid
		cancel()
	}()
	args := json.RawMessage(sh("sleep 1000 & echo $! >pid; echo >fifo; wait"))
	out, err := runCommand{dir, commandLimit}.Run(ctx, args)
	<-cancelled
	if !errors.Is(err, context.Canceled) || out != (Output{}) {
		t.Errorf("%q, %v", told(out), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}
