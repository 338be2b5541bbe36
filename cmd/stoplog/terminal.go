package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/stoplog/stoplog/internal/diag"
)

// isTerminal reports whether a person is at the other end.
func isTerminal(end any) bool {
	f, ok := end.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// errNobody: who was asked has gone.
var errNobody = errors.New("nobody answers")

// askLine asks for a line, on stderr, and reads it from stdin: byte by byte, so
// that what comes behind it is left to who reads next.
func askLine(w *world, prompt string) (string, error) {
	fmt.Fprint(w.voice.w, prompt)
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := w.stdin.Read(b)
		switch {
		case n > 0 && b[0] != '\n':
			line = append(line, b[0])
		case n > 0, errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSuffix(string(line), "\r"), nil
		case errors.Is(err, io.EOF):
			return "", errNobody
		case err != nil:
			return "", err
		}
	}
}

// tame makes text fit to be shown on a terminal: what would be acted on becomes
// an escape, and lines and tabs stay.
func tame(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		i := strings.IndexAny(text, "\n\t")
		if i < 0 {
			i = len(text)
		}
		b.WriteString(diag.Line(text[:i]))
		if i < len(text) {
			b.WriteByte(text[i])
			i++
		}
		text = text[i:]
	}
	return b.String()
}
