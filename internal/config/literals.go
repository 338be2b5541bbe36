package config

import (
	"path/filepath"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/internal/secret"
)

// literals reads where the values are that a guard looks for. What stands there
// instead may be such a value, so it is not shown.
func (d decoder) literals(n node, what string) names {
	all := names{span: n.Span}
	if !d.is(n, list, what) {
		return all
	}
	for _, item := range n.Items {
		if item.Kind == broken {
			continue
		}
		where := sourceText(item)
		if _, err := secret.Parse(where); err != nil {
			refused := d.Diagnostic(item.Span, "write env:NAME or file:PATH, and replace the value if this was one",
				"a value is not written into the configuration")
			refused.Source = ""
			d.List = append(d.List, refused)
			continue
		}
		all.value, all.set = append(all.value, at[string]{where, item.Span, true}), true
	}
	if len(n.Items) == 0 {
		d.Errorf(n.Span, "", "%s is an empty list", what)
	}
	return all
}

// sourceText is what a node says of where a value is. The parser takes env:NAME in
// a list for a mapping, which it is not by YAML's rules.
func sourceText(n node) string {
	switch {
	case n.Kind == text:
		return n.Text
	case n.Kind == mapping && len(n.Members) == 1 && n.Members[0].Value.Kind == text:
		return n.Members[0].Key + ":" + n.Members[0].Value.Text
	}
	return ""
}

// literals completes a guard of values.
func (s *resolver) literals(g *Guard, d guardDecl) {
	if d.rules.written() {
		s.Errorf(d.literals.span, "make two guards of it", "guard %q has rules and literals", g.Name)
	}
	if g.Labels {
		s.Errorf(d.verdict.span, "", "what a guard of literals finds is not let be: verdict cannot be \"allow\"")
	}
	if g.Verdict == guard.Allow {
		g.Verdict = guard.Redact
	}
	for _, l := range d.literals.value {
		if k, ok := s.reference(l); ok {
			g.Literals = append(g.Literals, k)
		}
	}
	if _, ok := Builtin().Guard(g.Name); ok {
		s.warnf(d.literals.span, "give it another name", "guard %q has no rules, and the built-in guard of that name has", g.Name)
	}
}

// literalName is what findings call a value: where it is from, without the way
// there.
func literalName(k Key) string {
	if k.File != "" {
		return "file:" + filepath.Base(k.File)
	}
	return k.String()
}

// ruleHold reports the guards that hold more for a rule than a profile accepts.
func (s *resolver) ruleHold(p Profile, d profileDecl) {
	if p.MaxRuleHoldBytes == 0 {
		return
	}
	at := d.name.span
	if d.maxRuleHold.set {
		at = d.maxRuleHold.span
	}
	done := map[string]bool{}
	for _, use := range slices.Concat(p.Input, p.Output) {
		g, ok := named(s.guards, use.Guard, guardName)
		if !ok || use.Mode != guard.Enforce || done[g.Name] {
			continue
		}
		done[g.Name] = true
		if rule, n := s.held(g); n > p.MaxRuleHoldBytes {
			s.Errorf(at, "leave the rule out of the guard, or accept what it holds",
				"profile %q accepts that %d bytes wait for a rule, and %s of guard %q can have %d wait", p.Name, p.MaxRuleHoldBytes, rule, g.Name, n)
		}
	}
}

// held is the rule of a guard that holds the most, and how many bytes.
func (s *resolver) held(g Guard) (rule string, bytes int) {
	if len(g.Literals) > 0 {
		return "a literal", match.NewLiterals(match.LiteralOptions{}).Bound()
	}
	if g.IsDisclosure() {
		return "the prompt", disclosure.HoldLimit
	}
	own := Config{Packs: s.own}
	selected, err := own.Select(g.Rules...)
	if err != nil {
		return "", 0 // an unknown rule, reported elsewhere
	}
	engine, err := match.Compile(selected, match.Options{Name: g.Name})
	if err != nil {
		s.Errorf(s.doc.root, "", "%v", err)
		return "", 0
	}
	for _, r := range engine.Certificate().Rules {
		if r.Hold > bytes {
			rule, bytes = "rule "+r.Rule, r.Hold
		}
	}
	return rule, bytes
}
