package run

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// oneStep returns the state after one more step: a call that returns 2 KB.
func oneStep(t testing.TB, s State, evaluator *signal.Evaluator) State {
	t.Helper()
	at, n := At(start), s.Step.Number
	take := func(e Event) {
		if err := Check(s, e); err != nil {
			t.Fatal(err)
		}
		s = Apply(s, e)
	}
	take(ModelStarted{Stamp: at, Step: n, Attempt: 1})
	take(ModelAnswered{Stamp: at, Step: n, Attempt: 1, Answer: Answer{Calls: []Call{
		{Tool: "read_file", Args: fmt.Sprintf(`{"path":"%06d"}`, n), Ruling: Free, Repeatable: true},
	}}})
	take(CallStarted{Stamp: at, Step: n, Call: 1})
	take(CallFinished{Stamp: at, Step: n, Call: 1, Text: text2K})
	history := Next(s)[0].(Evaluate).History
	take(StepEvaluated{Stamp: at, Step: n, Evaluation: evaluator.Evaluate(t.Context(), history)})
	return s
}

var text2K = strings.Repeat("0123456789abcdef", 128)

func longRun(t testing.TB, evaluator *signal.Evaluator, steps int) State {
	t.Helper()
	s := Apply(State{}, Created{Stamp: At(start), Limits: Limits{MaxIterations: 1 << 30, Timeout: time.Hour}})
	s = Apply(s, Claimed{Stamp: At(start), By: "w"})
	for range steps {
		s = oneStep(t, s, evaluator)
	}
	return s
}

// TestLinearCost: a step allocates as much at step 1,000 and 10,000 as at step
// 100, evaluation included.
func TestLinearCost(t *testing.T) {
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	perStep := func(depth int) float64 {
		s := longRun(t, evaluator, depth)
		const times = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			oneStep(t, s, evaluator)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / times
	}
	base := perStep(100)
	for _, depth := range []int{1_000, 10_000} {
		got := perStep(depth)
		t.Logf("bytes allocated by a step: %.0f at step 100, %.0f at step %d", base, got, depth)
		if got > 1.1*base {
			t.Errorf("a step allocates %.0f bytes at step 100 and %.0f at step %d", base, got, depth)
		}
	}
}

// TestStatesShareTheirPast: two runs that went apart do not see each other's
// steps, and the steps before are the same ones in memory.
func TestStatesShareTheirPast(t *testing.T) {
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := longRun(t, evaluator, 3)
	a, b := oneStep(t, s, evaluator), oneStep(t, s, evaluator)
	a = oneStep(t, a, evaluator)
	if a.Past.Len() != 5 || b.Past.Len() != 4 || s.Past.Len() != 3 {
		t.Errorf("steps: %d, %d, %d; want 5, 4, 3", a.Past.Len(), b.Past.Len(), s.Past.Len())
	}
	if a.Past.newest.before.before != s.Past.newest || b.Past.newest.before != s.Past.newest {
		t.Error("the states do not share their past")
	}
}

func BenchmarkStep(b *testing.B) {
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, depth := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprint("at step ", depth), func(b *testing.B) {
			s := longRun(b, evaluator, depth)
			b.ReportAllocs()
			for b.Loop() {
				oneStep(b, s, evaluator)
			}
		})
	}
}
