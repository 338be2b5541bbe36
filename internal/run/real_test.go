package run

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/signal"
)

// TestRealRuns plays 100 recorded conversations of an airline's agent with its
// customers: each message of a customer begins a run, and the agent's answers
// and its tools' results are what the host would have seen. Every run ends with
// what the agent said, evaluated once a step; and no limit stops one of those
// that solved their task.
func TestRealRuns(t *testing.T) {
	const file = "../../../shared/data/runs-airline.jsonl.gz"
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recorded runs: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}

	seen := tally{reasons: map[Reason]int{}, would: map[string]int{}}
	lines := bufio.NewScanner(zipped)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c conversation
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		c.play(t, evaluator, &seen)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns, %d steps, ended: %v; signals in shadow: %v", seen.turns, seen.steps, seen.reasons, seen.would)
	if seen.turns < 500 || seen.steps < 1000 {
		t.Errorf("%d turns of %d steps: the recording is longer", seen.turns, seen.steps)
	}
}

type tally struct {
	turns, steps int
	reasons      map[Reason]int
	would        map[string]int
}

// conversation is a recorded one.
type conversation struct {
	ID       any     `json:"id"`
	Reward   float64 `json:"reward"`
	Messages []struct {
		Role      string `json:"role"`
		Content   string `json:"content"`
		ToolCalls []struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

func (c conversation) play(t *testing.T, evaluator *signal.Evaluator, seen *tally) {
	var s State
	at := At(start)
	take := func(e Event) {
		t.Helper()
		if err := Check(s, e); err != nil {
			t.Fatalf("conversation %v: %v", c.ID, err)
		}
		s = Apply(s, reread(t, e))
	}
	evaluate := func() {
		for _, e := range Next(s) {
			if e, ok := e.(Evaluate); ok {
				seen.steps++
				evaluation := evaluator.Evaluate(t.Context(), e.History)
				for _, r := range evaluation.Reports {
					if w := r.Would(); w != "" {
						seen.would[r.Signal+" "+w]++
					}
				}
				take(StepEvaluated{Stamp: at, Step: e.Step, Pause: e.Pause, Evaluation: evaluation})
			}
		}
	}
	finish := func() {
		if s.Phase != Ending {
			return // the recording breaks off in this turn
		}
		take(Ended{Stamp: at, Status: s.Then.Status, Reason: s.Then.Reason, Message: s.farewell()})
		seen.reasons[s.Reason()]++
		if c.Reward == 1 && s.Status() != StatusCompleted {
			t.Errorf("conversation %v solved its task, and was stopped: %s", c.ID, s.Message)
		}
	}
	call := 0
	for _, m := range c.Messages {
		switch m.Role {
		case "user":
			finish()
			seen.turns++
			s = State{}
			take(Created{Stamp: at, Task: m.Content})
			take(Claimed{Stamp: at, By: "w"})
		case "assistant":
			if s.Phase != Ready {
				continue // a limit has stopped the run that went on in the recording
			}
			a := Answer{Text: m.Content}
			for _, tc := range m.ToolCalls {
				a.Calls = append(a.Calls, Call{ID: tc.ID, Tool: tc.Name, Args: tc.Arguments, Ruling: Free})
			}
			call = 0
			take(ModelStarted{Stamp: at, Step: s.Step.Number, Attempt: 1})
			take(ModelAnswered{Stamp: at, Step: s.Step.Number, Attempt: 1, Answer: a})
			if len(a.Calls) == 0 && s.Step.Answer.Text != m.Content {
				t.Errorf("conversation %v: the answer is %q, want %q", c.ID, s.Step.Answer.Text, m.Content)
			}
			evaluate()
		case "tool":
			if s.Phase != Working {
				continue
			}
			call++
			take(CallStarted{Stamp: at, Step: s.Step.Number, Call: call})
			take(CallFinished{Stamp: at, Step: s.Step.Number, Call: call, Text: m.Content, Failed: strings.HasPrefix(m.Content, "Error")})
			evaluate()
		}
	}
	finish()
}
