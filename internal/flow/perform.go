package flow

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
	"github.com/stoplog/stoplog/playbook"
)

// begin begins what the state asks for, until it asks for nothing that is not under
// way. It reports whether the hold is over: the run rests, or has ended.
func (t *hold) begin() (over bool, err error) {
	for {
		before := t.state.Events
		t.retryAt = time.Time{}
		var launches []func()
		demand := run.Order{}
		for _, eff := range steps.Next(t.state) {
			switch eff := eff.(type) {
			case steps.Wait:
				return true, t.flush(&journal.Change{Status: journal.Status(t.state.Status()), WakeAt: eff.Until})
			case steps.End:
				return true, t.end(eff)
			default:
				if t.draining {
					continue
				}
				if launch := t.open(eff); launch != nil {
					launches = append(launches, launch)
					demand.After = max(demand.After, eff.Needs().After)
					demand.Fence = demand.Fence || eff.Needs().Fence
				}
			}
		}
		if demand.Fence || demand.After > t.durable {
			if err := t.flush(nil); err != nil {
				return false, err
			}
		}
		for _, launch := range launches {
			launch()
		}
		if t.state.Events == before {
			return false, nil
		}
	}
}

// open does what is to be written before an effect, and returns what is to be done
// once that is as durable as the effect demands; nil for nothing.
func (t *hold) open(eff steps.Effect) func() {
	switch eff := eff.(type) {
	case steps.Claim:
		t.happen(steps.Claimed{Stamp: now(), By: t.hand.Owner})
		return nil
	case steps.Weigh:
		t.happen(t.weigh(eff.Step))
		return nil
	case steps.Start:
		return t.start(eff)
	case steps.Follow:
		return t.once(fmt.Sprintf("follow %d", eff.Step), (&following{t, eff, t.state}).wait)
	case steps.Observe:
		return t.once(fmt.Sprintf("observe %d/%d", eff.Step, eff.Attempt), t.hear(eff))
	case steps.Evaluate:
		return t.once(fmt.Sprintf("evaluate %d/%d", eff.Step, eff.Attempt), func(ctx context.Context) (steps.Event, error) {
			signals := steps.SignalsOf(t.judged(ctx, eff.History))
			return steps.StepEvaluated{Stamp: now(), Step: eff.Step, Attempt: eff.Attempt, Signals: signals}, nil
		})
	case steps.FileTicket:
		return t.once(fmt.Sprintf("ticket %d", eff.Step), t.ticket(eff))
	case steps.Ask:
		return t.ask(eff)
	case steps.CutOff:
		t.cut()
		return nil
	}
	t.fail(fmt.Errorf("nothing here performs a %T", eff))
	return nil
}

// once begins something that nothing opens, unless it is under way.
func (t *hold) once(key string, fn func(context.Context) (steps.Event, error)) func() {
	if t.underway[key] {
		return nil
	}
	return func() { t.launch(key, false, fn) }
}

// step is what the playbook says of a step.
func (t *hold) step(n int) *playbook.Step { return t.script.pb.Steps[n-1] }

func (t *hold) weigh(n int) steps.Event {
	e := steps.Weighed{Stamp: now(), Step: n}
	sc, err := sceneOf(t.state)
	if err == nil {
		e.Holds, err = sc.holds(t.step(n).When)
	}
	if err != nil {
		e.Error = valid(err.Error())
	}
	return e
}

