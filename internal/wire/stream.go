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
	ended    bool
}

// A lane is what must stay in order: a choice, a message.
type lane struct {
	queue []*frame
	first int        // the queue's head
	open  *channel   // the text that is being sent
	begun []*channel // documents that others interrupted
	stop  bool       // a channel was stopped
	ended bool       // what follows the stop was written; nothing else leaves
}

func (l *lane) empty() bool  { return l.first == len(l.queue) }
func (l *lane) head() *frame { return l.queue[l.first] }

// push adds a frame; the room of those that left is used again once they are
// the larger part.
func (l *lane) push(f *frame) {
	if l.first > 0 && l.first >= len(l.queue)-l.first {
		n := copy(l.queue, l.queue[l.first:])
		l.queue, l.first = l.queue[:n], 0
	}
	l.queue = append(l.queue, f)
}

func (l *lane) pop() { l.queue[l.first] = nil; l.first++ }

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
	s.outcome.usage.Input, s.outcome.prior = opt.Input, opt.Redacted
	return s
}

// Write takes the upstream's next bytes and returns what the client is sent
// now, which is the stream's until its next call.
func (s *Stream) Write(p []byte) []byte {
	s.out = s.out[:0]
	if s.ended {
		return nil
	}
	s.in.Write(p)
	s.frames()
	for _, f := range s.borrowed {
		if f.gone {
			s.spare = append(s.spare, f)
		} else {
			f.own()
		}
	}
	s.borrowed = s.borrowed[:0]
	return s.out
}

// newFrame returns an empty frame. It is the stream's again once it was given
// to release.
func (s *Stream) newFrame(in sse.Frame) *frame {
	f := &frame{}
	if n := len(s.spare); n > 0 {
		f, s.spare = s.spare[n-1], s.spare[:n-1]
		*f = frame{pieces: f.pieces[:0], splices: f.splices[:0], text: f.text[:0], store: f.store}
	}
	f.raw, f.dataAt, f.payload, f.event = in.Raw, in.DataAt, in.Data, in.Event
	s.borrowed = append(s.borrowed, f)
	return f
}

// release takes back a frame that has left, or never will.
func (s *Stream) release(f *frame) {
	f.gone = true
	if f.owned {
		s.spare = append(s.spare, f)
	}
}

// emit sends a frame, with a member added to its payload if not nil.
func (s *Stream) emit(f *frame, member []byte) {
	s.dialect.sent(f)
	s.out = f.appendTo(s.out, member)
	s.release(f)
}

