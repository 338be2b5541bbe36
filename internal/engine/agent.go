package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Agents finds what a run acts through. The engine asks once in each tenure.
type Agents interface {
	// Agent returns the agent of the run's profile. A run whose profile is not
	// known in this process is put off: another may know it. All that can be done
	// with it here is to cancel it.
	Agent(ctx context.Context, r journal.Run) (Agent, error)
}

// Agent is a profile at work: what governs a run and what it acts through. Model,
// Tools and Evaluator must be set.
type Agent struct {
	Model     Model
	Tools     Tools
	Evaluator Evaluator
	// Screen passes the words with which a run ends through the profile's guards.
	// Nil: they are shown as they are.
	Screen func(ctx context.Context, text string) string
	// ProfileDigest is of the profile as it is now. Decisions bind to it.
	ProfileDigest string
	// Expire is how long a question waits for a person; 0 is a day.
	Expire time.Duration
	// SecondPerson: whoever started the run may not decide what it asks.
	SecondPerson bool
}

// whole reports whether the agent has what it must have. One without an evaluator
// would let every step pass.
func (a Agent) whole() bool { return a.Model != nil && a.Tools != nil && a.Evaluator != nil }

// Model asks a model for a run. It is safe for use by several runs.
type Model interface {
	// Messages returns what the model is to be sent beside what it was sent
	// before: parts from to c.Step-1, each message as JSON. Part 0 is what comes
	// before the first step (instructions, the task), part n what step n added
	// (the answer, the results of its calls). A part depends on nothing that comes
	// later. The messages go into the journal before the model is asked; Ask sends
	// all of them.
	Messages(c ModelCall, from int) ([]json.RawMessage, error)

	// Ask asks once, reads the answer, and gives each piece of text to show as the
	// guards release it. It returns a run.ModelAnswered, a run.ModelWithheld, a
	// run.ModelFailed or a run.BudgetSpent; stamp, step and attempt are the
	// engine's to fill in. When ctx ends it returns soon, with anything.
	Ask(ctx context.Context, c ModelCall, show Show) run.Event
}

// ModelCall is an attempt at asking a model.
type ModelCall struct {
	Run           journal.Run
	State         run.State // as it was when the attempt was opened; the model is told of its steps
	Step, Attempt int
	Tools         bool // whether the model is offered any
}

// Show takes text that may be seen: more of a channel's text. It does not wait
// for whoever looks.
type Show func(channel, text string)

// A Withholder is a Model that keeps what its guards withhold and a person may
// let through. A run of a model that is none ends where a guard asks for a person.
type Withholder interface {
	// Withheld returns what is held back of the step's request or answer, and what
	// was found in it, for a person to be asked about.
	Withheld(c ModelCall, about run.About) (text []byte, findings json.RawMessage, err error)
	// Release returns the whole answer once a person has let it through, and
	// shows the rest of it.
	Release(ctx context.Context, c ModelCall, show Show) (run.Answer, error)
}

// Tools runs the calls of a run's model. It is safe for use by several runs.
type Tools interface {
	// Call runs a call that the rules, or a person, have let through. When ctx
	// ends it stops what it began, with all that belongs to it, and returns.
	Call(ctx context.Context, c ToolCall) ToolResult
}

// ToolCall is a call that is to run.
type ToolCall struct {
	Run        journal.Run
	Step, Call int
	Tool       string
	Args       string // JSON as the model wrote it
	Approved   bool   // a person has let it through
	Deadline   time.Time
}

// ToolResult is what the model is told of a call: screened text.
type ToolResult struct {
	Text   string
	Failed bool
}

// Evaluator judges the history of a run; *signal.Evaluator is one.
type Evaluator interface {
	Evaluate(ctx context.Context, h signal.History) signal.Evaluation
}

var _ Evaluator = (*signal.Evaluator)(nil)

// Jobs defers work to a later moment, of any process. A job is a hint: one that
// comes twice does no harm, and one that never comes is made up for by the sweep.
type Jobs interface {
	// Wake has some engine take up the run at a time. It is part of tx.
	Wake(ctx context.Context, tx journal.Tx, ref journal.Ref, at time.Time) error
}
