package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/stoplog/stoplog/internal/sandbox"
)

const (
	// commandLimit is how long a command may run.
	commandLimit = 60 * time.Second
	// pipeLimit is how long output is waited for once the command and its group
	// are gone: a process that left the group may hold the pipe for ever.
	pipeLimit = time.Second
)

// environment is what a command gets to see of ours.
var environment = []string{"PATH", "HOME", "LANG", "TERM", "TZ"}

func commands(dir string) []Tool { return []Tool{runCommand{dir, commandLimit, confines()}} }

// confines reports whether this machine can hold a command in the sandbox. It
// does not change while a process lives.
var confines = sync.OnceValue(func() bool { return sandbox.Check(context.Background()).Holds })

// runCommand is run_command: a program with arguments, without a shell.
type runCommand struct {
	dir      string
	limit    time.Duration
	confined bool // it runs in the sandbox
}

func (t runCommand) Spec() Spec {
	s := Spec{
		Name: "run_command",
		Description: "Run a program in the working directory and see what it writes. There is no shell: argv is the program and its arguments. " +
			"It has 60 seconds, nothing to read, and leaves no process behind.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["argv"],"properties":{` +
			`"argv":{"type":"array","minItems":1,"items":{"type":"string"}}}}`),
		Effect:  Irreversible,
		Class:   Internal,
		Caution: "A command is not confined here: it reaches whatever the user can that Stoplog runs as. `stoplog doctor` says why.",
	}
	if t.confined {
		s.Description += " It may change the working directory and run this machine's programs; there is no network, and HOME is empty."
		s.Caution = "A command is confined to the working directory, which it may change and delete; it can run this machine's programs, and reaches no network and no other files of yours."
	}
	return s
}

// Run runs the command to its end, or ends it with all that it started, when its
// time is up or the context is done.
func (t runCommand) Run(ctx context.Context, args json.RawMessage) (Output, error) {
	var in struct {
		Argv []string `json:"argv"`
	}
	if err := decode(args, &in); err != nil {
		return Output{}, err
	}
	if in.Argv[0] == "" {
		return failure("argv names no program"), nil
	}
	if t.confined {
		return t.confine(ctx, in.Argv)
	}
	return t.free(ctx, in.Argv)
}

// free runs a command as this process's user, in a process group of its own, and
// ends that group, whole.
func (t runCommand) free(ctx context.Context, argv []string) (Output, error) {
	var said capture
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = t.dir, environ()
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeLimit
	if err := cmd.Start(); err != nil {
		return failure("the command was not started: %v", err), nil
	}
	limit, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		awaitExit(cmd.Process.Pid)
	}()
	select {
	case <-exited:
	case <-limit.Done():
	}
	late := limit.Err() != nil
	// The command is not reaped yet, so the group's number is still its own.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-exited
	err := cmd.Wait()
	if ctx.Err() != nil {
		return Output{}, fmt.Errorf("the command was killed: %w", ctx.Err())
	}
	out := said.output()
	switch exit := cmd.ProcessState; {
	case late:
		out.say("[killed: it ran for longer than %v]", t.limit)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay) && exit.ExitCode() >= 0:
		out.say("[exit status %d]", exit.ExitCode())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		out.say("[ended by signal: %v]", exit.Sys().(syscall.WaitStatus).Signal())
	default:
		return out, nil
	}
	out.Failed = true
	return out, nil
}

func (o *Output) say(format string, args ...any) {
	if o.Note != "" {
		o.Note += "\n"
	}
	o.Note += fmt.Sprintf(format, args...)
}

// environ is the part of our environment that a command gets.
func environ() []string {
	env := []string{}
	for _, name := range environment {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// awaitExit returns when a child has ended, and does not reap it.
func awaitExit(pid int) {
	const byPid = 1 // P_PID
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// capture keeps the start of what a command writes and counts the rest. The
// command's two streams share one pipe, so it has one writer.
type capture struct {
	text  []byte
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	c.text = append(c.text, p[:min(len(p), MaxText+contextBytes-len(c.text))]...)
	return len(p), nil
}

func (c *capture) output() Output {
	_, shown := runes(c.text, 0, min(len(c.text), MaxText))
	out := piece(c.text, 0, shown)
	out.Cut = c.total > int64(len(c.text))
	if c.total > int64(shown) {
		out.Note = fmt.Sprintf("[cut: %d of %d bytes]", shown, c.total)
	}
	return out
}
