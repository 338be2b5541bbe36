package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
)

// past is a run of two steps, each with two calls, in its third.
func past(t *testing.T) []run.State {
	t.Helper()
	at := func(n int) run.Stamp { return run.At(time.Unix(int64(n), 0)) }
	s := run.State{}
	var asked []run.State // as it was when the model was asked
	apply := func(e run.Event) {
		t.Helper()
		if err := run.Check(s, e); err != nil {
			t.Fatal(err)
		}
		s = run.Apply(s, e)
	}
	apply(run.Created{Stamp: at(1), Task: "look"})
	apply(run.Claimed{Stamp: at(1), By: "w"})
	for step := 1; step <= 3; step++ {
		apply(run.ModelStarted{Stamp: at(2), Step: step, Attempt: 1})
		asked = append(asked, s)
		if step == 3 {
			break
		}
		apply(run.ModelAnswered{Stamp: at(3), Step: step, Attempt: 1, Answer: run.Answer{Text: "hm", Calls: []run.Call{
			{ID: "a", Tool: "list_dir", Args: `{"path":"."}`, Ruling: run.Free, Repeatable: true},
			{ID: "a", Tool: "wipe", Args: `{}`, Ruling: run.Forbidden, Why: "a rule"},
		}}})
		apply(run.CallStarted{Stamp: at(4), Step: step, Call: 1})
		apply(run.CallFinished{Stamp: at(5), Step: step, Call: 1, Text: string(rune('0' + step))})
		apply(run.StepEvaluated{Stamp: at(6), Step: step})
	}
	return asked
}

// TestToldInParts builds what the model is told step by step, as the journal has
// it, and all at once, as it is sent: it is the same, in either protocol.
func TestToldInParts(t *testing.T) {
	for _, protocol := range []string{govern.OpenAI, govern.Anthropic} {
		m := &model{
			profile: profile{Profile: Profile{Protocol: protocol}},
			said:    []chat.Exchange{{Task: "hello", Answer: "hi"}},
		}
		var parts []json.RawMessage
		for told, state := range past(t) {
			call := engine.ModelCall{State: state, Step: told + 1, Attempt: 1}
			more, err := m.Messages(call, told)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, more...)
			again, err := m.Messages(call, told+1) // another attempt at the step
			if err != nil || len(again) != 0 {
				t.Errorf("%s, step %d: another attempt adds %s, %v", protocol, told+1, again, err)
			}
			whole, err := llm.Render(protocol, append(m.opening(state.Task), steps(call, 0)...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(texts(whole), texts(parts)); diff != "" {
				t.Errorf("%s, step %d (-at once +in parts):\n%s", protocol, told+1, diff)
			}
		}
		if len(parts) < 7 {
			t.Errorf("%s: only %d messages", protocol, len(parts))
		}
	}
}

func texts(messages []json.RawMessage) (all []string) {
	for _, m := range messages {
		all = append(all, string(m))
	}
	return all
}

// TestFailed keeps what the loop decides by: whether asking again can help.
func TestFailed(t *testing.T) {
	err := &llm.Error{Retryable: true, Released: true, RetryAfter: time.Second, Message: "busy", Usage: llm.Usage{Input: 3}}
	e := failed(err).(run.ModelFailed)
	if !e.Retryable || !e.Released || e.RetryAfter != time.Second || e.Usage.Input != 3 || e.Error != "ask a model: busy" {
		t.Errorf("%+v", e)
	}
	if e := failed(llm.ErrDangling).(run.ModelFailed); e.Retryable || e.Error != llm.ErrDangling.Error() {
		t.Errorf("%+v", e)
	}
}
