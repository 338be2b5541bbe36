package yamltree

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"

	"github.com/stoplog/stoplog/internal/diag"
)

// Limits bound what is read. The parser needs them: its time and memory are
// quadratic in the depth of a file.
type Limits struct {
	Bytes int
	Depth int
}

// A Reader turns the bytes of a file into nodes, and collects what is wrong.
type Reader struct {
	File   string
	What   string // in messages: "a playbook"
	Limits Limits
	// Mask, unless it is nil, makes a line of the file fit to be shown. It keeps
	// the number of runes.
	Mask func(line string) string
	// List is what was found wrong so far.
	List diag.List

	lines []string
}

// Errorf adds a diagnostic. The hint may be empty.
func (r *Reader) Errorf(at diag.Span, hint, format string, args ...any) {
	r.List = append(r.List, r.Diagnostic(at, hint, format, args...))
}

// Diagnostic makes one, with its line of the file.
func (r *Reader) Diagnostic(at diag.Span, hint, format string, args ...any) diag.Diagnostic {
	d := diag.Diagnostic{Span: at, Message: fmt.Sprintf(format, args...), Hint: hint}
	if 0 < at.Line && at.Line <= len(r.lines) && at.File == r.File {
		d.Source = r.lines[at.Line-1]
		if r.Mask != nil {
			d.Source = r.Mask(d.Source)
		}
	}
	return d
}

// Lines are the lines of the file, without their ends; nil before it was read.
func (r *Reader) Lines() []string { return r.lines }

// Span is a place in the file, moved into it where a parser pointed past its end.
func (r *Reader) Span(line, col, width int) diag.Span {
	line = max(1, min(line, len(r.lines)))
	longest := 0
	if line <= len(r.lines) {
		longest = utf8.RuneCountInString(r.lines[line-1])
	}
	return diag.Span{
		Pos:   diag.Pos{File: r.File, Line: line, Col: max(1, min(col, longest+1))},
		Width: max(1, width),
	}
}

func (r *Reader) token(tk *token.Token) diag.Span {
	if tk == nil || tk.Position == nil {
		return r.Span(1, 1, 1)
	}
	width, _, _ := strings.Cut(strings.TrimSpace(tk.Origin), "\n")
	return r.Span(tk.Position.Line, tk.Position.Column, utf8.RuneCountInString(width))
}

// source makes the bytes a text that the parser sees as people do: UTF-8
// without a byte order mark, lines ended by LF, no tab in an indentation.
func (r *Reader) source(data []byte) (string, bool) {
	if len(data) > r.Limits.Bytes {
		r.Errorf(r.Span(1, 1, 1), "", "the file has %d bytes, want at most %d", len(data), r.Limits.Bytes)
		return "", false
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.Errorf(r.Span(1, 1, 1), "save it as UTF-8", "the file is in UTF-16")
		return "", false
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	r.lines = strings.Split(src, "\n")
	before := len(r.List)
	for i, line := range r.lines {
		r.line(i+1, line)
	}
	return src, len(r.List) == before
}

// line reports the first rune of a line that no file of ours holds.
func (r *Reader) line(number int, line string) {
	indented, col := true, 0
	for i, c := range line {
		col++
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			r.Errorf(r.Span(number, col, 1), "save it as UTF-8", "byte 0x%02x is not UTF-8", line[i])
		case c == '\t' && indented && strings.TrimLeft(line, " \t") != "":
			r.Errorf(r.Span(number, col, 1), "indent with spaces", "a tab in the indentation")
		case c != '\t' && unicode.IsControl(c), c == '\ufeff':
			r.Errorf(r.Span(number, col, 1), "", "control character %U", c)
		case Reorders(c):
			r.Errorf(r.Span(number, col, 1), "remove it", "%U turns the direction of what is shown: the file would read other than it is", c)
		default:
			indented = indented && c == ' '
			continue
		}
		return
	}
}

// Reorders says of a rune that it reorders the text around it, or ends a line
// that YAML does not end, which makes a reviewer see another file than the program
// does (CVE-2021-42574). A file has none; a quoted string may have it escaped.
func Reorders(r rune) bool {
	return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' || r == '\u2028' || r == '\u2029' || r == '\u0085'
}
