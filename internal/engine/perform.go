package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// begin begins what the state asks for, until it asks for nothing that is not
// under way. It reports whether the tenure is over: the run waits, or has ended.
func (t *tenure) begin() (over bool, err error) {
	for {
		before := t.state.Events
		t.retryAt = time.Time{}
		var launches []func()
		demand := run.Order{}
		for _, eff := range run.Next(t.state) {
			switch eff := eff.(type) {
			case run.Wait:
				return true, t.flush(true, &journal.Change{Status: journal.Status(t.state.Status()), WakeAt: eff.Until})
			case run.End:
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
			if err := t.flush(true, nil); err != nil {
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
func (t *tenure) open(eff run.Effect) func() {
	switch eff := eff.(type) {
	case run.Claim:
		t.happen(run.Claimed{Stamp: now(), By: t.e.worker.Owner})
		return nil
	case run.CallModel:
		return t.callModel(eff)
	case run.RunCall:
		return t.runCall(eff)
	case run.Ask:
		return t.ask(eff)
	case run.ReleaseAnswer:
		return t.releaseAnswer(eff)
	case run.Evaluate:
		return t.evaluate(eff)
	case run.CutOff:
		if t.cutOff != nil {
			t.cutOff()
			t.stepCtx, t.cutOff = nil, nil
		}
		return nil
	}
	t.fail(fmt.Errorf("the engine does not know the effect %T", eff))
	return nil
}

// callModel asks the model, when that is due.
func (t *tenure) callModel(eff run.CallModel) func() {
	if time.Now().Before(eff.NotBefore) {
		t.retryAt = eff.NotBefore
		return nil
	}
	call := ModelCall{Run: t.row, State: t.state, Step: eff.Step, Attempt: eff.Attempt, Tools: eff.Tools}
	if err := t.tell(call); err != nil {
		t.fail(err)
		return nil
	}
	if !t.happen(run.ModelStarted{Stamp: now(), Step: eff.Step, Attempt: eff.Attempt}) {
		return nil
	}
	call.State = t.state
	t.ends = nil
	return func() {
		out := t.output(eff.Step, eff.Attempt)
		t.launch(fmt.Sprintf("model %d/%d", eff.Step, eff.Attempt), out, func(ctx context.Context) run.Event {
			return answered(t.agent.Model.Ask(ctx, call, out.show), eff)
		})
	}
}

// tell writes down what the model is to be sent beside what it was sent before.
func (t *tenure) tell(call ModelCall) error {
	messages, err := t.agent.Model.Messages(call, t.told.Parts)
	if err != nil {
		return fmt.Errorf("build the request of step %d: %w", call.Step, err)
	}
	if len(messages) > 0 {
		added, err := t.extend(messages)
		if err != nil {
			return fmt.Errorf("build the request of step %d: %w", call.Step, err)
		}
		entry, err := added.Entry()
		if err != nil {
			return err
		}
		t.note(entry)
		t.told = t.told.with(added)
	}
	t.told.Parts = call.Step
	return nil
}

// extend is what messages make of the list that the model was sent before. A turn
// begins with what was said in its session: the part of that which the turn before
// has written down is named, and not written again.
func (t *tenure) extend(messages []json.RawMessage) (journal.Messages, error) {
	key := t.store.Key()
	if t.told.Parts > 0 || t.row.Session == "" {
		return key.Extend(t.told.List, messages...)
	}
	before, list, err := t.turnBefore()
	if err != nil {
		return journal.Messages{}, err
	}
	var at journal.Digest
	for i, m := range messages {
		next, err := key.Extend(at, m)
		if err != nil {
			return journal.Messages{}, err
		}
		if at = next.List; at == list {
			added, err := key.Extend(list, messages[i+1:]...)
			added.Run = before
			return added, err
		}
	}
	return key.Extend(journal.Digest{}, messages...)
}

// turnBefore finds the turn before this one in its session, and the list of
// messages with which that began; no digest if there is none.
func (t *tenure) turnBefore() (before journal.ID, list journal.Digest, err error) {
	rows, err := t.store.Runs(t.ctx, journal.RunQuery{
		Tenant: t.row.Tenant, Session: t.row.Session, Kind: journal.TurnRun, Before: t.row.Run, Limit: 1,
	})
	if err != nil || len(rows) == 0 {
		return "", list, err
	}
	for r, err := range t.store.Events(t.ctx, rows[0].Ref, 0) {
		if err != nil {
			return "", list, err
		}
		if r.Kind != journal.MessagesAdded {
			continue
		}
		if !r.Purged.IsZero() {
			break
		}
		var m journal.Messages
		err := r.Decode(&m)
		return rows[0].Run, m.List, err
	}
	return "", list, nil
}

// answered is a model's event with what the engine knows.
func answered(e run.Event, eff run.CallModel) run.Event {
	switch e := e.(type) {
	case run.ModelAnswered:
		e.Stamp, e.Step, e.Attempt = now(), eff.Step, eff.Attempt
		return e
	case run.ModelWithheld:
		e.Stamp, e.Step, e.Attempt = now(), eff.Step, eff.Attempt
		return e
	case run.ModelFailed:
		e.Stamp, e.Step, e.Attempt = now(), eff.Step, eff.Attempt
		e.Jitter = rand.IntN(1000)
		return e
	case run.BudgetSpent:
		e.Stamp = now()
		return e
	}
	return run.InternalError{Stamp: now(), Error: fmt.Sprintf("the model answered with a %T", e)}
}

func (t *tenure) runCall(eff run.RunCall) func() {
	w := t.state.Step.Work[eff.Call-1]
	call := ToolCall{
		Run: t.row, Step: eff.Step, Call: eff.Call, Tool: eff.Tool, Args: eff.Args,
		Approved: w.Ruling == run.Gated, Deadline: eff.Deadline,
	}
	if !t.happen(run.CallStarted{Stamp: now(), Step: eff.Step, Call: eff.Call}) {
		return nil
	}
	return func() {
		if t.state.Step.Work[eff.Call-1].Stage != run.Running {
			return // what was to begin beside it could not, and the run has stopped
		}
		t.launch(fmt.Sprintf("%s%d/%d", toolKey, eff.Step, eff.Call), nil, func(ctx context.Context) run.Event {
			r := t.agent.Tools.Call(ctx, call)
			text := strings.ToValidUTF8(r.Text, "\uFFFD") // a journal's text is UTF-8, whatever a tool says
			return run.CallFinished{Stamp: now(), Step: eff.Step, Call: eff.Call, Text: text, Failed: r.Failed}
		})
	}
}

// errNotKept: a guard asked for a person about something that is not kept.
var errNotKept = errors.New("what a guard withheld for a person to decide is not kept by this model")

func (t *tenure) releaseAnswer(eff run.ReleaseAnswer) func() {
	key := fmt.Sprintf("release %d", eff.Step)
	if t.underway[key] {
		return nil
	}
	keeper, ok := t.agent.Model.(Withholder)
	if !ok {
		t.fail(errNotKept)
		return nil
	}
	call := ModelCall{Run: t.row, State: t.state, Step: eff.Step, Attempt: t.state.Step.Attempt}
	return func() {
		out := t.output(eff.Step, t.state.Step.Attempt)
		t.launch(key, out, func(ctx context.Context) run.Event {
			answer, err := keeper.Release(ctx, call, out.show)
			if err != nil {
				return run.InternalError{Stamp: now(), Error: fmt.Sprintf("release the answer of step %d: %v", eff.Step, err)}
			}
			return run.AnswerReleased{Stamp: now(), Step: eff.Step, Answer: answer}
		})
	}
}

func (t *tenure) evaluate(eff run.Evaluate) func() {
	key := fmt.Sprintf("evaluate %d/%d", eff.Step, eff.Pause)
	if t.underway[key] {
		return nil
	}
	return func() {
		t.launch(key, nil, func(ctx context.Context) run.Event {
			verdict := t.judged(ctx, eff.History)
			return run.StepEvaluated{Stamp: now(), Step: eff.Step, Pause: eff.Pause, Evaluation: verdict}
		})
	}
}

// judged is what the evaluator says. One that panics has said halt: nothing goes on
// that was not judged.
func (t *tenure) judged(ctx context.Context, h signal.History) (verdict signal.Evaluation) {
	if t.agent.Evaluator == nil {
		return signal.Evaluation{} // of a run that is to be cancelled, and can come to nothing else
	}
	defer func() {
		if v := recover(); v != nil {
			t.e.Log.Error("panic", "run", t.lease.Run, "in", "the evaluator", "value", v, "stack", string(debug.Stack()))
			verdict = signal.Evaluation{Reports: []signal.Report{{
				Signal: "evaluator", Mode: signal.Enforce, Judgement: signal.Judgement{Result: signal.Halt}, Error: fmt.Sprintf("panic: %v", v),
			}}}
		}
	}()
	return t.agent.Evaluator.Evaluate(ctx, h)
}

// end shows what the run came to.
func (t *tenure) end(eff run.End) error {
	message := eff.Message
	if message != "" && t.agent.Screen != nil {
		message = t.agent.Screen(t.ctx, message)
	}
	t.happen(run.Ended{Stamp: now(), Status: eff.Outcome.Status, Reason: eff.Outcome.Reason, Message: message})
	return t.flush(true, nil)
}
