package steps

import (
	"fmt"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Reasons that only playbooks have, beside those of package run.
const (
	ReasonStepFailed     run.Reason = "step_failed"
	ReasonVerdict        run.Reason = "verdict" // a verdict that is mapped to fail
	ReasonSchemaInvalid  run.Reason = "schema_invalid"
	ReasonObserverFailed run.Reason = "observer_failed"
	ReasonCondition      run.Reason = "condition_error"
)

// reasons are what a step's end says of the run's.
var reasons = map[Standing]run.Reason{
	Failed: ReasonStepFailed, FailedTimeout: run.ReasonTimeout, FailedBudget: run.ReasonBudgetExceeded,
	FailedSchema: ReasonSchemaInvalid, Blocked: ReasonVerdict, Cancelled: run.ReasonCancelled,
}

// evaluated takes the evaluator's record, and decides what the step leads to.
func evaluated(s State, e StepEvaluated) State {
	worst := e.Evaluation().Worst()
	if worst.Result == signal.Halt {
		why := fmt.Sprintf("the signal %s halted the run", worst.Signal)
		if worst.Error != "" {
			why = fmt.Sprintf("the signal %s could not judge the run", worst.Signal)
		}
		return stop(s, run.Outcome{Status: run.StatusBlocked, Reason: run.Reason("signal_" + worst.Cause()), Why: why})
	}
	do := s.decide(e.Step)
	if worst.Result == signal.RequireApproval && !do.end.settled {
		asks := leading{Action: Action{Do: AskFirst}, why: "the signal " + worst.Signal + " asks"}
		do = severest(do, asks)
	}
	return s.carry(e.Step, do)
}

// A leading is what an attempt leads to, and why.
type leading struct {
	Action
	why string
	// end is what the step comes to if it leads to its failure.
	end end
}

// end is a step's end.
type end struct {
	came    Standing
	reason  run.Reason
	settled bool // a person, a guard or a signal has stopped it: nothing lifts that
}

func severest(a, b leading) leading {
	if severer(a.Action, b.Action) == a.Action {
		return a
	}
	return b
}

// decide is what an attempt leads to, by its own end and by what its observer says.
func (s State) decide(n int) leading {
	p, step := s.Plan.step(n), s.Step(n)
	own := s.own(p, step)
	if !p.Observed || step.Observed.Verdict == "" || own.end.settled {
		return own
	}
	verdict := step.Observed.Verdict
	act, mapped := leads(p.Observer, verdict)
	seen := leading{Action: act, why: fmt.Sprintf("its observer said %s", verdict), end: end{Blocked, ReasonVerdict, false}}
	switch {
	case verdict == ObserverFailed:
		seen.why = "its observer failed"
		seen.end = end{Failed, ReasonObserverFailed, false}
	case !mapped:
		seen.why = fmt.Sprintf("its observer said %s, which nothing maps", verdict)
	}
	if step.Observed.Why != "" && act.Do != Continue {
		seen.why += ": " + step.Observed.Why
	}
	if step.Result.State != Passed {
		seen.end = own.end // that it failed does not become better by being observed
	}
	return severest(own, seen)
}

// own is what an attempt leads to by its own end.
func (s State) own(p Planned, step *Step) leading {
	r := step.Result
	why := r.Why
	if why == "" {
		why = "it ended as " + string(r.State)
	}
	switch {
	case r.State == Passed && p.Type == Claude:
		act, mapped := leads(p.Verdicts, r.Verdict)
		why := fmt.Sprintf("its verdict is %s", r.Verdict)
		if !mapped {
			why += ", which nothing maps"
		}
		return leading{act, why, end{Blocked, ReasonVerdict, false}}
	case r.State == Passed:
		return leading{Action: Action{Do: Continue}, end: end{Blocked, ReasonVerdict, false}}
	case r.State.Broke() && step.Tries < p.Attempts && !p.Irreversible:
		return leading{Action{Do: Retry}, why, end{r.State, r.Reason, false}}
	}
	settled := r.State == Blocked || r.State == Cancelled
	return leading{Action{Do: Fail}, why, end{r.State, r.Reason, settled}}
}

// carry does what an attempt leads to.
func (s State) carry(n int, do leading) State {
	p, step := s.Plan.step(n), s.Step(n)
	if act, _ := leads(p.Observer, step.Observed.Verdict); p.Tickets && step.Observed.Verdict != "" && act.Do != Continue {
		s = s.with(n, func(p *Step) { p.File = true })
	}
	switch do.Do {
	case Continue:
		return s.pass(n, "")
	case Retry:
		if p.Irreversible || step.Tries >= p.Attempts {
			do.why += fmt.Sprintf(" (attempts: %d)", step.Tries)
			return s.fail(n, do)
		}
		return s.with(n, func(p *Step) { p.Stage, p.After = Due, s.Events }).waitFor(n)
	case AskFirst:
		return s.with(n, func(p *Step) {
			p.Stage, p.After, p.Question = Asking, s.Events, Question{About: AboutVerdict, Why: do.why}
		})
	case Goto:
		return s.goTo(n, do, do.To)
	}
	return s.fail(n, do)
}

// waitFor has the next attempt wait for its turn: the host counts from the event.
func (s State) waitFor(n int) State {
	return s.with(n, func(p *Step) { p.NotBefore = s.Last.Add(s.Plan.step(n).backoff(p.Tries + 1)) })
}

// fail is the end of a step that did not pass, unless its on_fail has a say.
func (s State) fail(n int, do leading) State {
	p := s.Plan.step(n)
	onFail := p.OnFail
	if do.end.settled {
		onFail = Action{Do: Fail}
	}
	if from := s.Step(n).From; p.Handler && from > 0 {
		s = s.final(n, do.end.came, do.end.reason, do.why, false)
		origin := s.Step(from)
		s = s.final(from, origin.Came, origin.Reason, origin.Why, false)
		return stop(s, s.outcome(from))
	}
	switch onFail.Do {
	case Continue:
		return s.final(n, do.end.came, do.end.reason, do.why, true)
	case Goto:
		return s.goTo(n, do, onFail.To)
	}
	return s.final(n, do.end.came, do.end.reason, do.why, false)
}

// pass is the end of a step that has passed. Where it is a handler, the step that
// led to it goes on from here.
func (s State) pass(n int, why string) State {
	p, from := s.Plan.step(n), s.Step(n).From
	s = s.final(n, Passed, "", why, true)
	if !p.Handler || from == 0 {
		return s
	}
	origin := s.Step(from)
	s = s.with(n, func(h *Step) { h.From = 0 })
	switch p.Then.Do {
	case Continue:
		return s.final(from, Passed, "", "the handler "+p.ID+" has seen to it", true)
	case Goto:
		do := leading{why: origin.Why, end: end{origin.Came, origin.Reason, false}}
		return s.goTo(from, do, p.Then.To)
	}
	return s.final(from, origin.Came, origin.Reason, origin.Why, false)
}

// decided carries out a person's decision. What a person has stopped is stopped.
func decided(s State, e Decided) State {
	n := s.open(e.ID)
	if !e.Approved {
		why := "denied by " + e.By
		if e.Reason != "" {
			why += ": " + e.Reason
		}
		return s.refused(n, run.ReasonApprovalDenied, why)
	}
	about := s.Step(n).Question.About
	s = s.with(n, func(p *Step) { p.Approved, p.Question, p.After = true, Question{}, s.Events })
	if about == AboutVerdict {
		return s.pass(n, "approved by "+e.By)
	}
	s = s.with(n, func(p *Step) {
		p.Tries, p.Started = 1, p.Started+1
		p.Result = Result{State: Passed, Verdict: "approved", Text: e.Reason}
	})
	return s.judge(n, false)
}

// refused is the end of a step that a person did not let go on.
func (s State) refused(n int, reason run.Reason, why string) State {
	s = s.with(n, func(p *Step) { p.Question = Question{} })
	return s.fail(n, leading{why: why, end: end{Blocked, reason, true}})
}

// resolved carries out what a person says of a step in doubt.
func resolved(s State, e Resolved) State {
	switch e.Choice {
	case run.Retry:
		return s.with(e.Step, func(p *Step) { p.Stage, p.After = Due, s.Events })
	case run.TakeAsDone:
		s = s.with(e.Step, func(p *Step) {
			p.Result = Result{State: Passed, Stdout: e.Text, Text: e.Text, Why: "taken as done by " + e.By}
			p.Approved = true
		})
		return s.judge(e.Step, false)
	}
	return stop(s, run.Outcome{Status: run.StatusCancelled, Reason: run.ReasonAbandoned, Why: e.By + " abandoned the run"})
}
