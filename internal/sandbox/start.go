package sandbox

import (
	"context"
	"errors"
)

// Main makes a process that [Start] began what it is to be, and does not return
// then. In any other process it does nothing. It is the first thing that main,
// or a TestMain, calls.
func Main() {}

// Process is a program that runs in a sandbox.
type Process struct{}

// Start starts a program. If part of the sandbox can not hold, or the scope asks
// for what can not be given, nothing is run and the error is a [*RefusedError]; it
// is another one if there is no such program. The program ends with ctx.
func Start(ctx context.Context, s Spec) (*Process, error) {
	return nil, &RefusedError{"sandbox", errors.ErrUnsupported}
}

// Kill ends the program and everything that it started. It does not wait.
func (p *Process) Kill() {}

// Wait returns when the program, everything that it started and every service
// has ended, and its last output was written.
func (p *Process) Wait() Result { return Result{} }
