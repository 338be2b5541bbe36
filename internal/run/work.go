package run

import "slices"

// Work is a call that the model asked for, and how far it has come.
type Work struct {
	Call
	Stage Stage
	// After is the number of the event that let the call run: a decision about
	// it, or the answer that asked for it.
	After  int
	Ran    bool // it was started, whatever came of it
	Result Result
}

// Stage is how far a call has come.
type Stage uint8

const (
	Held    Stage = iota // a person must decide, or reply
	Due                  // to be run
	Running              // started, and its end is not known
	InDoubt              // started, its end was lost, and it may not be repeated
	Done                 // its result is known
)

var stageNames = [...]string{"held", "due", "running", "in_doubt", "done"}

// Result is what the model is told of a call.
type Result struct {
	Kind ResultKind
	Text string
}

// ResultKind says how a call ended.
type ResultKind uint8

const (
	NotRun   ResultKind = iota // refused, denied, withheld, or left off
	Returned                   // the tool answered
	Errored                    // the tool failed, or there is none of that name
	Lost                       // the run ended while the call was under way, or in doubt
)

var resultKindNames = [...]string{"not_run", "returned", "errored", "lost"}

func result(e CallFinished) Result {
	if e.Failed {
		return Result{Errored, e.Text}
	}
	return Result{Returned, e.Text}
}

// plan turns the calls of an answer into work, by what the tool rules made of
// each. Calls that need a person wait for it; the others do not wait for them.
func plan(s State, calls []Call) State {
	s.Step.Work = make([]Work, len(calls))
	asked := false
	for i, c := range calls {
		w := Work{Call: c, Stage: Done, After: s.Events}
		switch c.Ruling {
		case Free:
			w.Stage = Due
		case Gated:
			w.Stage = Held
			s = s.withQuestion(Question{About: AboutCall, Call: i + 1})
		case AskUser:
			if asked {
				w.Result = Result{NotRun, "one question at a time: this one was not asked"}
				break
			}
			asked = true
			w.Stage = Held
			s = s.withQuestion(Question{About: AboutReply, Call: i + 1})
		case Unknown:
			w.Result = Result{Errored, "there is no tool " + c.Tool}
		case Malformed:
			w.Result = Result{NotRun, "malformed arguments: " + c.Why}
		case Withheld:
			w.Result = Result{NotRun, "arguments withheld by " + c.Why}
		default: // Forbidden, and whatever is not known
			w.Result = Result{NotRun, "refused by " + c.Why}
		}
		s.Step.Work[i] = w
	}
	return s
}

// notRun is the work of calls that will not be run, with one reason for all.
// They have results all the same: a provider takes no call without one.
func notRun(calls []Call, why string) []Work {
	return each(calls, func(c Call) Work {
		return Work{Call: c, Stage: Done, Result: Result{NotRun, "not run: " + why}}
	})
}

// withCall returns the state with a change to one call, numbered from 1. Calls
// of an answer are copied when one changes; an answer has few, and a run's steps
// have nothing to do with it.
func (s State) withCall(n int, change func(*Work)) State {
	s.Step.Work = slices.Clone(s.Step.Work)
	change(&s.Step.Work[n-1])
	return s
}

// call returns a call of the step, numbered from 1; false if there is none.
func (s State) call(n int) (Work, bool) {
	if n < 1 || n > len(s.Step.Work) {
		return Work{}, false
	}
	return s.Step.Work[n-1], true
}

func startCall(s State, e CallStarted) State {
	if w := s.Step.Work[e.Call-1]; !w.Ran {
		s.Ran = count(s.Ran, w.Tool)
	}
	return s.withCall(e.Call, func(w *Work) {
		w.Stage = Running
		w.Ran = true
	})
}

func finishCall(s State, n int, r Result) State {
	return s.withCall(n, func(w *Work) {
		w.Stage = Done
		w.Result = r
	})
}

// resolve carries out what a person decided of a call in doubt.
func resolve(s State, e Resolved) State {
	switch e.Choice {
	case Retry:
		s = s.withCall(e.Call, func(w *Work) {
			w.Stage = Due
			w.After = s.Events
		})
	case TakeAsDone:
		s = finishCall(s, e.Call, Result{Returned, e.Text})
	default:
		return stop(s, abandoned(e))
	}
	return s.onwards()
}

// loseRunning returns the step as it is once the worker that ran its calls is
// gone, and whether any was lost.
func (s Step) loseRunning() (_ Step, lost bool) {
	s.Work = slices.Clone(s.Work)
	for i := range s.Work {
		w := &s.Work[i]
		if w.Stage != Running {
			continue
		}
		lost = true
		w.Stage = InDoubt
		if w.Repeatable {
			w.Stage = Due
		}
	}
	return s, lost
}

// cutOff returns the step closed as it stands: every call gets a result, which
// says what is known of it.
func (s Step) cutOff(why Outcome) Step {
	s.Release = 0
	s.Work = slices.Clone(s.Work)
	for i := range s.Work {
		w := &s.Work[i]
		switch w.Stage {
		case Done:
			continue
		case Running:
			s.Cut = true
			w.Result = Result{Lost, "cut off: " + why.Why}
		case InDoubt:
			w.Result = Result{Lost, "in doubt, and never decided: " + why.Why}
		default:
			w.Result = Result{NotRun, "not run: " + why.Why}
		}
		w.Stage = Done
	}
	return s
}

// Tally counts the calls of one tool that were started.
type Tally struct {
	Tool  string
	Calls int
}

func count(ran []Tally, tool string) []Tally {
	ran = slices.Clone(ran)
	for i := range ran {
		if ran[i].Tool == tool {
			ran[i].Calls++
			return ran
		}
	}
	return append(ran, Tally{tool, 1})
}
