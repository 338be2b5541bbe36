package match

import (
	"math/bits"
	"unicode/utf8"
)

// bankSize is how many rules a bank has at most: a bit of a word for each.
const bankSize = 64

// A bank is the wake table of some rules. A rule's search starts at a rune if
// the rule's bit is set both in the entry of the rune, after one of the kind
// before it, and in the entry of the byte that follows. The second looks ahead
// only to save work: a rule without its bit would fall asleep at once.
type bank struct {
	rules   []*rule
	classes *classes
	ascii   [int(kinds) * utf8.RuneSelf]uint64 // by kind and rune
	beyond  [kinds][]uint64                    // by kind and class of the engine
	follow  [256]uint64                        // by byte; all bits where it begins a longer rune
	kind    [256]kind
}

func newBank(rules []*rule, classes *classes) *bank {
	b := &bank{rules: rules, classes: classes}
	for c := range b.kind {
		b.kind[c] = kindOf(rune(c))
		if c >= utf8.RuneSelf {
			b.kind[c] = other
			b.follow[c] = ^uint64(0)
		}
	}
	for k := range b.beyond {
		b.beyond[k] = make([]uint64, len(rules[0].shared))
	}
	for i, r := range rules {
		b.add(r, uint64(1)<<i)
	}
	return b
}

// add enters a rule.
func (b *bank) add(r *rule, bit uint64) {
	first := make(map[string]*state) // where a search can be after one rune
	for k := range kinds {
		for c := 1; c < len(r.samples); c++ {
			to := r.lead(r.table.Load().idle[k], class(c))
			if to.idle() {
				continue
			}
			first[string(r.build.key(to.threads, to.prev, to.found))] = to
			for a, ac := range r.ascii {
				if int(ac) == c {
					b.ascii[int(k)*utf8.RuneSelf+a] |= bit
				}
			}
			for s, sc := range r.shared {
				if int(sc) == c {
					b.beyond[k][s] |= bit
				}
			}
		}
	}
	second := make([]bool, len(r.samples))
	for _, s := range first {
		for c := 1; c < len(second); c++ {
			second[c] = second[c] || r.survives(s, class(c))
		}
	}
	for a, c := range r.ascii {
		if second[c] {
			b.follow[a] |= bit
		}
	}
}

// survives says whether a rune matters to the threads of s.
func (r *rule) survives(s *state, c class) bool {
	if s.over || s.found {
		return true
	}
	sample := r.samples[c]
	for _, l := range r.build.reach(s.threads, s.prev, seen(kindOf(sample), r.prog.looks), false) {
		if l.match || r.prog.inst[l.pc].MatchRune(sample) {
			return true
		}
	}
	return false
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

// scan reads text[from:] for the bank's rules, of which those in awake are in
// the middle of a search. It returns those that are in one at the text's end.
func (b *bank) scan(s *screen, searches []search, awake uint64, from int) uint64 {
	text := s.text
	never := len(text) + 1
	next := never // where the first of those awake comes to rest
	for m := awake; m != 0; m &= m - 1 {
		n := bits.TrailingZeros64(m)
		q := &searches[n]
		q.free = s.run(b, n, q, from, from)
		next = min(next, q.free)
	}
	before := s.before
	for i := from; i < len(text); {
		// Most of the time nothing begins and nothing ends.
		for stop := min(next, len(text)-1); i < stop; i++ {
			c := text[i]
			if c >= utf8.RuneSelf || b.ascii[int(before)*utf8.RuneSelf+int(c)]&b.follow[text[i+1]]&^awake != 0 {
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
		if i+w < len(text) {
			wake &= b.follow[text[i+w]]
		}
		if i >= next {
			awake, next = rested(searches, awake, i, never)
		}
		if wake &^= awake; wake != 0 {
			awake |= wake
			next = min(next, s.rouse(b, searches, wake, before, i))
		}
		before = b.kind[c]
		i += w
	}
	awake, _ = rested(searches, awake, len(text), never)
	return awake
}

// rouse starts searches at text[i] and returns where the first comes to rest.
func (s *screen) rouse(b *bank, searches []search, wake uint64, before kind, i int) int {
	next := len(s.text) + 1
	for ; wake != 0; wake &= wake - 1 {
		n := bits.TrailingZeros64(wake)
		q := &searches[n]
		q.start(b.rules[n], before)
		q.free = s.run(b, n, q, i, i)
		next = min(next, q.free)
	}
	return next
}

// rested takes those from awake that came to rest at i or before, and returns
// where the next of the others does.
func rested(searches []search, awake uint64, i, never int) (still uint64, next int) {
	next = never
	for m := awake; m != 0; m &= m - 1 {
		n := bits.TrailingZeros64(m)
		if free := searches[n].free; free <= i {
			awake &^= 1 << n
		} else {
			next = min(next, free)
		}
	}
	return awake, next
}
