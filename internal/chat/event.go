package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// An Event is one thing that a reader sees. The types in this file are all there
// are. Each is written as a JSON object.
type Event interface {
	// Name is the event's name on the wire.
	Name() string
}

// Run opens the story: which run it is.
type Run struct {
	ID      string `json:"id"`
	Profile string `json:"profile"`
	Session string `json:"session,omitempty"`
	// Playbook is the name of the playbook that it is a run of.
	Playbook string `json:"playbook,omitempty"`
}

// Step says that the run's next step has begun: the model is asked. Of a playbook
// it says where a step stands.
type Step struct {
	Step int `json:"step"`

	// The rest is of playbooks.
	ID      string `json:"id,omitempty"`
	Type    string `json:"type,omitempty"`
	State   string `json:"state,omitempty"` // pending, running, waiting, passed, …
	Attempt int    `json:"attempt,omitempty"`
	// Why says in a sentence why it did not pass.
	Why      string `json:"why,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Verdict  string `json:"verdict,omitempty"`
	Observer string `json:"observer,omitempty"` // the verdict of its observer
	Ticket   string `json:"ticket,omitempty"`
	Run      string `json:"run,omitempty"` // that is its work
}

// Delta is text that has been released. Start is its place in the channel's text
// of the attempt, in bytes, so that a reader can tell what it has seen.
type Delta struct {
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Channel string `json:"channel"`
	Start   int64  `json:"start"`
	Text    string `json:"text"`
}

// The channels of a run's deltas.
const (
	TextChannel      = "text"      // what the model says to the user
	RefusalChannel   = "refusal"   // likewise, where it refuses
	ReasoningChannel = "reasoning" // what it thinks, where the provider shows it
)

// Answers reports whether a channel's text is part of the answer.
func Answers(channel string) bool { return channel == TextChannel || channel == RefusalChannel }

// Tool says how far a call has come. A call is known by its step and its number,
// from 1, in that step's answer.
type Tool struct {
	Step  int       `json:"step"`
	Call  int       `json:"call"`
	Tool  string    `json:"tool"`
	State ToolState `json:"state"`
	// Args is the arguments as the model wrote them, screened; it comes with the
	// call's first event.
	Args string `json:"args,omitempty"`
	// Result is what the model is told of the call; it comes with the last.
	Result string `json:"result,omitempty"`
}

// ToolState is how far a call has come.
type ToolState string

const (
	ToolHeld    ToolState = "held"     // a person must decide, or reply
	ToolDue     ToolState = "due"      // to be run
	ToolRunning ToolState = "running"  //
	ToolInDoubt ToolState = "in_doubt" // it may have taken effect, and nobody knows
	ToolDone    ToolState = "done"     // it answered
	ToolFailed  ToolState = "failed"   // it answered that it failed
	ToolNotRun  ToolState = "not_run"  // refused, denied, withheld, or left off
	ToolLost    ToolState = "lost"     // the run ended while it was under way, or in doubt
)

// Verdict says that a guard had something against a text.
type Verdict struct {
	Guard  string `json:"guard"`
	Status string `json:"status"` // StatusRedacted, StatusAllowed, StatusBlocked or StatusApproval
	Rule   string `json:"rule"`
	// Channel is where; empty if it was what was to go to the model.
	Channel string `json:"channel,omitempty"`
	// Allowed says who let it pass, where a person has.
	Allowed *Allowed `json:"allowed,omitempty"`
}

// Allowed is a person's word that a finding is no fault.
type Allowed struct {
	By    string    `json:"by"`
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// Approval says that a person must decide, and about what. A decision names the
// digest, which covers all that is shown of the question.
type Approval struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"`
	What    string    `json:"what"`
	About   string    `json:"about"` // call, request, answer or step; of a playbook pause or verdict
	Step    int       `json:"step"`
	Call    int       `json:"call,omitempty"`
	Expires time.Time `json:"expires"`
}

// Question says that the model wants to know something of the user.
type Question struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"`
	Text    string    `json:"text"`
	Step    int       `json:"step"`
	Call    int       `json:"call"`
	Expires time.Time `json:"expires"`
}

// Superseded says that what was shown of an attempt counts for nothing: the model
// is asked again.
type Superseded struct {
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
}

// Done is the last event of a stream, and the whole of an answer that is not
// streamed.
type Done struct {
	Success bool `json:"success"`
	// Status is completed, guardrail_blocked, failed or cancelled; or, where the
	// run waits, guardrail_approval_required, waiting_input or waiting_decision.
	Status string `json:"status"`
	Reason string `json:"reason"`
	// Message is the answer of a run that has completed; of any other it is what
	// the user is told in its place.
	Message string `json:"message"`

	Run     string `json:"run"`
	Session string `json:"session,omitempty"`
	// Guard and Rule are what stopped the run, where a guard did.
	Guard string `json:"guard,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Answer is what had been shown of an answer when the run stopped.
	Answer string `json:"answer,omitempty"`
	// Approvals and Question are what the run waits for.
	Approvals []Approval `json:"approvals,omitempty"`
	Question  *Question  `json:"question,omitempty"`
	// InDoubt are the calls that a person must resolve.
	InDoubt []Tool `json:"in_doubt,omitempty"`
}

// The statuses that are not a run's own.
const (
	StatusRedacted = "redacted"
	StatusAllowed  = "allowed"
	StatusBlocked  = "guardrail_blocked"
	StatusApproval = "guardrail_approval_required"
)

// The reasons of a Done where the run waits. At its end the reason is the run's.
const (
	ReasonApproval = "approval_required"
	ReasonInput    = "input_required"
	ReasonInDoubt  = "call_in_doubt"
)

// Waits reports whether the run goes on once people have had their say.
func (d Done) Waits() bool {
	switch d.Reason {
	case ReasonApproval, ReasonInput, ReasonInDoubt:
		return true
	}
	return false
}

func (Run) Name() string        { return "run" }
func (Step) Name() string       { return "step" }
func (Delta) Name() string      { return "delta" }
func (Tool) Name() string       { return "tool" }
func (Verdict) Name() string    { return "verdict" }
func (Approval) Name() string   { return "approval" }
func (Question) Name() string   { return "question" }
func (Superseded) Name() string { return "superseded" }
func (Done) Name() string       { return "done" }

// Encode returns an event's JSON, on one line.
func Encode(e Event) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// Decode reads what Encode wrote of an event of that name; nil for a name that is
// not known, which a newer program may send.
func Decode(name string, data []byte) (Event, error) {
	read, ok := decoders[name]
	if !ok {
		return nil, nil
	}
	e, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("read event %s: %w", name, err)
	}
	return e, nil
}

var decoders = map[string]func([]byte) (Event, error){
	Run{}.Name(): decode[Run], Step{}.Name(): decode[Step], Delta{}.Name(): decode[Delta],
	Tool{}.Name(): decode[Tool], Verdict{}.Name(): decode[Verdict], Approval{}.Name(): decode[Approval],
	Question{}.Name(): decode[Question], Superseded{}.Name(): decode[Superseded], Done{}.Name(): decode[Done],
}

func decode[E Event](data []byte) (Event, error) {
	var e E
	err := json.Unmarshal(data, &e)
	return e, err
}
