package steps

import (
	"slices"

	"github.com/stoplog/stoplog/internal/run"
)

// settle looks at the run after something in it has changed: it gives steps their
// turn, passes over those that can have none, and sees whether the run rests or has
// come to its end.
func settle(s State) State {
	if s.Phase != Advancing && s.Phase != Resting {
		return s
	}
	for moved := true; moved; {
		moved = false
		for n := 1; n <= len(s.Steps); n++ {
			if !s.stirs(n) {
				continue
			}
			var did bool
			if s, did = s.settleStep(n); did {
				moved = true
			}
			if s.Phase == Ending {
				return s
			}
		}
	}
	return s.restOrEnd()
}

// stirs reports whether there may be something to do for a step. It is asked of every
// step after every event, and so it copies nothing.
func (s *State) stirs(n int) bool {
	switch s.Steps[n-1].Stage {
	case Handing, Turning:
		return true
	case Idle:
		p := &s.Plan.Steps[n-1]
		for _, a := range p.After {
			if s.Steps[a-1].Stage != Final {
				return false
			}
		}
		return !p.Handler
	}
	return false
}

// settleStep does for a step what is decided already.
func (s State) settleStep(n int) (State, bool) {
	switch step, p := s.Step(n), s.Plan.step(n); step.Stage {
	case Idle:
		if s.turningAbove(n) {
			return s, false
		}
		if !s.all(p.After, func(a *Step) bool { return a.Lifts }) {
			return s.final(n, Skipped, "", "what it follows did not pass", false), true
		}
		return s.enter(n), true
	case Handing:
		h := s.Step(step.To)
		if h.From == n || h.active() {
			return s, false
		}
		return s.lead(n), true
	case Turning:
		if s.busyBehind(step.To, n) {
			return s, false
		}
		return s.turnBack(n), true
	}
	return s, false
}

func (s State) all(numbers []int, is func(*Step) bool) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return !is(s.Step(n)) })
}

// enter begins with a step: its condition comes first.
func (s State) enter(n int) State {
	if s.Plan.step(n).When {
		return s.with(n, func(p *Step) { p.Stage = Weighing })
	}
	return s.turn(n)
}

// restOrEnd ends the run when nothing is left to do, and lets it rest when all that
// is left is up to others.
func (s State) restOrEnd() State {
	busy, waits := false, false
	for _, p := range s.Steps {
		busy = busy || p.busy()
		waits = waits || p.waits()
	}
	switch {
	case busy:
		s.Phase = Advancing
	case waits:
		if s.Phase != Resting {
			s.Phase, s.Held = Resting, false
		}
	default:
		return s.close()
	}
	return s
}

// close is the end of a run whose steps have all come to theirs.
func (s State) close() State {
	for i, p := range s.Steps {
		if p.Stage != Final {
			why := "no step led to it"
			if !s.Plan.Steps[i].Handler {
				why = "what it follows did not run"
			}
			s = s.final(i+1, Skipped, "", why, false)
		}
	}
	s.Phase = Ending
	s.Then = run.Outcome{Status: run.StatusCompleted, Reason: run.ReasonCompleted}
	if first := s.first(); first > 0 {
		s.Then = s.outcome(first)
	}
	return s
}

// first is the step that stopped the run first; 0: none has.
func (s State) first() (n int) {
	for i, p := range s.Steps {
		stopped := p.Came != Passed && p.Came != Skipped && !p.Lifts
		if stopped && (n == 0 || p.Ended < s.Step(n).Ended) {
			n = i + 1
		}
	}
	return n
}

// stop ends the run for a reason from outside its steps. What is open is closed as
// it stands.
func stop(s State, why run.Outcome) State {
	if s.Phase == Ending || s.Phase == Over {
		return s
	}
	for i, p := range s.Steps {
		switch {
		case p.Stage == Final:
			continue
		case p.Stage == Idle:
			s = s.final(i+1, Skipped, "", "the run was stopped", false)
			continue
		case p.Stage == Going || p.Stage == Observing:
			s.Cut = true
		}
		s = s.final(i+1, Cancelled, why.Reason, why.Why, false)
	}
	s.Phase, s.Then = Ending, why
	return s
}

// final closes a step.
func (s State) final(n int, came Standing, reason run.Reason, why string, lifts bool) State {
	return s.with(n, func(p *Step) {
		p.Stage, p.Came, p.Reason, p.Why, p.Lifts, p.Ended = Final, came, reason, why, lifts, s.Events
	})
}

// outcome is what the run comes to because of a step.
func (s State) outcome(n int) run.Outcome {
	p := s.Step(n)
	o := run.Outcome{Status: run.StatusFailed, Reason: p.Reason, Why: "the step " + s.Plan.step(n).ID + " did not pass: " + p.Why}
	switch p.Came {
	case Blocked:
		o.Status = run.StatusBlocked
	case Cancelled:
		o.Status = run.StatusCancelled
	}
	if o.Reason == "" {
		o.Reason = reasons[p.Came]
	}
	return o
}
