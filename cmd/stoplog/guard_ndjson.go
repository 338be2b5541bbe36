package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/diag"
)

// maxLine is the longest line of ndjson that is taken. A line is answered with a
// line, so it has to be held whole.
const maxLine = 64 << 20

// reply is a line of output: one for each line of input, and one at the end.
type reply struct {
	Done     bool      `json:"done,omitempty"`
	Text     string    `json:"text"`
	Findings []finding `json:"findings"`
	Blocked  *blocked  `json:"blocked,omitempty"`
	Bytes    *int64    `json:"bytes,omitempty"`
}

// blocked says what ended the text.
type blocked struct {
	Rule  string `json:"rule"`
	Start int64  `json:"start"`
}

// An ndjsonFilter answers each line {"text":"…"} with what is released then.
type ndjsonFilter struct {
	in      *bufio.Reader
	out     io.Writer
	filter  *guard.Filter
	rep     report
	lines   lineReader
	read    int64 // bytes of text so far
	outcome error // what ended the text; nil if nothing did

	line, text, released []byte // of the line at hand; used again for the next
	answer               bytes.Buffer
}

func filterNDJSON(in io.Reader, out io.Writer, filter *guard.Filter, rep report) error {
	f := &ndjsonFilter{in: bufio.NewReaderSize(in, pieceSize), out: out, filter: filter, rep: rep}
	for number := 1; ; number++ {
		err := f.readLine()
		switch {
		case errors.Is(err, io.EOF):
			return f.end(nil)
		case err != nil:
			return f.end(fmt.Errorf("reading line %d of stdin: %w", number, err))
		}
		r := reply{}
		if f.outcome == nil {
			text, bad := f.lines.next(f.text[:0], f.line)
			if bad != nil {
				return f.end(diag.List{{
					Span:    diag.Span{Pos: diag.Pos{File: "stdin", Line: number, Col: bad.col}},
					Message: bad.what,
					Hint:    `with --format ndjson every line is {"text":"…"}`,
				}})
			}
			f.text = text
			f.write(&r, text)
		} // else the text has ended, and what follows is drained
		if err := f.send(r); err != nil {
			return err
		}
	}
}

// end decides what is held, answers the end of the input, and returns the
// outcome: what ended the text, or else why the input ended.
func (f *ndjsonFilter) end(why error) error {
	r := reply{Done: true}
	if f.outcome == nil {
		f.write(&r, f.lines.end(f.text[:0]))
		var step guard.Step
		f.released, step = f.filter.Close(f.released)
		f.fold(&r, step)
	}
	r.Bytes = &f.read
	if err := f.send(r); err != nil {
		return err
	}
	if f.outcome != nil {
		return f.outcome
	}
	return why
}

// write judges a piece of the text.
func (f *ndjsonFilter) write(r *reply, text []byte) {
	f.read += int64(len(text))
	var step guard.Step
	f.released, step = f.filter.Write(f.released, text)
	f.fold(r, step)
}

// fold adds to a reply what a step says.
func (f *ndjsonFilter) fold(r *reply, step guard.Step) {
	r.Findings = append(r.Findings, final(step)...)
	if step.Stop != nil && f.outcome == nil {
		r.Blocked = &blocked{step.Stop.Rule, step.Stop.At}
		f.outcome = stopped(step)
	}
}

// send reports a reply's findings, and writes the reply with all that was
// released since the last.
func (f *ndjsonFilter) send(r reply) error {
	if err := f.rep.add(r.Findings); err != nil {
		return err
	}
	if r.Findings == nil {
		r.Findings = []finding{} // an array in JSON, never null
	}
	r.Text = string(f.released)
	f.released = f.released[:0]
	f.answer.Reset()
	if err := newEncoder(&f.answer).Encode(r); err != nil {
		return err
	}
	if _, err := f.out.Write(f.answer.Bytes()); err != nil {
		return fmt.Errorf("writing stdout: %w", err)
	}
	return nil
}

// readLine reads the next line, without its line feed, which the last may lack.
func (f *ndjsonFilter) readLine() error {
	f.line = f.line[:0]
	for {
		part, err := f.in.ReadSlice('\n')
		f.line = append(f.line, part...)
		switch {
		case err == nil:
			f.line = f.line[:len(f.line)-1]
			return nil
		case errors.Is(err, io.EOF) && len(f.line) > 0:
			return nil // the next call meets the end again
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case len(f.line) > maxLine:
			return fmt.Errorf("more than %d bytes", maxLine)
		}
	}
}
