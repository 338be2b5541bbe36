package match

import "slices"

// A thread is a way through the pattern: where it stands, just behind a rune
// that it took, and where the ends of its group are. The closure over what
// consumes nothing is taken when the next rune is known, and with it the answer
// to every assertion, so that Pike's order survives empty loops.
type thread struct {
	pc uint32
	group
}

// A group is where the ends of a thread's group are to be found: in a
// register, or one of the places below. From is where its match started; only
// fronts ask.
type group struct{ start, end, from int16 }

// nowhere is the group of a thread that has not come to it.
var nowhere = group{unset, unset, unset}

const (
	unset  int16 = -1 // the thread has not come to it
	here   int16 = -2 // at the place where the closure is taken
	before int16 = -3 // in front of the rune just taken; only while building
)

// A state is what a rule knows of a search: its threads in order of priority.
// Two searches in the same state differ in their registers only. It never
// changes.
type state struct {
	threads []thread
	prev    kind // of the rune before, as far as the rule can tell
	phase   phase
	regs    int // how many registers it has
	holds   []int16
	// over: whatever comes next, a match ends here, with the group last.
	over bool
	last group
	// atEnd: if the text ends here, a match ends here, with the group final.
	atEnd bool
	final group

	row        uint32 // its first cell in the tables of its generation
	generation int
}

// A phase says how far a search has come.
type phase uint8

const (
	seeking phase = iota // a match may start at every rune
	found                // a match was accepted, so that none starts any more
	cut                  // it went on for too long: none starts, and groups are no matter (see cut.go)
)

// idle says whether no match is under way.
func (s *state) idle() bool { return len(s.threads) == 0 && s.phase == seeking }

// decided says whether the search ends by coming to this state.
func (s *state) decided() bool { return s.over || len(s.threads) == 0 && s.phase != seeking }

// A move leads from a state, by a rune, to another.
type move struct {
	to *state
	// accept: a match ends in front of the rune, with the group match; better
	// than any accepted before.
	accept bool
	match  group
	copy   []int16 // for each register of to, the old one it comes from, or here
	how    copying
}

type copying uint8

const (
	keep   copying = iota // each stays, or those at the end are dropped
	push                  // the last is here, each of the others stays
	shift                 // none comes from one before it
	gather                // any other way
)

// newMove numbers the places that the threads name, in order of mention, as
// registers, and notes where their values come from.
func newMove(threads []thread) *move {
	m := &move{}
	for i := range threads {
		t := &threads[i]
		t.start, t.end = m.register(t.start), m.register(t.end)
	}
	m.how = m.shape()
	return m
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

// shape finds the cheapest way to copy.
func (m *move) shape() copying {
	kept, forward := 0, true
	for i, from := range m.copy {
		if int(from) == i && kept == i {
			kept++
		}
		forward = forward && (from == here || int(from) >= i)
	}
	switch n := len(m.copy); {
	case kept == n:
		return keep
	case kept == n-1 && m.copy[n-1] == here:
		return push
	case forward:
		return shift
	}
	return gather
}
