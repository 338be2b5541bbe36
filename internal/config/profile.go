package config

import (
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// guard checks a guard's rules. One that replaces a built-in guard and judges by
// less is told on: its name promises more.
func (s *resolver) guard(d guardDecl) Guard {
	g := Guard{Name: d.name.value}
	packs, ids := s.known()
	if d.verdict.set {
		g.Verdict, _ = guard.ParseVerdict(d.verdict.value) // one of the words that were read
		g.Labels = g.Verdict == guard.Allow
	}
	g.Class = d.class.value
	switch {
	case d.judge != nil:
		s.judge(&g, d)
		return g
	case d.literals.written():
		s.literals(&g, d)
		return g
	case !d.rules.written() && !d.flawed:
		s.Errorf(d.name.span, "write rules: [PACK, …], of "+strings.Join(packs, ", "), "guard %q has no rules", g.Name)
	}
	for _, rule := range d.rules.value {
		if !slices.Contains(packs, rule.value) && !slices.Contains(ids, rule.value) {
			s.noSuch("rule or pack", rule, packs, ids...)
		}
		g.Rules = append(g.Rules, rule.value)
	}
	s.alone(d, g)
	if b, ok := Builtin().Guard(g.Name); ok && d.rules.set {
		for _, rule := range b.Rules {
			if !slices.Contains(g.Rules, rule) {
				s.warnf(d.rules.span, "", "guard %q leaves out %q, which the built-in guard of that name has", g.Name, rule)
			}
		}
	}
	return g
}

// declared gives the declaration of a profile.
func (s *resolver) declared(name string) (profileDecl, bool) {
	return named(s.doc.profiles, name, func(p profileDecl) string { return p.name.value })
}

// profile gives a declared profile with what it extends applied. The chain has
// the names of those that are being resolved because they extend it.
func (s *resolver) profile(d profileDecl, chain []string) Profile {
	if p, ok := s.profiles[d.name.value]; ok {
		return p
	}
	p := s.base(d, append(chain, d.name.value))
	p.Name = d.name.value
	if d.upstreams.set {
		p.Upstreams = s.upstreamNames(d.upstreams)
	}
	if d.model.set {
		if strings.ContainsAny(d.model.value, notInModels+"*") {
			s.Errorf(d.model.span, "patterns belong in models", "%q is not the name of a model", d.model.value)
		}
		p.Model, p.Models = d.model.value, []string{d.model.value}
	}
	if d.models.set {
		p.Models = s.models(d.models)
	}
	p.Input = s.uses(p, "input", p.Input, d.input)
	p.Output = s.uses(p, "output", p.Output, d.output)
	p.Media = d.media.over(p.Media)
	if d.maxHold.set {
		p.MaxHoldBytes = int(d.maxHold.value)
	}
	if d.maxRuleHold.set {
		p.MaxRuleHoldBytes = int(d.maxRuleHold.value)
	}
	s.ruleHold(p, d)
	if d.capture.set {
		p.Capture = d.capture.value
	}
	s.profileBudget(&p, d)
	if d.dataClass.set {
		p.DataClass = d.dataClass.value
	}
	p.Ceilings = s.ceilings(p.Ceilings, d.ceilings)
	p.Calls = s.callRules(p.Calls, d.calls)
	p.Loop = s.loop(p.Name, p.Loop, d.loop)
	s.profiles[p.Name] = p
	return p
}

// base gives the profile that d extends.
func (s *resolver) base(d profileDecl, chain []string) Profile {
	builtin := Builtin().Profiles[0]
	name := d.extends.value
	if d.name.value == builtinProfile {
		s.Errorf(d.name.span, "choose another name", "profile %q is built in; others extend it", builtinProfile)
		return builtin
	}
	if !d.extends.set || name == builtinProfile {
		return builtin
	}
	if i := slices.Index(chain, name); i >= 0 {
		circle := strings.Join(append(slices.Clone(chain[i:]), name), ", ")
		s.Errorf(d.extends.span, "extend builtin", "profile %q extends itself: %s", name, circle)
		return builtin
	}
	if parent, ok := s.declared(name); ok {
		return s.profile(parent, chain)
	}
	if name != defaultProfile {
		known := []string{builtinProfile}
		for _, p := range s.doc.profiles {
			known = append(known, p.name.value)
		}
		s.noSuch("profile", d.extends, known)
	}
	return builtin
}

func (s *resolver) upstreamNames(names names) []string {
	var out []string
	for _, name := range names.value {
		if _, ok := named(s.upstreams, name.value, upstreamName); !ok {
			var known []string
			for _, u := range s.upstreams {
				known = append(known, u.Name)
			}
			s.noSuch("upstream", name, known)
		}
		out = append(out, name.value)
	}
	return out
}

// notInModels is what no provider has in a model's name, and what people who
// think of other patterns write.
const notInModels = " ?[]"

func (s *resolver) models(patterns names) []string {
	var out []string
	for _, p := range patterns.value {
		if strings.ContainsAny(p.value, notInModels) {
			s.Errorf(p.span, "a `*` stands for any run of characters, and nothing else is special", "%q is not a pattern of model names", p.value)
		}
		out = append(out, p.value)
	}
	return out
}

// uses applies what a profile says of one side to what it extends.
func (s *resolver) uses(p Profile, side string, base []Use, decls []useDecl) []Use {
	modes, undone := map[string]guard.Mode{}, map[string]bool{}
	for _, use := range base {
		modes[use.Guard], undone[use.Guard] = use.Mode, use.Reversible
	}
	for _, d := range decls {
		name := d.guard.value
		if _, ok := named(s.guards, name, guardName); !ok {
			s.noSuch("guard", d.guard, s.guardNames())
			continue
		}
		before, on := modes[name]
		mode, err := guard.ParseMode(d.mode.value)
		if d.mode.value == reversible {
			mode, err = guard.Enforce, nil
		}
		if g, _ := named(s.guards, name, guardName); d.mode.value == reversible && g.Verdict > guard.Redact {
			s.Errorf(d.mode.span, "only what is redacted can come back: write enforce", "guard %q is reversible, and its verdict is %s", name, g.Verdict)
		}
		if d.mode.set {
			undone[name] = d.mode.value == reversible
		}
		switch {
		case !d.mode.set:
		case err != nil: // the one word that is no mode: off
			delete(modes, name)
			if on {
				s.warnf(d.guard.span, "", "profile %q switches %s guard %q off", p.Name, side, name)
			}
		default:
			modes[name] = mode
			if on && before == guard.Enforce && mode != guard.Enforce {
				s.warnf(d.guard.span, "", "profile %q lets %s guard %q only watch: %s", p.Name, side, name, mode)
			}
		}
	}
	var uses []Use
	for _, g := range s.guards {
		if mode, ok := modes[g.Name]; ok {
			// A guard of another verdict than the one that was inherited undoes nothing.
			uses = append(uses, Use{g.Name, mode, undone[g.Name] && g.Verdict <= guard.Redact})
		}
	}
	return uses
}

func (s *resolver) guardNames() []string {
	var all []string
	for _, g := range s.guards {
		all = append(all, g.Name)
	}
	return all
}
