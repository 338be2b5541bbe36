package guard

import (
	"context"
	"fmt"
	"io"
)

// A StopError says that a text was stopped: what came before the span that stopped
// it has left, and nothing of it or after it ever will.
type StopError struct{ Stop Stop }

func (e *StopError) Error() string {
	return fmt.Sprintf("the text was stopped at byte %d: %s by rule %s of guard %s", e.Stop.At, e.Stop.Verdict, e.Stop.Rule, e.Stop.Guard)
}

// A Redactor is an [io.WriteCloser] that passes on what a chain lets through of the
// text written to it, as soon as it does. Close it at the end of the text: what is
// held is decided only there.
type Redactor struct {
	// Record, if not nil, is given the decisions before anything that depends on
	// them is written. If it fails, so does the redactor.
	Record func([]Decision) error

	w      io.Writer
	filter *Filter
	buf    []byte
	err    error // for good
	closed bool
}

// NewRedactor returns a redactor of one text that writes to w. Closing it does not
// close w.
func NewRedactor(w io.Writer, c *Chain) *Redactor {
	return &Redactor{w: w, filter: NewFilter(c.Open(context.Background(), Channel{}))}
}

// Write takes the next piece. It returns a [*StopError] once the text is stopped.
func (r *Redactor) Write(p []byte) (int, error) {
	if r.err == nil && r.closed {
		r.err = io.ErrClosedPipe
	}
	if r.err != nil {
		return 0, r.err
	}
	var step Step
	r.buf, step = r.filter.Write(r.buf[:0], p)
	if r.pass(step); r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close ends the text. It returns what Write would, and nil the second time.
func (r *Redactor) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	var step Step
	r.buf, step = r.filter.Close(r.buf[:0])
	if r.err == nil {
		r.pass(step)
	}
	return r.err
}

// pass writes what may leave.
func (r *Redactor) pass(step Step) {
	if r.Record != nil && len(step.Decisions) > 0 {
		if r.err = r.Record(step.Decisions); r.err != nil {
			return
		}
	}
	if len(r.buf) > 0 {
		if _, r.err = r.w.Write(r.buf); r.err != nil {
			return
		}
	}
	if cap(r.buf) > idleText {
		r.buf = nil
	}
	if step.Stop != nil {
		r.err = &StopError{*step.Stop}
	}
}

// A Transformer does what a [Redactor] does, for readers: it has the methods of
// golang.org/x/text/transform.Transformer. It ends with a [*StopError] where the
// text is stopped.
type Transformer struct {
	chain    *Chain
	shortDst error
	stream   *Stream
	filter   Filter
	buf      []byte // what has not been given out
	ended    bool
	err      error
}

// NewTransformer returns a transformer of a chain's. shortDst is the ErrShortDst of
// the package that will call it: this one knows the standard library alone.
func NewTransformer(c *Chain, shortDst error) *Transformer {
	t := &Transformer{chain: c, shortDst: shortDst}
	t.Reset()
	return t
}

// Reset begins a new text.
func (t *Transformer) Reset() {
	if t.stream == nil {
		t.stream = t.chain.Open(context.Background(), Channel{})
	} else {
		t.stream.Reset(context.Background(), Channel{})
	}
	t.filter = Filter{stream: t.stream}
	t.buf, t.ended, t.err = t.buf[:0], false, nil
}

// Transform takes all of src and writes to dst what may leave, as far as there is
// room.
func (t *Transformer) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if t.err == nil && !t.ended && len(src) > 0 {
		var step Step
		t.buf, step = t.filter.Write(t.buf, src)
		t.stopped(step)
	}
	if atEOF && !t.ended {
		t.ended = true
		var step Step
		t.buf, step = t.filter.Close(t.buf)
		t.stopped(step)
	}
	n := copy(dst, t.buf)
	t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	if len(t.buf) > 0 {
		return n, len(src), t.shortDst
	}
	return n, len(src), t.err
}

func (t *Transformer) stopped(step Step) {
	if step.Stop != nil {
		t.err = &StopError{*step.Stop}
	}
}
