package config

import (
	"fmt"
	"slices"
	"sync"

	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/diag"
)

// ruleIDs names the rules of all packs that are built in.
var ruleIDs = sync.OnceValue(func() []string {
	var ids []string
	for _, name := range rules.Names() {
		pack, _ := rules.Pack(name)
		for _, rule := range pack {
			ids = append(ids, rule.ID)
		}
	}
	return ids
})

// isBuiltinRule says whether name is a pack or a rule that is built in.
func isBuiltinRule(name string) bool {
	return name == Disclosure || slices.Contains(disclosureRules, name) ||
		slices.Contains(rules.Names(), name) || slices.Contains(ruleIDs(), name)
}

// Select returns the rules that a guard's names stand for: of the packs that are
// built in, and of the configuration's own.
func (c *Config) Select(names ...string) ([]match.Rule, error) { return c.library().Select(names...) }

// RuleIDs are the ids of all rules that there are.
func (c *Config) RuleIDs() []string {
	ids := slices.Concat(ruleIDs(), disclosureRules)
	for _, p := range c.Packs {
		for _, r := range p.Rules {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (c *Config) library() rules.Library {
	var l rules.Library
	for _, p := range c.Packs {
		l = append(l, p.Own)
	}
	return l
}

// packs reads the rule files of the configuration. What is wrong in one of them
// is reported with its place there.
func (s *resolver) packs(globs names) (all []Pack) {
	files := map[string]string{} // the pack of each name, by its file
	for _, glob := range globs.value {
		for _, file := range s.glob(glob) {
			if slices.ContainsFunc(all, func(p Pack) bool { return p.File == file }) {
				continue
			}
			p, err := LoadRules(file)
			if list, ok := asList(err); ok {
				s.List = append(s.List, list...)
				continue
			} else if err != nil {
				s.Errorf(glob.span, "", "%v", err)
				continue
			}
			if other, ok := files[p.Name]; ok {
				s.Errorf(glob.span, "rename one of them", "two files are the pack %q: %s and %s", p.Name, other, file)
				continue
			}
			files[p.Name] = file
			s.apart(all, p)
			all = append(all, p)
		}
	}
	return all
}

// apart reports what another pack has under the same name.
func (s *resolver) apart(others []Pack, p Pack) {
	for _, r := range p.Rules {
		at := p.places[r.ID]
		for _, other := range others {
			message := ""
			if first, ok := other.places[r.ID]; ok {
				message = fmt.Sprintf("two rules have the id %q, the first at %s", r.ID, first.Pos)
			} else if r.ID == other.Name {
				message = fmt.Sprintf("%q is a pack: %s", r.ID, other.File)
			} else {
				continue
			}
			// The lines that this reader has are another file's.
			s.List = append(s.List, diag.Diagnostic{Span: at, Message: message, Hint: "choose another id"})
		}
	}
}

// known are the names that a guard may give for its rules: packs, and single
// rules.
func (s *resolver) known() (packs, ids []string) {
	packs, ids = append(rules.Names(), Disclosure), slices.Clone(ruleIDs())
	for _, p := range s.own {
		packs = append(packs, p.Name)
		for _, r := range p.Rules {
			ids = append(ids, r.ID)
		}
	}
	return packs, ids
}
