package yamltree

import "github.com/stoplog/stoplog/internal/diag"

// A Node is one value of a file, with its place.
type Node struct {
	Span    diag.Span
	Kind    Kind
	Text    string   // a scalar's value, unquoted
	Items   []Node   // a list's
	Members []Member // a mapping's, in order, duplicates and all
	Flawed  bool     // a mapping's: a member was reported and left out
}

// A Member is a key of a mapping with its value.
type Member struct {
	Key   string
	Span  diag.Span // the key's
	Value Node
}

// Kind is what a value is.
type Kind uint8

const (
	Broken Kind = iota // already reported: whoever reads it stays silent
	Null
	Boolean
	Number
	String
	List
	Mapping
)

var kindNames = [...]string{"broken", "nothing", "true or false", "a number", "a string", "a list", "a mapping"}

// String names the kind as a message does: "a list".
func (k Kind) String() string { return kindNames[k] }

// At is a value with the place where it was written. The zero At was not written.
type At[T any] struct {
	Value T
	Span  diag.Span
}

// Written says whether the value stands in the file.
func (a At[T]) Written() bool { return a.Span.Line > 0 }