// Close ends the upstream's answer: err is nil where it ended by itself. What
// is held is decided, and the answer ends as its format wants.
func (s *Stream) Close(err error) []byte {
	s.out = s.out[:0]
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
	s.out = s.out[:0]
	for i := range s.lanes {
		if l := &s.lanes[i]; s.cuttable(l) {
			s.out = l.head().appendPart(s.out)
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

// Decisions returns the decisions since its last call. They are to be recorded
// before what the last call of Write, Cut or Close returned is shown.
func (s *Stream) Decisions() []Decision {
	d := s.decisions
	s.decisions = nil
	return d
}

// Outcome says how the answer ended; it is final after Close.
func (s *Stream) Outcome() Outcome { return s.outcome.result() }

func (s *Stream) frames() {
	for !s.ended {
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
		s.flush()
	}
}

// frame reads one frame.
func (s *Stream) frame(in sse.Frame) error {
	if in.Comment {
		if r := s.screen("comment", in.Raw); r.stop == nil && r.edits == nil {
			s.out = append(s.out, in.Raw...)
		}
		return nil
	}
	if in.Other {
		if err := s.otherLines(in.Raw); err != nil {
			return err
		}
	}
	if in.Data == nil {
		return nil // no client dispatches it
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

// queue passes a frame on to its lane, or behind everything if lane is -1.
func (s *Stream) queue(f *frame, lane int) {
	s.seq++
	f.seq, f.lane = s.seq, lane
	if lane < 0 {
		s.barriers = append(s.barriers, f)
		return
	}
	l := s.lane(lane)
	if l.ended {
		s.release(f)
		return
	}
	l.push(f)
}

func (s *Stream) lane(i int) *lane {
	for len(s.lanes) <= i {
		s.lanes = append(s.lanes, lane{})
	}
	return &s.lanes[i]
}

// flush lets out every frame that may leave.
func (s *Stream) flush() {
	for again := true; again; {
		again = false
		for i := range s.lanes {
			s.flushLane(i)
		}
		if len(s.barriers) > 0 && s.reached(s.barriers[0]) {
			f := s.barriers[0]
			s.barriers = s.barriers[1:]
			s.dialect.leave(s, f)
			again = true
		}
	}
}

// reached reports whether everything before a barrier has left.
func (s *Stream) reached(b *frame) bool {
	for i := range s.lanes {
		if l := &s.lanes[i]; !l.empty() && l.head().seq < b.seq {
			return false
		}
	}
	return b.ready()
}

// free reports whether no barrier stands before a frame.
func (s *Stream) free(f *frame) bool {
	return len(s.barriers) == 0 || s.barriers[0].seq > f.seq
}

func (s *Stream) flushLane(i int) {
	l := &s.lanes[i]
	for !l.empty() && !l.ended && s.free(l.head()) {
		f := l.head()
		if k := f.stopped(); k >= 0 {
			if !f.readyBefore(k) {
				return
			}
			n := len(s.out)
			if s.out = f.appendStopped(s.out, k); len(s.out) > n {
				s.dialect.sent(f)
			}
			l.pop()
			s.release(f)
			s.endLane(i)
			return
		}
		if !f.ready() {
			return
		}
		l.pop()
		if f.signs != nil && f.signs.changed {
			if f.signature.to == 0 {
				s.release(f)
				continue
			}
			f.splices = append(f.splices, splice{f.signature.from, f.signature.to, []byte(`""`)})
		}
		s.dialect.leave(s, f)
	}
	if l.stop && !l.ended && l.empty() {
		s.endLane(i)
	}
}

// readyBefore reports whether the pieces before k may leave.
func (f *frame) readyBefore(k int) bool {
	for _, p := range f.pieces[:k] {
		if !p.ch.ready(p.to) {
			return false
		}
	}
	return true
}

// endLane drops what is behind a stop.
func (s *Stream) endLane(i int) {
	l := &s.lanes[i]
	l.ended, l.queue, l.first = true, nil, 0
	s.dialect.stopLane(s, i)
}

// closeLane ends all text of a lane.
func (s *Stream) closeLane(i int) {
	l := s.lane(i)
	s.begin(l, nil)
	for _, c := range l.begun {
		l.close(c)
	}
	l.begun = l.begun[:0]
}

func (s *Stream) closeAll() {
	for i := range s.lanes {
		s.closeLane(i)
	}
}

// begin makes a channel the one that a lane is in. The one before it has ended,
// for all that is known, unless it is a document that is not complete: that one
// is waited for. If the end stops the lane the new channel says nothing.
func (s *Stream) begin(l *lane, c *channel) {
	before := l.open
	if l.open = c; before == nil || before == c {
		return
	}
	if before.proj != nil && before.proj.open() {
		if !slices.Contains(l.begun, before) {
			l.begun = append(l.begun, before)
		}
		return
	}
	l.close(before)
}

func (l *lane) close(c *channel) {
	if !l.stop {
		c.close()
		l.stop = c.stop != nil
	}
}

// write files a piece of text into a channel of a lane.
func (s *Stream) write(l *lane, c *channel, p piece, text []byte) (piece, error) {
	if len(text) > 0 {
		if s.begin(l, c); c.closed && c.whole {
			return p, &errRefused{what: "the answer went on with a tool call that it had ended"}
		}
	}
	p.ch, p.from = c, c.read
	if !l.stop {
		s.outcome.textSize += int64(len(text))
		c.write(text)
		l.stop = c.stop != nil
	}
	p.to = p.from + int64(len(text))
	return p, nil
}

// field screens a field that is no channel.
func (s *Stream) field(f *frame, l leaf) error {
	sp, err := s.whole(f.payload, l)
	if err == nil && sp.to > 0 {
		f.splices = append(f.splices, sp)
	}
	return err
}

// refuse ends an answer that cannot be passed on.
func (s *Stream) refuse(err error) {
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
	s.closeAll()
	s.flush()
	s.ended = true
	if failed && (s.outcome.refused || !s.allStopped()) {
		s.dialect.fail(s, s.outcome.failure)
		return
	}
	s.dialect.end(s)
}

func (s *Stream) allStopped() bool {
	return len(s.lanes) >= s.opt.Choices && !slices.ContainsFunc(s.lanes, func(l lane) bool { return !l.stop })
}