// start begins an attempt, when it is due.
func (t *hold) start(eff steps.Start) func() {
	if time.Now().Before(eff.NotBefore) {
		if t.retryAt.IsZero() || eff.NotBefore.Before(t.retryAt) {
			t.retryAt = eff.NotBefore
		}
		return nil
	}
	started := steps.StepStarted{Stamp: now(), Step: eff.Step, Attempt: eff.Attempt}
	planned := t.state.Plan.Steps[eff.Step-1]
	apart := planned.Type == steps.Agent || planned.Type == steps.Playbook
	why := t.forbidden(eff.Step)
	if apart && why == nil {
		id, err := t.engine.NewID(journal.RunPrefix)
		if err != nil {
			t.fail(err)
			return nil
		}
		started.Run = string(id)
	}
	state := t.state
	if !t.happen(started) {
		return nil
	}
	if why != nil {
		t.happen(steps.StepEnded{Stamp: now(), Step: eff.Step, Attempt: eff.Attempt, Result: *why})
		return nil
	}
	if apart {
		return func() {} // it is followed
	}
	w := &attempt{hold: t, n: eff.Step, number: eff.Attempt, step: t.step(eff.Step), state: state}
	if w.step.Observer != nil {
		w.observation = t.observe(w)
	}
	return func() {
		key := fmt.Sprintf("step %d", eff.Step)
		t.launch(key, !planned.Repeatable, func(ctx context.Context) (steps.Event, error) { return w.run(ctx) })
	}
}

// judged is what the evaluator says. One that panics has said halt: nothing goes on
// that was not judged.
func (t *hold) judged(ctx context.Context, h signal.History) (verdict signal.Evaluation) {
	halt := func(why string) signal.Evaluation {
		return signal.Evaluation{Reports: []signal.Report{{
			Signal: "evaluator", Mode: signal.Enforce, Judgement: signal.Judgement{Result: signal.Halt}, Error: why,
		}}}
	}
	if t.profile.Evaluator == nil {
		return halt("the profile has none")
	}
	defer func() {
		if v := recover(); v != nil {
			t.h.Log.Error("panic", "run", t.row.Run, "in", "the evaluator", "value", v, "stack", string(debug.Stack()))
			verdict = halt(fmt.Sprintf("panic: %v", v))
		}
	}()
	return t.profile.Evaluator.Evaluate(ctx, h)
}

// cut ends whatever is under way, and waits for it: the end shows when nothing runs
// any more. Runs that are steps' work are cancelled.
func (t *hold) cut() {
	if t.wasCut {
		return
	}
	t.wasCut = true
	t.cutOff()
	for i, p := range t.state.Plan.Steps {
		step := t.state.Steps[i]
		if (p.Type != steps.Agent && p.Type != steps.Playbook) || step.Run == "" || step.Came != steps.Cancelled {
			continue
		}
		ref := journal.Ref{Tenant: t.row.Tenant, Run: journal.ID(step.Run)}
		if err := t.engine.Cancel(t.ctx, ref, "run "+string(t.row.Run)); err != nil {
			t.h.Log.Debug("not cancelled", "run", step.Run, "why", err)
		}
	}
	for len(t.underway) > 0 {
		a := <-t.inbox // each ends with the context
		delete(t.underway, a.key)
	}
	clear(t.fenced)
	t.stepsCtx, t.cutOff = context.WithCancel(t.ctx)
}

// end shows what the run came to.
func (t *hold) end(eff steps.End) error {
	message := screened(t.ctx, t.profile.Guards, "message", eff.Message)
	t.happen(steps.Ended{Stamp: now(), Status: eff.Outcome.Status, Reason: eff.Outcome.Reason, Message: message})
	return t.flush(&journal.Change{Status: journal.Status(eff.Outcome.Status), Reason: string(eff.Outcome.Reason)})
}

// screened is a text as the guards let it out.
func screened(ctx context.Context, guards []guard.Member, channel, text string) string {
	if text == "" {
		return ""
	}
	f := guard.NewFilter(guard.NewChain(guard.Options{}, guards...).Open(ctx, guard.Channel{Name: channel, Role: "tool"}))
	out, _ := f.Write(nil, []byte(text))
	out, step := f.Close(out)
	if step.Stop != nil {
		return fmt.Sprintf("[withheld by %s]", step.Stop.Rule)
	}
	return valid(string(out))
}
