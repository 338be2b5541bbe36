package match

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// bankSize is how many rules a bank has at most: a bit of a word for each.
const bankSize = 64

// A bank is the wake table of some rules. A rule's search starts at a rune if
// the rule's bit is set in the entry of the rune, after one of the kind before
// it, and in those of the two bytes that follow. Looking ahead only saves work: a
// search that starts without these bits would come to rest at once.
type bank struct {
	rules   []*rule
	classes *classes
	ascii   [int(kinds) * utf8.RuneSelf]uint64 // by kind and rune
	beyond  [kinds][]uint64                    // by kind and class of the engine
	second  [256]uint64                        // by byte; all bits where it is part of a longer rune
	third   [256]uint64
	kind    [256]kind
	needled uint64 // the rules that have a needle
}

func newBank(rules []*rule, classes *classes, limit int64) *bank {
	b := &bank{rules: rules, classes: classes}
	for c := range b.kind {
		b.kind[c] = kindOf(rune(c))
		if c >= utf8.RuneSelf {
			b.kind[c] = other
			b.second[c] = ^uint64(0)
			b.third[c] = ^uint64(0)
		}
	}
	for k := range b.beyond {
		b.beyond[k] = make([]uint64, len(rules[0].shared))
	}
	for i, r := range rules {
		b.add(r, uint64(1)<<i)
		// A search that could be cut on the way to its needle must not sleep.
		if n := r.prog.needle.reach; n > 0 && int64(n)+utf8.UTFMax < limit {
			b.needled |= uint64(1) << i
		}
	}
	return b
}

// add enters a rule.
func (b *bank) add(r *rule, bit uint64) {
	first := make(fronts)
	for k := range kinds {
		for c := class(1); int(c) < len(r.samples); c++ {
			to := r.lead(r.table.Load().idle[k], c)
			if to.idle() {
				continue
			}
			first.add(r, front{threads: to.threads, prev: to.prev})
			mark(b.ascii[int(k)*utf8.RuneSelf:][:utf8.RuneSelf], r.ascii[:], c, bit)
			mark(b.beyond[k], r.shared, c, bit)
		}
	}
	second := first.advance(r, func(c class) { mark(b.second[:utf8.RuneSelf], r.ascii[:], c, bit) })
	second.advance(r, func(c class) { mark(b.third[:utf8.RuneSelf], r.ascii[:], c, bit) })
}

// mark sets a bit in the entries that are of class c.
func mark(entries []uint64, of []class, c class, bit uint64) {
	for i := range of {
		if of[i] == c {
			entries[i] |= bit
		}
	}
}

// A front is where a search can be after its first runes, without those that
// start behind it.
type front struct {
	threads []thread
	prev    kind
	match   bool // it came to a match: whatever follows, it mattered
}

// fronts are those of a rule after equally many runes, by key.
type fronts map[string]front

func (fs fronts) add(r *rule, f front) {
	f.threads = slices.Clone(f.threads)
	for i := range f.threads {
		f.threads[i].group = group{unset, unset} // no matter
	}
	p := seeking
	if f.match {
		p = found
	}
	fs[string(r.build.key(f.threads, f.prev, p))] = f
}

// advance returns the fronts after one more rune, and tells the classes by
// which there are any.
func (fs fronts) advance(r *rule, matters func(class)) fronts {
	next := make(fronts)
	for c := class(1); int(c) < len(r.samples); c++ {
		prev := seen(kindOf(r.samples[c]), r.prog.looks)
		some := false
		for _, f := range fs {
			to := front{match: true}
			if !f.match {
				alone := &state{threads: f.threads, prev: f.prev, phase: found}
				to.threads, _, to.match = r.build.step(alone, r.samples[c], prev)
				to.prev = prev
			}
			if to.match || len(to.threads) > 0 {
				some = true
				next.add(r, to)
			}
		}
		if some {
			matters(c)
		}
	}
	return next
}

