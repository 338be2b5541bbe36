package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/internal/policy"
	"github.com/stoplog/stoplog/internal/tool"
)

// CallRule says what becomes of the calls of tools whose name fits, in the answers
// that a model gives under a profile: those of the caller's own tools too.
type CallRule struct {
	Tool    string // a name; a `*` stands for any characters
	Clauses []Clause
}

// Clause is a ruling and when it holds: a CEL expression over `tool` and `args`;
// empty: always. The first of a tool's clauses that holds decides, and a call of
// which none holds is denied.
type Clause struct {
	Rule string // Allow, RequireApproval or Deny
	When string
}

// Ceiling is the highest class of data that a zone may see.
type Ceiling struct{ Zone, Class string }

type (
	callDecl struct {
		tool    at[string]
		clauses []clauseDecl
	}
	clauseDecl  struct{ rule, when at[string] }
	ceilingDecl struct{ zone, class at[string] }
)

// calls reads rules for tools, each a word or a list of clauses.
func (d decoder) calls(m member) []callDecl {
	if !d.is(m.Value, mapping, m.Key) {
		return nil
	}
	var all []callDecl
	for _, t := range d.unique(m.Value.Members) {
		all = append(all, callDecl{at[string]{t.Key, t.Span, true}, d.clauses(t)})
	}
	return all
}

const clauseForm = "write a list such as [deny: 'args.path.startsWith(\"/etc\")', allow]"

// clauses reads one word, or a list of words and of {WORD: EXPRESSION}.
func (d decoder) clauses(m member) []clauseDecl {
	what := "the rule of tool " + strconv.Quote(m.Key)
	if m.Value.Kind != list {
		return []clauseDecl{{rule: d.oneOf(m.Value, what, Allow, RequireApproval, Deny)}}
	}
	if len(m.Value.Items) == 0 {
		d.Errorf(m.Value.Span, clauseForm, "%s is an empty list", what)
	}
	var all []clauseDecl
	for i, item := range m.Value.Items {
		if item.Kind != mapping {
			all = append(all, clauseDecl{rule: d.oneOf(item, "an item of "+what, Allow, RequireApproval, Deny)})
			if i < len(m.Value.Items)-1 {
				d.Errorf(item.Span, "put it last, or give it a condition", "nothing behind this item of %s can decide", what)
			}
			continue
		}
		members := d.unique(item.Members)
		if len(members) != 1 || !slices.Contains([]string{Allow, RequireApproval, Deny}, members[0].Key) {
			d.Errorf(item.Span, clauseForm, "an item of %s is a word and a condition", what)
			continue
		}
		all = append(all, clauseDecl{at[string]{members[0].Key, members[0].Span, true}, d.prose(members[0].Value, "a condition")})
	}
	return all
}

// ceilings reads the highest class of each zone.
func (d decoder) ceilings(n node) []ceilingDecl {
	var all []ceilingDecl
	members, _ := d.members(n, ceilingsShape)
	for _, m := range members {
		all = append(all, ceilingDecl{at[string]{m.Key, m.Span, true}, d.oneOf(m.Value, "the ceiling of "+m.Key, classNames...)})
	}
	return all
}

var classNames = []string{tool.Public.String(), tool.Internal.String(), tool.Personal.String(), tool.Secret.String()}

// ParseClass reads a data class.
func ParseClass(s string) (tool.Class, bool) {
	i := slices.Index(classNames, s)
	return tool.Class(i + 1), i >= 0
}

// callRules checks rules and gives them in the file's order, in place of those of
// the same tools in the base.
func (s *resolver) callRules(base []CallRule, decls []callDecl) []CallRule {
	rules := slices.Clone(base)
	for _, d := range decls {
		r := CallRule{Tool: d.tool.value, Clauses: s.clauses(d)}
		if strings.TrimSpace(r.Tool) != r.Tool || r.Tool == "" {
			s.Errorf(d.tool.span, "a `*` stands for any characters", "%q is not the name of a tool", r.Tool)
		}
		rules = replace(rules, r, func(r CallRule) string { return r.Tool })
	}
	return rules
}

// clauses checks the clauses of one tool.
func (s *resolver) clauses(d callDecl) []Clause {
	var all []Clause
	for _, c := range d.clauses {
		if !c.rule.set || c.when.written() && !c.when.set {
			continue
		}
		_, err := policy.Compile([]policy.Rule{{Tool: d.tool.value, Clauses: []policy.Clause{{When: c.when.value}}}})
		var wrong *policy.ClauseError
		if errors.As(err, &wrong) {
			s.Errorf(c.when.span, "a condition is CEL over `tool` and `args`, such as args.path.startsWith(\"/tmp/\")",
				"the condition is wrong at %d:%d: %s", wrong.Line, wrong.Col, wrong.Message)
		}
		all = append(all, Clause{c.rule.value, c.when.value})
	}
	return all
}

// ceilings checks that a profile lowers what zones may see, and raises nothing.
func (s *resolver) ceilings(base []Ceiling, decls []ceilingDecl) []Ceiling {
	all := slices.Clone(base)
	most := policy.DefaultCeilings()
	for _, d := range decls {
		zone, err := policy.ParseZone(d.zone.value)
		class, ok := ParseClass(d.class.value)
		switch {
		case err != nil || !ok:
			continue // reported
		case class > most[zone]:
			s.Errorf(d.class.span, "", "the ceiling of %s is %s, and a profile may only lower it", zone, most[zone])
		}
		all = replace(all, Ceiling{d.zone.value, d.class.value}, func(c Ceiling) string { return c.Zone })
	}
	return all
}

func builtinCeilings() []Ceiling {
	most := policy.DefaultCeilings()
	var all []Ceiling
	for _, z := range []policy.Zone{policy.Local, policy.Private, policy.External} {
		all = append(all, Ceiling{z.String(), most[z].String()})
	}
	return all
}

// printedClauses gives clauses in the shape of the file.
func printedClauses(clauses []Clause) any {
	if len(clauses) == 1 && clauses[0].When == "" {
		return clauses[0].Rule
	}
	var all []any
	for _, c := range clauses {
		if c.When == "" {
			all = append(all, c.Rule)
		} else {
			all = append(all, object{{c.Rule, c.When}})
		}
	}
	return all
}
