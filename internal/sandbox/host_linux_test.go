package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program leaves processes behind in every way there is; none is left.
func TestDescendantsEnd(t *testing.T) {
	for name, script := range map[string]string{
		"a child":              "sleep %s & exit 0",
		"its own session":      "setsid sleep %s & exit 0",
		"ignores signals":      "trap '' TERM HUP INT; sleep %s & exit 0",
		"started by a started": "(setsid sh -c 'sleep %s & sleep %[1]s') & exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			// Nothing else on this machine sleeps for exactly so long.
			marker := fmt.Sprintf("%d.%d", 7_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
			r := newRoom(t)
			o := do(t, r.shell(fmt.Sprintf(script, marker), "sleep", "setsid", "sh"))
			if o.End != Exited || o.Exit != 0 || o.Left == 0 {
				t.Errorf("%v, exit code %d, %d left: want some", o.End, o.Exit, o.Left)
			}
			if o.Passed() {
				t.Error("a program that left something running passed")
			}
			if n := running(marker); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// running counts the processes of this machine with an argument.
func running(argument string) (n int) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte(argument)) {
			n++
		}
	}
	return n
}

// When a host is killed its programs end.
func TestHostEnds(t *testing.T) {
	needsSandbox(t)
	marker := fmt.Sprintf("%d.%d", 8_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self)
	host.Env = append(os.Environ(), hostVariable+"="+marker)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	host.Process.Kill()
	host.Wait()
	for end := time.Now().Add(20 * time.Second); running(marker) > 0; {
		if time.Now().After(end) {
			t.Fatal("the program lives on")
		}
	}
}

// hostOfSleep is a host that waits for a program that does not end.
func hostOfSleep() int {
	dir, err := os.MkdirTemp("", "stoplog-host-")
	if err != nil {
		return 1
	}
	defer os.RemoveAll(dir)
	_, err = Run(context.Background(), Spec{
		Argv: []string{"sh", "-c", "trap '' TERM; echo begun; sleep " + os.Getenv(hostVariable)}, Env: []string{"PATH=" + standardPath},
		Scope: Scope{Root: dir, Run: []string{"sleep"}}, Stdout: os.Stdout,
	})
	fmt.Println(err)
	return 1
}

func TestEnds(t *testing.T) {
	r := newRoom(t)
	run := func(script string, change func(*Spec)) outcome {
		s := r.shell(script, "sleep", "yes", "cat")
		if change != nil {
			change(&s)
		}
		return do(t, s)
	}
	if o := run("exit 7", nil); o.End != Exited || o.Exit != 7 || o.Left != 0 {
		t.Errorf("exit 7: %+v", o.Result)
	}
	if o := run("kill -9 $$", nil); o.End != Signalled || o.Signal != 9 {
		t.Errorf("kill -9: %+v", o.Result)
	}
	if o := run("cat", func(s *Spec) { s.Stdin = strings.NewReader("said") }); o.stdout != "said" || !o.Passed() {
		t.Errorf("cat: %+v, %q", o.Result, o.stdout)
	}
	if o := run("cat", nil); o.stdout != "" || !o.Passed() {
		t.Errorf("cat of nothing: %+v, %q", o.Result, o.stdout)
	}
	late := func(s *Spec) { s.Limits.Wall = 300 * time.Millisecond }
	if o := run("trap '' TERM INT HUP; echo begun; sleep 1000", late); o.End != TimedOut || o.stdout != "begun\n" {
		t.Errorf("sleep: %+v, %q", o.Result, o.stdout)
	}
	flood := func(s *Spec) { s.Limits.Output = 10_000 }
	if o := run("yes", flood); o.End != Flooded || len(o.stdout) != 10_000 {
		t.Errorf("yes: %+v, %d bytes", o.Result, len(o.stdout))
	}
}

