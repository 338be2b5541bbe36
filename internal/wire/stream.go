package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/sse"
)

// A Stream judges one streamed answer and says what the client is sent. It is
// used by one goroutine.
type Stream struct {
	*judgement
	opt     Options
	dialect dialect
	in      *sse.Scanner
	scan    scanner
	out     []byte

	lanes    []lane
	barriers []*frame // frames of no lane: they wait for all that came before
	borrowed []*frame // made in this Write: what they hold is the scanner's
	spare    []*frame
	seq      int64
	held     int // bytes of the frames that wait
	ended    bool
	refused  error
}

// maxHeld bounds the frames that wait, in the longest ones accepted: a tool
// call that leaves whole waits for all of itself.
const maxHeld = 4

// errRefused is the answer's own fault, or a guard's verdict about a field that
// cannot be changed.
type errRefused struct {
	what string
	stop *guard.Stop
}

func (e *errRefused) Error() string { return e.what }

// NewStream returns the judge of one streamed answer.
func (f *Format) NewStream(opt Options) *Stream {
	opt.Choices = max(opt.Choices, 1)
	s := &Stream{
		judgement: newJudgement(opt.Context, opt.Chain, guard.Response),
		opt:       opt,
		dialect:   f.dialect(),
		in:        sse.NewScanner(opt.MaxFrame),
	}
	s.calls = opt.Calls
	s.outcome.asked, s.outcome.prior = opt.Input, opt.Redacted
	s.places, s.recalls = opt.Restore, opt.Recalls
	s.outcome.approval, s.outcome.why = opt.Approval, opt.Why
	return s
}

// Write takes the upstream's next bytes and returns what the client is sent
// now, which is the stream's until its next call.
func (s *Stream) Write(p []byte) []byte {
	s.empty()
	if s.ended {
		return nil
	}
	s.in.Write(p)
	return s.read()
}

// read takes what has come, and returns what the client is sent now.
func (s *Stream) read() []byte {
	s.frames()
	for _, f := range s.borrowed {
		switch {
		case !f.gone:
			f.own()
		case !f.owned:
			s.keep(f)
		}
	}
	s.borrowed = s.borrowed[:0]
	return s.out
}

// newFrame returns an empty frame. It is the stream's again once it was given
// to release.
func (s *Stream) newFrame(in sse.Frame) *frame {
	var f *frame
	if n := len(s.spare); n == 0 {
		f = &frame{}
	} else {
		f, s.spare = s.spare[n-1], s.spare[:n-1]
		*f = frame{pieces: f.pieces[:0], splices: f.splices[:0], text: f.text[:0], store: f.store, about: f.about}
	}
	f.raw, f.dataAt, f.payload, f.event = in.Raw, in.DataAt, in.Data, in.Event
	s.borrowed = append(s.borrowed, f)
	return f
}

// release takes back a frame that has left, or never will.
func (s *Stream) release(f *frame) {
	if f.seq > 0 {
		s.held -= len(f.raw)
	}
	f.gone, f.seq = true, 0
	if f.owned {
		s.keep(f)
	}
}

// What a stream keeps of memory that it does not need: frames, and bytes of each
// and of what it gave out.
const (
	maxSpare      = 256
	maxSpareBytes = 16 << 10
)

// keep puts a frame aside that has left.
func (s *Stream) keep(f *frame) {
	if cap(f.store) > maxSpareBytes {
		f.store = nil
	}
	if len(s.spare) < maxSpare {
		s.spare = append(s.spare, f)
	}
}

// empty starts a call: what the last one gave out is the stream's again.
func (s *Stream) empty() {
	if cap(s.out) > maxSpareBytes {
		s.out = nil
	}
	s.out = s.out[:0]
}

// emit sends a frame, with a member added to its payload if not nil.
func (s *Stream) emit(f *frame, member []byte) {
	s.dialect.sent(f, false)
	s.out = f.appendTo(s.out, member)
	s.release(f)
}

// Close ends the upstream's answer: err is nil where it ended by itself. What
// is held is decided, and the answer ends as its format wants.
func (s *Stream) Close(err error) []byte {
	s.empty()
	if !s.ended && err == nil {
		s.in.Close()
		s.frames()
	}
	s.finish(err)
	s.closeAll() // also of an answer that nobody reads to its end
	return s.out
}

// Cut lets out the settled part of frames whose rest waits.
func (s *Stream) Cut() []byte {
	s.empty()
	for i := range s.lanes {
		if l := &s.lanes[i]; s.cuttable(l) {
			f := l.head()
			s.dialect.cut(f)
			s.out = f.appendPart(s.out)
			s.dialect.sent(f, true)
		}
	}
	return s.out
}

// Waiting is the number of the first frame of which Cut would let something
// out; 0 if there is none.
func (s *Stream) Waiting() int64 {
	first := int64(0)
	for i := range s.lanes {
		if l := &s.lanes[i]; s.cuttable(l) && (first == 0 || l.head().seq < first) {
			first = l.head().seq
		}
	}
	return first
}

func (s *Stream) cuttable(l *lane) bool {
	return !l.empty() && !l.ended && !l.stop && l.head().partial() && s.free(l.head())
}

// Stopped reports whether verdicts have ended every answer: what the upstream
// still says is read for its usage alone.
func (s *Stream) Stopped() bool { return s.allStopped() }

