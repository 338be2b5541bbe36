// Package rules has the rules that come with the product, in packs.
//
// A rule is a pattern, the part of its match that is the finding, validators
// for what a pattern can't say, and examples: texts in which it must find
// something and texts in which it must not. Every rule's examples run in the
// package's tests, as do all rules against Go's regexp.
//
// # Writing a rule
//
// The patterns are made for text that streams:
//
//   - A match should be decided early: what may follow it is bounded. The token
//     itself is not, so that no tail of a long one is left: past the hold limit
//     the engine masks it to its end (see package match).
//   - Only the group is held and replaced. A keyword before it is context: it is
//     read and let go.
//   - A match must not end by taking a rune behind it that the next match needs
//     in front: \b needs none.
//   - A rejected match consumes its text. So a pattern does not take in what can
//     be the beginning of a better match, and what would make a match a false one
//     (one more group of digits) is matched with it, to be rejected.
//
// Ids are those of gitleaks v8 where it has the rule. The pack secrets has our own
// rules and, behind them, all others of gitleaks (package gitleaks). Secrets in examples are made up, and written in parts so that scanners of
// source code leave this repository alone.
package rules

//go:generate go test -run ^TestRulesPage$ . -update

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/guard/match"
)

// pack is a named list of rules.
type pack struct {
	name  string
	rules func() []match.Rule
}

var packs = []pack{
	{"secrets", secrets},
	{"credentials", credentials},
	{"pii", pii},
	{Injection, injection},
}

// Injection is the pack of phrases that address a model. It is for what a model
// reads of others: tool results and documents. Its rules ask for nothing.
const Injection = "injection"

// Names returns the names of all packs.
func Names() []string {
	var names []string
	for _, p := range packs {
		names = append(names, p.name)
	}
	return names
}

// Default returns the names of the packs that are good for any text.
func Default() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == Injection })
}

// Pack returns the rules of a pack. They are the caller's.
func Pack(name string) ([]match.Rule, bool) {
	for _, p := range packs {
		if p.name == name {
			return p.rules(), true
		}
	}
	return nil, false
}

// A Library is the packs that somebody has beside those of the product.
type Library []Own

// Own is a pack of somebody's own.
type Own struct {
	Name  string
	Rules []match.Rule
}

// Names returns the names of all packs, those of the product first.
func (l Library) Names() []string {
	names := Names()
	for _, own := range l {
		names = append(names, own.Name)
	}
	return names
}

// Check reports two packs, or two rules of different packs, that have one name.
func (l Library) Check() error {
	taken := map[string]string{}
	for _, p := range l.all() {
		if other, ok := taken[p.name]; ok {
			return fmt.Errorf("pack %q has the name of %s", p.name, other)
		}
		taken[p.name] = "another pack"
		for _, r := range p.rules() {
			if other, ok := taken[r.ID]; ok {
				return fmt.Errorf("rule %q of pack %q has the name of %s", r.ID, p.name, other)
			}
			taken[r.ID] = fmt.Sprintf("one of pack %q", p.name)
		}
	}
	return nil
}

// all returns the packs, those of the product behind.
func (l Library) all() []pack {
	var all []pack
	for _, own := range l {
		all = append(all, pack{own.Name, func() []match.Rule { return own.Rules }})
	}
	return append(all, packs...)
}

// Select is [Library.Select] among the packs of the product.
func Select(names ...string) ([]match.Rule, error) { return Library{}.Select(names...) }

// Select returns the rules that the names stand for, each the name of a pack or
// the id of a rule, in the order of the names, those of gitleaks behind the
// others: of two that find the same, ours gives it its name. A rule that is named
// twice comes once.
func (l Library) Select(names ...string) ([]match.Rule, error) {
	all := l.all()
	var out []match.Rule
	add := func(r match.Rule) {
		if !slices.ContainsFunc(out, func(o match.Rule) bool { return o.ID == r.ID }) {
			out = append(out, r)
		}
	}
	for _, name := range names {
		found := false
		for _, p := range all {
			for _, r := range p.rules() {
				if p.name == name || r.ID == name {
					found = true
					add(r)
				}
			}
		}
		if !found {
			return nil, l.unknown(name)
		}
	}
	slices.SortStableFunc(out, func(a, b match.Rule) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

// rank is 0 for our own rules and 1 for others.
func rank(r match.Rule) int {
	if imported()[r.ID] {
		return 1
	}
	return 0
}

// unknown is the error for a name that is neither a pack's nor a rule's.
func (l Library) unknown(name string) error {
	near, least := "", len(name)/2+1
	consider := func(known string) {
		if d := distance(name, known); d < least {
			near, least = known, d
		}
	}
	for _, p := range l.all() {
		consider(p.name)
		for _, r := range p.rules() {
			consider(r.ID)
		}
	}
	if near == "" {
		return fmt.Errorf("unknown rule or pack %q: packs are %q", name, l.Names())
	}
	return fmt.Errorf("unknown rule or pack %q: did you mean %q?", name, near)
}

// distance is the least number of bytes to add, drop or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
