package steps

import (
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Apply returns the state that the event leads to. An event that Check refuses
// leads nowhere: the state is returned as it was.
func Apply(s State, e Event) State {
	if Check(s, e) != nil {
		return s
	}
	s.Events++
	if e.When().After(s.Last) {
		s.Last = e.When()
	}
	return settle(take(s, e))
}

// take hands the event to the function that knows what it means.
func take(s State, e Event) State {
	switch e := e.(type) {
	// A run is made, and a worker takes it up.
	case Created:
		return create(s, e)
	case Claimed:
		return takeUp(s)

	// A step has its turn: it is weighed, tried, observed and judged.
	case Weighed:
		return weighed(s, e)
	case StepStarted:
		return started(s, e)
	case StepWaits:
		return s.with(e.Step, func(p *Step) { p.WaitsFor = e.For })
	case StepEnded:
		return ended(s, e)
	case Observed:
		s.Usage = plus(s.Usage, e.Usage)
		return s.with(e.Step, func(p *Step) {
			p.Observed, p.Stage = e, Judging
			p.Observed.Stamp = Stamp{}
		})
	case StepEvaluated:
		return evaluated(s, e)

	// People are asked, and they decide or they do not.
	case Asked:
		return s.with(e.Step, func(p *Step) {
			p.Stage, p.Preview = Open, e.Preview
			p.Question.ID, p.Question.Digest, p.Question.Expires = e.ID, e.Digest, At(e.Expires).at
		})
	case Decided:
		return decided(s, e)
	case Expired:
		n := s.open(e.ID)
		return s.refused(n, run.ReasonApprovalExpired, "nobody decided in time")
	case Resolved:
		return resolved(s, e)

	case Filed:
		return s.with(e.Step, func(p *Step) { p.Ticket, p.File = e.Ticket, false })
	case RunCancelled:
		return stop(s, run.Outcome{Status: run.StatusCancelled, Reason: run.ReasonCancelled, Why: e.By + " cancelled the run"})
	case InternalError:
		return stop(s, internalError("an error inside stoplog"))
	case Ended:
		s.Phase, s.Message, s.Held = Over, e.Message, false
	}
	return s
}

func internalError(why string) run.Outcome {
	return run.Outcome{Status: run.StatusFailed, Reason: run.ReasonInternalError, Why: why}
}

// create makes the run. What comes before the step at which it is to begin counts
// as passed, but for pauses: nobody is passed over who must say yes.
func create(s State, e Created) State {
	s.Book, s.Plan, s.Phase = e.Book, e.Plan, Advancing
	s.Steps = make([]*Step, len(e.Plan.Steps))
	var before map[int]bool
	if e.From > 0 {
		before = e.Plan.precedes(e.From)
	}
	for i, p := range e.Plan.Steps {
		s.Steps[i] = &Step{}
		if before[i+1] && p.Type != Pause {
			s.Steps[i] = &Step{
				Stage: Final, Came: Skipped, Lifts: true,
				Why: "passed over: the run began at " + e.Plan.step(e.From).ID,
			}
		}
	}
	return s
}

// maxLost is how many workers a step may take down with it.
const maxLost = 3

// takeUp gives the run to a worker. Whatever a worker before it had under way is
// lost: what is safe to repeat is started again, and anything else is in doubt. A
// run that is a step's work has not gone: it is followed again.
func takeUp(s State) State {
	s.Held = true
	for i, p := range s.Plan.Steps {
		if s.Steps[i].Stage != Going || p.apart() {
			continue
		}
		s = s.with(i+1, func(step *Step) {
			step.Lost++
			step.Stage = InDoubt
			step.Tries--
			if p.Repeatable {
				step.Stage = Due
			}
		})
		if s.Steps[i].Lost > maxLost {
			return stop(s, internalError(fmt.Sprintf("worker after worker was lost in the step %s", p.ID)))
		}
	}
	return s
}

func weighed(s State, e Weighed) State {
	switch {
	case e.Error != "":
		why := "its condition could not be evaluated: " + e.Error
		return s.fail(e.Step, leading{why: why, end: end{Blocked, ReasonCondition, true}})
	case !e.Holds:
		lifts := s.Plan.step(e.Step).OnFail.Do == Continue
		s = s.final(e.Step, Skipped, "", "its condition does not hold", lifts)
		if from := s.Step(e.Step).From; from > 0 {
			origin := s.Step(from) // its handler does nothing for it
			s = s.final(from, origin.Came, origin.Reason, origin.Why, false)
		}
		return s
	}
	return s.turn(e.Step)
}

// turn gives a step its turn.
func (s State) turn(n int) State {
	p := s.Plan.step(n)
	return s.with(n, func(step *Step) {
		step.Tries, step.NotBefore, step.After = 0, time.Time{}, s.Events
		step.Stage = Due
		if p.Type == Pause {
			step.Stage, step.Question = Asking, Question{About: AboutPause}
		}
	})
}

func started(s State, e StepStarted) State {
	return s.with(e.Step, func(p *Step) {
		p.Stage, p.Run, p.WaitsFor = Going, e.Run, ""
		p.Started++
		p.Tries++
		p.Result, p.Observed = Result{}, Observed{}
	})
}

// ended takes what an attempt came to. Its observer has the word, and then the
// evaluator.
func ended(s State, e StepEnded) State {
	s.Usage = plus(s.Usage, e.Result.Usage)
	s = s.with(e.Step, func(p *Step) { p.Result, p.WaitsFor = e.Result, "" })
	return s.judge(e.Step, s.Plan.step(e.Step).Observed && e.Result.State != Cancelled)
}

// judge has what a step came to observed, and judged.
func (s State) judge(n int, observed bool) State {
	s.Ran++
	s.Past = append(s.Past[max(0, len(s.Past)+1-signal.Window):len(s.Past):len(s.Past)], s.seen(n))
	return s.with(n, func(p *Step) {
		p.Stage = Judging
		if observed {
			p.Stage = Observing
		}
	})
}

func plus(a signal.Usage, b *signal.Usage) signal.Usage {
	if b == nil {
		return a
	}
	return signal.Usage{Input: a.Input + b.Input, Output: a.Output + b.Output, Estimated: a.Estimated || b.Estimated}
}

// Next returns what is to be begun in the state, in order. It is a function of the
// state: asked twice, it says the same.
//
// Effects that nothing opens (Weigh, Follow, Observe, Evaluate, File) are listed
// until they are answered: a host begins them once in a tenure.
func Next(s State) []Effect {
	switch {
	case s.Phase == Fresh || s.Phase == Over:
		return nil
	case s.Phase == Resting:
		return []Effect{s.wait()}
	case !s.Held:
		return []Effect{Claim{}}
	case s.Phase == Ending:
		return s.ending()
	}
	var todo []Effect
	for i := range s.Steps {
		if e := s.next(i + 1); e != nil {
			todo = append(todo, e)
		}
		if s.Steps[i].File {
			todo = append(todo, s.file(i+1))
		}
	}
	return todo
}

// ending is what is left to do once the outcome is decided: tickets come before it
// shows.
func (s State) ending() []Effect {
	var todo []Effect
	if s.Cut {
		todo = append(todo, CutOff{})
	}
	files := 0
	for i := range s.Steps {
		if s.Steps[i].File {
			todo = append(todo, s.file(i+1))
			files++
		}
	}
	if files > 0 {
		return todo
	}
	return append(todo, End{order: order{run.Order{After: s.Events, Fence: true}}, Outcome: s.Then, Message: s.farewell()})
}

// next is what is to be begun for a step; nil for nothing.
func (s State) next(n int) Effect {
	step, p := s.Step(n), s.Plan.step(n)
	switch step.Stage {
	case Weighing:
		return Weigh{Step: n}
	case Due:
		return Start{
			order: order{run.Order{After: step.After, Fence: !p.Repeatable || p.apart()}},
			Step:  n, Attempt: step.Started + 1, NotBefore: step.NotBefore,
		}
	case Going:
		if p.apart() {
			return Follow{order: order{run.Order{After: s.Events}}, Step: n, Attempt: step.Started, Run: step.Run}
		}
	case Observing:
		return Observe{Step: n, Attempt: step.Started}
	case Judging:
		return Evaluate{Step: n, Attempt: step.Started, History: s.history()}
	case Asking:
		return Ask{order: order{run.Order{After: step.After, Fence: true}}, Step: n, About: step.Question.About}
	}
	return nil
}

func (s State) file(n int) Effect {
	step := s.Step(n)
	kind := step.Observed.Verdict
	return FileTicket{
		order: order{run.Order{After: s.Events}}, Step: n, Kind: kind,
		What: fmt.Sprintf("the observer of step %s said %s", s.Plan.step(n).ID, kind),
	}
}

func (s State) wait() Effect {
	w := Wait{order: order{run.Order{After: s.Events}}}
	for _, p := range s.Steps {
		if p.Stage == Open && (w.Until.IsZero() || p.Question.Expires.Before(w.Until)) {
			w.Until = p.Question.Expires
		}
	}
	return w
}
