package config

import (
	"slices"

	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/guard/rules"
)

// Disclosure names what finds a request's system prompt in its answer. A guard has
// it in the place of rules, and has nothing else: it is no pattern.
const Disclosure = "disclosure"

// disclosureRules are the ids that its findings have.
var disclosureRules = []string{disclosure.RuleOverlap, disclosure.RuleCanary}

// IsDisclosure says whether the guard looks for the system prompt.
func (g Guard) IsDisclosure() bool { return slices.Contains(g.Rules, Disclosure) }

// IsInjection says whether the guard's rules are those of the pack injection: it
// judges what a model reads of others, tool results and documents.
func (g Guard) IsInjection() bool {
	return len(g.Rules) > 0 && !slices.ContainsFunc(g.Rules, func(name string) bool { return !ofInjection(name) })
}

// ofInjection says whether a name is that of the pack injection, or of one of its
// rules.
func ofInjection(name string) bool {
	pack, _ := rules.Pack(rules.Injection)
	for _, r := range pack {
		if r.ID == name {
			return true
		}
	}
	return name == rules.Injection
}

// alone reports what stands beside others in a guard and judges other texts than
// they do.
func (s *resolver) alone(d guardDecl, g Guard) {
	if len(g.Rules) < 2 {
		return
	}
	for _, rule := range d.rules.value {
		switch {
		case rule.value == Disclosure:
			s.Errorf(rule.span, "make a guard of its own for it", "disclosure stands beside other rules in guard %q, and is none: it looks for the system prompt", g.Name)
		case ofInjection(rule.value) && !g.IsInjection():
			s.Errorf(rule.span, "make a guard of its own for it", "%q stands beside other rules in guard %q, and judges tool results and documents alone", rule.value, g.Name)
		}
	}
}
