package playbook

import (
	"time"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/internal/yamltree"
)

type (
	// Pos is a place in a file.
	Pos = diag.Pos
	// Span is a stretch of one line of a file.
	Span = diag.Span
	// Pin is an exact version of a model.
	Pin = prompt.Pin
	// Schema is a JSON Schema, as it was written.
	Schema = prompt.Schema
)

// At is a value with the place where it was written. The zero At was not written.
type At[T any] = yamltree.At[T]

type (
	// Text is a string that is taken as it stands.
	Text = At[string]
	// Expr is an expression in CEL. The package doc says what it may name.
	Expr = At[string]
	// Texts is a list of strings. Written and empty differs from not written.
	Texts = At[[]Text]
	// Int is a whole number.
	Int = At[int64]
	// Bool is true or false.
	Bool = At[bool]
	// Duration is a span of time in whole seconds, written as 90s, 30m or 1h30m.
	Duration = At[time.Duration]
)

// Playbook is one file.
type Playbook struct {
	File        string // as it was named to Parse
	Span        Span
	Name        Text // playbook: NAME
	Description Text
	Status      At[Status]
	Inputs      []Input
	Outputs     []Named // what a caller reads as steps["CALL"].outputs["NAME"]
	PromptRoots Texts   // folders that are searched for prompts; not written: prompts and library/prompts
	// MaxIterations is how often a goto may lead back to one and the same step,
	// where that step does not say so itself. Not written and needed: an error.
	MaxIterations Int
	Steps         []*Step

	lines  []string // the file's, for places inside a scalar
	flawed bool     // something at the top was reported: what seems missing may be misspelt
}

// Status says how strict the checks are.
type Status string

const (
	Draft  Status = "draft"  // the default: a floating model or an unversioned prompt is a warning
	Active Status = "active" // both are errors
)

// Input is a value that whoever runs the playbook gives it.
type Input struct {
	Name        Text
	Type        At[Type]
	Description Text
	Default     *Literal // nil: the input must be given
	Enum        Texts    // of a string: what it may be; not written: anything
}

// Type is the type of an input or of a prompt's input.
type Type = prompt.Type

// Literal is a value of an input's type, spelt as in CEL and JSON: "text", 3, 2.5, true.
type Literal = At[string]

// Named is a name with an expression for its value.
type Named struct {
	Name  Text
	Value Expr
}

// Step is one entry of a playbook.
//
// # Order
//
// A step without needs follows the step before it in the file that is no
// handler; one with needs follows exactly those, and with `needs: []` it follows
// nothing. A step runs once all that it follows have passed and its `when` is
// true; else it is skipped. Only [Step.OnFail] lifts that: of a step with
// `on_fail: continue` that did not pass, or whose own `when` was false, those
// that follow it go on as though it had passed. A step that was skipped because
// of one before it lifts nothing.
//
// # Goto
//
// A goto leads to a handler, which runs only then; or back, to a step that the
// step with the goto follows (itself included), which runs again with all that
// follow it. How often one step may be led back to is bounded by MaxIterations.
//
// When a handler has passed, its Then says what follows: fail (the default: the
// run ends as it would have without the handler), continue (the step that led
// here counts as passed), or a goto. A handler that does not pass ends the run.
type Step struct {
	Span    Span
	ID      Text
	Work    Work // what it does, by `type`
	Type    Text
	Handler Bool    // runs only when a goto leads to it
	Then    *Action // of a handler: fail, continue or goto; nil: fail

	When    Expr
	Needs   Texts
	Retry   *Retry
	Timeout Duration
	Env     []Var // the whole environment of what the step starts, beside what the runtime itself sets
	Effect  At[Effect]
	Touches []At[Touch]
	Scope   *Scope  // nil: not written, and then the step may read, write, run and reach nothing but its own program
	Outputs []Named // what later steps read as steps["ID"].outputs["NAME"]
	OnFail  *Action // fail, continue or goto; nil: fail
	// MaxIterations is how often a goto may lead back to this step.
	MaxIterations Int
	Observer      *Observer

	flawed bool // as Playbook's
}

// Work is what a step does: *Run, *Claude, *Agent, *Pause or *Call.
type Work interface{ work() }

// Run starts a program, without a shell.
type Run struct {
	// Argv is the program and its arguments. Written as a string, it is split
	// into words as a shell would, quotes and all; what only a shell could do
	// (expansions, pipes, lists, redirections) is an error there. As a list,
	// each item is one argument.
	Argv []Word
	Span Span
	// Line is the command where it was written as a string.
	Line Text
}

