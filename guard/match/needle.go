package match

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// A needle is a byte that every match of a rule contains, at most reach bytes
// behind its start: the @ of an address. In a long piece of text, a search that
// is at rest need not start before the next one comes near. What it would have
// found out until then is nothing: a thread that has read reach bytes, and no
// needle in them or behind, is dead.
type needle struct {
	byte  byte
	reach int // 0: the rule has no needle
}

// maxReach is how far a needle may be from the start to be worth a look.
const maxReach = 512

// needleOf finds a needle in the pattern. One at the very start is none: the
// wake table knows it.
func needleOf(re *syntax.Regexp) needle {
	n, _, ok := seek(re, 0)
	if !ok || n.reach == 0 || n.reach > maxReach {
		return needle{}
	}
	return n
}

// seek looks for a needle in re, in front of which a match has at most so many
// bytes, and returns how many it has at most behind re.
func seek(re *syntax.Regexp, before int) (n needle, behind int, ok bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if r := re.Rune[0]; r < utf8.RuneSelf && re.Flags&syntax.FoldCase == 0 {
			return needle{byte(r), before}, 0, true
		}
	case syntax.OpCapture, syntax.OpPlus:
		if n, _, ok := seek(re.Sub[0], before); ok {
			return n, 0, true
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			if n, _, ok := seek(re.Sub[0], before); ok {
				return n, 0, true
			}
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n, before, ok = seek(sub, before); ok || before < 0 {
				return n, before, ok
			}
		}
		return n, before, false
	}
	return needle{}, plus(before, size(re)), false
}

// dormant returns where the search of rule n, at rest at text[i], must be
// looked after again.
func (b *bank) dormant(n int, q *search, text []byte, i int) int {
	d := b.rules[n].prog.needle
	if q.needle < i {
		q.needle = len(text)
		if at := bytes.IndexByte(text[i:], d.byte); at >= 0 {
			q.needle = i + at
		}
	}
	return max(i, q.needle-d.reach)
}
