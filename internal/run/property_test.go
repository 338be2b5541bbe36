package run

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stoplog/stoplog/internal/signal"
)

// TestAnyEvents throws events at a run in any order: those that are called for,
// those that might come, and those that make no sense. Whatever comes, the
// invariants hold, the way is in the table, and a run that has ended stays as it
// is.
func TestAnyEvents(t *testing.T) {
	seen := map[edge]bool{}
	rapid.Check(t, func(t *rapid.T) {
		var r *rehearsal
		for range 200 {
			if r == nil || r.state.Phase == Over && rapid.Bool().Draw(t, "another run") {
				r = &rehearsal{t: t, seen: seen, clock: start}
				r.apply(Created{Stamp: At(start), Task: "task", Limits: anyLimits(t)})
			}
			r.clock = r.clock.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute}).Draw(t, "later"))
			before := r.state
			err := r.apply(anyEvent(t, r))
			if before.Phase == Over && err == nil {
				t.Fatalf("an event was taken after the end")
			}
			if before.Phase == Ending && r.state.Then != before.Then {
				t.Fatalf("the outcome was %v and is %v", before.Then, r.state.Then)
			}
			if r.state.Phase == Over {
				r.replay()
			}
		}
	})
	arrows := 0
	for _, row := range Transitions {
		arrows += len(row.To)
	}
	t.Logf("went along %d of the %d arrows of the table", len(seen), arrows)
	if len(seen) < arrows/2 {
		t.Errorf("went along %d of the %d arrows of the table: the events are too tame", len(seen), arrows)
	}
}

func anyLimits(t *rapid.T) Limits {
	return Limits{
		MaxIterations: rapid.IntRange(1, 5).Draw(t, "max iterations"),
		Malformed:     rapid.IntRange(1, 3).Draw(t, "malformed limit"),
		ToolErrors:    rapid.IntRange(1, 4).Draw(t, "tool error limit"),
		Stall:         rapid.IntRange(2, 3).Draw(t, "stall limit"),
		ModelAttempts: rapid.IntRange(1, 3).Draw(t, "model attempts"),
	}
}

