package steps

import (
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// State is all that a playbook's run is. It is a value: read it, hand it on, but
// write to nothing that it holds. The zero State is a run that has not been created.
type State struct {
	Phase Phase
	Book  Book
	Plan  Plan
	Steps []*Step // of the plan, in its order
	Held  bool    // a worker has claimed the run
	Cut   bool    // it was stopped while something was under way

	// Then is what the run comes to, from phase Ending on.
	Then    run.Outcome
	Message string // that it ended with, as it was shown

	Past   []signal.Step // the newest attempts that have ended, at most signal.Window
	Ran    int           // attempts that have ended
	Usage  signal.Usage
	Last   time.Time // of the newest event; never goes back
	Events int       // that have been applied
}

// Phase is where a run stands.
type Phase uint8

const (
	Fresh     Phase = iota // nothing has happened
	Advancing              // there is something to do, or under way
	Resting                // the run waits for people, or for runs that do; it holds no worker
	Ending                 // the outcome is decided, and has yet to show
	Over
)

var phaseNames = [...]string{"fresh", "advancing", "resting", "ending", "over"}

func (p Phase) String() string { return phaseNames[p] }

// Step is a step at work.
type Step struct {
	Stage   Stage
	Started int // attempts in the run: the number of the newest
	Tries   int // attempts since the run came to the step last, without those that were lost
	Lost    int // times that a worker was lost in it
	Back    int // times that a goto led back to it
	After   int // the number of the event that let it go on

	NotBefore time.Time // of the next attempt
	Run       string    // the run that is its work
	WaitsFor  string    // the status in which that run waits; empty: it does not

	Result   Result   // of the newest attempt that has ended
	Observed Observed // of its observer

	Question Question
	Preview  string // what was shown of it by a command
	Approved bool   // a person let the run go on behind it
	Ticket   string
	File     bool // a ticket is to be filed

	From int // of a handler: the step whose goto led to it
	To   int // the step that its goto leads to, while it is Handing or Turning

	Came   Standing   // what it came to, once it has
	Reason run.Reason // why, if it did not pass
	Why    string
	Lifts  bool // those that follow it may go on
	Ended  int  // the number of the event that ended it
}

// Question is what a step asks a person.
type Question struct {
	About   string
	ID      string // empty: it has not been put
	Digest  string
	Expires time.Time
	Why     string // what raised it, where that is a verdict or a signal
}

// Stage is how far a step has come.
type Stage uint8

const (
	Idle      Stage = iota // its time has not come
	Weighing               // its condition is to be evaluated
	Due                    // an attempt is to be started
	Going                  // an attempt was started
	InDoubt                // an attempt was started, its end was lost, and it may not be repeated
	Observing              // the attempt has ended, and the observer has yet to give its verdict
	Judging                // the evaluator has yet to judge
	Asking                 // a person is to be asked
	Open                   // a person was asked
	Handing                // it leads to a handler, which runs or is about to
	Turning                // it leads back, once nothing else is under way behind there
	Final
)

var stageNames = [...]string{
	"idle", "weighing", "due", "going", "in_doubt", "observing", "judging", "asking", "open", "handing", "turning", "final",
}

func (s Stage) String() string { return stageNames[s] }

// busy reports whether the host has something to do for the step, or does it.
func (s *Step) busy() bool {
	switch s.Stage {
	case Weighing, Due, Observing, Judging, Asking:
		return true
	case Going:
		return s.WaitsFor == ""
	}
	return s.File
}

// waits reports whether the step needs a person.
func (s *Step) waits() bool {
	return s.Stage == InDoubt || s.Stage == Open || s.Stage == Going && s.WaitsFor != ""
}

// active reports whether something of the step is under way, or about to be.
func (s *Step) active() bool { return s.Stage != Idle && s.Stage != Final && s.Stage != Turning }

// Standing is where the step stands, for people and programs.
func (s *Step) Standing() Standing {
	switch s.Stage {
	case Idle, Weighing, Due:
		return Pending
	case Going:
		if s.WaitsFor != "" {
			return Waiting
		}
		return Running
	case Observing, Judging:
		return Running
	case InDoubt, Asking, Open:
		return Waiting
	}
	return s.Came
}

// Find returns the number of the step with an id; 0 if there is none.
func (s State) Find(id string) int {
	return 1 + slices.IndexFunc(s.Plan.Steps, func(p Planned) bool { return p.ID == id })
}

// Step returns a step by number.
func (s State) Step(n int) *Step { return s.Steps[n-1] }

// with returns the state with a change to one step, which is copied.
func (s State) with(n int, change func(*Step)) State {
	s.Steps = slices.Clone(s.Steps)
	step := *s.Steps[n-1]
	change(&step)
	s.Steps[n-1] = &step
	return s
}

// open finds the step whose question has an id; 0 if there is none.
func (s State) open(id string) int {
	return 1 + slices.IndexFunc(s.Steps, func(p *Step) bool { return p.Stage == Open && p.Question.ID == id && id != "" })
}

// Status says where the run stands, in the words of the API.
func (s State) Status() run.Status {
	switch {
	case s.Phase == Fresh:
		return ""
	case s.Phase == Over:
		return s.Then.Status
	case s.Phase == Resting:
		return s.waitingFor()
	case !s.Held:
		return run.StatusQueued
	}
	return run.StatusRunning
}

// waitingFor names what a resting run needs most: what may already have happened
// comes before what may not happen yet.
func (s State) waitingFor() run.Status {
	rank := []run.Status{run.StatusWaitingInput, run.StatusWaitingApproval, run.StatusWaitingDecision}
	worst := rank[0]
	for _, p := range s.Steps {
		var is run.Status
		switch p.Stage {
		case InDoubt:
			is = run.StatusWaitingDecision
		case Open:
			is = run.StatusWaitingApproval
		case Going:
			is = run.Status(p.WaitsFor)
		}
		if slices.Index(rank, is) > slices.Index(rank, worst) {
			worst = is
		}
	}
	return worst
}

// Reason says why the run ended; empty before it has.
func (s State) Reason() run.Reason {
	if s.Phase != Over {
		return ""
	}
	return s.Then.Reason
}
