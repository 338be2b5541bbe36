package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Messages implements [engine.Model].
func (w *worker) Messages(c engine.ModelCall, from int) ([]json.RawMessage, error) {
	var said []llm.Message
	if from == 0 {
		first, err := w.opening(context.Background(), c)
		if err != nil {
			return nil, err
		}
		said, from = first, 1
	}
	for _, s := range steps(c.State, from) {
		said = append(said, message(s))
	}
	if len(said) == 0 {
		return nil, nil
	}
	return llm.Render(w.Protocol, said)
}

// opening is what the model is told before the first step: what was said in the
// session, and the task.
func (w *worker) opening(ctx context.Context, c engine.ModelCall) ([]llm.Message, error) {
	before, err := chat.Before(ctx, w.store, c.Run)
	if err != nil {
		return nil, err
	}
	var said []llm.Message
	for _, x := range before {
		said = append(said, llm.User{Text: x.Task}, llm.Assistant{Text: x.Answer})
	}
	return append(said, llm.User{Text: c.State.Task}), nil
}

// steps are the steps that are over, from a number on, the oldest first.
func steps(s run.State, from int) []run.Step {
	var out []run.Step
	for step := range s.Past.Backward() {
		if step.Number < from {
			break
		}
		out = append(out, step)
	}
	slices.Reverse(out)
	return out
}

// message is what a step added to the conversation.
func message(s run.Step) llm.Assistant {
	m := llm.Assistant{Text: s.Answer.Text, Kept: json.RawMessage(s.Answer.Kept)}
	for _, work := range s.Work {
		m.Calls = append(m.Calls, llm.Call{
			ID: work.ID, Tool: work.Tool, Args: work.Args,
			Result: &llm.Result{Text: work.Result.Text, Failed: work.Result.Kind == run.Errored || work.Result.Kind == run.Lost},
		})
	}
	return m
}

// Ask implements [engine.Model].
func (w *worker) Ask(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
	request, session, done, err := w.request(ctx, c)
	if err != nil {
		return run.ModelFailed{Error: err.Error()}
	}
	defer done()
	ctx = govern.WithProtocol(govern.WithProfile(ctx, c.Run.Profile), w.Protocol)
	for e, err := range w.client.Ask(ctx, request) {
		if err != nil {
			return failed(err)
		}
		switch e := e.(type) {
		case llm.Delta:
			show(e.Kind.String(), e.Text)
		case llm.Finished:
			return run.ModelAnswered{Answer: answer(e.Answer, session, c.Step)}
		case llm.Withheld:
			return run.ModelWithheld{Request: e.Request, Deny: true, Guard: e.Guard, Rule: e.Rule, Text: e.Text, Usage: usage(e.Usage)}
		}
	}
	return run.ModelFailed{Error: "the answer has no end", Retryable: true}
}

// request is all that the model is sent.
func (w *worker) request(ctx context.Context, c engine.ModelCall) (llm.Request, *govern.Session, func(), error) {
	said, err := w.opening(ctx, c)
	if err != nil {
		return llm.Request{}, nil, nil, err
	}
	for _, s := range steps(c.State, 1) {
		said = append(said, message(s))
	}
	session, done, err := w.session(c.Run)
	if err != nil {
		return llm.Request{}, nil, nil, err
	}
	r := llm.Request{Model: w.Model, System: w.System, Messages: said, NoCalls: !c.Tools}
	for _, spec := range session.Tools() {
		r.Tools = append(r.Tools, llm.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return r, session, done, nil
}

// answer is a model's answer with what the rules make of its calls.
func answer(a llm.Answer, s *govern.Session, step int) run.Answer {
	out := run.Answer{Text: a.Text, Thought: a.Thought, Kept: string(a.Kept), Usage: usage(a.Usage)}
	switch a.Finish {
	case llm.Length:
		out.Finish = run.Length
	case llm.Refused:
		out.Finish = run.Refusal
	}
	for i, c := range a.Calls {
		call := run.Call{ID: c.ID, Tool: c.Tool, Args: c.Args}
		call.Ruling, call.Why = ruling(s.Judge(govern.Call{Step: step, Number: i + 1, Tool: c.Tool, Args: c.Args}))
		if spec, ok := s.Spec(c.Tool); ok {
			call.Repeatable, call.Poller = spec.Effect.Repeatable(), spec.Poller
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

// ruling is a session's decision in the loop's words.
func ruling(d govern.Decision) (run.Ruling, string) {
	switch d := d.(type) {
	case govern.Allowed:
		return run.Free, ""
	case govern.NeedsApproval:
		return run.Gated, ""
	case govern.Denied:
		switch d.Ground {
		case govern.UnknownTool:
			return run.Unknown, d.Why
		case govern.Malformed:
			return run.Malformed, d.Why
		case govern.Withheld:
			return run.Withheld, d.Why
		}
		return run.Forbidden, d.Why
	}
	return run.Forbidden, "a decision that is not known"
}

// failed is an error of a model call. One of the context's means that nobody
// listens any more.
func failed(err error) run.ModelFailed {
	var e *llm.Error
	if !errors.As(err, &e) {
		return run.ModelFailed{Error: err.Error(), Retryable: true}
	}
	return run.ModelFailed{Error: e.Error(), Retryable: e.Retryable, Released: e.Released, RetryAfter: e.RetryAfter, Usage: usage(e.Usage)}
}

func usage(u llm.Usage) signal.Usage {
	return signal.Usage{Input: u.Input, Output: u.Output, Estimated: u.Estimated}
}

var _ engine.Model = (*worker)(nil)
