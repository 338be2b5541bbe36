// Package tool is what an agent can do: the contract of a tool, the check of
// what a model wants of it, and the tools that come with the product.
//
// A [Tool] says what it is before it does anything: a schema of its arguments,
// what running it does to the world ([Effect]), how confidential what it tells
// is ([Class]). A [Set] holds the tools of a session, ready to be asked:
//
//	name ──► Set.Lookup ──► Ready ─┐
//	                               ├─► Ready.Arguments ──► canonical JSON ──► Tool.Run ──► Output
//	the model's arguments ─────────┘         │
//	                                         └─► *ArgumentsError, for the model to read
//
// Who may run a tool, and what of its output the model may see, is decided by
// govern.Session, which is the only caller of Run.
//
// # Laws
//
// What a tool is given is exactly one reading of what the model wrote. JSON that
// is broken, that names a member twice, that is not UTF-8, or that has a number
// which a program would round, is refused; nothing is ever mended, and nothing
// becomes {}. The refusal says where and what, and repeats no value.
//
// A tool gives what it has read with context: text on both sides of what was
// asked for, so that a guard can see a secret whose middle was asked for.
//
// A failure that the model can do something about is an [Output]. An error says
// that the tool broke off, and that nobody knows how far it came.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Tool does one thing for a model. It is safe for use by several goroutines.
type Tool interface {
	// Spec says what the tool is. It is always the same.
	Spec() Spec
	// Run does it. The arguments are canonical JSON, one object that the schema
	// accepts; they are the tool's. When the context ends Run returns soon, with
	// nothing of its own still running.
	Run(ctx context.Context, args json.RawMessage) (Output, error)
}

// Spec is what is known of a tool before it runs.
type Spec struct {
	// Name is what the model calls it by: letters, digits, `_` and `-`, at most
	// 64 of them.
	Name string
	// Description is for the model.
	Description string
	// Schema is a JSON Schema (draft 2020-12 unless it says otherwise) of type
	// object that refers to nothing outside itself.
	Schema json.RawMessage
	Effect Effect
	Class  Class
	// Caution is said to whoever is asked to approve a call; may be empty.
	Caution string
	// Poller says that asking again and again is what the tool is for, so that
	// the same answer twice is no sign of a run that is stuck.
	Poller bool
}

// Output is what a tool tells.
type Output struct {
	// Text is valid UTF-8.
	Text string
	// Before and After are the context: that many bytes at the start and at the
	// end of Text surround what was asked for. They are judged and not shown.
	Before, After int
	// Cut says that what Text is taken from goes on behind it.
	Cut bool
	// Note is said behind the text, to tell what was left out or how a command
	// ended. It is the tool's own words and holds nothing that it has read.
	Note string
	// Failed says that the tool did not do what was asked, and Text or Note why.
	Failed bool
}

// failure is the output of a tool that can not do what was asked.
func failure(format string, args ...any) Output {
	return Output{Text: fmt.Sprintf(format, args...), Failed: true}
}

// Effect is what running a tool does to the world. The zero Effect is none of
// them: every tool declares one.
type Effect uint8

const (
	Read         Effect = iota + 1 // changes nothing
	Idempotent                     // changes something, and twice changes no more than once
	Write                          // each time changes something
	Irreversible                   // and nobody can change it back
)

var effectNames = [...]string{"", "read", "idempotent", "write", "irreversible"}

func (e Effect) String() string { return name(effectNames[:], int(e), "effect") }

// MarshalText writes what String gives.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Repeatable reports whether a call that was lost may be made again unasked.
func (e Effect) Repeatable() bool { return e == Read || e == Idempotent }

// Class says how confidential data is. Classes are ordered. The zero Class is
// none of them: it is not known.
type Class uint8

const (
	Public Class = iota + 1
	Internal
	Personal
	Secret
)

var classNames = [...]string{"", "public", "internal", "personal", "secret"}

func (c Class) String() string { return name(classNames[:], int(c), "data class") }

// MarshalText writes what String gives.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func name(names []string, i int, what string) string {
	if i > 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}
