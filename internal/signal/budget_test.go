package signal_test

import (
	"context"
	"errors"
	"math"
	"testing"

	. "github.com/stoplog/stoplog/internal/signal"
)

// cost_budget warns at 80 % of the fullest budget and halts at all of it, and is
// enforced unless a profile says otherwise.
func TestCostBudget(t *testing.T) {
	for name, c := range map[string]struct {
		levels []Level
		result Result
		value  float64
		note   string
	}{
		"none":              {nil, OK, 0, ""},
		"hardly":            {[]Level{{"a", 1, 1000}}, OK, 0, ""},
		"not yet":           {[]Level{{"a", 799, 1000}, {"b", 3, 10}}, OK, 79, ""},
		"nearly":            {[]Level{{"b", 3, 10}, {"a", 800, 1000}}, Warn, 80, "the budget of a is spent to 80 %"},
		"the fullest":       {[]Level{{"a", 85, 100}, {"b", 99, 100}, {"c", 82, 100}}, Warn, 99, "the budget of b is spent to 99 %"},
		"spent":             {[]Level{{"a", 1000, 1000}, {"b", 9, 10}}, Halt, 100, "the budget of a is spent to 100 %"},
		"more than that":    {[]Level{{"a", 2500, 1000}}, Halt, 250, "the budget of a is spent to 250 %"},
		"a budget of zero":  {[]Level{{"a", 0, 0}}, Halt, 100, "the budget of a is spent to 100 %"},
		"absurd":            {[]Level{{"a", math.MaxInt64, 1}}, Halt, 1 << 30, "the budget of a is spent to 1073741824 %"},
		"absurd, and large": {[]Level{{"a", math.MaxInt64 / 2, math.MaxInt64}}, OK, 49, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ev := newEvaluator(t, Options{Budgets: func(context.Context) ([]Level, error) { return c.levels, nil }})
			r := report(t, ev.Evaluate(t.Context(), History{}), "cost_budget")
			if r.Result != c.result || r.Value != c.value || r.Note != c.note || r.Mode != Enforce {
				t.Errorf("%+v, want %s at %v, %q, enforced", r, c.result, c.value, c.note)
			}
		})
	}
	if r := report(t, newEvaluator(t, Options{}).Evaluate(t.Context(), History{}), "cost_budget"); r.Result != OK {
		t.Errorf("without budgets: %+v", r)
	}
}

// Budgets that nobody can read stop the run.
func TestCostBudgetFails(t *testing.T) {
	ev := newEvaluator(t, Options{Budgets: func(context.Context) ([]Level, error) { return nil, errors.New("no ledger") }})
	if w := ev.Evaluate(t.Context(), History{}).Worst(); w.Result != Halt || w.Cause() != "error" || w.Signal != "cost_budget" {
		t.Errorf("worst = %+v, want a halt for an error of cost_budget", w)
	}
}
