package agent

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// model is a model as the engine asks it. It implements [engine.Model].
type model struct {
	profile  profile
	said     []chat.Exchange // in the session, before the run
	sessions *sessions
	client   *llm.Client
}

// Messages implements [engine.Model]: of none told, what was said in the session,
// and the task; then the steps.
func (m *model) Messages(c engine.ModelCall, told int) ([]json.RawMessage, error) {
	var all []llm.Message
	if told == 0 {
		all = m.opening(c.State.Task)
	}
	return llm.Render(m.profile.Protocol, append(all, steps(c, told)...))
}

// opening is what comes before the first step.
func (m *model) opening(task string) (all []llm.Message) {
	for _, e := range m.said {
		all = append(all, llm.User{Text: e.Task}, llm.Assistant{Text: e.Answer})
	}
	return append(all, llm.User{Text: task})
}

// steps is what the model is told of the steps behind the first told ones.
func steps(c engine.ModelCall, told int) (all []llm.Message) {
	for step := range c.State.Past.Backward() {
		if step.Number < max(told, 1) {
			break
		}
		all = append(all, assistant(step))
	}
	slices.Reverse(all)
	return all
}

// assistant is a step as the model is told of it. An answer that nothing could be
// made of, and that has no calls, goes back as what it was.
func assistant(s run.Step) llm.Message {
	a := llm.Assistant{Text: s.Answer.Text}
	if s.Answer.Kept != "" {
		a.Kept = json.RawMessage(s.Answer.Kept)
	}
	for _, w := range s.Work {
		a.Calls = append(a.Calls, llm.Call{
			ID: w.ID, Tool: w.Tool, Args: w.Args,
			Result: &llm.Result{Text: w.Result.Text, Failed: w.Result.Kind != run.Returned},
		})
	}
	return a
}

// Ask implements [engine.Model].
func (m *model) Ask(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
	answered, err := m.ask(ctx, c, m.client, show)
	if err != nil {
		return failed(err)
	}
	if w, ok := answered.(run.ModelWithheld); ok && !w.Deny && !m.keeps(ctx, c, w) {
		w.Deny = true // nobody can let through what is not kept
		answered = w
	}
	return answered
}

// ask asks through a client.
func (m *model) ask(ctx context.Context, c engine.ModelCall, client *llm.Client, show engine.Show) (answered run.Event, err error) {
	request := llm.Request{
		Model: m.profile.Model, System: m.profile.System, NoCalls: !c.Tools,
		Messages: append(m.opening(c.State.Task), steps(c, 0)...),
	}
	err = m.sessions.with(c.Run, func(session *govern.Session) (err error) {
		for _, t := range session.Tools() {
			request.Tools = append(request.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
		}
		answered, err = m.listen(ctx, c, client, request, session, show)
		return err
	})
	return answered, err
}

// listen asks, and reads the answer to its end.
func (m *model) listen(ctx context.Context, c engine.ModelCall, client *llm.Client, r llm.Request, s *govern.Session, show engine.Show) (run.Event, error) {
	var calls []llm.Call
	for e, err := range client.Ask(govern.WithParent(govern.WithProfile(ctx, m.profile.Name), string(c.Run.Run)), r) {
		if err != nil {
			return nil, err
		}
		switch e := e.(type) {
		case llm.Delta:
			show(e.Kind.String(), e.Text)
		case llm.CallReady:
			calls = append(calls, e.Call)
		case llm.Withheld:
			return run.ModelWithheld{
				Request: e.Request, Deny: e.Deny, Guard: e.Guard, Rule: e.Rule, Text: e.Text, Usage: usage(e.Usage),
			}, nil
		case llm.Spent:
			return run.BudgetSpent{Envelope: e.Reason, Usage: usage(e.Usage)}, nil
		case llm.Finished:
			return run.ModelAnswered{Answer: answer(e.Answer, judged(s, c.Step, calls))}, nil
		}
	}
	return nil, errors.New("the model's answer has no end")
}

// answer is what a model said, as the loop keeps it.
func answer(a llm.Answer, calls []run.Call) run.Answer {
	return run.Answer{
		Text: a.Text, Thought: a.Thought, Kept: string(a.Kept), Calls: calls, Usage: usage(a.Usage),
		Finish: map[llm.Finish]run.Finish{llm.Stop: run.Stop, llm.Length: run.Length, llm.Refused: run.Refusal}[a.Finish],
	}
}

// judged asks the session what the tool rules make of calls.
func judged(s *govern.Session, step int, calls []llm.Call) (all []run.Call) {
	for i, c := range calls {
		call := run.Call{ID: c.ID, Tool: c.Tool, Args: c.Args}
		if spec, ok := s.Spec(c.Tool); ok {
			call.Repeatable, call.Poller = spec.Effect.Repeatable(), spec.Poller
		}
		switch d := s.Judge(govern.Call{Step: step, Number: i + 1, Tool: c.Tool, Args: c.Args}).(type) {
		case govern.Allowed:
			call.Ruling = run.Free
		case govern.NeedsApproval:
			call.Ruling = run.Gated
		case govern.Denied:
			call.Ruling, call.Why = rulings[d.Ground], d.Why
		}
		all = append(all, call)
	}
	return all
}

var rulings = map[govern.Ground]run.Ruling{
	govern.Forbidden: run.Forbidden, govern.UnknownTool: run.Unknown,
	govern.Malformed: run.Malformed, govern.Withheld: run.Withheld,
}

// failed is a call that has no answer.
func failed(err error) run.Event {
	e := run.ModelFailed{Error: err.Error(), Jitter: rand.IntN(1000)}
	var own *llm.Error
	if errors.As(err, &own) {
		e.Retryable, e.Released, e.RetryAfter, e.Usage = own.Retryable, own.Released, own.RetryAfter, usage(own.Usage)
	}
	return e
}

func usage(u llm.Usage) signal.Usage {
	return signal.Usage{Input: u.Input, Output: u.Output, Estimated: u.Estimated}
}
