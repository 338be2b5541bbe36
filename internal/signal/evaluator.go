package signal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// DefaultEnforced is the set of signals that may stop a run where the profile
// does not say: those whose condition no limit of the loop contains. Enforcing
// the others too would stop one run by two mechanisms at two thresholds.
func DefaultEnforced() []string {
	return []string{"classification_violation", "cost_budget", "goal_drift", "loop_detect"}
}

// notBuilt are the signals that have a name and no code yet. They stand in every
// evaluation as not_built, so that a record never reads as if they had agreed.
var notBuilt = []string{"classification_violation", "goal_drift", "loop_detect"}

// Options of an evaluator. The zero value is ready to use.
type Options struct {
	// Enforced names the signals that may stop a run; the others are in shadow.
	// nil means DefaultEnforced, an empty set enforces none.
	Enforced []string
	// StepCap is the limit of step_cap; 0 means DefaultStepCap.
	StepCap int
	// Budgets says how full the budgets are that the runs draw on; nil means that
	// there are none.
	Budgets func(context.Context) ([]Level, error)
	// Signals stand beside the built-in ones, or in the place of those that
	// have their names.
	Signals []Signal
}

// An Evaluator asks all signals about a run. It is safe for use by several
// goroutines.
type Evaluator struct {
	members []member // in order of name
}

type member struct {
	name   string
	mode   Mode
	signal Signal // nil if not built
}

// New returns the evaluator of the options. It fails on a name in Enforced that
// no signal has, and on two signals of one name.
func New(opt Options) (*Evaluator, error) {
	signals := map[string]Signal{}
	for _, n := range notBuilt {
		signals[n] = nil
	}
	for _, s := range []Signal{stepCap{cmp.Or(opt.StepCap, DefaultStepCap)}, actionRepeat{}, toolFailureStreak{}, costBudget{opt.Budgets}} {
		signals[s.Name()] = s
	}
	given := map[string]bool{}
	for _, s := range opt.Signals {
		if given[s.Name()] {
			return nil, fmt.Errorf("signal %q is given twice", s.Name())
		}
		given[s.Name()] = true
		signals[s.Name()] = s
	}

	enforced := opt.Enforced
	if enforced == nil {
		enforced = DefaultEnforced()
	}
	e := &Evaluator{}
	for n, s := range signals {
		mode := Shadow
		if slices.Contains(enforced, n) {
			mode = Enforce
		}
		e.members = append(e.members, member{name: n, mode: mode, signal: s})
	}
	slices.SortFunc(e.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, n := range enforced {
		if _, known := signals[n]; !known {
			return nil, fmt.Errorf("unknown signal %q in enforced_signals: want some of %q", n, e.names())
		}
	}
	return e, nil
}

// NotBuilt returns the names, in order, of the signals that cannot judge because
// they do not exist yet; start-up says them aloud.
func (e *Evaluator) NotBuilt() []string {
	var names []string
	for _, m := range e.members {
		if m.signal == nil {
			names = append(names, m.name)
		}
	}
	return names
}

func (e *Evaluator) names() []string {
	names := make([]string, len(e.members))
	for i, m := range e.members {
		names[i] = m.name
	}
	return names
}

// Evaluate asks every signal about the history. It always returns a report for
// each. A context that is cancelled may fail the signals that ask others, and a
// signal that fails halts: give it one that outlives the run's own deadline.
func (e *Evaluator) Evaluate(ctx context.Context, h History) Evaluation {
	out := Evaluation{Reports: make([]Report, len(e.members))}
	for i, m := range e.members {
		out.Reports[i] = m.report(ctx, h)
	}
	return out
}

// report asks one signal, on a copy of the history so that no signal can change
// what another sees.
func (m member) report(ctx context.Context, h History) Report {
	r := Report{Signal: m.name, Mode: m.mode}
	if m.signal == nil {
		return r
	}
	j, err := judge(ctx, m.signal, h.clone())
	if err == nil && (j.Result < OK || j.Result > Halt) {
		err = fmt.Errorf("signal answered %s", j.Result)
	}
	if err != nil {
		r.Judgement = Judgement{Result: Halt, Critical: true}
		r.Error = err.Error()
		return r
	}
	r.Judgement = j
	return r
}

// judge calls the signal and turns a panic into an error: a bug in a signal is
// no reason to lose the run's record.
func judge(ctx context.Context, s Signal, h History) (j Judgement, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("signal panicked: %v", p)
		}
	}()
	return s.Judge(ctx, h)
}
