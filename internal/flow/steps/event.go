package steps

import (
	"encoding/json"
	"time"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Event is something that has happened to a playbook's run. The types in this file
// are all there are. Text in events is valid UTF-8, and has been screened. Steps
// are numbered from 1, in the order of the plan.
//
// The members of an event, as they stand here, are its stored form: one that is in
// use is never renamed and never changes its meaning.
type Event interface {
	// Kind is the event's name in records.
	Kind() string
	// When is the time of the event, as far as the host knows.
	When() time.Time
}

// Stamp is the time of an event. It is no part of the stored form: records have a
// place of their own for it.
type Stamp struct{ at time.Time }

// At makes a stamp: in UTC, to the microsecond, as journals keep it.
func At(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Microsecond)} }

// When returns the time.
func (s Stamp) When() time.Time { return s.at }

func (s *Stamp) set(at time.Time) { *s = At(at) }

// Created makes the run. It is the first event of each.
type Created struct {
	Stamp `json:"-"`
	Book  Book `json:"book"`
	Plan  Plan `json:"plan"`
	// From is the step at which the run begins; 0: at the beginning. What comes
	// before it counts as passed, but for pauses: those are asked all the same.
	From int `json:"from,omitempty"`
}

// Book is the playbook as it was when the run was made: the host reads it, and the
// machine does not.
type Book struct {
	Name string `json:"name"`
	File string `json:"file"` // the playbook's own, among Files
	// Files are all that the run reads of playbooks and prompts.
	Files []File `json:"files"`
	// Inputs are what it was given, each a JSON value.
	Inputs []Value `json:"inputs,omitempty"`
	Depth  int     `json:"depth,omitempty"` // how many playbooks have called each other down to this one
	// Cleared: the step that called this playbook stands behind a person's yes.
	Cleared bool `json:"cleared,omitempty"`
}

// File is a file as it was.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Value is a named value.
type Value struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Claimed says that a worker holds the run from now on. It comes first in every
// tenure; what a worker before it had under way is lost.
type Claimed struct {
	Stamp `json:"-"`
	By    string `json:"by"`
}

// Weighed says what a step's condition came to.
type Weighed struct {
	Stamp `json:"-"`
	Step  int  `json:"step"`
	Holds bool `json:"holds"`
	// Error says why it could not be evaluated, which stops the step.
	Error string `json:"error,omitempty"`
}

// StepStarted opens an attempt at a step.
type StepStarted struct {
	Stamp   `json:"-"`
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
	// Run is the id of the run that is the step's work, where it is one.
	Run string `json:"run,omitempty"`
}

// StepWaits says that the run that is the step's work waits for a person, or that
// it has gone on.
type StepWaits struct {
	Stamp `json:"-"`
	Step  int    `json:"step"`
	For   string `json:"for"` // its status; empty: it has gone on
}

// StepEnded is the end of an attempt.
type StepEnded struct {
	Stamp   `json:"-"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Result  Result `json:"result"`
}

// Result is what an attempt at a step came to.
type Result struct {
	State Standing `json:"state"`
	// Reason is why it did not pass, in the words of outcomes, where its state does
	// not say; Why says it in a sentence.
	Reason run.Reason `json:"reason,omitempty"`
	Why    string     `json:"why,omitempty"`

	ExitCode *int   `json:"exit_code,omitempty"` // of a command that ended
	Stdout   string `json:"stdout,omitempty"`    // its end, if it was long
	Stderr   string `json:"stderr,omitempty"`

	Output  json.RawMessage `json:"output,omitempty"` // of a model, in its form
	Text    string          `json:"text,omitempty"`   // of a model, or a person's reason
	Verdict string          `json:"verdict,omitempty"`
	Outputs []Value         `json:"outputs,omitempty"` // those that the step declares
	Served  string          `json:"served,omitempty"`  // which model answered

	Usage *signal.Usage `json:"usage,omitempty"`
	// Took is how long it ran.
	Took time.Duration `json:"took_ns,omitempty"`
}

// Observed is the verdict of a step's observer.
type Observed struct {
	Stamp   `json:"-"`
	Step    int             `json:"step"`
	Attempt int             `json:"attempt"`
	Verdict string          `json:"verdict"` // ObserverFailed, if it gave none
	Why     string          `json:"why,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Elided  int64           `json:"elided,omitempty"` // bytes of the step's events that its windows left out
	Windows int             `json:"windows,omitempty"`
	Usage   *signal.Usage   `json:"usage,omitempty"`
}

