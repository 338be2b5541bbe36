package match

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// A front runs the searches of many rules together while they are young: one
// table, walked rune by rune, for all of them. Its states are those that the
// rules' own tables have, the ordered threads of each rule that has any, but for
// the registers, in whose place there is how many bytes ago it was. So the state
// alone says what is held, and walking is one look-up a rune.
//
// Where a rule's search has gone on for depth bytes, or comes to a match, the
// search goes on in the rule's own table, with the threads that it has and real
// registers: nothing is read again. The front forgets those threads, and what it
// then says of the rule is not listened to until that search comes to rest. Both
// know the same then, that no thread of the rule is alive: a thread that the
// front still had would have started before the search rested, and be alive
// there too. Only a decided match kills threads that the front does not; so a
// search does not rest until the front's threads from before a match's end are
// older than depth and gone.
type front struct {
	rules   []*rule
	classes *classes
	depth   int
	limit   int64
	fork    int // see forks
	most    int // states, before they are forgotten; never fewer than 4
	columns *columns
	starts  [kinds][][]int // the rules that can start, by the kind before and the class

	table atomic.Pointer[frontTable]
	mu    sync.Mutex // held to add to the table
	known map[string]*frontState

	// What step and intern write to: most states that they come to are known.
	key     []byte
	comps   []comp
	threads []thread
}

// A comp is a rule's part of a front's state.
type comp struct {
	rule    int      // in the front
	threads []thread // where a register would be there are bytes back from here
}

// A frontState never changes.
type frontState struct {
	prev       kind
	comps      []comp
	holds      []held // the oldest group of each rule that has one, the oldest first
	row        uint32
	generation int
	ends       atomic.Pointer[[]int] // see ending
}

type held struct{ rule, age int } // the rule's index in the engine

// A frontMove leads to a state, and rules on to their own tables.
type frontMove struct {
	to   *frontState
	hits []int
}

// frontTable is like a rule's table. A cell is 0 if it is not known, the next
// row above a set bit, or the number of a move above a clear one. The column hold
// has how many bytes ago the oldest group of the row's state began.
type frontTable struct {
	generation int
	rest       *frontState // at the start of a text
	cells      []uint32
	shift      int // a row has 1 << shift cells
	states     []*frontState
	moves      []*frontMove
	nstates    int
}

// mostFrontStates is how many states a front has before it forgets them.
const mostFrontStates = 16_000

func newFront(rules []*rule, classes *classes, columns *columns, depth int, limit int64) *front {
	f := &front{
		rules: rules, classes: classes, columns: columns, depth: depth, limit: limit,
		fork: depth, most: mostFrontStates,
	}
	if depth == wordDepth {
		f.fork = wordFork
	}
	for k := range kinds {
		f.starts[k] = make([][]int, len(columns.wide))
	}
	for i, r := range rules {
		r.depth = int64(depth)
		for k := range kinds {
			wakes := r.wakes(k)
			for c, own := range r.shared {
				if wakes[own] {
					f.starts[k][c] = append(f.starts[k][c], i)
				}
			}
		}
	}
	f.begin(0)
	return f
}

// wakes says by which of its classes a rule's search can start, behind a rune of
// a kind.
func (r *rule) wakes(k kind) []bool {
	if prev := seen(k, r.prog.looks); r.starts[prev] == nil {
		wakes := make([]bool, len(r.samples))
		for c := 1; c < len(r.samples); c++ {
			next := seen(kindOf(r.samples[c]), r.prog.looks)
			threads, _, _ := r.build.step(&state{prev: prev}, r.samples[c], next)
			wakes[c] = len(r.build.trim(threads, next)) > 0
		}
		r.starts[prev] = wakes
	}
	return r.starts[seen(k, r.prog.looks)]
}

func (f *front) begin(generation int) {
	f.known = make(map[string]*frontState)
	f.table.Store(f.sized(generation, 64))
	rest := f.intern(edge, nil)
	t := *f.table.Load()
	t.rest = rest
	f.table.Store(&t)
}

func (f *front) sized(generation, rows int) *frontTable {
	return &frontTable{
		generation: generation, shift: f.columns.shift,
		cells: make([]uint32, rows<<f.columns.shift), states: make([]*frontState, rows),
	}
}

func (t *frontTable) at(row uint32) *frontState { return t.states[row>>t.shift] }

