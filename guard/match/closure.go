package match

import (
	"regexp/syntax"
	"slices"
)

// builder works out moves. It is used under the rule's lock.
type builder struct {
	prog    *program
	takes   []uint8  // by instruction: the kinds of which it takes some rune
	visited []uint32 // by instruction: the closure that last came there
	closure uint32
	stack   []thread
	leaves  []leaf
	threads []thread
	carried []thread // from a front, or to look ahead with
	useful  []bool
	fresh   group // of a search that starts
	buf     []byte
}

func newBuilder(r *rule) builder {
	b := builder{prog: r.prog, fresh: nowhere, takes: make([]uint8, len(r.prog.inst)), visited: make([]uint32, len(r.prog.inst))}
	for pc, in := range r.prog.inst {
		for _, sample := range r.samples[1:] {
			if isRune(in.Op) && in.MatchRune(sample) {
				b.takes[pc] |= 1 << seen(kindOf(sample), r.prog.looks)
			}
		}
	}
	return b
}

// A leaf is where a closure ends: at an instruction that takes a rune, or at
// the end of the match.
type leaf struct {
	thread
	match bool
	of    int // the index of the thread that it comes from
}

// reach takes the closure of threads in order, at a place between a rune of
// kind prev and one of kind next, and appends a search that starts there if
// fresh is set. What stands behind a match counts for nothing.
func (b *builder) reach(threads []thread, prev, next kind, fresh bool) []leaf {
	b.leaves = b.leaves[:0]
	if b.closure++; b.closure == 0 {
		clear(b.visited)
		b.closure = 1
	}
	cond := syntax.EmptyOpContext(of[prev], of[next])
	for i, t := range threads {
		if b.walk(t, i, cond) {
			return b.leaves
		}
	}
	if fresh {
		b.walk(thread{b.prog.start, b.fresh}, len(threads), cond)
	}
	return b.leaves
}

// walk adds the leaves of one thread and says whether it came to a match.
func (b *builder) walk(t thread, index int, cond syntax.EmptyOp) bool {
	b.stack = append(b.stack[:0], t)
	for len(b.stack) > 0 {
		t := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		if b.visited[t.pc] == b.closure {
			continue
		}
		b.visited[t.pc] = b.closure
		in := &b.prog.inst[t.pc]
		switch in.Op {
		case syntax.InstMatch:
			b.leaves = append(b.leaves, leaf{t, true, index})
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			b.stack = append(b.stack, thread{in.Arg, t.group}, thread{in.Out, t.group})
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^cond == 0 {
				b.stack = append(b.stack, thread{in.Out, t.group})
			}
		case syntax.InstCapture:
			switch in.Arg {
			case b.prog.open:
				t.start = here
			case b.prog.close:
				t.end = here
			}
			b.stack = append(b.stack, thread{in.Out, t.group})
		case syntax.InstNop:
			b.stack = append(b.stack, thread{in.Out, t.group})
		case syntax.InstFail:
		default:
			b.leaves = append(b.leaves, leaf{t, false, index})
		}
	}
	return false
}

// step returns the threads behind a rune, and the match that ends in front of
// it, if one does. Two threads may stand in one place; trim drops the second.
func (b *builder) step(from *state, r rune, k kind) (threads []thread, match group, accept bool) {
	threads = b.threads[:0]
	for _, l := range b.reach(from.threads, from.prev, k, from.phase == seeking) {
		if l.match {
			match, accept = l.group, true
			break
		}
		in := &b.prog.inst[l.pc]
		if in.MatchRune(r) {
			threads = append(threads, thread{in.Out, group{past(l.start), past(l.end), past(l.from)}})
		}
	}
	b.threads = threads
	return threads, match, accept
}

func past(place int16) int16 {
	if place == here {
		return before
	}
	return place
}

// prospects takes the closure of threads before a rune of kind next, or before
// the end, and leaves out what no such rune can lead on.
func (b *builder) prospects(threads []thread, prev, next kind) []leaf {
	leaves := b.reach(threads, prev, next, false)
	return slices.DeleteFunc(leaves, func(l leaf) bool { return !l.match && b.takes[l.pc]>>next&1 == 0 })
}

// nexts are the kinds of what may come next, as far as the rule can tell them
// apart.
func (b *builder) nexts(yield func(kind) bool) {
	for k := range kinds {
		if k != edge && seen(k, b.prog.looks) != k {
			continue
		}
		if !yield(k) {
			return
		}
	}
}

// trim drops threads that can come to nothing whatever comes next, so that they
// hold nothing.
func (b *builder) trim(threads []thread, prev kind) []thread {
	b.useful = append(b.useful[:0], make([]bool, len(threads))...)
	for next := range b.nexts {
		for _, l := range b.prospects(threads, prev, next) {
			b.useful[l.of] = true
		}
	}
	rest := threads[:0]
	for i, t := range threads {
		if b.useful[i] {
			rest = append(rest, t)
		}
	}
	return rest
}

// over returns the group of the match that ends in state s whatever comes
// next, if there is one.
func (b *builder) over(s *state) (last group, ok bool) {
	for next := range b.nexts {
		leaves := b.prospects(s.threads, s.prev, next)
		if len(leaves) == 0 || !leaves[0].match {
			return group{}, false
		}
		g := leaves[0].group
		if s.phase == cut {
			g = nowhere
		}
		if ok && g != last {
			return group{}, false
		}
		last, ok = g, true
	}
	return last, ok
}

// end returns the group of the match that ends with the text in state s.
func (b *builder) end(s *state) (group, bool) {
	leaves := b.prospects(s.threads, s.prev, edge)
	if len(leaves) == 0 {
		return group{}, false
	}
	return leaves[0].group, true
}
