package sse

import (
	"bytes"
	"fmt"
	"io"
	"iter"
)

// DefaultMaxFrame is the limit of a scanner that was given none.
const DefaultMaxFrame = 16 << 20

const byteOrderMark = "\ufeff"

// A Scanner cuts a stream into frames. It is fed by Write and asked by Next,
// holds no goroutine and needs no release. It is not safe for concurrent use.
type Scanner struct {
	max int

	// buf holds what was written and not yet let go. The current frame's
	// finished lines are buf[start:end], already mended; what is still to be
	// read is buf[read:]. Mending only shortens, so it happens in place: end
	// never passes read, and is behind it only in a mended frame.
	buf              []byte
	start, end, read int

	lf, cr    finder
	begun     bool // the place of the byte order mark is passed
	swallowLF bool // all that was written ends in the CR of a line: an LF next belongs to it
	closed    bool
	err       error
	frames    int64 // delivered so far
	moved     int64 // bytes copied within the buffer, or out of it

	frame  partial
	joined []byte // data of the frames with several data: fields since the last Write
}

// partial is what is known of the current frame. Spans count from its start.
type partial struct {
	event, data span // the last event: field's value, the first data: field's
	events      int
	datas       int
	colon       bool // the first data: field has one
	other       bool
	mended      bool
	cut         bool // the stream ended inside the frame
}

type span struct{ from, to int }

// NewScanner returns a scanner whose frames are at most maxFrame bytes long,
// or [DefaultMaxFrame] if that is not positive.
func NewScanner(maxFrame int) *Scanner {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &Scanner{max: maxFrame, lf: finder{char: '\n'}, cr: finder{char: '\r'}}
}

// Write adds the stream's next piece, of any size. The scanner keeps a copy.
// After an error of Next it does nothing; after Close it panics.
func (s *Scanner) Write(p []byte) {
	if s.closed {
		panic("sse: Write after Close")
	}
	if s.err != nil || len(p) == 0 {
		return
	}
	if s.swallowLF && p[0] == '\n' {
		p = p[1:]
	}
	s.swallowLF = false
	s.joined = s.joined[:0]
	// Moving at most as many bytes as were let go keeps the cost linear.
	if s.start == len(s.buf) || len(s.buf)+len(p) > cap(s.buf) && s.start >= len(s.buf)/2 {
		s.letGo()
	}
	s.buf = append(s.buf, p...)
}

// idleRoom is how much room a buffer keeps that is empty.
const idleRoom = 64 << 10

// letGo moves what is still needed to the front of the buffer.
func (s *Scanner) letGo() {
	n := copy(s.buf, s.buf[s.start:])
	if n == 0 && cap(s.buf) > idleRoom {
		s.buf = nil
	}
	s.moved += int64(n)
	s.buf = s.buf[:n]
	s.end -= s.start
	s.read -= s.start
	s.lf.at -= s.start
	s.cr.at -= s.start
	s.start = 0
}

// Close marks the end of the stream. A frame that it cuts is delivered by Next.
func (s *Scanner) Close() { s.closed = true }

// Next returns the next frame, if what was written completes one. The frame's
// slices belong to the scanner and are valid until the next Write. The error
// is a [*TooLongError]; it comes after the frames before the one that is too
// long, as soon as that is known, and again at each further call.
func (s *Scanner) Next() (Frame, bool, error) {
	if s.err != nil || !s.begin() {
		return Frame{}, false, s.err
	}
	for {
		line, ok := s.line()
		if !ok && s.complete() {
			continue
		}
		held := s.end - s.start
		if !ok {
			held += len(s.buf) - s.read
		}
		if held > s.max {
			s.err = &TooLongError{Frame: s.frames + 1, Max: s.max}
			s.buf = nil
			return Frame{}, false, s.err
		}
		if !ok {
			return Frame{}, false, nil
		}
		if s.take(line) {
			return s.deliver(), true, nil
		}
	}
}

// begin drops a byte order mark, and reports whether it is known if there is one.
func (s *Scanner) begin() bool {
	if s.begun {
		return true
	}
	n := min(len(s.buf), len(byteOrderMark))
	if string(s.buf[:n]) == byteOrderMark[:n] {
		if n < len(byteOrderMark) && !s.closed {
			return false
		}
		if n == len(byteOrderMark) {
			s.start, s.end, s.read = n, n, n
			s.frame.mended = true
		}
	}
	s.begun = true
	return true
}

