// Package diag says where in a file something is wrong.
//
// A reader of a file (the configuration, a cassette, later a playbook) does not
// stop at the first mistake: it adds a [Diagnostic] to a [List] for each, goes
// on, and returns the list as its error. A person then mends the file once.
//
//	reader ─► Diagnostic{Span, Message, Hint} ─► List ─┬─► Error      file:line:col: message; hint
//	                                                   ├─► WriteText  the same with the source line and a caret
//	                                                   └─► WriteJSON  one array, for programs
//
// # Laws
//
// Lines and columns are counted from 1. A column counts runes, not bytes: it is
// the column an editor shows, except that a wide or combining rune is one
// column and so is a tab. A byte that is not UTF-8 is one rune.
//
// A message is lower case and says what is wrong; a hint says what to do. Both
// are one line, whatever the file held: [Line] is applied on the way out, so a
// file cannot write control sequences to a terminal.
//
// A diagnostic carries its source line, so that a rendering needs no file. A
// reader leaves the line out, or masks it, where it may hold a secret.
package diag

import (
	"slices"
	"strconv"
	"strings"
)

// Pos is a place in a file.
type Pos struct {
	File string // as it was named to the program
	Line int    // from 1; 0 where the file as a whole is meant
	Col  int    // in runes, from 1
}

// String gives file:line:col, or the file alone where there is no line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
}

// Span is a stretch of one line.
type Span struct {
	Pos
	Width int // in runes; 0 is taken as 1
}

// Diagnostic is one thing that is wrong in a file.
type Diagnostic struct {
	Span
	Message string
	Hint    string // what to do about it; may be empty
	Source  string // the line at Pos, without its line end; empty if it must not be shown
}

// String gives one line: file:line:col: message; hint.
func (d Diagnostic) String() string {
	s := Line(d.Pos.String()) + ": " + Line(d.Message)
	if d.Hint != "" {
		s += "; " + Line(d.Hint)
	}
	return s
}

// List is the diagnostics of one reading. As an error it is one line for each.
type List []Diagnostic

// Error gives the diagnostics' lines, joined by line feeds.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Err is l as an error: nil if the list is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Sort orders the list by file, line and column; diagnostics of one place stay
// in the order in which they were added.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
}
