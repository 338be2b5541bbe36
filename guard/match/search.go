package match

import (
	"math/bits"
	"sync/atomic"
	"unicode/utf8"
)

// search is one rule's search in one text.
type search struct {
	at    *state
	regs  []int64 // offsets of its threads' groups, from 1 on; 0 is written to and not read
	spare []int64
	found accepted // meaningful while at.phase is found
	check int64    // where it is looked at if it is not decided before
	mask  *mask    // what it has swallowed, if it is cut

	// While a piece is scanned:
	free   int // where it comes to rest
	needle int // where its rule's next needle is, if that is not behind
}

// accepted is a match that stands unless a better one comes.
type accepted struct{ start, end, over int64 } // its group's ends and its own

// hold is the earliest offset that may yet be part of a finding, at most
// read.
func (s *search) hold(read int64) int64 {
	if s.mask != nil {
		return read
	}
	for _, reg := range s.at.holds {
		read = min(read, s.regs[reg+1])
	}
	if s.at.phase == found {
		read = min(read, s.found.start)
	}
	return read
}

// accept notes the match that ends at over.
func (s *search) accept(g group, over int64) {
	s.found = accepted{s.value(g.start, over), s.value(g.end, over), over}
}

// value is the offset that a place stands for, at being here.
func (s *search) value(place int16, at int64) int64 {
	if place == here {
		return at
	}
	return s.regs[place+1]
}

// move takes the registers along a move, at being the offset in front of the
// rune.
func (s *search) move(m *move, at int64) {
	n := len(m.copy)
	for len(s.regs) <= n {
		s.regs = append(s.regs, 0)
	}
	switch m.how {
	case push:
		s.regs[n] = at
	case shift:
		for i, from := range m.copy {
			s.regs[i+1] = s.value(from, at)
		}
	case gather:
		fresh := append(s.spare[:0], 0)
		for _, from := range m.copy {
			fresh = append(fresh, s.value(from, at))
		}
		s.regs, s.spare = fresh, s.regs
	}
}

// run takes the search of the bank's rule n on from text[i] until it comes to
// rest, and returns where it does, or a place beyond the text if it is still
// awake at the text's end. A match that is decided may send it back to the
// match's end, behind which text is read again; it does not rest before rest,
// from where on the wake table looks after it.
func (s *screen) run(b *bank, n int, q *search, i, rest int) int {
	for {
		if q.mask != nil && q.mask.blind {
			return len(s.text) + 1
		}
		i = s.follow(b.rules[n], b.classes, q, i, rest)
		if q.at.idle() && i >= rest {
			return i
		}
		at := s.base + int64(i)
		if at < q.check {
			return len(s.text) + 1
		}
		s.review(b.rules[n], q, at)
	}
}

// follow is run as far as the search's check. It returns where the search is
// then.
func (s *screen) follow(r *rule, classes *classes, q *search, i, rest int) int {
	text := s.text
	t, row := r.enter(q.at)
	cells, regs := t.cells, q.regs
	began, stop := i, q.until(s)
	for i < stop {
		c, w := class(0), 1
		if x := text[i]; x < utf8.RuneSelf {
			c = r.ascii[x]
		} else {
			var ru rune
			ru, w = utf8.DecodeRune(text[i:])
			c = r.shared[classes.of(ru)]
		}
		cell := atomic.LoadUint32(&cells[row+uint32(c)])
		if cell&walk != 0 {
			row = cell >> actions
			// The new register is the last one; without one, the write goes
			// nowhere. That is cheaper than to ask.
			last := int(cells[row] & -(cell >> 1 & 1))
			if last >= len(regs) {
				regs = append(regs, make([]int64, last+1-len(regs))...)
			}
			regs[last] = s.base + int64(i)
			i += w
			continue
		}
		if cell == 0 {
			// Learnt, it is looked at again.
			t, row = r.learn(t.at(row), c)
			cells = t.cells
			continue
		}
		at := s.base + int64(i)
		i += w
		m := t.moves[cell>>actions]
		q.regs = regs
		to := s.take(r, q, m, at, s.base+int64(i))
		regs = q.regs
		if to == nil { // a match was decided
			s.steps += int64(i - began)
			i = int(q.found.over - s.base)
			began, stop = i, q.until(s)
			t, row = r.enter(q.at)
			cells = t.cells
			continue
		}
		if to.idle() && i >= rest {
			q.at, q.regs = to, regs
			s.steps += int64(i - began)
			return i
		}
		row = to.row
	}
	s.steps += int64(i - began)
	q.at, q.regs = t.at(row), regs
	return i
}

// until is where a walk ends at the latest: at the text's end or at the check.
func (q *search) until(s *screen) int { return int(min(int64(len(s.text)), q.check-s.base)) }

// take makes a move over the rune between two offsets. It returns nil if that
// decides a match, which is then q.found, and was added if it is a finding.
func (s *screen) take(r *rule, q *search, m *move, before, after int64) *state {
	if m.accept {
		q.accept(m.match, before)
	}
	q.move(m, before)
	switch {
	case m.to.over:
		q.accept(m.to.last, after)
	case m.to.decided():
		if q.mask != nil {
			q.found.over = before
		}
	default:
		return m.to
	}
	s.decide(r, q)
	return nil
}

// decide ends a search with q.found and starts the next.
func (s *screen) decide(r *rule, q *search) {
	if q.mask != nil {
		s.unmask(r, q, q.found.over, r.verdict)
		return
	}
	s.add(r, q.found)
	q.start(r, s.kindBefore(int(q.found.over-s.base)), q.found.over+s.engine.limits.hold)
}

// finish decides what is still open where the text ends.
func (s *screen) finish(b *bank, searches []search, awake uint64) {
	end := s.base + int64(len(s.text))
	for ; awake != 0; awake &= awake - 1 {
		n := bits.TrailingZeros64(awake)
		q := &searches[n]
		for {
			switch {
			case q.mask != nil:
				q.found.over = end
			case q.at.atEnd:
				q.accept(q.at.final, end)
			}
			if q.mask == nil && !q.at.atEnd && q.at.phase != found {
				break
			}
			s.decide(b.rules[n], q)
			if s.run(b, n, q, int(q.found.over-s.base), len(s.text)) <= len(s.text) {
				break
			}
		}
	}
}

// start begins a search behind a rune of kind k, to be looked at first at the
// offset check.
func (q *search) start(r *rule, k kind, check int64) {
	q.at, q.check = r.table.Load().idle[k], check
}
