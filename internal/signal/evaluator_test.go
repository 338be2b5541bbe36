package signal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/stoplog/stoplog/internal/signal"
)

// says is a signal that always answers the same.
type says struct {
	name string
	Judgement
}

func (s says) Name() string                                      { return s.name }
func (s says) Judge(context.Context, History) (Judgement, error) { return s.Judgement, nil }

// asks is a signal made of a function.
type asks struct {
	name  string
	judge func(History) (Judgement, error)
}

func (a asks) Name() string                                          { return a.name }
func (a asks) Judge(_ context.Context, h History) (Judgement, error) { return a.judge(h) }

func newEvaluator(t *testing.T, opt Options) *Evaluator {
	t.Helper()
	e, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// report returns what the evaluation has of a signal.
func report(t *testing.T, e Evaluation, name string) Report {
	t.Helper()
	for _, r := range e.Reports {
		if r.Signal == name {
			return r
		}
	}
	t.Fatalf("no report of %s in %+v", name, e.Reports)
	return Report{}
}

// TestDefaultEnforced pins the set: changing what can stop a run by default is a
// decision, and this is where it shows.
func TestDefaultEnforced(t *testing.T) {
	want := []string{"classification_violation", "cost_budget", "goal_drift", "loop_detect"}
	if diff := cmp.Diff(want, DefaultEnforced()); diff != "" {
		t.Errorf("enforced by default (-want +got):\n%s", diff)
	}
	e := newEvaluator(t, Options{}).Evaluate(t.Context(), History{Steps: 1, Recent: []Step{{Number: 1}}})
	var enforced []string
	for _, r := range e.Reports {
		if r.Mode == Enforce {
			enforced = append(enforced, r.Signal)
		}
	}
	if diff := cmp.Diff(want, enforced); diff != "" {
		t.Errorf("enforced by an evaluator without options (-want +got):\n%s", diff)
	}
}

// TestEveryEvaluationHasAllSeven: those that are not built stand as not_built,
// and count for nothing.
func TestEveryEvaluationHasAllSeven(t *testing.T) {
	ev := newEvaluator(t, Options{})
	got := ev.Evaluate(t.Context(), History{Steps: 1, Recent: []Step{{Number: 1}}})
	shadow := func(name string, value, limit float64) Report {
		return Report{Signal: name, Mode: Shadow, Judgement: Judgement{Result: OK, Value: value, Limit: limit}}
	}
	missing := func(name string) Report {
		return Report{Signal: name, Mode: Enforce, Judgement: Judgement{Result: NotBuilt}}
	}
	want := Evaluation{Reports: []Report{
		shadow("action_repeat", 0, 3),
		missing("classification_violation"),
		{Signal: "cost_budget", Mode: Enforce, Judgement: Judgement{Result: OK, Limit: 100}},
		missing("goal_drift"),
		missing("loop_detect"),
		shadow("step_cap", 1, 20),
		shadow("tool_failure_streak", 0, 3),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
	if w := got.Worst(); w.Result != OK || w.Signal != "" {
		t.Errorf("worst = %+v, want ok of nobody", w)
	}
	notBuilt := []string{"classification_violation", "goal_drift", "loop_detect"}
	if diff := cmp.Diff(notBuilt, ev.NotBuilt()); diff != "" {
		t.Errorf("not built (-want +got):\n%s", diff)
	}
}

// TestGivenSignals: a signal given to the evaluator stands in for the one that is
// not built, and enforces as its name is enforced.
func TestGivenSignals(t *testing.T) {
	loop := says{"loop_detect", Judgement{Result: Halt, Note: "round and round"}}
	own := says{"own", Judgement{Result: Halt}}
	ev := newEvaluator(t, Options{Signals: []Signal{loop, own}})
	if slices.Contains(ev.NotBuilt(), "loop_detect") {
		t.Errorf("not built: %v, and loop_detect was given", ev.NotBuilt())
	}
	e := ev.Evaluate(t.Context(), History{})
	if w := e.Worst(); w.Cause() != "loop_detect" || w.Result != Halt {
		t.Errorf("worst = %+v, want loop_detect's halt", w)
	}
	if r := report(t, e, "own"); r.Mode != Shadow || r.Would() != "would_halt" {
		t.Errorf("own = %+v, would %q: want shadow, would_halt", r, r.Would())
	}
	if len(e.Reports) != 8 {
		t.Errorf("%d reports, want the seven and one", len(e.Reports))
	}
}

func TestWorst(t *testing.T) {
	for name, c := range map[string]struct {
		signals  []Signal
		enforced []string
		result   Result
		cause    string
	}{
		"nothing": {nil, []string{}, OK, ""},
		"warn is no stop": {
			[]Signal{says{"a", Judgement{Result: Warn}}}, []string{"a"}, Warn, "a",
		},
		"halt beats approval, whatever the names": {
			[]Signal{says{"a", Judgement{Result: RequireApproval}}, says{"b", Judgement{Result: Halt}}},
			[]string{"a", "b"}, Halt, "b",
		},
		"ties by name": {
			[]Signal{says{"b", Judgement{Result: Halt}}, says{"a", Judgement{Result: Halt}}},
			[]string{"b", "a"}, Halt, "a",
		},
		"shadow has no say": {
			[]Signal{says{"a", Judgement{Result: Halt, Critical: true}}, says{"b", Judgement{Result: RequireApproval}}},
			[]string{"b"}, RequireApproval, "b",
		},
		"critical is never a soft pause": {
			[]Signal{says{"a", Judgement{Result: RequireApproval, Critical: true}}}, []string{"a"}, Halt, "a",
		},
		"no answer is an answer that failed": {
			[]Signal{says{"a", Judgement{}}}, []string{"a"}, Halt, "error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEvaluator(t, Options{Signals: c.signals, Enforced: c.enforced}).Evaluate(t.Context(), History{}).Worst()
			if w.Result != c.result || (c.cause != "" && w.Cause() != c.cause) {
				t.Errorf("worst = %s by %q, want %s by %q", w.Result, w.Cause(), c.result, c.cause)
			}
		})
	}
}

// TestSignalFails: closed where it is enforced, without a say where it is not,
// and the others are asked all the same.
func TestSignalFails(t *testing.T) {
	fails := map[string]func(History) (Judgement, error){
		"error": func(History) (Judgement, error) { return Judgement{Result: OK}, errors.New("no model") },
		"panic": func(h History) (Judgement, error) { return Judgement{Note: h.Recent[7].Text}, nil },
		"range": func(History) (Judgement, error) { return Judgement{Result: 9}, nil },
	}
	for how, judge := range fails {
		t.Run(how, func(t *testing.T) {
			signals := []Signal{asks{"goal_drift", judge}, says{"zz", Judgement{Result: Warn}}}
			e := newEvaluator(t, Options{Signals: signals}).Evaluate(t.Context(), History{})
			if w := e.Worst(); w.Result != Halt || w.Cause() != "error" || w.Signal != "goal_drift" {
				t.Errorf("enforced: worst = %+v, want a halt for an error of goal_drift", w)
			}
			if r := report(t, e, "zz"); r.Result != Warn {
				t.Errorf("the signal after it: %+v, want warn", r)
			}
			e = newEvaluator(t, Options{Signals: signals, Enforced: []string{}}).Evaluate(t.Context(), History{})
			if w := e.Worst(); w.Result != OK {
				t.Errorf("in shadow: worst = %+v, want ok", w)
			}
			if r := report(t, e, "goal_drift"); r.Would() != "would_halt" || r.Error == "" {
				t.Errorf("in shadow: %+v, want a failure that would halt", r)
			}
		})
	}
}

// TestShadowChangesNothing: what signals say is the same whichever of them are
// enforced, and whatever one of them does to the history it is shown.
func TestShadowChangesNothing(t *testing.T) {
	vandal := asks{"a_vandal", func(h History) (Judgement, error) {
		h.Recent[0].Calls[0].Tool = "gone"
		h.Recent[0] = Step{}
		return Judgement{Result: Halt}, nil
	}}
	call := Call{Tool: "read_file", Args: `{"path":"a"}`, Ran: true, Failed: true}
	h := History{Steps: 3, Recent: []Step{
		{Number: 1, Calls: []Call{call}}, {Number: 2, Calls: []Call{call}}, {Number: 3, Calls: []Call{call}},
	}}
	kept := History{Steps: 3, Recent: []Step{
		{Number: 1, Calls: []Call{call}}, {Number: 2, Calls: []Call{call}}, {Number: 3, Calls: []Call{call}},
	}}
	judgements := func(opt Options) map[string]Judgement {
		m := map[string]Judgement{}
		for _, r := range newEvaluator(t, opt).Evaluate(t.Context(), h).Reports {
			m[r.Signal] = r.Judgement
		}
		delete(m, "a_vandal")
		return m
	}
	alone := judgements(Options{Enforced: []string{}})
	for name, opt := range map[string]Options{
		"enforced":      {Enforced: []string{"action_repeat", "tool_failure_streak", "step_cap"}},
		"with a vandal": {Signals: []Signal{vandal}},
	} {
		if diff := cmp.Diff(alone, judgements(opt)); diff != "" {
			t.Errorf("%s (-alone +got):\n%s", name, diff)
		}
	}
	if alone["action_repeat"].Result != Halt || alone["tool_failure_streak"].Result != Halt {
		t.Errorf("judgements = %+v, want both streaks to trip", alone)
	}
	if diff := cmp.Diff(kept, h); diff != "" {
		t.Errorf("the history changed (-before +after):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Options{Enforced: []string{"loop_detekt"}})
	if err == nil || !strings.Contains(err.Error(), `unknown signal "loop_detekt" in enforced_signals`) || !strings.Contains(err.Error(), `"loop_detect"`) {
		t.Errorf("unknown name: %v, want an error that names it and what there is", err)
	}
	_, err = New(Options{Signals: []Signal{says{name: "a"}, says{name: "a"}}})
	if err == nil || !strings.Contains(err.Error(), `signal "a" is given twice`) {
		t.Errorf("two of a name: %v", err)
	}
}

func TestNames(t *testing.T) {
	for r := NotBuilt; r <= Halt; r++ {
		var got Result
		if err := got.UnmarshalText([]byte(r.String())); got != r || err != nil {
			t.Errorf("%s reads as %s, %v", r, got, err)
		}
	}
	for m := Enforce; m <= Shadow; m++ {
		var got Mode
		if err := got.UnmarshalText([]byte(m.String())); got != m || err != nil {
			t.Errorf("%s reads as %s, %v", m, got, err)
		}
	}
	var r Result
	if err := r.UnmarshalText([]byte("fine")); err == nil {
		t.Error(`"fine" reads as a result`)
	}
}
