package run

import (
	"iter"
	"reflect"
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// State is all that a run is. It is a value: read it, hand it on, but write to
// nothing that it holds. The zero State is a run that has not been created.
type State struct {
	Phase  Phase
	Task   string // what the run was asked to do
	Limits Limits

	Step Step  // the step that the run is in, or about to open
	Past Steps // those before it

	Questions []Question // to people: due, or open
	Pauses    int        // how many times the run has paused

	// Then is what the run comes to, as far as that is known: from the step's
	// last event on, if the evaluator lets it; from phase Ending on, for good.
	Then Outcome
	// Message is the text that ended the run, as it was shown: empty before.
	Message string

	Clock   Clock
	Streaks Streaks
	Ran     []Tally // the tools that ran, by first use
	Usage   signal.Usage

	// Events counts the events that have been applied; the number of the
	// newest is what an Order refers to.
	Events int
}

// Phase is where a run stands. docs/run-states.md draws how they follow on each
// other.
type Phase uint8

const (
	Fresh     Phase = iota // nothing has happened
	Ready                  // a model call is due
	Answering              // a model call is under way
	Working                // the step has calls to run, or questions to ask
	Pausing                // only people can go on; the evaluator has yet to judge that
	Waiting                // the run waits for people, and holds no worker
	Judging                // the step is over; the evaluator has yet to judge it
	Ending                 // the outcome is decided, and has yet to show
	Over
)

var phaseNames = [...]string{"fresh", "ready", "answering", "working", "pausing", "waiting", "judging", "ending", "over"}

// Step is one round of the loop: a model's answer, and what came of it.
type Step struct {
	Number   int  // from 1
	Attempt  int  // of asking the model; 0 while the step is about to open
	Failures int  // attempts at which the provider failed
	Lost     int  // times that a worker was lost in this step
	Answered bool // the model's answer is in

	NotBefore time.Time // of the next attempt; zero: at once

	Answer   Answer // without its calls, which are Work
	Unusable string // why nothing can be done with the answer; empty if it can
	Work     []Work // the answer's calls, in its order

	// Release is the number of the decision that lets a withheld answer out;
	// 0 when none is to be let out.
	Release   int
	Approved  bool // a person let it, or one of its calls, go on
	Cut       bool // it was closed while something was under way
	Evaluated bool
}

// Open reports whether the step has begun. One that has not is no part of the
// run's history.
func (s Step) Open() bool { return s.Attempt > 0 }

// Steps is a list of steps that have ended. Pushing leaves the list as it was
// and shares it with the new one: a run's states hold each step once.
type Steps struct {
	newest *node
	len    int
}

type node struct {
	step   Step
	before *node
}

// Len returns the number of steps in the list.
func (s Steps) Len() int { return s.len }

// Backward yields the steps, the newest first.
func (s Steps) Backward() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for n := s.newest; n != nil && yield(n.step); n = n.before {
		}
	}
}

// Equal reports whether the lists hold equal steps, shared or not.
func (s Steps) Equal(t Steps) bool {
	if s.len != t.len {
		return false
	}
	for a, b := s.newest, t.newest; a != b; a, b = a.before, b.before {
		if !reflect.DeepEqual(a.step, b.step) {
			return false
		}
	}
	return true
}

func (s Steps) push(step Step) Steps {
	return Steps{newest: &node{step, s.newest}, len: s.len + 1}
}

// Steps yields all steps of the run, the newest first: the one that it is in, if
// that has begun, and those before it.
func (s State) Steps() iter.Seq[Step] {
	if !s.Step.Open() {
		return s.Past.Backward()
	}
	return s.Past.push(s.Step).Backward()
}

// Last reports whether the step that the run is in is the one after the last
// iteration: the model gets no tools and answers with what it has.
func (s State) Last() bool { return s.Step.Number > s.Limits.MaxIterations }

// busy reports whether the host has something to do for the step, or does it.
func (s State) busy() bool {
	for _, q := range s.Questions {
		if q.ID == "" {
			return true
		}
	}
	for _, w := range s.Step.Work {
		if w.Stage == Due || w.Stage == Running {
			return true
		}
	}
	return s.Step.Release > 0
}

// waits reports whether there is something that only a person can decide.
func (s State) waits() bool {
	if len(s.Questions) > 0 {
		return true
	}
	for _, w := range s.Step.Work {
		if w.Stage == InDoubt {
			return true
		}
	}
	return false
}

// Clock counts the time in which a run was held by a worker, which is the time
// that its limit is about: waiting for people and lying unclaimed do not count.
type Clock struct {
	Held  bool          // a worker has claimed the run
	Last  time.Time     // of the newest event; never goes back
	Since time.Time     // of the claim
	Spent time.Duration // under earlier claims
}

func (c Clock) see(now time.Time) Clock {
	if now.After(c.Last) {
		c.Last = now
	}
	return c
}

// claim starts the clock. A claim that was not given up ended, as far as anybody
// knows, with the newest event.
func (c Clock) claim(now time.Time) Clock {
	c = c.release(c.Last)
	c.Held = true
	c.Since = now
	return c
}

func (c Clock) release(now time.Time) Clock {
	if c.Held {
		c.Spent += max(0, now.Sub(c.Since))
	}
	c.Held = false
	c.Since = time.Time{}
	return c
}

// Deadline is when the time of the run will be up; zero while no worker holds
// it, since the clock then stands still.
func (s State) Deadline() time.Time {
	if !s.Clock.Held {
		return time.Time{}
	}
	return s.Clock.Since.Add(s.Limits.Timeout - s.Clock.Spent)
}
