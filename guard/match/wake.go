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
	first := make(map[*state]bool) // where a search can be after one rune
	for k := range kinds {
		for c := range r.samples {
			m := r.learn(r.idle[k].to, class(c))
			if m.to.idle() {
				continue
			}
			first[m.to] = true
			for a, ac := range r.ascii {
				if int(ac) == c {
					b.ascii[int(k)<<7|a] |= bit
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
	for s := range first {
		for c := range second {
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

// scan reads text[from:] for the bank's rules, of which those in awake are in
// the middle of a search. It returns those that are in one at the text's end.
func (b *bank) scan(s *screen, searches []search, awake uint64, from int) uint64 {
	text := s.text
	next := len(text) + 1 // where the first of those awake comes to rest
	for m := awake; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		q := &searches[i]
		q.free = s.run(b.rules[i], q, from, from)
		next = min(next, q.free)
	}
	before := s.before
	for i := from; i < len(text); {
		c, w := text[i], 1
		var wake uint64
		if c < utf8.RuneSelf {
			wake = b.ascii[uint(before)<<7|uint(c)]
		} else {
			var r rune
			r, w = utf8.DecodeRune(text[i:])
			wake = b.beyond[before][b.classes.of(r)]
		}
		if i >= next {
			awake, next = b.rested(searches, awake, i, len(text)+1)
		}
		if wake &^= awake; wake != 0 {
			if i+w < len(text) {
				wake &= b.follow[text[i+w]]
			}
			awake |= wake
			for ; wake != 0; wake &= wake - 1 {
				r := bits.TrailingZeros64(wake)
				q := &searches[r]
				q.at = b.rules[r].idle[before]
				q.free = s.run(b.rules[r], q, i, i)
				next = min(next, q.free)
			}
		}
		before = b.kind[c]
		i += w
	}
	awake, _ = b.rested(searches, awake, len(text), len(text)+1)
	return awake
}

// rested takes those from awake that came to rest at i or before, and returns
// where the next of the others does.
func (b *bank) rested(searches []search, awake uint64, i, never int) (still uint64, next int) {
	next = never
	for m := awake; m != 0; m &= m - 1 {
		r := bits.TrailingZeros64(m)
		if free := searches[r].free; free <= i {
			awake &^= 1 << r
		} else {
			next = min(next, free)
		}
	}
	return awake, next
}
