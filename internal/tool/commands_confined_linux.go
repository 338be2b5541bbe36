package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stoplog/stoplog/internal/sandbox"
)

// Where this machine's programs are, and what they read. The sandbox's deny list
// holds within them.
var (
	programs = []string{"/bin", "/sbin", "/usr", "/opt"}
	settings = []string{"/etc"}
)

// confine runs a command in the sandbox: it has the working directory, and this
// machine's programs.
func (t runCommand) confine(ctx context.Context, argv []string) (Output, error) {
	said := &capture{}
	spec := sandbox.Spec{
		Argv: argv,
		Scope: sandbox.Scope{
			Root: t.dir, Read: []string{"**"}, Write: []string{"**"}, Run: []string{"./**"},
		},
		Read: settings, Run: programs,
		Stdout: said, Stderr: said,
		Limits: sandbox.Limits{Wall: t.limit},
	}
	for _, v := range environ() {
		name, value, _ := strings.Cut(v, "=")
		if name == "HOME" {
			continue // it gets one of its own
		}
		if spec.Env = append(spec.Env, v); name == "PATH" {
			spec.Run = append(spec.Run[:len(spec.Run):len(spec.Run)], absolute(filepath.SplitList(value))...)
		}
	}
	r, err := sandbox.Run(ctx, spec)
	if ctx.Err() != nil {
		return Output{}, fmt.Errorf("the command was killed: %w", ctx.Err())
	}
	var refused *sandbox.RefusedError
	if errors.As(err, &refused) {
		return failure("the command was not started: %v", refused.Err), nil
	}
	if err != nil {
		return failure("the command was not started: %v", err), nil
	}
	out := said.output()
	switch {
	case r.End == sandbox.TimedOut:
		out.say("[killed: it ran for longer than %v]", t.limit)
	case r.End == sandbox.Flooded:
		out.say("[killed: it wrote more than it may]")
	case r.End == sandbox.Signalled:
		out.say("[ended by signal: %v]", syscall.Signal(r.Signal))
	case r.End != sandbox.Exited:
		return Output{}, fmt.Errorf("the command was %v, and nobody knows how far it came", r.End)
	case r.Exit != 0:
		out.say("[exit status %d]", r.Exit)
	default:
		return out, nil
	}
	out.Failed = true
	return out, nil
}

// absolute are those of the directories that have an absolute path.
func absolute(dirs []string) (found []string) {
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			found = append(found, dir)
		}
	}
	return found
}
