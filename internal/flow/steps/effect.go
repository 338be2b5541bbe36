package steps

import (
	"time"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Effect is something for the host to do. The types in this file are all there
// are. Their Order, as internal/run's, says what must be durable before what.
type Effect interface {
	Needs() run.Order
	effect()
}

// order is what effects embed.
type order struct{ run.Order }

func (o order) Needs() run.Order { return o.Order }
func (order) effect()            {}

// Claim wants a worker for the run.
type Claim struct{ order }

// Weigh evaluates a step's condition, and its answer is Weighed.
type Weigh struct {
	order
	Step int
}

// Start begins an attempt at a step, not before NotBefore (zero: at once): StepStarted opens
// it, StepEnded is its answer.
type Start struct {
	order
	Step, Attempt int
	NotBefore     time.Time
}

// Follow follows the run that is a step's work, and makes it if it is not there:
// its answers are StepWaits and, at its end, StepEnded.
type Follow struct {
	order
	Step, Attempt int
	Run           string
}

// Observe hears what a step's observer says of the attempt, now that it has ended:
// its answer is Observed. Where the observer has died with its worker, another
// reads what the journal has of the attempt.
type Observe struct {
	order
	Step, Attempt int
}

// FileTicket files a ticket about a step: Filed is its answer.
type FileTicket struct {
	order
	Step int
	Kind string // of what was odd: the same is filed once
	What string // in a sentence
}

// Evaluate gives the history to the evaluator: StepEvaluated is its answer.
type Evaluate struct {
	order
	Step, Attempt int
	History       signal.History
}

// Ask puts a step's question to a person, as in internal/run.
type Ask struct {
	order
	Step  int
	About string // AboutPause or AboutVerdict
}

// What a question is about.
const (
	AboutPause   = "pause"   // a step of type pause
	AboutVerdict = "verdict" // whether the run goes on behind a step, which a verdict or a signal asks
)

// CutOff ends whatever is under way, runs that are steps' work included.
type CutOff struct{ order }

// Wait lets the run go: no worker, no lease, until somebody decides or a run that
// is part of it ends. At Until (zero: never), a question's time is up.
type Wait struct {
	order
	Until time.Time
}

// End shows the outcome.
type End struct {
	order
	Outcome run.Outcome
	Message string
}
