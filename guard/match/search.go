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
	found accepted // meaningful while at.found

	// While a piece is scanned:
	free   int // where it comes to rest
	needle int // where its rule's next needle is, if that is not behind
}

// accepted is a match that stands unless a better one comes.
type accepted struct{ start, end, over int64 } // its group's ends and its own

// hold is the earliest offset that may yet be part of a finding, at most
// read.
func (s *search) hold(read int64) int64 {
	for _, reg := range s.at.holds {
		read = min(read, s.regs[reg+1])
	}
	if s.at.found {
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
	r, text := b.rules[n], s.text
	t, row := r.enter(q.at)
	cells, regs := t.cells, q.regs
	began := i
	for i < len(text) {
		c, w := class(0), 1
		if x := text[i]; x < utf8.RuneSelf {
			c = r.ascii[x]
		} else {
			var ru rune
			ru, w = utf8.DecodeRune(text[i:])
			c = r.shared[b.classes.of(ru)]
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
			began = i
			to = t.idle[s.kindBefore(i)]
		} else if to.idle() && i >= rest {
			q.regs = regs
			s.steps += int64(i - began)
			return i
		}
		row = to.row
	}
	s.steps += int64(i - began)
	q.at, q.regs = t.at(row), regs
	if q.at.idle() {
		return i
	}
	return len(text) + 1
}

// take makes a move over the rune between two offsets. It returns nil if that
// decides a match, which is then q.found, and was added if it is a finding.
func (s *screen) take(r *rule, q *search, m *move, before, after int64) *state {
	if m.accept {
		q.accept(m.match, before)
	}
	q.move(m, before)
	if m.to.over {
		q.accept(m.to.last, after)
	} else if !m.to.found || len(m.to.threads) > 0 {
		return m.to
	}
	s.add(r, q.found)
	return nil
}

// finish decides what is still open where the text ends.
func (s *screen) finish(b *bank, searches []search, awake uint64) {
	end := s.base + int64(len(s.text))
	for ; awake != 0; awake &= awake - 1 {
		n := bits.TrailingZeros64(awake)
		q := &searches[n]
		for {
			if q.at.atEnd {
				q.accept(q.at.final, end)
			} else if !q.at.found {
				break
			}
			s.add(b.rules[n], q.found)
			rest := int(q.found.over - s.base)
			q.start(b.rules[n], s.kindBefore(rest))
			if s.run(b, n, q, rest, len(s.text)) <= len(s.text) {
				break
			}
		}
	}
}

// start begins a search behind a rune of kind k.
func (q *search) start(r *rule, k kind) {
	q.at = r.table.Load().idle[k]
}