// Word is one argument, or the value of a variable: a literal, or, written as
// {expr: EXPRESSION}, what the expression gives, as one argument whatever is in it.
type Word struct {
	Text
	Expr bool
}

// Claude asks a model for a verdict in a form.
type Claude struct {
	Ask
	Output    *Schema   // with an enum member "verdict"
	OnVerdict []Verdict // each value of that enum
}

// Agent runs the governed loop.
type Agent struct {
	Ask
	Profile Text    // not written: default
	Output  *Schema // nil: any text
}

// Pause waits for a person.
type Pause struct {
	Reason       Text
	Show         []Named // what the person sees beside the reason
	Preview      *Run    // a command whose output the person sees; it runs in the step's scope
	Approvers    Texts   // not written: whoever may approve
	SecondPerson Bool    // who started the run cannot approve it
	Expire       Duration
}

// Call runs another playbook, with its own inputs, as a part of this run.
type Call struct {
	File Text // relative to the calling file's folder, inside the root
	With []Named
}

func (*Run) work()    {}
func (*Claude) work() {}
func (*Agent) work()  {}
func (*Pause) work()  {}
func (*Call) work()   {}

// Ask is what every question to a model states.
type Ask struct {
	Via        At[Via]
	Model      Text // NAME@DATE; see prompt.ParsePin
	PromptRef  Text // NAME.md@vN; see prompt.ParseRef
	With       []Named
	MaxLatency Int // max_latency_seconds: from start to verdict, on the clock
	MaxTokens  Int // max_tokens_per_run: in and out, of all calls of the step
}

// Via is the way to the model.
type Via string

const (
	CLI Via = "cli" // claude -p, in the sandbox; the default
	API Via = "api" // the governed loop, without tools
)

// Observer watches a step while it runs, and gives its verdict when it ends.
type Observer struct {
	Span Span
	Ask
	Scope       *Scope
	WindowBytes Int // how much of the step's events it is shown at once; not written: 65536
	OnVerdict   []Verdict
	OnAnomaly   Text // file-ticket, or not written; file-warp-ticket is read as file-ticket

	flawed bool
}

// ObserverFailed is the verdict of an observer that gave none: it was missing,
// late, malformed or over its budget. Where it is not mapped it means fail.
const ObserverFailed = "observer_failed"

// ObserverInputs are the inputs that the runtime gives an observer's prompt, where
// it declares them: the events of a window, and what was said of those before.
var ObserverInputs = []string{"events", "notes"}

// Verdict is what a verdict's value leads to.
type Verdict struct {
	Value  Text
	Action Action
}

// Action is what happens next.
type Action struct {
	Span Span
	Do   Do
	Goto Text // the step to go to, of DoGoto alone
}

// Do is a kind of action.
type Do string

const (
	DoContinue Do = "continue" // the step passes
	DoPause    Do = "pause"    // the run waits for a person; approved, the step passes, and denied, it fails
	DoFail     Do = "fail"
	DoRetry    Do = "retry" // the step runs again, within its Retry
	DoGoto     Do = "goto"
)

// Retry says how often a step that failed is tried again.
type Retry struct {
	Span     Span
	Attempts Int      // in all, the first included: 2 to 10
	Backoff  Duration // before the second; doubled before each further one, up to 5 minutes; not written: 1s
}

// Var is a variable of a step's environment.
type Var struct {
	Name  Text
	Value Word
}

// Effect is what a step does to the world.
type Effect string

const (
	Read         Effect = "read"         // changes nothing
	Idempotent   Effect = "idempotent"   // done twice, it is done once
	Write        Effect = "write"        // what a step has that declares nothing: not repeated after a crash without a person
	Irreversible Effect = "irreversible" // needs a pause on every path to it, and is never tried again
)

// Touch is something that only a person may decide about.
type Touch string

const (
	Money    Touch = "money"
	Identity Touch = "identity"
)

// Scope is what a step may read, write, run and reach; what is not listed it may
// not. Paths are patterns relative to the root (see package doc); a host is
// NAME:PORT.
type Scope struct {
	Span     Span
	CanRead  Texts
	CanWrite Texts
	CanRun   Texts
	CanReach Texts // hosts; not written: none

	flawed bool
}
