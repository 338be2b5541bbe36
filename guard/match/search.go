package match

import (
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// search is one rule's search in one text.
type search struct {
	rule  *rule
	at    *state
	regs  []int64 // offsets of its threads' groups, from 1 on; 0 is written to and not read
	spare []int64
	found accepted // meaningful while at.phase is found
	check int64    // where it is looked at if it is not decided before
	mask  *mask    // what it has swallowed, if it is cut

	rest int64 // it does not come to rest before
	free int64 // where it came to rest; never if it did not
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

// promote has a rule of a front go on in its own table in front of text[i], with
// the threads that it has in a state of the front.
func (s *screen) promote(f *front, from *frontState, n, i int) {
	r, at := f.rules[n], s.base+int64(i)
	var q *search
	if s.on.has(r.index) {
		i := slices.IndexFunc(s.active, func(q *search) bool { return q.rule == r })
		if q = s.active[i]; q.free > at {
			return // it is on its own, and knows
		}
	} else {
		if q = s.resting; q != nil {
			s.resting = nil
		} else {
			q = s.engine.searches.Get().(*search)
		}
		q.rule = r
		s.active = append(s.active, q)
		s.on.set(r.index)
	}
	q.rest = at
	if c := from.part(n); c == nil {
		q.start(from.prev, at+s.engine.limits.hold)
	} else {
		q.resume(c, from.prev, at)
		q.check = q.hold(at) + s.engine.limits.hold
	}
	s.run(q, i)
}

// resume takes over the threads of a front at an offset.
func (q *search) resume(c *comp, before kind, at int64) {
	r := q.rule
	r.mu.Lock()
	defer r.mu.Unlock()
	q.regs, r.build.carried = append(q.regs[:0], 0), append(r.build.carried[:0], c.threads...)
	register := func(back int16) int16 {
		if back == unset {
			return unset
		}
		place := at - int64(back)
		for i, p := range q.regs[1:] {
			if p == place {
				return int16(i)
			}
		}
		q.regs = append(q.regs, place)
		return int16(len(q.regs) - 2)
	}
	for i := range r.build.carried {
		t := &r.build.carried[i]
		t.group = group{register(t.start), register(t.end), unset}
	}
	q.at = r.intern(r.build.carried, seen(before, r.prog.looks), seeking)
}

// run takes a search on from text[i] until it comes to rest or the text ends, and
// notes where it is free. A match that is decided may send it back to the match's
// end, behind which text is read again; it does not rest before q.rest, from where
// on the front looks after its rule.
func (s *screen) run(q *search, i int) {
	q.free = never
	for q.mask == nil || !q.mask.blind {
		i = s.follow(q, i)
		at := s.base + int64(i)
		if q.at.idle() && at >= q.rest {
			q.free = at
			return
		}
		if at < q.check {
			return
		}
		s.review(q.rule, q, at)
	}
}

// follow is run as far as the search's check. It returns where the search is
// then.
func (s *screen) follow(q *search, i int) int {
	r, text, classes := q.rule, s.text, s.engine.classes
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
		if to.idle() && s.base+int64(i) >= q.rest {
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
	s.again(q, q.found.over)
}

// finish decides what is still open where the text ends, in the fronts too.
func (s *screen) finish() {
	end := s.base + int64(len(s.text))
	for i, f := range s.engine.fronts {
		at := s.fronts[i].state
		if at == nil {
			continue // there was no text
		}
		for _, rule := range f.ending(at) {
			s.promote(f, at, rule, len(s.text))
		}
	}
	for _, q := range s.active {
		for q.free > end {
			switch {
			case q.mask != nil:
				q.found.over = end
			case q.at.atEnd:
				q.accept(q.at.final, end)
			}
			if q.mask == nil && !q.at.atEnd && q.at.phase != found {
				break
			}
			s.decide(q.rule, q)
			s.run(q, int(q.found.over-s.base))
		}
	}
}

// retire takes the searches that rest from those that go on.
func (s *screen) retire() {
	rest := s.active[:0]
	for _, q := range s.active {
		if q.free <= s.done {
			s.on.clear(q.rule.index)
			s.letRest(q)
			continue
		}
		rest = append(rest, q)
	}
	s.active = rest
}

// letRest puts a search aside: one for the stream, others for all streams.
func (s *screen) letRest(q *search) {
	if s.resting == nil {
		s.resting = q
		return
	}
	s.engine.searches.Put(q)
}

// start begins a search behind a rune of kind k, to be looked at first at the
// offset check.
func (q *search) start(k kind, check int64) {
	q.at, q.check = q.rule.table.Load().idle[k], check
}

// again begins the next search where one was decided. It goes on at least to
// where the fronts are, which passed by what it reads a second time.
func (s *screen) again(q *search, at int64) {
	q.start(s.kindBefore(int(at-s.base)), at+s.engine.limits.hold)
	q.rest = max(at+q.rule.depth, s.done)
}
