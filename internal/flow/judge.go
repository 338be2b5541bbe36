package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/signal"
)

// A Judge asks a model for a verdict: it is what a step of type claude does, and
// what an observer does for each window that it reads. It is safe for use by
// several goroutines.
type Judge interface {
	// Judge asks once, and says what came of it: it has no other way to fail.
	//
	// The model has the inquiry's scope, enforced by the kernel where it has tools,
	// and reaches its provider through the door alone. The caps are hard: over time
	// it is steps.FailedTimeout, over tokens steps.FailedBudget. A budget that is
	// spent before the call is steps.FailedBudget too, and a guard's deny is
	// steps.Blocked. What the model said counts only if it was asked of the model
	// that is pinned, in whole, and fits the schema; one turn of repair is the
	// judge's, and counts against the caps.
	//
	// When Judge returns, nothing that it started is left. When ctx ends it returns
	// soon, with steps.Cancelled.
	Judge(ctx context.Context, q Inquiry) Judgement
}

// Via says how a model is asked.
type Via string

const (
	ViaCLI Via = "cli" // claude -p, in the sandbox
	ViaAPI Via = "api" // the provider's interface, with no tools
)

// Inquiry is what a judge is to ask, and within which bounds.
type Inquiry struct {
	// Run is the playbook's run: what is asked is a part of it, and its spend is
	// booked on it. Step is the step's id, Attempt counts from 1.
	Run      journal.Ref
	Playbook string
	Step     string
	Attempt  int
	// Observer: it is asked beside the step, and not as the step.
	Observer bool

	Via     Via
	Profile string // whose guards judge what is sent and said; empty: the first
	// Model is NAME-DATE, as it is sent and as it must be served.
	Model  string
	Prompt string // all that the model is told, its inputs put in
	// Schema is the JSON Schema of the answer.
	Schema json.RawMessage

	Scope   Scope
	Workdir string            // absolute; the scope's globs are relative to it
	Env     map[string]string // all that is given; nothing is inherited

	MaxLatency time.Duration
	MaxTokens  int64 // input and output, of all calls together

	// Show takes what the model says, as the guards release it, and does not wait
	// for whoever looks. It may be nil.
	Show func(channel, text string)
}

// Scope is what something that a step starts may read, write, run and reach.
type Scope struct {
	CanRead, CanWrite, CanRun []string // globs
	CanReach                  []string // hosts, each with a port
}

// Judgement is what came of an inquiry.
type Judgement struct {
	// State is steps.Passed if there is an answer, whatever it says, and else a
	// state that is over.
	State  steps.Standing
	Reason string // in a sentence; empty if it passed
	// Output is the answer, a JSON object that fits the schema; nil without one.
	Output json.RawMessage
	Served string // which model answered, as far as it is known
	Usage  signal.Usage
}
