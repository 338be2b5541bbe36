package yamltree

import (
	"strings"
	"unicode/utf8"

	"github.com/stoplog/stoplog/internal/diag"
)

// Place gives the place in the file of one rune of a scalar: that of the rune at
// the given byte offset of its value, where at is the scalar's span and lines are
// the file's. It walks the scalar as it was written: plain, quoted, or a block of
// lines. Where it cannot follow the notation it gives the nearest place before.
func Place(lines []string, at diag.Span, offset int) diag.Span {
	if at.Line < 1 || at.Line > len(lines) || offset < 0 {
		return at
	}
	line := []rune(lines[at.Line-1])
	if at.Col < 1 || at.Col > len(line) {
		return at
	}
	w := walk{lines: lines, at: at}
	switch c := line[at.Col-1]; c {
	case '|', '>':
		return w.block(offset, c == '>')
	case '"', '\'':
		return w.flow(offset, at.Col, c)
	default:
		return w.flow(offset, at.Col-1, 0)
	}
}

// walk is a scalar in its file.
type walk struct {
	lines []string
	at    diag.Span
}

// to is a place of one rune.
func (w walk) to(line, col int) diag.Span {
	out := w.at
	out.Line, out.Col, out.Width = line, col, 1
	return out
}

// flow walks a plain or quoted scalar from the rune before which from runes of
// its line stand. A line end with the white space around it is one space of the
// value, or as many line feeds as there are empty lines.
func (w walk) flow(offset, from int, quote rune) diag.Span {
	n := w.at.Line
	line := []rune(w.lines[n-1])
	last := w.to(n, from+1)
	for i := from; ; {
		if i >= len(line) || strings.TrimSpace(string(line[i:])) == "" && n < len(w.lines) {
			empty := 0
			for n++; n <= len(w.lines) && strings.TrimSpace(w.lines[n-1]) == ""; n++ {
				empty++
			}
			if n > len(w.lines) {
				return last
			}
			line = []rune(w.lines[n-1])
			i = len(line) - len([]rune(strings.TrimLeft(string(line), " \t")))
			if offset -= max(1, empty); offset < 0 {
				return w.to(n, i+1)
			}
			continue
		}
		last = w.to(n, i+1)
		runes, bytes := 1, utf8.RuneLen(line[i])
		switch {
		case quote == '"' && line[i] == '\\':
			runes, bytes = escape(line[i:])
		case quote == '\'' && line[i] == '\'' && i+1 < len(line) && line[i+1] == '\'':
			runes = 2
		}
		if offset < bytes {
			return last
		}
		offset -= bytes
		i += runes
	}
}

// escape gives how many runes an escape of a double-quoted scalar takes, and how
// many bytes what it stands for has.
func escape(rs []rune) (runes, bytes int) {
	if len(rs) < 2 {
		return 1, 1
	}
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[rs[1]]
	value := rune(0)
	for _, d := range rs[2:min(2+digits, len(rs))] {
		value = value<<4 | rune(strings.IndexRune("0123456789abcdef", d|0x20))
	}
	return min(2+digits, len(rs)), max(1, utf8.RuneLen(value))
}

// block walks a scalar in | or > style: its lines begin after the indentation of
// the first that is not empty. In > style, folded, a line end is a space, of the
// same length, and of a line end and empty lines only these count.
func (w walk) block(offset int, folded bool) diag.Span {
	indent := -1
	for n := w.at.Line + 1; n <= len(w.lines); n++ {
		line := w.lines[n-1]
		text := strings.TrimLeft(line, " ")
		if indent < 0 {
			if text == "" {
				offset--
				continue
			}
			indent = len(line) - len(text)
		}
		body := ""
		if len(line) > indent {
			body = line[indent:]
		}
		if offset <= len(body) {
			col := min(indent, len(line)) + utf8.RuneCountInString(body[:max(0, offset)]) + 1
			return w.to(n, col)
		}
		offset -= len(body) + 1
		if folded && body != "" && n < len(w.lines) && strings.TrimSpace(w.lines[n]) == "" {
			n++ // the first empty line is the line end
		}
	}
	return w.at
}
