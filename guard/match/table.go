package match

import (
	"encoding/binary"
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
	policy     Policy
	prog       *program

	ascii   [128]class // the rule's class of each ASCII rune
	shared  []class    // … and of each of the engine's classes
	samples []rune     // a rune of each of the rule's classes

	table  atomic.Pointer[table]
	mu     sync.Mutex // held to add to the table
	states map[string]*state
	weight int // of the states, roughly in bytes
	budget int
	build  builder
	starts [kinds][]bool // see wakes
	depth  int64         // of its front
}

// stateBudget is how much memory, roughly, a rule's states may take.
const stateBudget = 1 << 20

// A table is the automaton as far as it is known: a row of cells for each
// state, the first of which is the number of its registers, the others what a
// rune of each class does. It is walked without a lock. What a cell leads to is
// written before the cell is, and never changes; a table that is full is replaced
// by a larger copy in which rows stay where they are. When the states outgrow the
// rule's budget, all are forgotten: a new generation begins.
//
// A search keeps its state between pieces, not its row, and no state leads to
// another. So however many streams wait in forgotten states, nothing but those
// states is kept alive.
type table struct {
	generation int
	idle       [kinds]*state // where a search starts, by the kind of the rune before it
	cells      []uint32      // atomic
	stride     int
	states     []*state // by row / stride
	moves      []*move
	nstates    int // used; the builder's
	nmoves     int
}

// A cell that is walked holds the next row, above two bits: walk, and adding if
// a register is added on the way. Any other holds the number of a move. 0 is a
// cell that is not known yet.
const (
	walk    uint32 = 1
	adding  uint32 = 2
	moving  uint32 = 2 // without walk
	actions        = 2 // how many bits
)

func (r *rule) init() {
	r.build = newBuilder(r)
	r.begin(0)
}

// begin starts a generation with nothing known.
func (r *rule) begin(generation int) {
	r.states = make(map[string]*state)
	r.weight = 0
	t := r.sized(generation, 8)
	for k := range kinds {
		prev := seen(k, r.prog.looks)
		key := string(r.build.key(nil, prev, seeking))
		if r.states[key] == nil {
			r.states[key] = t.add(r.newState(nil, prev, seeking))
		}
		t.idle[k] = r.states[key]
	}
	r.table.Store(t)
}

// add gives a new state a row. There is room for it.
func (t *table) add(s *state) *state {
	s.generation, s.row = t.generation, uint32(t.nstates*t.stride)
	t.cells[s.row] = uint32(s.regs)
	t.states[t.nstates] = s
	t.nstates++
	return s
}

// at returns the state of a row.
func (t *table) at(row uint32) *state { return t.states[int(row)/t.stride] }

// sized returns an empty table with room for so many states.
func (r *rule) sized(generation, rows int) *table {
	return &table{
		generation: generation,
		cells:      make([]uint32, rows*len(r.samples)),
		stride:     len(r.samples),
		states:     make([]*state, rows),
		moves:      make([]*move, rows*2),
	}
}

// grow publishes a copy of the table with twice the room.
func (r *rule) grow() *table {
	old := r.table.Load()
	t := r.sized(old.generation, 2*len(old.states))
	t.idle, t.nstates, t.nmoves = old.idle, old.nstates, old.nmoves
	copy(t.states, old.states)
	copy(t.moves, old.moves)
	copy(t.cells, old.cells) // all writers hold the lock
	r.table.Store(t)
	return t
}

// enter returns the present table and the row of a state in it.
func (r *rule) enter(s *state) (*table, uint32) {
	t := r.table.Load()
	if s.generation == t.generation {
		return t, s.row
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.intern(s.threads, s.prev, s.phase)
	return r.table.Load(), s.row
}

// learn works out where a state leads by a class, and returns a table in which
// the cell is known and the state's row in it.
func (r *rule) learn(from *state, c class) (*table, uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from = r.intern(from.threads, from.prev, from.phase)
	if t := r.table.Load(); t.cells[from.row+uint32(c)] != 0 {
		return t, from.row
	}
	prev := seen(kindOf(r.samples[c]), r.prog.looks)
	threads, match, accept := r.build.step(from, r.samples[c], prev)
	threads = r.build.trim(threads, prev)
	next := from.phase
	if next == cut {
		threads, accept = forget(threads), false
	} else if accept {
		next = found
	}
	m := newMove(threads)
	m.accept, m.match = accept, match
	m.to = r.intern(threads, prev, next)
	from = r.intern(from.threads, from.prev, from.phase) // again, should it have been forgotten
	t := r.table.Load()
	if t.nmoves == len(t.moves) {
		t = r.grow()
	}
	atomic.StoreUint32(&t.cells[from.row+uint32(c)], t.cell(from, m))
	return t, from.row
}

// cell encodes a move. A move that has nothing to do but to add a register is
// walked; one from rest to rest is not, so that a walk ends there.
func (t *table) cell(from *state, m *move) uint32 {
	if !m.accept && !m.to.decided() && !(from.idle() && m.to.idle()) {
		switch m.how {
		case keep:
			return m.to.row<<actions | walk
		case push:
			return m.to.row<<actions | walk | adding
		}
	}
	t.moves[t.nmoves] = m
	t.nmoves++
	return uint32(t.nmoves-1)<<actions | moving
}

// intern returns the state with these threads, which stay the caller's.
func (r *rule) intern(threads []thread, prev kind, p phase) *state {
	key := r.build.key(threads, prev, p)
	if s := r.states[string(key)]; s != nil {
		return s
	}
	s := r.newState(threads, prev, p)
	weight := 256 + 32*len(threads) + 4*len(r.samples)
	// Both ends of a move must find room in a new generation.
	if r.weight+weight > r.budget && len(r.states) > int(kinds)+2 {
		r.begin(r.table.Load().generation + 1)
		key = r.build.key(threads, prev, p)
	}
	r.weight += weight
	t := r.table.Load()
	if t.nstates == len(t.states) {
		t = r.grow()
	}
	r.states[string(key)] = t.add(s)
	return s
}

func (r *rule) newState(threads []thread, prev kind, p phase) *state {
	s := &state{threads: slices.Clone(threads), prev: prev, phase: p}
	for _, t := range threads {
		s.regs = max(s.regs, int(t.start)+1, int(t.end)+1)
		if t.start != unset && !slices.Contains(s.holds, t.start) {
			s.holds = append(s.holds, t.start)
		}
	}
	s.last, s.over = r.build.over(s)
	s.final, s.atEnd = r.build.end(s)
	return s
}

// key identifies a state.
func (b *builder) key(threads []thread, prev kind, p phase) []byte {
	k := append(b.buf[:0], byte(prev), byte(p))
	for _, t := range threads {
		k = binary.LittleEndian.AppendUint32(k, t.pc)
		k = binary.LittleEndian.AppendUint16(k, uint16(t.start))
		k = binary.LittleEndian.AppendUint16(k, uint16(t.end))
	}
	b.buf = k
	return k
}