func TestCancel(t *testing.T) {
	needsSandbox(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, beginning := io.Pipe()
	s := newRoom(t).shell("echo; sleep 1000", "sleep")
	s.Stdout = beginning
	p, err := Start(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begun.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if r := p.Wait(); r.End != Cancelled {
		t.Errorf("%+v", r)
	}
	if _, err := Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("started after the end: %v", err)
	}
}

func TestKill(t *testing.T) {
	needsSandbox(t)
	p, err := Start(t.Context(), newRoom(t).shell("sleep 1000", "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Kill()
	if r := p.Wait(); r.End != Killed {
		t.Errorf("%+v", r)
	}
	<-p.Done()
}

// The environment is what was given, and a home that is gone afterwards.
func TestEnvironment(t *testing.T) {
	t.Setenv("STOPLOG_TEST_KEY", "hunter2")
	s := newRoom(t).shell(`env; echo x >$HOME/file; echo y >$TMPDIR/file; mkdir $HOME/d; chmod 0 $HOME/d`, "env", "mkdir", "chmod")
	s.Env = append(s.Env, "GIVEN=yes")
	o := do(t, s)
	if !o.Passed() || o.stderr != "" {
		t.Fatalf("%+v: %s", o.Result, o.stderr)
	}
	names := map[string]string{}
	for line := range strings.Lines(o.stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names[name] = value
	}
	for _, own := range []string{"PWD", "OLDPWD", "SHLVL", "_"} { // the shell's
		delete(names, own)
	}
	if len(names) != 4 || names["GIVEN"] != "yes" || names["PATH"] != standardPath || names["HOME"] == "" || names["TMPDIR"] == "" {
		t.Errorf("environment: %v", names)
	}
	if _, err := os.Stat(filepath.Dir(names["HOME"])); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
}

// Root's privileges but one are gone, and so are an ordinary user's in its
// namespace.
func TestPrivileges(t *testing.T) {
	o := do(t, newRoom(t).shell("while read k v; do case $k in Cap*|NoNewPrivs:|Seccomp:) echo $k $v;; esac; done </proc/self/status"))
	kept := "0000000000000000"
	if os.Geteuid() == 0 {
		kept = "0000000000000002" // CAP_DAC_OVERRIDE
	}
	want := "CapInh: 0000000000000000\nCapPrm: " + kept + "\nCapEff: " + kept + "\nCapBnd: " + kept +
		"\nCapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n"
	if o.stdout != want {
		t.Errorf("got\n%swant\n%s", o.stdout, want)
	}
}

func TestLimits(t *testing.T) {
	r := newRoom(t)
	s := r.shell("ulimit -n; ulimit -c; ulimit -f; ulimit -v; head -c 2000000 /dev/zero >out/big; echo $?", "head")
	s.Limits.Files, s.Limits.FileSize, s.Limits.Memory = 100, 1<<20, 1<<30
	o := do(t, s)
	want := fmt.Sprintf("100\n0\n2048\n1048576\n%d\n", 128+int(syscall.SIGXFSZ))
	if o.stdout != want {
		t.Errorf("got %q, want %q: %s", o.stdout, want, o.stderr)
	}
	s = r.shell("while :; do :; done")
	s.Limits.CPU = time.Second
	if o := do(t, s); o.End != Signalled || unix.Signal(o.Signal) != unix.SIGKILL && unix.Signal(o.Signal) != unix.SIGXCPU {
		t.Errorf("a busy program: %+v", o.Result)
	}
}

// A program that starts ever more of them comes to an end.
func TestProcessesAreBounded(t *testing.T) {
	s := newRoom(t).shell("i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done; echo all", "sleep")
	s.Limits.Processes = 310
	o := do(t, s)
	if os.Geteuid() == 0 && !pidsByNamespace() {
		t.Skip("this kernel does not count root's processes by namespace")
	}
	if strings.Contains(o.stdout, "all") || !strings.Contains(o.stderr, "fork") {
		t.Errorf("400 processes with a limit of 310: %+v, %q, %q", o.Result, o.stdout, o.stderr)
	}
}
