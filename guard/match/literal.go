package match

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// leastLiteral is the length in runes from which on a literal says something.
const leastLiteral = 3

// mostLiterals is how many alternatives a rule's literals may be.
const mostLiterals = 64

// literals returns strings of which each match of the expression contains one,
// in lower case, the longest that there are; none if a match need not contain
// any string of leastLiteral runes.
func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if len(re.Rune) >= leastLiteral {
			return []string{strings.ToLower(string(re.Rune))}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if l := literals(sub); shortest(l) > shortest(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			l := literals(sub)
			if len(l) == 0 {
				return nil
			}
			all = append(all, l...)
		}
		slices.Sort(all)
		if all = slices.Compact(all); len(all) <= mostLiterals {
			return all
		}
	}
	return nil
}

func shortest(all []string) int {
	least := 0
	for i, s := range all {
		if i == 0 || len(s) < least {
			least = len(s)
		}
	}
	return least
}
