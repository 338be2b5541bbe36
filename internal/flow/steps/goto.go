package steps

import (
	"fmt"

	"github.com/stoplog/stoplog/internal/run"
)

// goTo leads from a step that did not pass to another: to a handler, or back.
func (s State) goTo(n int, do leading, to int) State {
	s = s.with(n, func(p *Step) {
		p.Came, p.Reason, p.Why, p.To = do.end.came, do.end.reason, do.why, to
		p.Stage = Turning
		if s.Plan.step(to).Handler {
			p.Stage = Handing
		}
	})
	return s
}

// lead begins with the handler that a step leads to.
func (s State) lead(n int) State {
	to := s.Step(n).To
	s = s.with(to, func(h *Step) {
		*h = Step{From: n, Started: h.Started, Back: h.Back, Ticket: h.Ticket}
	})
	if p := s.Plan.step(to); p.Irreversible && s.Step(to).Started > 0 {
		return s.fail(to, leading{
			why: "it is irreversible, and was started before", end: end{Blocked, run.ReasonMaxIterations, true},
		})
	}
	return s.enter(to)
}

// turningAbove reports whether a goto is about to lead back to before a step: then
// it does not begin.
func (s State) turningAbove(n int) bool {
	for _, p := range s.Steps {
		if p.Stage == Turning && s.Plan.followers(p.To)[n] {
			return true
		}
	}
	return false
}

// busyBehind reports whether anything that follows a step is under way, but for the
// step whose goto leads back there.
func (s State) busyBehind(to, but int) bool {
	for n := range s.Plan.followers(to) {
		if n != but && s.Step(n).active() {
			return true
		}
	}
	return false
}

// turnBack leads back: the step that the goto names, and all that follow it, have
// yet to come. It is refused past the ceiling, and where it would repeat what is
// irreversible.
func (s State) turnBack(n int) State {
	to := s.Step(n).To
	p := s.Plan.step(to)
	again := s.Plan.followers(to)
	if !again[n] {
		return s.final(n, Blocked, ReasonVerdict, fmt.Sprintf("%s, and %s is not before it: there is no going back there", s.Step(n).Why, p.ID), false)
	}
	if ceiling := p.Ceiling; s.Step(to).Back >= ceiling {
		return s.final(n, Blocked, run.ReasonMaxIterations, fmt.Sprintf(
			"%s, and the run has been led back to %s %d times, which is its ceiling", s.Step(n).Why, p.ID, ceiling), false)
	}
	for m := range s.Steps {
		if p := s.Plan.Steps[m]; again[m+1] && p.Irreversible && s.Steps[m].Started > 0 {
			return s.final(n, Blocked, run.ReasonMaxIterations, fmt.Sprintf(
				"%s, and going back to %s would repeat %s, which is irreversible", s.Step(n).Why, s.Plan.step(to).ID, p.ID), false)
		}
	}
	for m := range again {
		s = s.with(m, func(p *Step) {
			*p = Step{Started: p.Started, Back: p.Back, Ticket: p.Ticket}
			if m == to {
				p.Back++
			}
		})
	}
	return s
}
