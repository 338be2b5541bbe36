package llm

import (
	"encoding/json"
	"strings"
)

// Event is what comes back from a model: [Delta], [CallReady], [Finished],
// [Withheld] or [Spent].
type Event interface{ event() }

// Delta is some text, as it comes.
type Delta struct {
	Kind Kind
	Text string
}

// Kind says what a text is.
type Kind uint8

const (
	Text Kind = iota
	Reasoning
	Refusal
)

var kindNames = [...]string{"text", "reasoning", "refusal"}

func (k Kind) String() string { return kindNames[k] }

// CallReady is a tool call, whole. It comes once the answer has finished.
type CallReady struct{ Call Call }

// Finished is the end of an answer.
type Finished struct{ Answer Answer }

// Withheld is the end of a call that a guard stopped: the request was not sent,
// or the answer ends in the middle. Calls of such an answer are lost.
type Withheld struct {
	Request     bool // it was the request
	Deny        bool // nobody may let it through; else a person may
	Guard, Rule string
	Reason      string // a sentence for people; may be empty
	Text        string // of the answer, as far as it was let out
	Usage       Usage
}

// Spent is the end of a call for which there is not enough budget: the request was
// not sent, or the answer ends in the middle. Calls of such an answer are lost.
type Spent struct {
	Envelope string // whose budget it is
	Reason   string // a sentence for people, with figures
	Text     string // of the answer, as far as it came
	Usage    Usage
}

func (Spent) event()     {}
func (Delta) event()     {}
func (CallReady) event() {}
func (Finished) event()  {}
func (Withheld) event()  {}

// Answer is what a model said.
type Answer struct {
	Text    string // with the text of a refusal, if there was one
	Thought string
	Calls   []Call
	// Kept is what has to go back to the provider as it came, beside or in place
	// of Text and Calls; nil if nothing has. It is this package's own.
	Kept   json.RawMessage
	Finish Finish
	Model  string // that answered, as the provider names it
	Usage  Usage
}

// Finish says how an answer ended.
type Finish uint8

const (
	Stop    Finish = iota // the model had said what it had to say
	Length                // there was no more room
	Refused               // the model or its provider refuses; no call of it is to be run
)

var finishNames = [...]string{"stop", "length", "refusal"}

func (f Finish) String() string { return finishNames[f] }

// Usage is how many tokens a call took. What was not reported is an estimate, or 0.
type Usage struct {
	Input, Output int64
	Estimated     bool
}

// answer is an answer in the making.
type answer struct {
	Answer
	text, thought strings.Builder // of Text and Thought
	deltas        []Event         // since they were last told
	released      bool            // somebody has heard some of it
	counted       bool            // the provider said what it took
	failure       string          // why the provider ended it, where that is no way to end
	stoplog       member
}

// member is what the door tells clients in their answers.
type member struct {
	Run    string `json:"run"`
	Status string `json:"status"`
	Guard  string `json:"guard"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// say adds a text.
func (a *answer) say(kind Kind, text string) {
	if text == "" {
		return
	}
	if kind == Reasoning {
		a.thought.WriteString(text)
	} else {
		a.text.WriteString(text)
	}
	a.deltas = append(a.deltas, Delta{kind, text})
}

// note keeps what the door says, if it says something.
func (a *answer) note(m *member) {
	if m != nil {
		a.stoplog = *m
	}
}
