package match

import (
	"fmt"
	"io"
	"regexp/syntax"
	"strings"
	"unsafe"
)

// Certificate states what a set of rules can cost a stream.
type Certificate struct {
	// Hold is the most bytes that are held for any rule.
	Hold int
	// HoldLimit and SwallowLimit are those of the engine.
	HoldLimit, SwallowLimit int
	// Evasions are what the engine reads through. Where a text has some, Hold is
	// of its projection; each of those bytes may stand for MostHidden+3 of the
	// text.
	Evasions Evasion
	// Rules are in the order of the engine.
	Rules []RuleCertificate
	// Tables is what the engine's tables take at start, in bytes, and States
	// how many states they have. They grow as text is read, to StatesMost bytes
	// for each rule at most.
	Tables, States, StatesMost int
}

// RuleCertificate states what one rule can cost.
type RuleCertificate struct {
	Rule string
	// Hold is the most bytes that are held for the rule.
	Hold int
	// Cut is set where its matches can be longer than the hold limit, Grows is
	// the part of the pattern because of which they can, and Policy says what
	// happens to what is masked for the swallow limit.
	Cut    bool
	Grows  string
	Policy Policy
	// Literals are strings, in lower case, of which each match contains one;
	// empty where it need not.
	Literals []string
	// Instructions is the size of the rule's program, Classes how many classes
	// of runes it tells apart.
	Instructions, Classes int
}

// Certificate states what the engine's rules can cost a stream.
func (e *Engine) Certificate() Certificate {
	c := Certificate{HoldLimit: int(e.limits.hold), SwallowLimit: int(e.limits.swallow), StatesMost: stateBudget}
	if e.disguise != nil {
		c.Evasions = e.disguise.evasions
	}
	c.Tables = int(unsafe.Sizeof(*e.classes)) + len(e.classes.class)*int(unsafe.Sizeof(e.classes.class[0]))
	for _, f := range e.fronts {
		t := f.table.Load()
		c.States += t.nstates
		c.Tables += len(t.cells) * 4
	}
	for _, r := range e.rules {
		hold, cut := e.limits.of(r)
		rc := RuleCertificate{
			Rule: r.id, Hold: hold, Cut: cut, Policy: r.policy, Literals: literals(r.prog.tree),
			Instructions: len(r.prog.inst), Classes: len(r.samples) - 1,
		}
		if cut {
			rc.Grows = grows(r.prog.tree, r.prog.group)
		}
		c.Rules = append(c.Rules, rc)
		c.Hold = max(c.Hold, hold)
		r.mu.Lock()
		t := r.table.Load()
		c.States += t.nstates
		c.Tables += len(t.cells)*4 + len(r.shared)*2 + int(unsafe.Sizeof(*r))
		r.mu.Unlock()
	}
	return c
}

// CutRules are the rules whose matches can be longer than the hold limit.
func (c Certificate) CutRules() (ids []string) {
	for _, r := range c.Rules {
		if r.Cut {
			ids = append(ids, r.Rule)
		}
	}
	return ids
}

// NoLiteral are the rules of which a match need not contain any literal. Text
// that comes near to one of them is not known by a word.
func (c Certificate) NoLiteral() (ids []string) {
	for _, r := range c.Rules {
		if len(r.Literals) == 0 {
			ids = append(ids, r.Rule)
		}
	}
	return ids
}

// Holds says in words what a rule holds.
func (r RuleCertificate) Holds(c Certificate) string {
	if !r.Cut {
		return fmt.Sprintf("at most %d bytes", r.Hold)
	}
	return fmt.Sprintf("unbounded because of %s, cut at %d bytes, at %d %s", r.Grows, c.HoldLimit, c.SwallowLimit, r.Policy)
}

// Write says in words what holds for the set.
func (c Certificate) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%d rules hold at most %d bytes.
%d can match more and are masked from there on, for %d bytes at most: %s.
%d have no literal: %s.
Read through: %s.
Tables: %d KB and %d states at start; at most %d KB of states a rule.
`, len(c.Rules), c.Hold, len(c.CutRules()), c.SwallowLimit, list(c.CutRules()), len(c.NoLiteral()), list(c.NoLiteral()),
		c.Evasions, c.Tables>>10, c.States, c.StatesMost>>10)
	return err
}

func list(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

// grows is the part of the expression, from the start of the group on, that is
// the longest, or has no end.
func grows(re *syntax.Regexp, group int) string {
	best, most := "", 0
	var visit func(re *syntax.Regexp, inside bool) bool
	// visit says whether what follows re is behind the group's start.
	visit = func(re *syntax.Regexp, inside bool) bool {
		if re.Op == syntax.OpCapture && re.Cap == group {
			inside = true
		}
		switch re.Op {
		case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat, syntax.OpLiteral:
			if n := size(re); inside && most >= 0 && (n < 0 || n > most) {
				best, most = re.String(), n
			}
			return inside
		}
		for _, sub := range re.Sub {
			inside = visit(sub, inside)
		}
		return inside
	}
	visit(re, false)
	return best
}
