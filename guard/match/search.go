package match

import (
	"math/bits"
	"unicode/utf8"
)

// search is one rule's search in one text.
type search struct {
	at    *move   // how it came to its state; its state is at.to
	regs  []int64 // offsets of its threads' groups
	spare []int64
	found accepted // meaningful while at.to.found
	free  int      // while a piece is scanned: where it came to rest
}

// accepted is a match that stands unless a better one comes.
type accepted struct{ start, end, over int64 } // its group's ends and its own

// hold is the earliest offset that may yet be part of a finding, at most
// read.
func (s *search) hold(read int64) int64 {
	for _, reg := range s.at.to.holds {
		read = min(read, s.regs[reg])
	}
	if s.at.to.found {
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
	return s.regs[place]
}

// move takes the registers along a move, at being the offset in front of the
// rune.
func (s *search) move(m *move, at int64) {
	n := len(m.copy)
	switch m.how {
	case push:
		s.regs = append(s.regs[:n-1], at)
	case shift:
		for i, from := range m.copy {
			s.regs[i] = s.value(from, at)
		}
	case gather:
		fresh := s.spare[:0]
		for _, from := range m.copy {
			fresh = append(fresh, s.value(from, at))
		}
		s.regs, s.spare = fresh, s.regs
	}
}

// run takes a search on from text[i] until it comes to rest, and returns where
// it does, or a place beyond the text if it is still awake at the text's end.
// A match that is decided may send it back to the match's end, behind which
// text is read again; it does not rest before rest, from where on the wake
// table looks after it.
func (s *screen) run(r *rule, q *search, i, rest int) int {
	text := s.text
	m := q.at
	began := i
	for i < len(text) {
		var c class
		w := 1
		if b := text[i]; b < utf8.RuneSelf {
			c = r.ascii[b]
		} else {
			var ru rune
			ru, w = utf8.DecodeRune(text[i:])
			c = r.shared[s.engine.classes.of(ru)]
		}
		to := m.next[c].Load()
		if to == nil {
			to = r.learn(m.to, c)
		}
		m = to
		if m.quiet {
			i += w
			continue
		}
		if m.accept {
			q.accept(m.match, s.base+int64(i))
		}
		q.move(m, s.base+int64(i))
		i += w
		if m.to.over {
			q.accept(m.to.last, s.base+int64(i))
		}
		if m.to.over || m.to.found && len(m.to.threads) == 0 {
			s.steps += int64(i - began)
			s.add(r, q.found)
			i = int(q.found.over - s.base)
			began = i
			m = r.idle[s.kindBefore(i)]
		}
		if i >= rest && m.to.idle() {
			s.steps += int64(i - began)
			return i
		}
	}
	s.steps += int64(i - began)
	q.at = m
	return len(text) + 1
}

// finish decides what is still open where the text ends.
func (s *screen) finish(b *bank, searches []search, awake uint64) {
	end := s.base + int64(len(s.text))
	for ; awake != 0; awake &= awake - 1 {
		i := bits.TrailingZeros64(awake)
		r, q := b.rules[i], &searches[i]
		for {
			if at := q.at.to; at.atEnd {
				q.accept(at.final, end)
			} else if !at.found {
				break
			}
			s.add(r, q.found)
			rest := int(q.found.over - s.base)
			q.at = r.idle[s.kindBefore(rest)]
			if s.run(r, q, rest, len(s.text)) <= len(s.text) {
				break
			}
		}
	}
}
