package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/playbook"
)

// Steps whose work is a run of its own: the id of that run is on record before it is
// made, so that whoever takes this run up finds it, or makes it, once.

// following follows the run that is a step's work.
type following struct {
	hold  *hold
	eff   steps.Follow
	state steps.State // as it was when it began
}

// wait waits until there is something to tell.
func (f *following) wait(ctx context.Context) (steps.Event, error) {
	store, step := f.hold.h.Store, f.state.Steps[f.eff.Step-1]
	ref := journal.Ref{Tenant: f.hold.row.Tenant, Run: journal.ID(f.eff.Run)}
	ended := func(r steps.Result) (steps.Event, error) {
		return steps.StepEnded{Stamp: now(), Step: f.eff.Step, Attempt: f.eff.Attempt, Result: r}, nil
	}
	within := ctx
	if timeout := f.hold.step(f.eff.Step).Timeout; timeout.Written() {
		var stop context.CancelFunc
		within, stop = context.WithTimeout(ctx, timeout.Value)
		defer stop()
	}
	for {
		row, err := store.Run(ctx, ref)
		switch {
		case errors.Is(err, journal.ErrNotFound):
			if r := f.make(ctx, ref); r != nil {
				return ended(*r)
			}
			continue
		case ctx.Err() != nil:
			return nil, nil
		case err != nil:
			return nil, err
		case row.Status.Terminal():
			r, err := f.result(ctx, row)
			if err != nil {
				return nil, err
			}
			return ended(r)
		}
		waits := string(row.Status)
		if !waitsFor(row.Status) {
			waits = ""
		}
		if waits != step.WaitsFor {
			return steps.StepWaits{Stamp: now(), Step: f.eff.Step, For: waits}, nil
		}
		if err := store.Await(within, ref, row.Tail.Seq); err != nil && ctx.Err() == nil && within.Err() != nil {
			if err := f.hold.engine.Cancel(ctx, ref, "run "+string(f.hold.row.Run)); err != nil {
				f.hold.h.Log.Debug("not cancelled", "run", ref.Run, "why", err)
			}
			return ended(steps.Result{State: steps.FailedTimeout, Why: "it took longer than " + f.hold.step(f.eff.Step).Timeout.Value.String()})
		}
	}
}

func waitsFor(s journal.Status) bool {
	return s == journal.WaitingApproval || s == journal.WaitingInput || s == journal.WaitingDecision
}