// Complete reports whether the upstream has said all it will: its end mark came.
func (s *Stream) Complete() bool { return s.dialect.complete() }

// Ended reports whether the client was sent the end of the answer.
func (s *Stream) Ended() bool { return s.ended }

// Refused returns why the answer was not read to its end, if so: it is not as
// its format wants, or a verdict is about a field that cannot be changed.
func (s *Stream) Refused() error { return s.refused }

// Decisions returns the decisions since its last call. They are to be recorded
// before what the last call of Write, Cut or Close returned is shown.
func (s *Stream) Decisions() []Decision {
	d := s.decisions
	s.decisions = nil
	return d
}

// Outcome says how the answer ended; it is final after Close.
func (s *Stream) Outcome() Outcome { return s.outcome.result() }

// told is what the client is told now of how the answer ended.
func (s *Stream) told() []byte { return s.opt.told(s.Outcome()) }

func (s *Stream) frames() {
	for !s.ended && !s.Holding() {
		f, ok, err := s.in.Next()
		if err != nil {
			s.refuse(fmt.Errorf("a frame of the answer is too long: %w", err))
			return
		}
		if !ok {
			return
		}
		if err := s.frame(f); err != nil {
			s.refuse(err)
			return
		}
		if s.flush(); s.held > maxHeld*s.maxFrame() {
			s.refuse(&errRefused{what: "too much of the answer would have to wait"})
			return
		}
	}
}

func (s *Stream) maxFrame() int {
	if s.opt.MaxFrame > 0 {
		return s.opt.MaxFrame
	}
	return sse.DefaultMaxFrame
}

// frame reads one frame.
func (s *Stream) frame(in sse.Frame) error {
	if in.Comment {
		if r := s.screen("comment", in.Raw); r.stop == nil && r.edits == nil {
			s.out = append(s.out, in.Raw...)
		}
		return nil
	}
	if in.Data == nil {
		return nil // no event: some clients dispatch an empty one, so they are not sent it
	}
	if in.Other {
		if err := s.otherLines(in.Raw); err != nil {
			return err
		}
	}
	if r := s.screen("event", in.Event); r.stop != nil || r.edits != nil {
		return refusal("event", r)
	}
	t, end, err := s.dialect.table(in.Data, in.Event)
	if err != nil {
		return err
	}
	if end {
		s.end(false)
		return nil
	}
	leaves, err := s.scan.scan(in.Data, t.root)
	if err != nil {
		return &errRefused{what: "a frame of the answer is not valid JSON: " + err.Error()}
	}
	return s.dialect.read(s, s.newFrame(in), leaves)
}

// otherLines screens what a frame says beside its event and data.
func (s *Stream) otherLines(raw []byte) error {
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		if name, _, _ := bytes.Cut(line, []byte(":")); string(name) == "data" {
			continue
		}
		if r := s.screen("line", line); r.stop != nil || r.edits != nil {
			return refusal("line", r)
		}
	}
	return nil
}

// write files a piece of text into a channel of a lane.
func (s *Stream) write(l *lane, f *frame, c *channel, p piece, text []byte) error {
	if len(text) > 0 {
		if s.begin(l, c); c.closed && c.whole {
			return &errRefused{what: "the answer went on with a tool call that it had ended"}
		}
	}
	if !l.stop && !p.bare {
		text = c.halves(&p, f.payload[p.at:p.end], text)
	}
	p.ch, p.from = c, c.read
	if !l.stop {
		s.outcome.textSize += int64(len(text))
		c.write(text)
		l.stopped(c)
	}
	p.to = p.from + int64(len(text))
	f.pieces = append(f.pieces, p)
	return nil
}

// field screens a field that is no channel.
func (s *Stream) field(f *frame, l *leaf) error {
	sp, err := s.whole(f.payload, l)
	if err == nil && sp.to > 0 {
		f.splices = append(f.splices, sp)
	}
	return err
}

// refuse ends an answer that cannot be passed on.
func (s *Stream) refuse(err error) {
	s.refused = err
	s.outcome.failed(err.Error())
	var r *errRefused
	if errors.As(err, &r) && r.stop != nil {
		s.outcome.refused = true
		s.outcome.stopped("", r.stop)
	}
	s.end(true)
}

// finish ends the answer after the upstream's last byte.
func (s *Stream) finish(err error) {
	if s.ended {
		return
	}
	switch {
	case err != nil:
		s.outcome.failed(err.Error())
	case !s.dialect.complete():
		s.outcome.failed("the upstream's answer ended before its end mark")
	}
	s.end(s.outcome.failure != "")
}

// end decides what is held and writes the end of the answer. A failure that
// comes after every lane was stopped changes nothing for the client.
func (s *Stream) end(failed bool) {
	s.decide(failed)
	if failed && (s.outcome.refused || !s.allStopped()) {
		s.dialect.fail(s, s.outcome.failure)
		return
	}
	s.dialect.end(s)
}

// decide ends all text and lets out what may leave of it. Of an answer that
// failed, a tool call that leaves whole and is not complete does not leave.
func (s *Stream) decide(failed bool) {
	s.closeAll()
	if failed {
		for i := range s.lanes {
			s.lanes[i].abandon()
		}
	}
	s.flush()
	s.ended = true
}

func (s *Stream) allStopped() bool {
	return len(s.lanes) >= s.opt.Choices && !slices.ContainsFunc(s.lanes, func(l lane) bool { return !l.stop })
}
