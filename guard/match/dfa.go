package match

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stoplog/stoplog/guard"
)

// rule is a compiled rule and the automaton that grows as it is walked.
type rule struct {
	id         string
	index      int // among the engine's rules
	validators []Validator
	severity   guard.Severity
	verdict    guard.Verdict
	prog       *program

	ascii   [128]class // the rule's class of each ASCII rune
	shared  []class    // … and of each of the engine's classes
	samples []rune     // a rune of each of the rule's classes

	idle [kinds]*move // where a search starts, by the kind of the rune before it

	mu     sync.Mutex
	states map[string]*state // all that are linked to
	weight int               // of the states
	budget int
	build  builder
}

// stateBudget is how much memory, roughly in bytes, a rule's states may take.
const stateBudget = 1 << 20

// A thread is a way through the pattern: where it stands, just behind a rune
// that it took, and which registers hold the ends of its group. The closure
// over what consumes nothing is taken when the next rune is known, and with it
// the answer to every assertion, so that Pike's order survives empty loops.
type thread struct {
	pc uint32
	group
}

// A group is where the ends of a thread's group are to be found: in a
// register, or one of the places below.
type group struct{ start, end int16 }

const (
	unset  int16 = -1 // the thread has not come to it
	here   int16 = -2 // at the place where the closure is taken
	before int16 = -3 // in front of the rune just taken; only while building
)

// A state is what a rule knows of a search: its threads in order of priority.
// A state never changes but for the moves it has learnt.
type state struct {
	threads []thread
	prev    kind // of the rune before
	found   bool // a match was accepted, so that no search starts any more
	holds   []int16
	// over: whatever comes next, a match ends here, with the group last.
	over bool
	last group
	// atEnd: if the text ends here, a match ends here, with the group final.
	atEnd bool
	final group

	next []atomic.Pointer[move] // by class
}

// idle says whether no match is under way.
func (s *state) idle() bool { return len(s.threads) == 0 && !s.found }

// A move leads from a state, by a class of runes, to another.
type move struct {
	to   *state
	next []atomic.Pointer[move] // of to, one step nearer
	// quiet: there is nothing to do but to go on.
	quiet bool
	// accept: a match ends in front of the rune, with the group match; better
	// than any accepted before.
	accept bool
	match  group
	copy   []int16 // the registers of to, each from an old one or here
	how    copying
}

type copying uint8

const (
	keep   copying = iota // what is there stays
	push                  // … and one more is added
	shift                 // each comes from one that is not before it
	gather                // any other way
)

// value is what a place stands for.
func value(regs []int64, place int16, at int64) int64 {
	if place < 0 {
		return at
	}
	return regs[place]
}

func (r *rule) init() {
	r.states = make(map[string]*state)
	r.build.prog = r.prog
	r.build.visited = make([]uint32, len(r.prog.inst))
	var byPrev [kinds]*move
	for k := range kinds {
		prev := seen(k, r.prog.looks)
		if byPrev[prev] == nil {
			to := r.intern(nil, prev, false)
			byPrev[prev] = &move{to: to, next: to.next, quiet: true}
		}
		r.idle[k] = byPrev[prev]
	}
}

// learn returns the move from a state by a class, building it if no other
// stream has.
func (r *rule) learn(from *state, c class) *move {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := from.next[c].Load(); m != nil {
		return m
	}
	sample := r.samples[c]
	prev := seen(kindOf(sample), r.prog.looks)
	m := &move{}
	threads := r.build.trim(r.build.step(from, sample, prev, m), prev)
	m.renumber(threads)
	m.to = r.intern(threads, prev, from.found || m.accept)
	m.next = m.to.next
	m.how = m.shape()
	m.quiet = m.how == keep && !m.accept && !m.to.over && len(m.to.threads) > 0
	from.next[c].Store(m)
	return m
}

// shape finds the cheapest way to make the registers' copy.
func (m *move) shape() copying {
	kept, forward := 0, true
	for i, from := range m.copy {
		if int(from) == i && kept == i {
			kept++
		}
		forward = forward && (from < 0 || int(from) >= i)
	}
	switch n := len(m.copy); {
	case kept == n:
		return keep
	case kept == n-1 && m.copy[n-1] < 0:
		return push
	case forward:
		return shift
	}
	return gather
}

// renumber gives each place that the threads name a register, in order of
// mention, and notes where the registers' values come from.
func (m *move) renumber(threads []thread) {
	for i := range threads {
		t := &threads[i]
		t.start, t.end = m.register(t.start), m.register(t.end)
	}
}

func (m *move) register(place int16) int16 {
	switch place {
	case unset:
		return unset
	case before:
		place = here // the place in front of the rune, seen from the move
	}
	if i := slices.Index(m.copy, place); i >= 0 {
		return int16(i)
	}
	m.copy = append(m.copy, place)
	return int16(len(m.copy) - 1)
}

// intern returns the state with these threads. Threads are the caller's.
func (r *rule) intern(threads []thread, prev kind, found bool) *state {
	key := r.build.key(threads, prev, found)
	if s := r.states[string(key)]; s != nil {
		return s
	}
	s := &state{
		threads: append([]thread(nil), threads...), prev: prev, found: found,
		next: make([]atomic.Pointer[move], len(r.samples)),
	}
	for _, t := range threads {
		if t.start != unset && !slices.Contains(s.holds, t.start) {
			s.holds = append(s.holds, t.start)
		}
	}
	id := string(key)
	s.last, s.over = r.build.over(s)
	s.final, s.atEnd = r.build.end(s)
	weight := 256 + 16*len(s.threads) + 8*len(s.next)
	if r.weight+weight > r.budget {
		r.flush()
	}
	r.weight += weight
	r.states[id] = s
	return s
}

// flush forgets all states. A stream in one of them goes on from it and learns
// its moves again; the moves are dropped, so that a stream that waits in a
// forgotten state keeps no other alive.
func (r *rule) flush() {
	for _, s := range r.states {
		for c := range s.next {
			s.next[c].Store(nil)
		}
	}
	clear(r.states)
	r.weight = 0
	for _, m := range r.idle {
		if m != nil { // not so only while the first are made
			r.states[string(r.build.key(nil, m.to.prev, false))] = m.to
		}
	}
}
