// Package prompt reads prompts: versioned files that say which model they are
// for, what they are given and what they give back.
//
//	prompts/dry-run-gate@v2.md          the file of the ref dry-run-gate.md@v2
//	prompts/dry-run-gate@v2.corpus/     its cases
//
// A file has front matter between two lines of ---, and a body:
//
//	---
//	model: claude-sonnet-4-5@20250929
//	inputs: {log: string}
//	output: {type: object, required: [verdict], properties: {verdict: {enum: [go, no-go]}}}
//	---
//	Read this log and decide: {{log}}
//
// # Laws
//
// A prompt is what was reviewed: a version never changes, and nothing is put into
// its body but the inputs that it declares, where it names them. What an input
// says is data: a {{ in it is two characters.
//
// A ref never leads out of the prompt roots, and a prompt is one file, found in
// one root: where two roots have it, that is an error.
package prompt

import (
	"encoding/json"
	"errors"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// ErrUnversioned is the error of a ref that names no version.
var ErrUnversioned = errors.New("has no version")

// Type is the type of an input.
type Type string

const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
)

// Prompt is one version of a prompt.
type Prompt struct {
	Ref    Ref
	File   string // as it was named to Parse
	Model  yamltree.At[string]
	Inputs []Input
	Output *Schema // nil: any text
	body   []part
}

// Input is a value that a prompt is given.
type Input struct {
	Name yamltree.At[string]
	Type yamltree.At[Type]
}

// part is a piece of the body: a text, or the name of an input.
type part struct {
	text  string
	input yamltree.At[string]
}

// Schema is a JSON Schema.
type Schema struct {
	Span diag.Span
	JSON json.RawMessage // its members in the order of the file
	// Verdicts is the enum of its property verdict; empty if it has none.
	Verdicts []yamltree.At[string]
}