// line reads the next line into the current frame, mended, and returns where
// in buf its text is. It reports false while the line's end has not come.
func (s *Scanner) line() (span, bool) {
	lf, cr := s.lf.next(s.buf, s.read), s.cr.next(s.buf, s.read)
	stop := min(lf, cr)
	if stop == len(s.buf) {
		return span{}, false
	}
	text := span{s.end, s.end + stop - s.read}
	if s.end != s.read {
		s.moved += int64(copy(s.buf[s.end:], s.buf[s.read:stop]))
	}
	s.buf[text.to] = '\n'
	s.end = text.to + 1
	s.read = stop + 1
	if stop == cr {
		s.frame.mended = true
		s.swallowLF = s.read == len(s.buf)
		if lf == s.read && !s.swallowLF {
			s.read++
		}
	}
	return text, true
}

// complete adds the line end that the stream's end left out, if it did. Of a
// frame cut inside a line two are missing: that line's, then the blank line's.
func (s *Scanner) complete() bool {
	if !s.closed || s.start == s.end && s.read == len(s.buf) {
		return false
	}
	s.frame.cut = true
	s.buf = append(s.buf, '\n')
	return true
}

// take notes what a line says, and reports whether it ends a frame.
func (s *Scanner) take(line span) bool {
	text := s.buf[line.from:line.to]
	first := line.from == s.start
	switch {
	case len(text) == 0 && first:
		s.reset()
		return false
	case len(text) == 0:
		return true
	case text[0] == ':':
		s.frame.other = true
		return first
	}
	name, value, colon := cutField(text)
	at := span{line.to - len(value) - s.start, line.to - s.start}
	switch p := &s.frame; string(name) {
	case "data":
		if p.datas == 0 {
			p.data, p.colon = at, colon
		}
		p.datas++
	case "event":
		p.event = at
		p.events++
	default:
		p.other = true
	}
	return false
}

// cutField cuts a line that is no comment at its first colon, and leaves out
// one space after it.
func cutField(line []byte) (name, value []byte, colon bool) {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return line, line[len(line):], false
	}
	value = line[i+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return line[:i], value, true
}

// deliver returns the current frame, which is complete, and begins another.
func (s *Scanner) deliver() Frame {
	raw, p := s.buf[s.start:s.end:s.end], s.frame
	f := Frame{
		Raw:          raw,
		DataAt:       -1,
		Lines:        p.datas,
		Comment:      raw[0] == ':',
		Other:        p.other || p.events > 1,
		Mended:       p.mended || p.cut,
		Unterminated: p.cut,
	}
	if p.events > 0 {
		f.Event = raw[p.event.from:p.event.to:p.event.to]
	}
	if p.datas == 1 {
		f.Data = raw[p.data.from:p.data.to:p.data.to]
		if p.colon {
			f.DataAt = p.data.from
		}
	}
	if p.datas > 1 {
		f.Data = s.join(raw)
	}
	s.frames++
	s.reset()
	return f
}

// join joins the values of a frame's data: fields.
func (s *Scanner) join(raw []byte) []byte {
	from := len(s.joined)
	for line := range bytes.Lines(raw) {
		if name, value, _ := cutField(bytes.TrimSuffix(line, []byte("\n"))); string(name) == "data" {
			s.joined = append(append(s.joined, value...), '\n')
			s.moved += int64(len(value)) + 1
		}
	}
	s.joined = s.joined[:len(s.joined)-1]
	return s.joined[from:len(s.joined):len(s.joined)]
}

// reset begins a frame at what is still to be read.
func (s *Scanner) reset() {
	s.start, s.end = s.read, s.read
	s.frame = partial{}
}

// A finder finds a byte in a growing buffer, at or after places that only
// advance, and looks at each byte of the buffer once.
type finder struct {
	char byte
	at   int // the byte is not between the last place asked for and here

	looked int64 // how many bytes were looked at
}

// next returns where the byte is at or after from, len(buf) if nowhere yet.
func (f *finder) next(buf []byte, from int) int {
	f.at = max(f.at, from)
	began := f.at
	if i := bytes.IndexByte(buf[f.at:], f.char); i >= 0 {
		f.at += i
	} else {
		f.at = len(buf)
	}
	f.looked += int64(f.at - began)
	return f.at
}

// Scan returns the frames of what r gives, each valid until the next one is
// asked for. Frames longer than maxFrame, or [DefaultMaxFrame] if that is not
// positive, end it with a [*TooLongError], a failing r with its error; a frame
// that r failed in is not delivered.
func Scan(r io.Reader, maxFrame int) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		s := NewScanner(maxFrame)
		piece := make([]byte, 8<<10)
		for {
			n, rerr := r.Read(piece)
			s.Write(piece[:n])
			if rerr == io.EOF {
				s.Close()
			}
			for {
				f, ok, err := s.Next()
				if err != nil {
					yield(Frame{}, err)
					return
				}
				if !ok {
					break
				}
				if !yield(f, nil) {
					return
				}
			}
			if rerr == io.EOF {
				return
			}
			if rerr != nil {
				yield(Frame{}, fmt.Errorf("read event stream: %w", rerr))
				return
			}
		}
	}
}
