package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/playbook"
)

const (
	// defaultTimeout is how long a command may take that does not say.
	defaultTimeout = 10 * time.Minute
	// maxOutput is how much a command may say, in bytes: all of it is journaled.
	maxOutput = 8 << 20
)

// Reasons that only commands have.
const (
	// ReasonRefused: the sandbox cannot hold what the step asks for.
	ReasonRefused run.Reason = "sandbox_refused"
	// ReasonUndeclared: the step would do what it does not declare, or what nobody
	// has said yes to.
	ReasonUndeclared run.Reason = "undeclared_effect"
)

// surroundings are in the environment of every command, beside what the step gives.
var surroundings = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}

// command runs the program of a step. An error means that its end is not known.
func (w *attempt) command(ctx context.Context, work *playbook.Run) (r steps.Result, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := newOutput(ctx, w, stop)
	spec, err := w.spec(work, w.step.Scope)
	if err != nil {
		return failed(err), nil
	}
	if why := w.destroys(spec.Argv); why != "" {
		return blocked(ReasonUndeclared, "%s, and the step does not declare it: effect: irreversible", why), nil
	}
	spec.Stdout, spec.Stderr = stream{out, "stdout"}, stream{out, "stderr"}
	if w.step.Timeout.Written() {
		spec.Limits.Wall = w.step.Timeout.Value
	}
	end, err := w.hold.h.Run(ctx, spec)
	denied, kept := out.end()
	var refused *sandbox.RefusedError
	switch {
	case errors.As(err, &refused):
		return blocked(ReasonRefused, "%v", err), nil
	case err != nil:
		return failed(err), nil
	case kept != nil:
		return r, kept
	}
	r = w.ended(end, spec.Limits.Wall)
	r.Stdout, r.Stderr = out.kept("stdout"), out.kept("stderr")
	if denied != nil {
		r.State, r.Reason = steps.Blocked, run.ReasonGuardDenied
		r.Why = fmt.Sprintf("guard %s denied what it said (rule %s)", denied.Guard, denied.Rule)
	} else if end.End == sandbox.Lost {
		return r, fmt.Errorf("step %s: nobody knows how its command ended", w.step.ID.Value)
	}
	return r, nil
}

// ended is what the end of a program comes to.
func (w *attempt) ended(end sandbox.Result, wall time.Duration) steps.Result {
	r := steps.Result{State: steps.Failed}
	switch end.End {
	case sandbox.Exited:
		r.ExitCode = &end.Exit
		switch {
		case end.Exit != 0:
			r.Why = fmt.Sprintf("exit code %d", end.Exit)
		case end.Left > 0:
			r.Why = fmt.Sprintf("it left %d processes behind, which were ended", end.Left)
		default:
			r.State = steps.Passed
		}
	case sandbox.TimedOut:
		r.State, r.Why = steps.FailedTimeout, fmt.Sprintf("it took longer than %s", wall)
	case sandbox.Flooded:
		r.Why = fmt.Sprintf("it said more than %d bytes", maxOutput)
	case sandbox.Signalled:
		r.Why = fmt.Sprintf("it was ended by signal %d", end.Signal)
	case sandbox.Cancelled, sandbox.Killed:
		r.State, r.Why = steps.Cancelled, "it was cut off"
	default:
		r.Why = "nobody knows how it ended"
	}
	return r
}

// spec is a command with its words put in, in its sandbox.
func (w *attempt) spec(work *playbook.Run, scope *playbook.Scope) (sandbox.Spec, error) {
	sc, err := sceneOf(w.state)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Scope: sandboxScope(scopeOf(scope), w.hold.row.Workdir), Env: slices.Clone(surroundings),
		Deny: w.hold.h.Deny, Limits: sandbox.Limits{Wall: defaultTimeout, Output: maxOutput},
	}
	if dial := w.hold.h.Dial; dial != nil && len(spec.Scope.Hosts) > 0 {
		spec.Dial = dial(spec.Scope.Hosts...)
	}
	for _, word := range work.Argv {
		arg, err := sc.word(word)
		if err != nil {
			return spec, fmt.Errorf("put its command together: %w", err)
		}
		spec.Argv = append(spec.Argv, arg)
	}
	for _, v := range w.step.Env {
		value, err := sc.word(v.Value)
		if err != nil {
			return spec, fmt.Errorf("put its environment together: %s: %w", v.Name.Value, err)
		}
		spec.Env = append(spec.Env, v.Name.Value+"="+value)
	}
	return spec, nil
}

// destroys says what a command would destroy that its step does not declare; empty:
// nothing that is known to. It is the second net: the first is what steps declare.
func (w *attempt) destroys(argv []string) string {
	if w.step.Effect.Value == playbook.Irreversible || w.hold.h.Destroys == nil {
		return ""
	}
	return w.hold.h.Destroys(argv)
}

// scopeOf is a scope as it is written; not written, it is empty.
func scopeOf(s *playbook.Scope) (scope Scope) {
	if s == nil {
		return scope
	}
	plain := func(all playbook.Texts) (out []string) {
		for _, t := range all.Value {
			out = append(out, t.Value)
		}
		return out
	}
	return Scope{
		CanRead: plain(s.CanRead), CanWrite: plain(s.CanWrite), CanRun: plain(s.CanRun), CanReach: plain(s.CanReach),
	}
}

func sandboxScope(s Scope, root string) sandbox.Scope {
	return sandbox.Scope{Root: root, Read: s.CanRead, Write: s.CanWrite, Run: s.CanRun, Hosts: s.CanReach}
}

// forbidden says why a step may not begin; nil if it may. What is irreversible, or
// touches money or an identity, begins behind a person's yes of this run.
func (t *hold) forbidden(n int) *steps.Result {
	if !needsPerson(t.step(n)) || t.state.Book.Cleared || cleared(t.state, n) {
		return nil
	}
	r := blocked(ReasonUndeclared, "it is irreversible, or touches money or an identity, and nobody has said yes to it in this run")
	return &r
}

// cleared reports whether a person has said yes to a pause that a step follows.
func cleared(state steps.State, n int) bool {
	if from := state.Steps[n-1].From; from > 0 {
		return cleared(state, from) // a handler's way leads through the step that it is for
	}
	for _, m := range state.Plan.Preceding(n) {
		if s := state.Steps[m-1]; state.Plan.Steps[m-1].Type == steps.Pause && s.Stage == steps.Final && s.Came == steps.Passed {
			return true
		}
	}
	return false
}
