package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// bothWays runs a test with a command that is free, and with one in the sandbox.
func bothWays(t *testing.T, test func(t *testing.T, confined bool)) {
	t.Run("free", func(t *testing.T) { test(t, false) })
	t.Run("confined", func(t *testing.T) {
		switch {
		case confines():
		case os.Getenv("CI") == "true":
			t.Fatal("this machine has no sandbox to give")
		default:
			t.Skip("this machine has no sandbox to give")
		}
		test(t, true)
	})
}

func sh(script string) string {
	b, err := json.Marshal(map[string][]string{"argv": {"sh", "-c", script}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestRunCommand(t *testing.T) { bothWays(t, testRunCommand) }

func testRunCommand(t *testing.T, confined bool) {
	t.Setenv("TZ", "UTC")
	t.Setenv("STOPLOG_TEST_KEY", "hunter2")
	w := workdir(t)
	command := []Tool{runCommand{w.Path(), commandLimit, confined}}
	notFound, notExecutable, invalid := `exec: "no-such-program": executable file not found in $PATH`, "fork/exec ./hello: permission denied", "fork/exec /usr/bin/echo: invalid argument"
	own := ""
	if confined {
		notFound, notExecutable, invalid = `there is no program "no-such-program" in PATH`, "execute "+w.Path()+"/hello: permission denied", "execute /usr/bin/echo: invalid argument"
		own = " -e TMPDIR"
	}
	for _, c := range []struct{ args, want string }{
		{`{"argv":["echo","a b","$HOME","*"]}`, "a b $HOME *\n"},
		{`{"argv":["pwd"]}`, w.Path() + "\n"},
		{`{"argv":["cat"]}`, ""}, // there is nothing to read
		{sh("echo out; echo err >&2; exit 3"), "failed: out\nerr\n[exit status 3]"},
		{sh("kill -9 $$"), "failed: [ended by signal: killed]"},
		{sh("env | sed 's/=.*//' | grep -v -x -e PWD -e SHLVL -e _ -e OLDPWD | grep -v -x -e PATH -e HOME -e LANG -e TERM -e TZ" + own + "; echo TZ=$TZ"), "TZ=UTC\n"},
		{sh(`printf 'a\000b\377'`), "a\ufffdb\ufffd"},
		{`{"argv":[]}`, "failed: refused: /argv must have 1 item or more"},
		{`{"argv":[""]}`, "failed: argv names no program"},
		{`{"argv":"ls -l"}`, "failed: refused: /argv must be array, and is string"},
		{`{"argv":["no-such-program"]}`, "failed: the command was not started: " + notFound},
		{`{"argv":["./hello"]}`, "failed: the command was not started: " + notExecutable},
		{`{"argv":["echo","a\u0000b"]}`, "failed: the command was not started: " + invalid},
	} {
		got := told(runOf(t, command, "run_command", c.args))
		if strings.Contains(c.want, "/echo: ") { // where echo is differs
			got = strings.Replace(got, " /bin/echo", " /usr/bin/echo", 1)
		}
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}

func TestRunCommandFloods(t *testing.T) { bothWays(t, testRunCommandFloods) }

func testRunCommandFloods(t *testing.T, confined bool) {
	out := runOf(t, []Tool{runCommand{workdir(t).Path(), commandLimit, confined}}, "run_command", sh("head -c 3000000 /dev/zero | tr '\\0' x"))
	if shown := len(out.Text) - out.After; shown != MaxText || out.After != contextBytes || !out.Cut || out.Note != "[cut: 65536 of 3000000 bytes]" {
		t.Errorf("%d bytes and %d after, cut: %v, %q", shown, out.After, out.Cut, out.Note)
	}
}

// a marker is how long something sleeps, in seconds: nothing else on this machine
// sleeps for exactly so long. Numbers of processes say nothing of one in a
// sandbox.
func marker() string {
	return fmt.Sprintf("%d.%09d", 4_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
}

// sleeping counts the processes of this machine with a marker.
func sleeping(t *testing.T, marker string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && string(line) == "sleep\x00"+marker+"\x00" {
			n++
		}
	}
	return n
}

// gone waits until what sleeps has ended; whoever inherits it may be slow to reap.
func gone(t *testing.T, marker string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if sleeping(t, marker) == 0 {
			return
		}
	}
	t.Error("a process was left behind")
}

// start runs a script in a directory of its own. That it began is seen by the
// file `begun`, which it writes.
func start(t *testing.T, limit time.Duration, confined bool, script string) Output {
	t.Helper()
	dir := t.TempDir()
	out, err := runCommand{dir, limit, confined}.Run(t.Context(), json.RawMessage(sh(script)))
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "begun")); err != nil {
		t.Fatalf("the script did not begin: %v", err)
	}
	return out
}

func TestRunCommandHangs(t *testing.T) { bothWays(t, testRunCommandHangs) }

func testRunCommandHangs(t *testing.T, confined bool) {
	mark := marker()
	out := start(t, time.Second, confined, "echo begun; sleep "+mark+" & echo >begun; wait")
	if told(out) != "failed: begun\n[killed: it ran for longer than 1s]" {
		t.Errorf("%q", told(out))
	}
	gone(t, mark)
}

// charmbracelet/crush#3878: a grandchild that holds the pipe made Wait hang.
func TestRunCommandLeavesGrandchild(t *testing.T) { bothWays(t, testRunCommandLeavesGrandchild) }

func testRunCommandLeavesGrandchild(t *testing.T, confined bool) {
	mark := marker()
	out := start(t, commandLimit, confined, "sleep "+mark+" & echo >begun; echo done")
	if told(out) != "done\n" {
		t.Errorf("%q", told(out))
	}
	gone(t, mark)
}

// One that left the group is not ours to kill without a sandbox, and holds up
// nothing. In one it ends with the rest.
func TestRunCommandLeavesSession(t *testing.T) { bothWays(t, testRunCommandLeavesSession) }

func testRunCommandLeavesSession(t *testing.T, confined bool) {
	mark := marker()
	out := start(t, commandLimit, confined, "setsid sh -c 'echo $$ >pid; echo >begun; exec sleep "+mark+"' & while [ ! -e begun ]; do :; done; cat pid")
	if confined {
		gone(t, mark)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(told(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process in a session of its own: %v", err)
	}
}

func TestRunCommandCancelled(t *testing.T) { bothWays(t, testRunCommandCancelled) }

func testRunCommandCancelled(t *testing.T, confined bool) {
	mark := marker()
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	began := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		os.ReadFile(began) // returns when the script has begun
		cancel()
	}()
	args := json.RawMessage(sh("sleep " + mark + " & echo >fifo; wait"))
	out, err := runCommand{dir, commandLimit, confined}.Run(ctx, args)
	<-cancelled
	if !errors.Is(err, context.Canceled) || out != (Output{}) {
		t.Errorf("%q, %v", told(out), err)
	}
	gone(t, mark)
}

// In the sandbox a command has its directory and this machine's programs, and
// nothing else; who approves it is told so.
func TestRunCommandConfined(t *testing.T) {
	bothWays(t, func(t *testing.T, confined bool) {
		w := workdir(t)
		command := runCommand{w.Path(), commandLimit, confined}
		secret := filepath.Join(filepath.Dir(w.Path()), "outside")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		script := fmt.Sprintf("cat %s; cat upward; echo x >%[1]s; echo made >made; cat made; printf '#!/bin/sh\necho a script\n' >run; chmod +x run; ./run; "+
			"bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo connected'; exit 0", secret, l.Addr().(*net.TCPAddr).Port)
		out := told(runOf(t, []Tool{command}, "run_command", sh(script)))
		for text, want := range map[string]bool{"made\n": true, "a script\n": true, "out of reach": !confined, "connected": !confined} {
			if strings.Contains(out, text) != want {
				t.Errorf("%q said: %v, in %q", text, !want, out)
			}
		}
		kept, err := os.ReadFile(secret)
		if err != nil || (string(kept) == "out of reach") != confined {
			t.Errorf("the file outside is %q, %v", kept, err)
		}
		if caution := command.Spec().Caution; strings.Contains(caution, "is not confined") == confined {
			t.Errorf("an approval says %q", caution)
		}
	})
}