// A standing is where a stream is in a front: in a state, and where that is in the
// tables of its generation. The zero standing is at the start of a text.
type standing struct {
	state      *frontState
	row        uint32
	hold       uint32 // of that row
	generation int
}

// resume returns the present table and the row of a standing in it. It does not
// look at the state, which is far away, unless it must.
func (f *front) resume(s *standing) (*frontTable, uint32) {
	t := f.table.Load()
	switch {
	case s.state == nil:
		return t, t.rest.row
	case s.generation == t.generation:
		return t, s.row
	}
	return f.enter(s.state)
}

// stand is the standing in a row of the table.
func (t *frontTable) stand(row, column uint32) standing {
	return standing{t.at(row), row, t.cells[row+column], t.generation}
}

// enter returns the present table and the row of a state in it.
func (f *front) enter(s *frontState) (*frontTable, uint32) {
	t := f.table.Load()
	if s.generation == t.generation {
		return t, s.row
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.intern(s.prev, s.comps)
	return f.table.Load(), s.row
}

// learn works out where a state leads by a rune, and returns a table in which
// the cell is known and the state's row in it.
func (f *front) learn(from *frontState, column uint32, r rune, width int) (*frontTable, uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from = f.intern(from.prev, from.comps)
	if t := f.table.Load(); t.cells[from.row+column] != 0 {
		return t, from.row
	}
	comps, hits := f.step(from, r, width)
	to := f.intern(kindOf(r), comps)
	from = f.intern(from.prev, from.comps) // again, should it have been forgotten
	t := f.table.Load()
	if to.generation != t.generation {
		to = f.intern(to.prev, to.comps)
		t = f.table.Load()
	}
	cell := to.row<<1 | 1
	if len(hits) > 0 {
		// The slice of moves is part of the table: a reader of an older table
		// does not see the cell either, or sees it with what it points to.
		t = f.withMove(t, &frontMove{to, hits})
		cell = uint32(len(t.moves)-1) << 1
	}
	atomic.StoreUint32(&t.cells[from.row+column], cell)
	return t, from.row
}

// withMove publishes the table with one more move.
func (f *front) withMove(t *frontTable, m *frontMove) *frontTable {
	next := *t
	if len(next.moves) == 0 {
		next.moves = append(next.moves, nil) // no cell is 0
	}
	next.moves = append(next.moves, m)
	f.table.Store(&next)
	return &next
}

// intern returns the state with these parts, which stay the caller's.
func (f *front) intern(prev kind, comps []comp) *frontState {
	key := append(f.key[:0], byte(prev))
	for _, c := range comps {
		key = binary.LittleEndian.AppendUint16(key, uint16(c.rule))
		key = append(key, byte(len(c.threads)))
		for _, t := range c.threads {
			key = binary.LittleEndian.AppendUint32(key, t.pc)
			key = append(key, byte(t.start), byte(t.end), byte(t.from))
		}
	}
	f.key = key
	if s := f.known[string(key)]; s != nil {
		return s
	}
	t := f.table.Load()
	if t.nstates >= f.most {
		f.begin(t.generation + 1)
		return f.intern(prev, comps) // the key was overwritten
	}
	if t.nstates == len(t.states) {
		bigger := f.sized(t.generation, 2*len(t.states))
		bigger.rest, bigger.moves, bigger.nstates = t.rest, t.moves, t.nstates
		copy(bigger.states, t.states)
		copy(bigger.cells, t.cells)
		f.table.Store(bigger)
		t = bigger
	}
	s := &frontState{prev: prev, comps: own(comps), row: uint32(t.nstates) << t.shift, generation: t.generation}
	for _, c := range comps {
		if age := c.oldest(); age > 0 {
			s.holds = append(s.holds, held{f.rules[c.rule].index, age})
		}
	}
	slices.SortStableFunc(s.holds, func(a, b held) int { return b.age - a.age })
	if len(s.holds) > 0 {
		t.cells[s.row+f.columns.hold] = uint32(s.holds[0].age)
	}
	t.states[t.nstates] = s
	next := *t
	next.nstates++
	f.table.Store(&next)
	f.known[string(key)] = s
	return s
}

// ending says which rules have a match that ends with the text if the text ends
// in a state. Few states are the last of a text, so it is worked out when asked.
func (f *front) ending(s *frontState) []int {
	if known := s.ends.Load(); known != nil {
		return *known
	}
	var ends []int
	for _, c := range s.comps {
		r := f.rules[c.rule]
		r.mu.Lock()
		if _, ok := r.build.end(&state{threads: c.threads, prev: seen(s.prev, r.prog.looks)}); ok {
			ends = append(ends, c.rule)
		}
		r.mu.Unlock()
	}
	s.ends.Store(&ends)
	return ends
}

// own returns a copy that shares nothing.
func own(comps []comp) []comp {
	n := 0
	for _, c := range comps {
		n += len(c.threads)
	}
	all := make([]thread, 0, n)
	copied := make([]comp, len(comps))
	for i, c := range comps {
		from := len(all)
		all = append(all, c.threads...)
		copied[i] = comp{c.rule, all[from:len(all):len(all)]}
	}
	return copied
}

// forks says whether a search of so many bytes or more goes on in several ways.
// Then it is behind its word, where what may stand between a keyword and a secret
// begins; the states of many rules that are there would multiply.
func (c comp) forks(age int) bool {
	for i, t := range c.threads {
		if int(t.from) < age {
			continue
		}
		for _, u := range c.threads[:i] {
			if u.from == t.from {
				return true
			}
		}
	}
	return false
}

// oldest is how many bytes ago the earliest group started, 0 if none did.
func (c comp) oldest() int {
	age := 0
	for _, t := range c.threads {
		age = max(age, int(t.start))
	}
	return age
}

// step is the front's state after a rune, and the rules that go on in their own
// tables. The parts are the front's until its next step.
func (f *front) step(from *frontState, r rune, width int) (comps []comp, hits []int) {
	comps, f.threads = f.comps[:0], f.threads[:0]
	starts := f.starts[from.prev][f.classes.of(r)]
	olds := from.comps
	for len(starts) > 0 || len(olds) > 0 {
		c := comp{rule: -1}
		switch {
		case len(olds) == 0 || len(starts) > 0 && starts[0] < olds[0].rule:
			c.rule, starts = starts[0], starts[1:]
		case len(starts) > 0 && starts[0] == olds[0].rule:
			c, starts, olds = olds[0], starts[1:], olds[1:]
		default:
			c, olds = olds[0], olds[1:]
		}
		next, hit := f.grow(c, from.prev, r, width)
		if hit {
			hits = append(hits, c.rule)
		} else if len(next.threads) > 0 {
			comps = append(comps, next)
		}
	}
	f.comps = comps
	return comps, hits
}

// grow is a rule's part after a rune, and whether it goes on in the rule's own
// table.
func (f *front) grow(c comp, before kind, r rune, width int) (next comp, hit bool) {
	rule := f.rules[c.rule]
	rule.mu.Lock()
	defer rule.mu.Unlock()
	looks := rule.prog.looks
	prev := seen(kindOf(r), looks)
	rule.build.fresh.from = here
	threads, _, accept := rule.build.step(&state{threads: c.threads, prev: seen(before, looks)}, r, prev)
	rule.build.fresh.from = unset
	if accept {
		return c, true
	}
	threads = rule.build.trim(threads, prev)
	if len(threads) == 0 {
		return comp{rule: c.rule}, false
	}
	age, first := 0, len(f.threads)
	f.threads = append(f.threads, threads...)
	next = comp{rule: c.rule, threads: f.threads[first:len(f.threads):len(f.threads)]}
	alone := append(rule.build.carried[:0], threads...) // whose match started where is no matter to the rule
	rule.build.carried = alone
	for i, t := range threads {
		next.threads[i].group = group{later(t.start, width), later(t.end, width), later(t.from, width)}
		age = max(age, int(next.threads[i].from))
		alone[i].from = unset
	}
	_, over := rule.build.over(&state{threads: alone, prev: prev})
	return next, over || age > f.depth || int64(next.oldest()) >= f.limit || len(next.threads) > mostThreads || next.forks(f.fork)
}

// later is a place in front of a rune, in bytes back from behind it.
func later(place int16, width int) int16 {
	switch place {
	case unset:
		return unset
	case before:
		return int16(width)
	}
	return place + int16(width)
}

// part is a rule's part of the state, nil if it has none.
func (s *frontState) part(rule int) *comp {
	i, ok := slices.BinarySearchFunc(s.comps, rule, func(c comp, r int) int { return c.rule - r })
	if !ok {
		return nil
	}
	return &s.comps[i]
}
