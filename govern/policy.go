package govern

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/policy"
	"github.com/stoplog/stoplog/internal/tool"
	"github.com/stoplog/stoplog/internal/wire"
)

// CallRule says what becomes of the calls of a tool. The first of its clauses that
// holds decides; a call of which none holds is denied.
type CallRule struct {
	// Tool is a name, in which a `*` stands for any characters. The rule for a call
	// is the one that names its tool, or else the longest pattern that fits.
	Tool    string
	Clauses []CallClause
}

// CallClause is a ruling and, in CEL over `tool` and `args`, when it holds; empty
// is always. A condition that cannot be evaluated denies.
type CallClause struct {
	Rule ToolRule
	When string
}

// Zones in which upstreams are, from the nearest.
const (
	ZoneLocal    = "local"    // on this machine
	ZonePrivate  = "private"  // in the owner's network
	ZoneExternal = "external" // somebody else's
)

// compileCalls compiles rules.
func compileCalls(rules []CallRule) (*policy.Calls, error) {
	var all []policy.Rule
	for _, r := range rules {
		made := policy.Rule{Tool: r.Tool}
		for _, c := range r.Clauses {
			ruling, err := policy.ParseRuling(string(c.Rule))
			if err != nil {
				return nil, fmt.Errorf("tool %q: %w", r.Tool, err)
			}
			made.Clauses = append(made.Clauses, policy.Clause{Ruling: ruling, When: c.When})
		}
		all = append(all, made)
	}
	calls, err := policy.Compile(all)
	var wrong *policy.ClauseError
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("tool %q: %w", rules[wrong.Rule].Tool, err)
	}
	return calls, err
}

// rulings are the tool rules as package wire asks them.
type rulings struct{ *policy.Calls }

// Judge implements [wire.Calls].
func (r rulings) Judge(tool string, args []byte) guard.Verdict {
	switch r.Calls.Judge(tool, args) {
	case policy.Allow:
		return guard.Allow
	case policy.RequireApproval:
		return guard.RequireApproval
	}
	return guard.Deny
}

// calls are the rules for the tool calls of an answer.
func (p *profile) calls() wire.Calls {
	if len(p.Calls) == 0 {
		return nil
	}
	return rulings{p.answers}
}

// ruling is what a condition of the profile says of a session's call, if it has
// one for the tool.
func (p *profile) ruling(tool string, args json.RawMessage) (ToolRule, bool) {
	if !p.session.Has(tool) {
		return "", false
	}
	return ToolRule(p.session.Judge(tool, args).String()), true
}

// egress is what a profile's requests are, and where they may go.
type egress struct {
	class    DataClass
	ceilings policy.Ceilings
	zones    map[string][]policy.Zone // by protocol: of the upstreams that a request could reach
}

// openEgress makes it of what the profile says.
func openEgress(p *profile) (egress, error) {
	e := egress{class: p.DataClass, ceilings: policy.DefaultCeilings(), zones: map[string][]policy.Zone{}}
	if e.class == 0 {
		e.class = tool.Internal
	}
	for name, class := range p.Ceilings {
		zone, err := policy.ParseZone(name)
		if err != nil {
			return e, err
		}
		if class == 0 || class > e.ceilings[zone] {
			return e, fmt.Errorf("the ceiling of %s is %s, and a profile may only lower it", zone, e.ceilings[zone])
		}
		e.ceilings[zone] = class
	}
	for protocol, ups := range p.upstreams {
		for _, u := range ups {
			e.zones[protocol] = append(e.zones[protocol], u.zone)
		}
	}
	return e, nil
}

// admits reports whether data of a class may be sent in a protocol: to whichever
// of its upstreams answers in the end.
func (e egress) admits(class DataClass, protocol string) bool {
	return e.ceilings.Admits(class, e.zones[protocol]...)
}

// class is a request's class, and what it would be if what only watches had a say.
// A finding that was redacted, and one that somebody allowed as a false alarm, is
// not in the request or not what it was taken for.
func (c *call) class() (class, would DataClass) {
	class = c.profile.egress.class
	would = class
	for _, d := range c.asked.Decisions {
		if c.profile.ClassOf == nil || d.Allowed != nil {
			continue
		}
		switch of := c.profile.ClassOf(d.Guard, d.Rule); {
		case d.Mode == guard.Enforce && d.Verdict == guard.Allow:
			class = max(class, of)
			would = max(would, of)
		case d.Mode != guard.Enforce:
			would = max(would, of)
		}
	}
	return class, would
}

// RuleDataClass is the rule of a request that may not go where it was to go.
const RuleDataClass = "data_class"

// judgeClass says whether a request may go to the upstreams that it could reach,
// with the verdicts to record of that.
func (c *call) judgeClass() (allowed bool, facts []Fact) {
	class, would := c.class()
	v := Verdict{Channel: "request", Guard: wire.GuardPolicy, Rule: RuleDataClass, Verdict: guard.Deny, Severity: guard.High}
	switch {
	case !c.profile.egress.admits(class, c.route.protocol):
		v.Mode = guard.Enforce
		return false, []Fact{v}
	case !c.profile.egress.admits(would, c.route.protocol):
		v.Mode = guard.Shadow
		return true, []Fact{v}
	}
	return true, nil
}

// tooConfidential is why a request may not be sent, for its sender.
func (c *call) tooConfidential() string {
	class, _ := c.class()
	zone := policy.Worst(c.profile.egress.zones[c.route.protocol]...)
	return fmt.Sprintf("the request is %s, and the profile's upstreams are %s, which may see %s at most", class, zone, c.profile.egress.ceilings[zone])
}
