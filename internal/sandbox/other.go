//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

// errElsewhere is why there is no sandbox but on Linux.
var errElsewhere = errors.New("the sandbox is made of Linux's namespaces, Landlock and seccomp")

// Main does nothing where there is no sandbox.
func Main() {}

// Process is a program that runs in a sandbox.
type Process struct{}

// Start refuses.
func Start(context.Context, Spec) (*Process, error) {
	return nil, &RefusedError{partNamespaces, errElsewhere}
}

// Kill does nothing: there is no Process.
func (p *Process) Kill() {}

// Wait returns at once: there is no Process.
func (p *Process) Wait() Result { return Result{} }

// Done is never closed: there is no Process.
func (p *Process) Done() <-chan struct{} { return nil }

// Plan is empty: there is no Process.
func (p *Process) Plan() Plan { return Plan{} }

// Check says that nothing holds.
func Check(context.Context) Report {
	return Report{User: "any user", Parts: []Part{{partNamespaces, false, errElsewhere.Error()}}}
}
