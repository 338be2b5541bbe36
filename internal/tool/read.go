package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// readFile is read_file: a part of a text file.
type readFile struct{ root *os.Root }

func (readFile) Spec() Spec {
	return Spec{
		Name:        "read_file",
		Description: "Read a text file of the working directory, or a part of it. Offset and limit count bytes.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{` +
			`"path":{"type":"string","minLength":1,"description":"relative to the working directory"},` +
			`"offset":{"type":"integer","minimum":0,"description":"where to begin; 0 if left out"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":65536,"description":"how much to read; 65536 if left out"}}}`),
		Effect: Read,
		Class:  Internal,
	}
}

func (t readFile) Run(_ context.Context, args json.RawMessage) (Output, error) {
	in := struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"`
	}{Limit: MaxText}
	if err := decode(args, &in); err != nil {
		return Output{}, err
	}
	f, size, err := openRegular(t.root, in.Path)
	if errors.Is(err, errNotRegular) {
		return failure("it is not a regular file"), nil
	}
	if err != nil {
		return refusal(err), nil
	}
	defer f.Close()
	if in.Offset > size {
		return failure("the offset is behind the file's end, at byte %d", size), nil
	}
	from := max(0, in.Offset-contextBytes)
	text := make([]byte, in.Offset-from+in.Limit+contextBytes+1)
	n, err := f.ReadAt(text, from)
	if err != nil && err != io.EOF {
		return refusal(err), nil
	}
	// The one byte too many tells that the file goes on.
	more := n == len(text)
	text = text[:min(n, len(text)-1)]
	if bytes.IndexByte(text, 0) >= 0 {
		return failure("it is a binary file of %d bytes", size), nil
	}
	begin := int(min(in.Offset-from, int64(len(text))))
	begin, end := runes(text, begin, begin+min(int(in.Limit), len(text)-begin))
	out := piece(text, begin, end)
	out.Cut = more
	if next := from + int64(end); next < size {
		out.Note = fmt.Sprintf("[cut: bytes %d to %d of %d; go on with offset %d]", from+int64(begin), next, size, next)
	}
	return out, nil
}

// runes moves the ends of a piece of text so that a rune which they cut is left
// to the piece behind it.
func runes(text []byte, from, to int) (int, int) {
	return boundary(text, from), boundary(text, to)
}

func boundary(text []byte, at int) int {
	for i := range utf8.UTFMax {
		if at-i <= 0 || at == len(text) || utf8.RuneStart(text[at-i]) {
			return max(0, at-i)
		}
	}
	return at
}

// piece is the output that shows text[from:to]. What is no UTF-8, or NUL, is
// replaced.
func piece(text []byte, from, to int) Output {
	before, shown, after := valid(text[:from]), valid(text[from:to]), valid(text[to:])
	return Output{Text: before + shown + after, Before: len(before), After: len(after)}
}

func valid(text []byte) string {
	const bad = "\ufffd"
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), bad), "\x00", bad)
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file, and nothing else: opening a FIFO waits for
// its writer, and opening a device can do anything. What a name stands for may
// change between the look and the opening, so it is looked at again.
func openRegular(root *os.Root, path string) (*os.File, int64, error) {
	if info, err := root.Stat(path); err != nil {
		return nil, 0, err
	} else if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