// StepEvaluated is the evaluator's record of an attempt that has ended.
type StepEvaluated struct {
	Stamp   `json:"-"`
	Step    int      `json:"step"`
	Attempt int      `json:"attempt"`
	Signals []Signal `json:"signals,omitempty"`
}

// Signal is one signal's part in an evaluation; see signal.Report.
type Signal struct {
	Signal   string        `json:"signal"`
	Mode     signal.Mode   `json:"mode"`
	Result   signal.Result `json:"result"`
	Critical bool          `json:"critical,omitempty"`
	Value    float64       `json:"value,omitempty"`
	Limit    float64       `json:"limit,omitempty"`
	Note     string        `json:"note,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// SignalsOf is the record of an evaluation.
func SignalsOf(e signal.Evaluation) []Signal {
	var all []Signal
	for _, r := range e.Reports {
		all = append(all, Signal{r.Signal, r.Mode, r.Result, r.Critical, r.Value, r.Limit, r.Note, r.Error})
	}
	return all
}

// Evaluation is what the record says.
func (e StepEvaluated) Evaluation() (of signal.Evaluation) {
	for _, s := range e.Signals {
		j := signal.Judgement{Result: s.Result, Critical: s.Critical, Value: s.Value, Limit: s.Limit, Note: s.Note}
		of.Reports = append(of.Reports, signal.Report{Signal: s.Signal, Mode: s.Mode, Judgement: j, Error: s.Error})
	}
	return of
}

// Asked says that a step's question has been put to a person, and under what id.
type Asked struct {
	Stamp   `json:"-"`
	Step    int       `json:"step"`
	ID      string    `json:"id"`
	Digest  string    `json:"digest"` // of exactly what was shown
	Expires time.Time `json:"expires"`
	// Preview is what a command showed for it.
	Preview string `json:"preview,omitempty"`
}

// Decided is a person's decision about an open question. It is used once.
type Decided struct {
	Stamp    `json:"-"`
	ID       string    `json:"id"`
	Digest   string    `json:"digest"` // of what the person saw
	Approved bool      `json:"approved"`
	By       string    `json:"by"`
	Reason   string    `json:"reason,omitempty"`
	Made     time.Time `json:"made,omitzero"` // when the person decided; zero: just now
}

// Expired says that nobody decided an open question in time.
type Expired struct {
	Stamp `json:"-"`
	ID    string `json:"id"`
}

// Resolved is what a person decided of a step in doubt.
type Resolved struct {
	Stamp  `json:"-"`
	Step   int        `json:"step"`
	Choice run.Choice `json:"choice"`
	By     string     `json:"by"`
	Text   string     `json:"text,omitempty"` // the step's output, where it is taken as done
}

// Filed says that what an observer, or a step, found odd is in a ticket.
type Filed struct {
	Stamp  `json:"-"`
	Step   int    `json:"step"`
	Ticket string `json:"ticket"`
	Digest string `json:"digest"`
	New    bool   `json:"new"` // else it is one that there was
}

// RunCancelled says that somebody ended the run.
type RunCancelled struct {
	Stamp `json:"-"`
	By    string `json:"by"`
}

// InternalError says that the host cannot go on with the run.
type InternalError struct {
	Stamp `json:"-"`
	Error string `json:"error"`
}

// Ended says that the outcome shows from now on.
type Ended struct {
	Stamp   `json:"-"`
	Status  run.Status `json:"status"`
	Reason  run.Reason `json:"reason"`
	Message string     `json:"message,omitempty"`
}

func (Created) Kind() string       { return "playbook_created" }
func (Claimed) Kind() string       { return "claimed" }
func (Weighed) Kind() string       { return "step_weighed" }
func (StepStarted) Kind() string   { return "step_started" }
func (StepWaits) Kind() string     { return "step_waits" }
func (StepEnded) Kind() string     { return "step_ended" }
func (Observed) Kind() string      { return "observed" }
func (StepEvaluated) Kind() string { return "step_evaluated" }
func (Asked) Kind() string         { return "asked" }
func (Decided) Kind() string       { return "decided" }
func (Expired) Kind() string       { return "expired" }
func (Resolved) Kind() string      { return "resolved" }
func (Filed) Kind() string         { return "ticket_filed" }
func (RunCancelled) Kind() string  { return "cancelled" }
func (InternalError) Kind() string { return "internal_error" }
func (Ended) Kind() string         { return "ended" }
