package run

import (
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// Event is something that has happened to a run. The types in this file are all
// there are. Text in events is valid UTF-8, and has been screened.
type Event interface {
	// Kind is the event's name in records.
	Kind() string
	// When is the time of the event, as far as the host knows.
	When() time.Time

	stamp() Stamp
}

// Stamp is the time of an event.
type Stamp struct{ at time.Time }

// At makes a stamp: in UTC, to the microsecond, as journals keep it.
func At(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Microsecond)} }

// When returns the time.
func (s Stamp) When() time.Time { return s.at }

func (s Stamp) stamp() Stamp { return s }

// Created makes the run. It is the first event of each.
type Created struct {
	Stamp
	Task   string
	Limits Limits // a limit of 0 is its default
}

// Claimed says that a worker holds the run from now on. It comes first in every
// tenure: at the start, after a pause, and when a worker was lost, in which case
// all that was under way is lost too, and what was shown of an answer is
// superseded by the next attempt.
type Claimed struct {
	Stamp
	By   string       // the worker
	Lost signal.Usage // an estimate of what a lost model call has spent
}

// ModelStarted opens a model call.
type ModelStarted struct {
	Stamp
	Step, Attempt int
}

// ModelAnswered is a model's whole answer, as the guards released it.
type ModelAnswered struct {
	Stamp
	Step, Attempt int
	Answer        Answer
}

// ModelWithheld says that a guard stopped a model call: what was to be sent, or
// what came back.
type ModelWithheld struct {
	Stamp
	Step, Attempt int
	Request       bool // it was the request; else the answer
	Deny          bool // nobody may let it through; else a person is asked
	Guard, Rule   string
	Text          string // what of the answer had been released
	Usage         signal.Usage
}

// ModelFailed says that a provider gave no answer, or broke it off.
type ModelFailed struct {
	Stamp
	Step, Attempt int
	Error         string
	Retryable     bool // trying again may help
	Released      bool // some of the answer has been seen
	RetryAfter    time.Duration
	Jitter        int // chance, in thousandths: 0 to 999
	Usage         signal.Usage
}

// BudgetSpent says that the run may not ask the model, or may not hear it out,
// because an envelope is spent.
type BudgetSpent struct {
	Stamp
	Envelope string // which, and what is left of it, for people
	Usage    signal.Usage
}

// CallStarted opens a tool call. Calls are numbered from 1 in the order of the
// step's answer; a provider's ids need not be unique.
type CallStarted struct {
	Stamp
	Step, Call int
}

// CallFinished is the end of a tool call.
type CallFinished struct {
	Stamp
	Step, Call int
	Text       string // of the result, or of the error
	Failed     bool
}

// Asked says that a question has been put to a person, and under what id.
type Asked struct {
	Stamp
	Step    int
	About   About
	Call    int
	ID      string
	Digest  string // of exactly what was shown; may be empty for a question of the model's
	Expires time.Time
}

// Decided is a person's decision about an open question. It is used once.
type Decided struct {
	Stamp
	ID       string
	Digest   string // of what the person saw
	Approved bool
	By       string
	Reason   string
	// Made is when the person decided, which may be long before a worker takes
	// it to the run. Zero: just now.
	Made time.Time
}

// Replied is a person's answer to a question of the model's.
type Replied struct {
	Stamp
	ID   string
	By   string
	Text string
	Made time.Time // when the person answered; zero: just now
}

// Expired says that nobody decided an open question in time.
type Expired struct {
	Stamp
	ID string
}

// Resolved is what a person decided of a call in doubt.
type Resolved struct {
	Stamp
	Step, Call int
	Choice     Choice
	By         string
	Text       string // the call's result, where it is taken as done
}

// Choice is what can be decided of a call in doubt.
type Choice uint8

const (
	Abandon    Choice = iota // end the run
	Retry                    // run the call again
	TakeAsDone               // it has taken effect, and this is its result
)

var choiceNames = [...]string{"abandon", "retry", "done"}

// AnswerReleased says that an answer that was withheld, and approved, is out.
type AnswerReleased struct {
	Stamp
	Step   int
	Answer Answer // whole: what had been released before, and the rest
}