// lead returns the state to which another leads.
func (r *rule) lead(from *state, c class) *state {
	t, row := r.learn(from, c)
	cell := t.cells[row+uint32(c)]
	if cell&walk == 0 {
		return t.moves[cell>>actions].to
	}
	return t.at(cell >> actions)
}

// short is a piece of text in which it does not pay to look for needles.
const short = 64

// scan reads text[from:] for the bank's rules, of which those in awake are in
// the middle of a search. It returns those that are in one at the text's end.
func (b *bank) scan(s *screen, searches []search, awake uint64, from int) uint64 {
	text := s.text
	next := len(text) + 1 // where the first of those awake comes to rest
	for m := awake; m != 0; m &= m - 1 {
		n := bits.TrailingZeros64(m)
		q := &searches[n]
		q.free = s.run(b, n, q, from, from)
		next = min(next, q.free)
	}
	if len(text)-from > short {
		for m := b.needled; m != 0; m &= m - 1 {
			n := bits.TrailingZeros64(m)
			q := &searches[n]
			q.needle = -1 // not looked for in this text
			if awake>>n&1 == 0 {
				q.free = b.dormant(n, q, text, from)
				next = min(next, q.free)
				awake |= 1 << n
			}
		}
	}
	before := s.before
	for i := from; i < len(text); {
		// Most of the time nothing begins and nothing ends.
		for stop := min(next, len(text)-2); i < stop; i++ {
			c := text[i]
			if c >= utf8.RuneSelf {
				break
			}
			wake := b.ascii[int(before)*utf8.RuneSelf+int(c)]
			if wake&b.second[text[i+1]]&b.third[text[i+2]]&^awake != 0 {
				break
			}
			before = b.kind[c]
		}
		c, w := text[i], 1
		var wake uint64
		if c < utf8.RuneSelf {
			wake = b.ascii[int(before)*utf8.RuneSelf+int(c)]
		} else {
			var r rune
			r, w = utf8.DecodeRune(text[i:])
			wake = b.beyond[before][b.classes.of(r)]
		}
		wake &= b.ahead(text[i+w:])
		if i >= next {
			awake, next = b.rested(searches, awake, text, i)
		}
		if wake &^= awake; wake != 0 {
			awake |= wake
			next = min(next, s.rouse(b, searches, wake, before, i))
		}
		before = b.kind[c]
		i += w
	}
	awake, _ = b.rested(searches, awake, text, len(text))
	return awake
}

// ahead returns the rules to which the bytes that follow a first rune matter.
// One that is part of a longer rune, or is not there yet, may matter to all.
func (b *bank) ahead(text []byte) uint64 {
	if len(text) == 0 {
		return ^uint64(0)
	}
	all := b.second[text[0]]
	if len(text) > 1 {
		all &= b.third[text[1]]
	}
	return all
}

// rouse starts searches at text[i] and returns where the first comes to rest.
func (s *screen) rouse(b *bank, searches []search, wake uint64, before kind, i int) int {
	next := len(s.text) + 1
	for ; wake != 0; wake &= wake - 1 {
		n := bits.TrailingZeros64(wake)
		q := &searches[n]
		q.start(b.rules[n], before, s.base+int64(i)+s.engine.limits.hold)
		q.free = s.run(b, n, q, i, i)
		next = min(next, q.free)
	}
	return next
}

// rested takes those from awake that came to rest at i or before and may start
// again, and returns where the next of the others does.
func (b *bank) rested(searches []search, awake uint64, text []byte, i int) (still uint64, next int) {
	next = len(text) + 1
	for m := awake; m != 0; m &= m - 1 {
		n := bits.TrailingZeros64(m)
		q := &searches[n]
		if q.free <= i && b.needled>>n&1 != 0 && len(text)-i > short {
			q.free = b.dormant(n, q, text, i)
		}
		if q.free <= i {
			awake &^= 1 << n
		} else {
			next = min(next, q.free)
		}
	}
	return awake, next
}
