package wire

import (
	"slices"

	"github.com/stoplog/stoplog/guard"
)

// A lane is what must stay in order: a choice, a message.
type lane struct {
	queue []*frame
	first int        // the queue's head
	open  *channel   // the text that is being sent
	begun []*channel // documents that others interrupted
	stop  bool       // a channel was stopped
	ended bool       // what follows the stop was written; nothing else leaves
}

func (l *lane) empty() bool { return l.first == len(l.queue) }

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

// queue passes a frame on to its lane, or behind everything if lane is -1.
func (s *Stream) queue(f *frame, lane int) {
	s.seq++
	f.seq = s.seq
	s.held += len(f.raw)
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
			if s.Holding() {
				return
			}
			if !f.readyBefore(k) {
				return
			}
			n := len(s.out)
			s.dialect.cut(f)
			if s.out = f.appendStopped(s.out, k); len(s.out) > n {
				s.dialect.sent(f, false)
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
			s.remember(f)
			if f.signature.to == 0 {
				s.release(f)
				continue
			}
			f.splices = append(f.splices, splice{f.signature.from, f.signature.to, []byte(`""`)})
		}
		s.dialect.leave(s, f)
	}
	if l.stop && !l.ended && l.empty() && !s.Holding() {
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
	for !l.empty() {
		s.release(l.head())
		l.pop()
	}
	l.ended, l.queue, l.first = true, nil, 0
	s.dialect.stopLane(s, i)
}

// closeLane ends all text of a lane.
func (s *Stream) closeLane(i int) {
	l := s.lane(i)
	if l.open != nil && !slices.Contains(l.begun, l.open) {
		l.begun = append(l.begun, l.open)
	}
	for _, c := range l.begun {
		l.close(c)
	}
	l.open, l.begun = nil, l.begun[:0]
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

// close ends a channel's text, unless the lane was stopped.
func (l *lane) close(c *channel) {
	if !l.stop {
		c.close()
		l.stopped(c)
	}
}

// stopped notes whether a channel has stopped the lane. That ends it for guards
// that only watch, too. Documents that it interrupted have frames on both sides
// of the stop, so those that leave whole do not leave.
func (l *lane) stopped(c *channel) {
	if c.stop == nil {
		return
	}
	l.stop = true
	c.close()
	for _, b := range l.begun {
		if b.stop == nil && b.whole {
			b.stop = c.stop
		}
		b.close()
	}
}

// abandon withholds calls that are whole or not at all, and are not whole.
func (l *lane) abandon() {
	for _, f := range l.queue[l.first:] {
		for _, p := range f.pieces {
			if p.ch.stop == nil && (p.ch.gate && !p.ch.closed || p.ch.whole && p.ch.proj != nil && p.ch.proj.open()) {
				p.ch.stop = &guard.Stop{}
			}
		}
	}
}

// end ends one text of the lane, which is said to be complete.
func (l *lane) end(c *channel) {
	if l.open == c {
		l.open = nil
	}
	l.begun = slices.DeleteFunc(l.begun, func(b *channel) bool { return b == c })
	l.close(c)
}