// StepEvaluated is the evaluator's record of a step, or of a pause.
type StepEvaluated struct {
	Stamp
	Step       int
	Pause      int // from 1 within the run; 0 where the step is over
	Evaluation signal.Evaluation
}

// Cancelled says that somebody ended the run.
type Cancelled struct {
	Stamp
	By string
}

// TimedOut says that the run's deadline has passed.
type TimedOut struct{ Stamp }

// InternalError says that the host cannot go on with the run: a bug, or a
// machine that fails. (A journal that cannot be written to takes no events: the
// host stops, and whoever claims the run later goes on.)
type InternalError struct {
	Stamp
	Error string // for operators; users are not told
}

// Ended says that the outcome shows from now on.
type Ended struct {
	Stamp
	Status  Status
	Reason  Reason
	Message string // as it was shown, screened
}

func (Created) Kind() string        { return "created" }
func (Claimed) Kind() string        { return "claimed" }
func (ModelStarted) Kind() string   { return "model_started" }
func (ModelAnswered) Kind() string  { return "model_answered" }
func (ModelWithheld) Kind() string  { return "model_withheld" }
func (ModelFailed) Kind() string    { return "model_failed" }
func (BudgetSpent) Kind() string    { return "budget_spent" }
func (CallStarted) Kind() string    { return "call_started" }
func (CallFinished) Kind() string   { return "call_finished" }
func (Asked) Kind() string          { return "asked" }
func (Decided) Kind() string        { return "decided" }
func (Replied) Kind() string        { return "replied" }
func (Expired) Kind() string        { return "expired" }
func (Resolved) Kind() string       { return "resolved" }
func (AnswerReleased) Kind() string { return "answer_released" }
func (StepEvaluated) Kind() string  { return "step_evaluated" }
func (Cancelled) Kind() string      { return "cancelled" }
func (TimedOut) Kind() string       { return "timed_out" }
func (InternalError) Kind() string  { return "internal_error" }
func (Ended) Kind() string          { return "ended" }

// Answer is what a model said.
type Answer struct {
	Text    string
	Thought string // reasoning, where the provider shows it
	// Kept is what must go back to the provider as it came, such as a signature.
	// The loop does not look into it.
	Kept   string
	Finish Finish
	Calls  []Call
	// Unusable says why the host could make nothing of the answer; empty if it
	// could.
	Unusable string
	Usage    signal.Usage
}

// Finish says how an answer ended.
type Finish uint8

const (
	Stop    Finish = iota // the model had said what it had to say
	Length                // there was no more room
	Refusal               // the model or its provider refused; none of its calls is run
)

var finishNames = [...]string{"stop", "length", "refusal"}

// unusable says why nothing can be done with the answer; empty if something can.
func (a Answer) unusable() string {
	if a.Unusable == "" && len(a.Calls) == 0 && strings.TrimSpace(a.Text) == "" {
		return "the answer was empty"
	}
	return a.Unusable
}

func (a Answer) withoutCalls() Answer {
	a.Calls = nil
	return a
}

// Call is a tool call that a model asks for, with what the tool rules made of
// it when it was asked for. That stands, whatever becomes of the rules.
type Call struct {
	ID     string // the provider's
	Tool   string
	Args   string // JSON as the model wrote it
	Ruling Ruling
	// Why is the rule that refused the call or withheld its arguments, or what
	// is wrong with them.
	Why string
	// Repeatable: the tool declares that running it twice does no more than
	// running it once. A call that is not repeatable is fenced.
	Repeatable bool
	Poller     bool // the tool declares that it is asked again and again
}

// Ruling is what the tool rules make of a call. The zero Ruling runs nothing.
type Ruling uint8

const (
	Forbidden Ruling = iota // by a tool rule
	Free                    // it may run
	Gated                   // it may run once a person has approved it
	AskUser                 // it is no call: the model asks the user
	Unknown                 // there is no such tool
	Malformed               // its arguments are not what the tool takes
	Withheld                // its arguments were redacted
)

var rulingNames = [...]string{"forbidden", "free", "gated", "ask_user", "unknown", "malformed", "withheld"}

func plus(a, b signal.Usage) signal.Usage {
	return signal.Usage{
		Input:     a.Input + b.Input,
		Output:    a.Output + b.Output,
		Estimated: a.Estimated || b.Estimated,
	}
}
