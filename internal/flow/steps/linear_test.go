package steps

import (
	"fmt"
	"testing"
)

// long is a plan of n steps, one behind the other.
func long(n int) (p Plan) {
	for i := range n {
		s := Planned{ID: fmt.Sprintf("s%d", i), Type: Run, Attempts: 1}
		if i > 0 {
			s.After = []int{i}
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// through takes a run through all of its steps, and returns its state.
func through(plan Plan) State {
	s := Apply(State{}, Created{Stamp: At(start), Plan: plan})
	s = Apply(s, Claimed{Stamp: At(start), By: "w"})
	for n := range plan.Steps {
		s = Apply(s, StepStarted{Stamp: At(start), Step: n + 1, Attempt: 1})
		s = Apply(s, StepEnded{Stamp: At(start), Step: n + 1, Attempt: 1, Result: Result{State: Passed}})
		s = Apply(s, StepEvaluated{Stamp: At(start), Step: n + 1, Attempt: 1})
	}
	return s
}

func TestLongRun(t *testing.T) {
	const n = 2000
	s := through(long(n))
	if s.Phase != Ending || s.Then.Status != "completed" || s.Ran != n || len(s.Past) != 20 || s.Past[19].Number != n {
		t.Errorf("it is %s, %s, with %d steps run and %d shown", s.Phase, s.Then.Status, s.Ran, len(s.Past))
	}
}

func TestCycle(t *testing.T) {
	p := long(5)
	if n := p.cycle(); n != 0 {
		t.Errorf("step %d follows itself", n)
	}
	p.Steps[1].After = []int{4}
	if why := p.flaw(0); why != "the step s1 follows itself" {
		t.Errorf("it said %q", why)
	}
}

// BenchmarkStep shows that a step of a playbook costs a little more the more steps
// there are in all, and the same wherever it stands: -bench Step, and compare.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			plan := long(n)
			b.ResetTimer()
			for range b.N {
				through(plan)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/step")
		})
	}
}