// make makes the run; what it returns is why it could not be made.
func (f *following) make(ctx context.Context, ref journal.Ref) *steps.Result {
	row := f.hold.row
	part := journal.Run{
		Ref: ref, Parent: row.Run, Profile: row.Profile, ProfileDigest: row.ProfileDigest,
		Starter: row.Starter, Capture: row.Capture, Workdir: row.Workdir,
	}
	sc, err := sceneOf(f.state)
	if err == nil {
		switch work := f.hold.step(f.eff.Step).Work.(type) {
		case *playbook.Agent:
			err = f.agent(ctx, sc, work, part)
		case *playbook.Call:
			err = f.call(ctx, sc, work, part)
		}
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	r := failed(err)
	return &r
}

// agent starts a turn.
func (f *following) agent(ctx context.Context, sc scene, work *playbook.Agent, row journal.Run) error {
	text, err := f.hold.script.render(sc, &work.Ask)
	if err != nil {
		return err
	}
	p, err := f.hold.h.Profiles(work.Profile.Value)
	if err != nil {
		return err
	}
	if p.Turn == nil {
		return fmt.Errorf("profile %s has no agents here", p.Name)
	}
	task, err := p.Turn(text, row)
	if err != nil {
		return err
	}
	if limit := time.Duration(work.MaxLatency.Value) * time.Second; limit > 0 {
		task.Limits.Timeout = limit
	}
	_, err = f.hold.engine.Start(ctx, task)
	return err
}

// call starts another playbook, from the files that this run began with.
func (f *following) call(ctx context.Context, sc scene, work *playbook.Call, row journal.Run) error {
	values, err := sc.texts(work.With)
	if err != nil {
		return err
	}
	book := f.state.Book
	created, err := prepare(steps.Book{
		File: called(book.File, work), Files: book.Files, Depth: book.Depth + 1,
		Cleared: book.Cleared || cleared(f.state, f.eff.Step),
	}, values, "")
	if err != nil {
		return err
	}
	row.Kind = journal.PlaybookRun
	_, err = f.hold.h.begin(ctx, row, created)
	return err
}

// result is what a step comes to whose run has ended.
func (f *following) result(ctx context.Context, row journal.Run) (r steps.Result, err error) {
	r = steps.Result{State: steps.Failed, Reason: run.Reason(row.Reason), Why: fmt.Sprintf("run %s is %s (%s)", row.Run, row.Status, row.Reason)}
	switch {
	case row.Status == journal.Completed:
		r = steps.Result{State: steps.Passed}
	case row.Status == journal.Blocked:
		r.State = steps.Blocked
	case row.Status == journal.Cancelled:
		r.State = steps.Cancelled
	case row.Reason == string(run.ReasonTimeout):
		r.State = steps.FailedTimeout
	case row.Reason == string(run.ReasonBudgetExceeded):
		r.State = steps.FailedBudget
	case row.Reason == string(steps.ReasonSchemaInvalid):
		r.State = steps.FailedSchema
	}
	if row.Kind == journal.PlaybookRun {
		return f.playbookResult(ctx, row, r)
	}
	return f.agentResult(ctx, row, r)
}

// playbookResult adds the outputs that a playbook declares.
func (f *following) playbookResult(ctx context.Context, row journal.Run, r steps.Result) (steps.Result, error) {
	state, err := StateOf(ctx, f.hold.h.Store, row.Ref)
	if err != nil {
		return r, err
	}
	usage := state.Usage
	r.Usage = &usage
	if r.State != steps.Passed {
		if why := state.Then.Why; why != "" {
			r.Why = fmt.Sprintf("%s (run %s)", why, row.Run)
		}
		return r, nil
	}
	s, err := open(state.Book)
	if err != nil {
		return failed(err), nil
	}
	sc, err := sceneOf(state)
	if err == nil {
		r.Outputs, err = sc.values(s.pb.Outputs)
	}
	if err != nil {
		return failed(err), nil
	}
	return f.declared(r), nil
}

// agentResult adds what an agent said.
func (f *following) agentResult(ctx context.Context, row journal.Run, r steps.Result) (steps.Result, error) {
	var state run.State
	for rec, err := range f.hold.h.Store.Events(ctx, row.Ref, 0) {
		if err != nil {
			return r, err
		}
		if e, err := run.Unmarshal(rec.Kind, rec.At, rec.Payload); err == nil {
			state = run.Apply(state, e)
		}
	}
	r.Usage, r.Text = &state.Usage, state.Step.Answer.Text
	work, ok := f.hold.step(f.eff.Step).Work.(*playbook.Agent)
	if r.State != steps.Passed || !ok {
		return r, nil
	}
	if spent := state.Usage.Input + state.Usage.Output; work.MaxTokens.Written() && spent > work.MaxTokens.Value {
		r.State = steps.FailedBudget
		r.Why = fmt.Sprintf("it took %d tokens, and may take %d", spent, work.MaxTokens.Value)
		return r, nil
	}
	if work.Output != nil {
		output, err := fits(work.Output, r.Text)
		if err != nil {
			r.State, r.Why = steps.FailedSchema, valid(err.Error())
			return r, nil
		}
		r.Output = output
	}
	return f.declared(r), nil
}

// declared adds the outputs that the step itself declares, in place of what its
// run has of the same name.
func (f *following) declared(r steps.Result) steps.Result {
	w := &attempt{hold: f.hold, n: f.eff.Step, step: f.hold.step(f.eff.Step), state: f.state}
	own := w.outputs(r)
	if own.State != steps.Passed {
		return own
	}
	if len(w.step.Outputs) == 0 {
		return r
	}
	for _, v := range r.Outputs {
		if !hasValue(own.Outputs, v.Name) {
			own.Outputs = append(own.Outputs, v)
		}
	}
	return own
}

func hasValue(all []steps.Value, name string) bool {
	for _, v := range all {
		if v.Name == name {
			return true
		}
	}
	return false
}

// fits reads a text as a value of a schema.
func fits(schema *playbook.Schema, text string) (json.RawMessage, error) {
	compiled, err := schema.Compile()
	if err != nil {
		return nil, err
	}
	if err := compiled.Validate([]byte(text)); err != nil {
		return nil, err
	}
	return json.RawMessage(text), nil
}
