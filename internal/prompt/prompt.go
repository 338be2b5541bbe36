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
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Input is a value that a prompt is given.
type Input struct {
	Name yamltree.At[string]
	Type yamltree.At[Type]
}

// Prompt is one version of a prompt.
type Prompt struct {
	File   string              // as it was named to Parse
	Model  yamltree.At[string] // a pin: see ParsePin
	Inputs []Input
	Output *Schema // nil: any text
	body   []part
}

// part is a piece of the body: a text, or, if input is not empty, an input's value.
type part struct{ text, input string }

// Input gives the declaration of an input.
func (p *Prompt) Input(name string) (Input, bool) {
	for _, in := range p.Inputs {
		if in.Name.Value == name {
			return in, true
		}
	}
	return Input{}, false
}

// Uses says whether the body names an input.
func (p *Prompt) Uses(name string) bool {
	return slices.ContainsFunc(p.body, func(b part) bool { return b.input == name })
}

// Render gives the body with the inputs' values in their places, as they are. An
// input without a value, and a value without an input, is an error.
func (p *Prompt) Render(values map[string]string) (string, error) {
	for name := range values {
		if _, ok := p.Input(name); !ok {
			return "", fmt.Errorf("render prompt %s: it declares no input %q", p.File, name)
		}
	}
	for _, in := range p.Inputs {
		if _, ok := values[in.Name.Value]; !ok {
			return "", fmt.Errorf("render prompt %s: input %q has no value", p.File, in.Name.Value)
		}
	}
	var b strings.Builder
	for _, piece := range p.body {
		b.WriteString(piece.text)
		if piece.input != "" {
			b.WriteString(values[piece.input])
		}
	}
	return b.String(), nil
}
