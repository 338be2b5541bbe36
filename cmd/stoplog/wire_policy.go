package main

import (
	"runtime"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/config"
)

// toolClauses are a profile's rules with conditions for the tools of its own loop.
func toolClauses(p config.Profile) []govern.CallRule {
	var all []govern.CallRule
	for _, t := range p.Tools {
		if t.Rule() == "" && (t.Name != "run_command" || runtime.GOOS == "linux") {
			all = append(all, callRule(t.Name, t.Clauses))
		}
	}
	return all
}

// callRules are a profile's rules for the tool calls in answers.
func callRules(p config.Profile) []govern.CallRule {
	var all []govern.CallRule
	for _, r := range p.Calls {
		all = append(all, callRule(r.Tool, r.Clauses))
	}
	return all
}

func callRule(tool string, clauses []config.Clause) govern.CallRule {
	r := govern.CallRule{Tool: tool}
	for _, c := range clauses {
		r.Clauses = append(r.Clauses, govern.CallClause{Rule: govern.ToolRule(c.Rule), When: c.When})
	}
	return r
}

// classOf reads a class that was checked; none is 0.
func classOf(name string) govern.DataClass {
	class, _ := config.ParseClass(name)
	if name == "" {
		return 0
	}
	return class
}

func ceilings(p config.Profile) map[string]govern.DataClass {
	all := map[string]govern.DataClass{}
	for _, c := range p.Ceilings {
		all[c.Zone] = classOf(c.Class)
	}
	return all
}

// packClasses are the classes of what the packs find.
var packClasses = map[string]string{"secrets": "secret", "credentials": "secret", "pii": "personal"}

// findingClasses says of what class a finding is: as its guard says, or else the
// pack of its rule. Literals are secrets.
func findingClasses(conf *config.Config) func(guard, rule string) govern.DataClass {
	byRule := map[string]govern.DataClass{}
	for pack, class := range packClasses {
		found, _ := rules.Pack(pack)
		for _, r := range found {
			byRule[r.ID] = classOf(class)
		}
	}
	byGuard := map[string]govern.DataClass{}
	for _, g := range conf.Guards {
		if class := classOf(g.Class); class != 0 {
			byGuard[g.Name] = class
		} else if len(g.Literals) > 0 {
			byGuard[g.Name] = classOf("secret")
		}
	}
	return func(guard, rule string) govern.DataClass {
		if class, ok := byGuard[guard]; ok {
			return class
		}
		return byRule[rule]
	}
}
