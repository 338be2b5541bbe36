package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSource is how many runes of a source line are shown. Of a longer line the
// part around the column is.
const maxSource = 120

// WriteText writes each diagnostic with its source line and a caret:
//
//	stoplog.yaml:4:1: unknown key "gaurds"
//	  4 | gaurds:
//	    | ^^^^^^
//	  did you mean "guards"?
func (l List) WriteText(w io.Writer) error {
	for _, d := range l {
		if _, err := io.WriteString(w, d.text()); err != nil {
			return err
		}
	}
	return nil
}

func (d Diagnostic) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", Line(d.Pos.String()), Line(d.Message))
	if d.Source != "" && d.Line > 0 {
		line, before, width := window([]rune(printable(d.Source)), d.Col-1, d.Width)
		number := strconv.Itoa(d.Line)
		fmt.Fprintf(&b, "  %s | %s\n", number, strings.TrimRight(string(line), " "))
		fmt.Fprintf(&b, "  %*s | %s%s\n", len(number), "", blank(line[:before]), strings.Repeat("^", width))
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "  %s\n", Line(d.Hint))
	}
	return b.String()
}

// window cuts line to the part around the column: at most maxSource runes, the
// number of them before the caret, and the caret's width within them.
func window(line []rune, before, width int) ([]rune, int, int) {
	before = min(max(before, 0), len(line))
	from := 0
	if len(line) > maxSource {
		from = min(max(before-maxSource/2, 0), len(line)-maxSource)
		line = line[from : from+maxSource]
	}
	before -= from
	return line, before, max(1, min(width, len(line)-before))
}

// blank gives the white space as wide as the runes: a tab for a tab.
func blank(rs []rune) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, string(rs))
}

// WriteJSON writes one array, with a member for each diagnostic:
// file, line, col, width, message and, unless empty, hint. The source line is
// not in it: who reads JSON has the file.
func (l List) WriteJSON(w io.Writer) error {
	type item struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Col     int    `json:"col"`
		Width   int    `json:"width"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	items := make([]item, len(l))
	for i, d := range l {
		items[i] = item{d.File, d.Line, d.Col, max(d.Width, 1), d.Message, d.Hint}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(items)
}

// Line makes s fit to be shown on one line of a terminal: line ends, control
// characters and bytes that are not UTF-8 become escapes as in a Go string.
func Line(s string) string {
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.Quote(s[i : i+size])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// printable keeps the number of runes, so that columns still fit: what a
// terminal would act on becomes U+FFFD, but for tabs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
