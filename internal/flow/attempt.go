package flow

import (
	"context"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/playbook"
)

// An attempt is one try of a step whose work is done here: a command, or a question
// to a model.
type attempt struct {
	hold        *hold
	n, number   int
	step        *playbook.Step
	state       steps.State // as it was when the attempt was opened
	observation *observation
}

// run does the work. An error means that its end is not known.
func (w *attempt) run(ctx context.Context) (steps.Event, error) {
	began := time.Now()
	var r steps.Result
	var err error
	switch work := w.step.Work.(type) {
	case *playbook.Run:
		r, err = w.command(ctx, work)
	case *playbook.Claude:
		r = w.claude(ctx, work)
	default:
		r = failed(fmt.Errorf("nothing here does a %T", work))
	}
	if err != nil {
		return nil, err
	}
	if r.State == steps.Passed {
		r = w.outputs(r)
	}
	r.Took = time.Since(began)
	r.Why = valid(r.Why)
	if w.observation != nil {
		w.observation.ended(r)
	}
	if r.State == steps.Cancelled && ctx.Err() != nil {
		return nil, nil // the run was stopped, or whoever takes it up begins it again
	}
	return steps.StepEnded{Stamp: now(), Step: w.n, Attempt: w.number, Result: r}, nil
}

// outputs adds the outputs that the step declares.
func (w *attempt) outputs(r steps.Result) steps.Result {
	if len(w.step.Outputs) == 0 {
		return r
	}
	sc, err := sceneOf(w.state)
	if err == nil {
		sc, err = sc.with(w.step.ID.Value, r)
	}
	if err == nil {
		r.Outputs, err = sc.values(w.step.Outputs)
	}
	if err != nil {
		r.State, r.Why = steps.Failed, "its output "+err.Error()
	}
	return r
}

func failed(why error) steps.Result {
	return steps.Result{State: steps.Failed, Why: valid(why.Error())}
}

func blocked(reason run.Reason, format string, args ...any) steps.Result {
	return steps.Result{State: steps.Blocked, Reason: reason, Why: valid(fmt.Sprintf(format, args...))}
}
