package match

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode/utf8"
)

// program is a rule's pattern as instructions of package regexp/syntax. The
// text between its two marks is the finding.
type program struct {
	inst        []syntax.Inst
	start       uint32
	open, close uint32         // the capture instructions' arguments at the group's ends
	looks       syntax.EmptyOp // the assertions that the pattern makes
	bound       int            // most bytes held for it; -1 if there is no such number
	tree        *syntax.Regexp
	group       int // in tree
}

// maxInst bounds the size of a pattern; a state then has fewer registers than a
// place can name. The largest pattern of guard/rules has some 1,500.
const maxInst = 10_000

// compile parses a rule's pattern, checks that the rule makes sense as one that
// redacts, and leaves out what does not change its findings.
func compile(r Rule) (*program, error) {
	if r.ID == "" {
		return nil, errors.New("it has no id")
	}
	re, err := syntax.Parse(r.Pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("parse pattern: %w", err)
	}
	if width(re) == 0 {
		return nil, errors.New("pattern matches the empty string")
	}
	group, err := groupOf(re, r.Group)
	if err != nil {
		return nil, err
	}
	if r.Group == "" {
		re = &syntax.Regexp{Op: syntax.OpCapture, Sub: []*syntax.Regexp{re}, Cap: group}
	} else {
		re = withoutLead(re)
	}
	p := &program{open: uint32(2 * group), close: uint32(2*group + 1), bound: bound(re, group), tree: re, group: group}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, fmt.Errorf("compile pattern: %w", err)
	}
	if len(prog.Inst) > maxInst {
		return nil, fmt.Errorf("pattern is too large: %d instructions, at most %d", len(prog.Inst), maxInst)
	}
	p.inst, p.start = prog.Inst, uint32(prog.Start)
	for _, in := range p.inst {
		if in.Op == syntax.InstEmptyWidth {
			p.looks |= syntax.EmptyOp(in.Arg)
		}
	}
	return p, nil
}

// groupOf returns the number of the named group, or of one beyond the pattern's
// own for the whole match.
func groupOf(re *syntax.Regexp, name string) (int, error) {
	if name == "" {
		return re.MaxCap() + 1, nil
	}
	for i, n := range re.CapNames() {
		if n != name {
			continue
		}
		lo, hi := visits(re, i)
		switch {
		case lo == 0:
			return 0, fmt.Errorf("a match can pass by group %q", name)
		case hi > 1:
			return 0, fmt.Errorf("a match can pass more than once through group %q", name)
		case width(find(re, i)) == 0:
			return 0, fmt.Errorf("group %q can be empty", name)
		}
		return i, nil
	}
	return 0, fmt.Errorf("pattern has no group %q", name)
}

// find returns the group's expression.
func find(re *syntax.Regexp, group int) *syntax.Regexp {
	if re.Op == syntax.OpCapture && re.Cap == group {
		return re.Sub[0]
	}
	for _, sub := range re.Sub {
		if got := find(sub, group); got != nil {
			return got
		}
	}
	return nil
}

// visits returns how often, at least and at most, a match passes through the
// group. 2 stands for more than once.
func visits(re *syntax.Regexp, group int) (lo, hi int) {
	switch re.Op {
	case syntax.OpCapture:
		if re.Cap == group {
			return 1, 1
		}
		return visits(re.Sub[0], group)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			l, h := visits(sub, group)
			lo, hi = min(lo+l, 2), min(hi+h, 2)
		}
		return lo, hi
	case syntax.OpAlternate:
		lo = 2
		for _, sub := range re.Sub {
			l, h := visits(sub, group)
			lo, hi = min(lo, l), max(hi, h)
		}
		return lo, hi
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		l, h := visits(re.Sub[0], group)
		least, most := times(re)
		if most < 0 {
			most = 2
		}
		return min(l*least, 2), min(h*most, 2)
	}
	return 0, 0
}

// times returns the counts of a repetition; most is -1 where there is no limit.
func times(re *syntax.Regexp) (least, most int) {
	switch re.Op {
	case syntax.OpQuest:
		return 0, 1
	case syntax.OpStar:
		return 0, -1
	case syntax.OpPlus:
		return 1, -1
	}
	return re.Min, re.Max
}

// width returns the least number of runes that the expression matches.
func width(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return 1
	case syntax.OpCapture:
		return width(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n += width(sub)
		}
		return n
	case syntax.OpAlternate:
		n := width(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, width(sub))
		}
		return n
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		least, _ := times(re)
		return least * width(re.Sub[0])
	}
	return 0
}

// withoutLead drops lazy runs of one class from the front of a pattern whose
// finding is a group behind them, such as the first part of `[\w.]{0,50}?key=(…)`.
//
// Nothing changes: let k be the first place at which the rest matches. A start
// from which the run reaches a later place also reaches k, which is nearer, in
// the same class and so preferred; and it is no later than k, where the rest
// itself could start. So the leftmost match is always the one whose rest starts
// at k, and its group and its end are those of the rest. An assertion in front
// of the run would break this, so the run must be the very first element.
func withoutLead(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	subs := re.Sub
	for len(subs) > 1 && isLead(subs[0]) {
		subs = subs[1:]
	}
	if len(subs) == len(re.Sub) {
		return re
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: subs}
}

func isLead(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpQuest, syntax.OpStar, syntax.OpRepeat:
		least, _ := times(re)
		if least > 0 || re.Flags&syntax.NonGreedy == 0 {
			return false
		}
		switch of := re.Sub[0]; of.Op {
		case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			return true
		case syntax.OpLiteral:
			return len(of.Rune) == 1
		}
	}
	return false
}

// bound returns the most bytes that a match can have from the start of its
// group on, and those of one more rune that may have to be seen: the text that
// can be held for the rule. It is -1 if there is no limit.
func bound(re *syntax.Regexp, group int) int {
	n := reach(re, group)
	if n < 0 {
		return -1
	}
	return n + utf8.UTFMax
}

// reach returns the most bytes between the start of the group in re and the end
// of re. group is in re.
func reach(re *syntax.Regexp, group int) int {
	switch {
	case re.Op == syntax.OpCapture && re.Cap == group:
		return size(re.Sub[0])
	case re.Op == syntax.OpConcat:
		n := 0
		for i := len(re.Sub) - 1; i >= 0; i-- {
			if _, hi := visits(re.Sub[i], group); hi > 0 {
				return plus(n, reach(re.Sub[i], group))
			}
			n = plus(n, size(re.Sub[i]))
		}
		return n
	}
	most := 0
	for _, sub := range re.Sub {
		n := reach(sub, group)
		if n < 0 {
			return -1
		}
		most = max(most, n)
	}
	return most
}

// size returns the most bytes that the expression matches, -1 if there is no
// limit.
func size(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		n := 0
		for _, r := range re.Rune {
			n += utf8.RuneLen(r)
			if re.Flags&syntax.FoldCase != 0 {
				n += utf8.UTFMax - utf8.RuneLen(r)
			}
		}
		return n
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return 0
		}
		return utf8.RuneLen(re.Rune[len(re.Rune)-1])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpCapture:
		return size(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n = plus(n, size(sub))
		}
		return n
	case syntax.OpAlternate:
		most := 0
		for _, sub := range re.Sub {
			n := size(sub)
			if n < 0 {
				return -1
			}
			most = max(most, n)
		}
		return most
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		n := size(re.Sub[0])
		_, most := times(re)
		if n == 0 {
			return 0
		}
		if n < 0 || most < 0 {
			return -1
		}
		return n * most
	}
	return 0
}

// plus adds sizes, of which -1 is without limit.
func plus(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}
