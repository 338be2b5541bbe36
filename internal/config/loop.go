package config

import (
	"slices"
	"strings"
	"time"
)

// Loop is what a profile says of the runs of the built-in loop, and of what
// people are asked.
type Loop struct {
	// System is what the model is told before all else, without line ends at its
	// end; may be empty.
	System string
	// Tools has the rule of each tool that there is, in the order of the
	// documentation.
	Tools []ToolRule
	// Signals are those that may stop a run; the others are in shadow. It is never
	// nil: an empty set enforces none.
	Signals   []string
	Limits    Limits
	Approvals Approvals
}

// ToolRule says what becomes of the calls of a tool.
type ToolRule struct {
	Name string
	// Clauses decide, in order; at least one.
	Clauses []Clause
}

// always is a rule without a condition.
func always(name, rule string) ToolRule { return ToolRule{name, []Clause{{Rule: rule}}} }

// Rule is the rule of a tool where it has no condition, and empty where it has.
func (t ToolRule) Rule() string {
	if c := t.Clauses[0]; c.When == "" {
		return c.Rule
	}
	return ""
}

// What a profile may say of a tool, from the loosest to the strictest.
const (
	Allow           = "allow"
	RequireApproval = "require_approval"
	Deny            = "deny"
)

// Limits contain a run that goes nowhere. None of them is 0.
type Limits struct {
	MaxIterations int           // steps for which the model gets tools
	Timeout       time.Duration // for which workers hold the run
	Stall         int           // times over that the same calls give the same results
	Malformed     int           // answers in a row that are of no use
	ToolErrors    int           // calls in a row that fail
}

// Approvals are the questions to people.
type Approvals struct {
	// Expire is how long a question waits; then it is denied.
	Expire time.Duration
	// SecondPerson: who started a run may not decide what it asks.
	SecondPerson bool
}

// signalNames are the signals that there are. This room judges nothing and knows
// them by name alone; a test holds it to those that do.
var signalNames = []string{
	"classification_violation", "cost_budget", "goal_drift", "loop_detect",
	"step_cap", "action_repeat", "tool_failure_streak",
}

// builtinLoop has for tools what they do: what reads may run, what does more is
// asked about. Its limits are those that the loop has by itself, its signals
// those whose condition no limit contains.
func builtinLoop() Loop {
	return Loop{
		Tools:     []ToolRule{always("read_file", Allow), always("list_dir", Allow), always("run_command", RequireApproval)},
		Signals:   []string{"classification_violation", "cost_budget", "goal_drift", "loop_detect"},
		Limits:    Limits{MaxIterations: 20, Timeout: 10 * time.Minute, Stall: 3, Malformed: 3, ToolErrors: 5},
		Approvals: Approvals{Expire: 24 * time.Hour},
	}
}

// loop applies what a profile says of the loop to what it extends.
func (s *resolver) loop(profile string, l Loop, d loopDecl) Loop {
	if d.system.set {
		l.System = d.system.value
	}
	l.Tools = s.tools(profile, l.Tools, d.tools)
	if d.signals.set {
		l.Signals = s.signals(profile, l.Signals, d.signals)
	}
	l.Limits = d.limits.over(l.Limits)
	if d.approvals.expire.set {
		l.Approvals.Expire = d.approvals.expire.value
	}
	if second := d.approvals.secondPerson; second.set {
		if l.Approvals.SecondPerson && !second.value {
			s.warnf(second.span, "", "profile %q lets who started a run decide what it asks", profile)
		}
		l.Approvals.SecondPerson = second.value
	}
	return l
}

// tools gives the rules of the base with those that are declared in their place.
func (s *resolver) tools(profile string, base []ToolRule, decls []callDecl) []ToolRule {
	tools := slices.Clone(base)
	for _, d := range decls {
		i := slices.IndexFunc(tools, func(t ToolRule) bool { return t.Name == d.tool.value })
		if i < 0 {
			var known []string
			for _, t := range tools {
				known = append(known, t.Name)
			}
			s.noSuch("tool", d.tool, known)
			continue
		}
		clauses := s.clauses(d)
		if len(clauses) == 0 {
			continue // reported
		}
		before := tools[i].Rule()
		if tools[i].Clauses = clauses; before != Allow && tools[i].Rule() == Allow {
			s.warnf(d.tool.span, "", "profile %q lets tool %q run without asking", profile, d.tool.value)
		}
	}
	return tools
}

// signals gives the set that is declared, in place of the base's.
func (s *resolver) signals(profile string, base []string, names names) []string {
	enforced := []string{}
	for _, name := range names.value {
		if !slices.Contains(signalNames, name.value) {
			s.noSuch("signal", name, signalNames)
		}
		enforced = append(enforced, name.value)
	}
	for _, name := range base {
		if !slices.Contains(enforced, name) {
			s.warnf(names.span, "", "profile %q lets signal %q only watch", profile, name)
		}
	}
	return enforced
}

// over gives the limits with those that are declared in place of the base's.
func (d limitsDecl) over(l Limits) Limits {
	for _, limit := range []struct {
		to   *int
		from at[int64]
	}{
		{&l.MaxIterations, d.maxIterations}, {&l.Stall, d.stall}, {&l.Malformed, d.malformed}, {&l.ToolErrors, d.toolErrors},
	} {
		if limit.from.set {
			*limit.to = int(limit.from.value)
		}
	}
	if d.timeoutSeconds.set {
		l.Timeout = time.Duration(d.timeoutSeconds.value) * time.Second
	}
	return l
}

// printed gives what is in force in the shape of the file.
func (l Loop) printed() object {
	tools := object{}
	for _, t := range l.Tools {
		tools = append(tools, field{t.Name, printedClauses(t.Clauses)})
	}
	o := object{}
	if l.System != "" {
		o = append(o, field{"system", l.System})
	}
	return append(o,
		field{"tools", tools},
		field{"enforced_signals", l.Signals},
		field{"limits", object{
			{"max_iterations", int64(l.Limits.MaxIterations)},
			{"timeout_seconds", int64(l.Limits.Timeout / time.Second)},
			{"stall_limit", int64(l.Limits.Stall)},
			{"malformed_limit", int64(l.Limits.Malformed)},
			{"tool_error_limit", int64(l.Limits.ToolErrors)},
		}},
		field{"approvals", object{
			{"expire", short(l.Approvals.Expire)},
			{"second_person", l.Approvals.SecondPerson},
		}},
	)
}

// short is a duration of whole seconds without the units that are zero: 24h.
func short(d time.Duration) string {
	text := d.String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}