func anyAnswer(t *rapid.T) Answer {
	a := Answer{
		Text:   rapid.SampledFrom([]string{"", "words", "other words"}).Draw(t, "text"),
		Finish: rapid.SampledFrom([]Finish{Stop, Stop, Stop, Length, Refusal}).Draw(t, "finish"),
	}
	for i := range rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "calls") {
		a.Calls = append(a.Calls, Call{
			ID:         fmt.Sprintf("call_%d", i+1),
			Tool:       rapid.SampledFrom([]string{"read_file", "run_command"}).Draw(t, "tool"),
			Args:       rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{`}).Draw(t, "args"),
			Ruling:     rapid.SampledFrom([]Ruling{Free, Free, Free, Gated, Gated, Forbidden, AskUser, Unknown, Malformed, Withheld}).Draw(t, "ruling"),
			Why:        "why",
			Repeatable: rapid.Bool().Draw(t, "repeatable"),
			Poller:     rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "poller"),
		})
	}
	return a
}

// anyEvaluation is what the real evaluator makes of the history, with a signal
// in it that says anything.
func anyEvaluation(t *rapid.T, h signal.History) signal.Evaluation {
	says := rapid.SampledFrom([]string{"ok", "ok", "ok", "ok", "warn", "require_approval", "halt"}).Draw(t, "signal says")
	evaluator, err := signal.New(signal.Options{Signals: []signal.Signal{puppet{"loop_detect", "says", says}}})
	if err != nil {
		t.Fatal(err)
	}
	return evaluator.Evaluate(t.Context(), h)
}

// ends are the kinds that would soon end every run if they came as often as the
// others.
var ends = []string{"budget_spent", "cancelled", "expired", "internal_error", "timed_out"}

// anyKind draws a kind of event: mostly one that takes the run further, now and
// then one that has a place in the phase, and seldom any at all.
func anyKind(t *rapid.T, s State) string {
	var further, possible []string
	for _, row := range Transitions {
		if row.From != s.Phase {
			continue
		}
		possible = append(possible, row.On)
		if !slices.Contains(ends, row.On) && (row.On != "claimed" || !s.Clock.Held) {
			further = append(further, row.On)
		}
	}
	kinds := further
	switch dice := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}).Draw(t, "dice"); {
	case !s.Clock.Held && slices.Contains(possible, "claimed") && dice > 2:
		return "claimed"
	case dice == 1 || len(further) == 0:
		return rapid.SampledFrom(slices.Sorted(maps.Keys(codecs))).Draw(t, "any kind")
	case dice == 2:
		kinds = possible
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")
}

// anyEvent draws an event. Its numbers are most often those of the state.
func anyEvent(t *rapid.T, r *rehearsal) Event {
	at := At(r.clock)
	near := func(n int, what string) int {
		return n + rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1}).Draw(t, what)
	}
	step := near(r.state.Step.Number, "step")
	attempt := near(r.state.Step.Attempt, "attempt")
	call := rapid.IntRange(1, 3).Draw(t, "call")
	id := rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "id")
	var question Question
	if len(r.state.Questions) > 0 {
		question = rapid.SampledFrom(r.state.Questions).Draw(t, "question")
	}
	switch anyKind(t, r.state) {
	case "created":
		return Created{Stamp: at}
	case "claimed":
		return Claimed{Stamp: at, By: "w"}
	case "model_started":
		return ModelStarted{Stamp: at, Step: step, Attempt: attempt + 1}
	case "model_answered":
		return ModelAnswered{Stamp: at, Step: step, Attempt: attempt, Answer: anyAnswer(t)}
	case "model_withheld":
		return ModelWithheld{Stamp: at, Step: step, Attempt: attempt, Deny: rapid.Bool().Draw(t, "deny"), Request: rapid.Bool().Draw(t, "request")}
	case "model_failed":
		return ModelFailed{Stamp: at, Step: step, Attempt: attempt, Retryable: rapid.Bool().Draw(t, "retryable"), Released: rapid.Bool().Draw(t, "released"), Jitter: rapid.IntRange(0, 999).Draw(t, "jitter")}
	case "budget_spent":
		return BudgetSpent{Stamp: at, Envelope: "day"}
	case "call_started":
		return CallStarted{Stamp: at, Step: step, Call: call}
	case "call_finished":
		return CallFinished{Stamp: at, Step: step, Call: call, Text: "result", Failed: rapid.Bool().Draw(t, "failed")}
	case "asked":
		return Asked{Stamp: at, Step: step, About: question.About, Call: question.Call, ID: id, Expires: r.clock.Add(time.Hour)}
	case "decided":
		return Decided{Stamp: at, ID: question.ID, Approved: rapid.Bool().Draw(t, "approved"), By: "ann"}
	case "replied":
		return Replied{Stamp: at, ID: question.ID, Text: "reply"}
	case "expired":
		return Expired{Stamp: at, ID: question.ID}
	case "resolved":
		return Resolved{Stamp: at, Step: step, Call: call, Choice: rapid.SampledFrom([]Choice{Retry, Retry, TakeAsDone, Abandon}).Draw(t, "choice")}
	case "answer_released":
		return AnswerReleased{Stamp: at, Step: step, Answer: anyAnswer(t)}
	case "step_evaluated":
		pause := 0
		if r.state.Phase == Pausing {
			pause = near(r.state.Pauses+1, "pause")
		}
		return StepEvaluated{Stamp: at, Step: step, Pause: pause, Evaluation: anyEvaluation(t, r.state.history(pause))}
	case "timed_out":
		return TimedOut{at}
	case "internal_error":
		return InternalError{Stamp: at, Error: "error"}
	case "ended":
		return Ended{Stamp: at, Status: r.state.Then.Status, Reason: r.state.Then.Reason}
	}
	return Cancelled{Stamp: at, By: "ann"}
}
