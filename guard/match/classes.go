package match

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A class is a set of runes that nothing in a rule, or in an engine, can tell
// apart. A rule's classes are numbered from 1, so that a class is also a column
// of its table.
type class = uint16

// A kind is what an assertion can see of a rune.
type kind uint8

const (
	edge kind = iota // no rune: an end of the text
	newline
	word // what \b takes for a word's letter
	other
	kinds
)

// of is a rune of each kind, as package syntax wants to see it.
var of = [kinds]rune{edge: -1, newline: '\n', word: 'a', other: ' '}

func kindOf(r rune) kind {
	switch {
	case r == '\n':
		return newline
	case syntax.IsWordChar(r):
		return word
	}
	return other
}

// seen reduces a kind to what the assertions in looks can tell: fewer kinds,
// fewer states.
func seen(k kind, looks syntax.EmptyOp) kind {
	const lines = syntax.EmptyBeginLine | syntax.EmptyEndLine
	const words = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	switch {
	case k == edge && looks&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0,
		k == newline && looks&lines == 0,
		k == word && looks&words == 0:
		return other
	}
	return k
}

const pageBits = 7

// classes is the table that all rules of an engine share: the class of every
// rune from utf8.RuneSelf on. (ASCII has tables where it is used.) Pages that
// are alike are one.
type classes struct {
	page  [(unicode.MaxRune + 1) >> pageBits]uint16
	class [][1 << pageBits]class
}

func (c *classes) of(r rune) class {
	return c.class[c.page[r>>pageBits]][r&(1<<pageBits-1)]
}

// span is a run of runes of one class; it reaches to the next span.
type span struct {
	first rune
	class class
}

// classify gives each rule its classes and returns the table of the classes
// that they have in common.
func classify(rules []*rule) *classes {
	var starts []rune
	spans := make([][]span, len(rules))
	for i, r := range rules {
		spans[i] = r.classify()
		for _, s := range spans[i] {
			starts = append(starts, s.first)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)

	ids := make(map[string]class)
	key := make([]byte, 2*len(rules))
	var shared []span
	for _, first := range starts {
		for i := range rules {
			for len(spans[i]) > 1 && spans[i][1].first <= first {
				spans[i] = spans[i][1:]
			}
			binary.LittleEndian.PutUint16(key[2*i:], spans[i][0].class)
		}
		id, ok := ids[string(key)]
		if !ok {
			id = class(len(ids))
			ids[string(key)] = id
			for i, r := range rules {
				r.shared = append(r.shared, spans[i][0].class)
			}
		}
		shared = append(shared, span{first, id})
	}
	return paginate(shared)
}

func paginate(spans []span) *classes {
	c := &classes{}
	uniform := make(map[class]uint16)
	ids := make(map[[1 << pageBits]class]uint16)
	for i := range c.page {
		first := rune(i << pageBits)
		for len(spans) > 1 && spans[1].first <= first {
			spans = spans[1:]
		}
		whole := len(spans) == 1 || spans[1].first >= first+1<<pageBits
		if id, ok := uniform[spans[0].class]; whole && ok {
			c.page[i] = id
			continue
		}
		var page [1 << pageBits]class
		for j, at := 0, 0; j < len(page); j++ {
			for at+1 < len(spans) && spans[at+1].first <= first+rune(j) {
				at++
			}
			page[j] = spans[at].class
		}
		id, ok := ids[page]
		if !ok {
			id = uint16(len(c.class))
			ids[page] = id
			c.class = append(c.class, page)
		}
		c.page[i] = id
		if whole {
			uniform[spans[0].class] = id
		}
	}
	return c
}

// classify finds the rule's own classes, fills its ASCII table, and returns
// where in the code space its classes change.
func (r *rule) classify() []span {
	starts := []rune{0, '\n', '\n' + 1, utf8.RuneSelf}
	if r.prog.looks&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
		starts = append(starts, '0', '9'+1, 'A', 'Z'+1, '_', '_'+1, 'a', 'z'+1)
	}
	var sets []syntax.Inst
	for _, in := range r.prog.inst {
		if isRune(in.Op) && !slices.ContainsFunc(sets, func(s syntax.Inst) bool {
			return s.Op == in.Op && s.Arg == in.Arg && slices.Equal(s.Rune, in.Rune)
		}) {
			sets = append(sets, in)
			starts = append(starts, bounds(&in)...)
		}
	}
	starts = slices.DeleteFunc(starts, func(r rune) bool { return r > unicode.MaxRune })
	slices.Sort(starts)
	starts = slices.Compact(starts)

	ids := make(map[string]class)
	key := make([]byte, 1+(len(sets)+7)/8)
	r.samples = []rune{0}
	var spans []span
	for _, first := range starts {
		clear(key)
		key[0] = byte(seen(kindOf(first), r.prog.looks))
		for i := range sets {
			if sets[i].MatchRune(first) {
				key[1+i/8] |= 1 << (i % 8)
			}
		}
		id, ok := ids[string(key)]
		if !ok {
			id = class(len(r.samples))
			ids[string(key)] = id
			r.samples = append(r.samples, first)
		}
		if len(spans) == 0 || spans[len(spans)-1].class != id {
			spans = append(spans, span{first, id})
		}
	}
	at := 0
	for b := range r.ascii {
		for at+1 < len(spans) && spans[at+1].first <= rune(b) {
			at++
		}
		r.ascii[b] = spans[at].class
	}
	return spans
}

func isRune(op syntax.InstOp) bool {
	switch op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// bounds returns where the set of runes that the instruction takes begins and
// ends.
func bounds(in *syntax.Inst) []rune {
	var at []rune
	switch {
	case in.Op == syntax.InstRuneAny, in.Op == syntax.InstRuneAnyNotNL:
		// all, but for the newline, which always has a class of its own
	case len(in.Rune) == 1:
		at = append(at, in.Rune[0], in.Rune[0]+1)
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
				at = append(at, r, r+1)
			}
		}
	default:
		for i := 0; i+1 < len(in.Rune); i += 2 {
			at = append(at, in.Rune[i], in.Rune[i+1]+1)
		}
	}
	return at
}
