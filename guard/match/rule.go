package match

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/guard"
)

// Rule is one pattern to find.
type Rule struct {
	// ID names the rule in findings. It is unique in its engine.
	ID string
	// Pattern is in the syntax of package regexp. It never matches the empty
	// string.
	Pattern string
	// Group names the group of Pattern whose text is the finding; empty means
	// the whole match. Every match passes through the group exactly once and
	// it is never empty.
	Group string
	// Validators must all accept the finding's text. A match that one of them
	// rejects is no finding; the search goes on behind it.
	Validators []Validator
	Severity   guard.Severity
	Verdict    guard.Verdict
	// Policy says what happens where a match has been masked for the swallow
	// limit and is still not decided.
	Policy Policy
	// Match are texts in which the rule has a finding, NoMatch texts in which
	// it has none. [Rule.Check] tries them.
	Match, NoMatch []string
}

// Options are what the rules of an engine share. The zero value is useful in
// tests only: it has no name.
type Options struct {
	// Name is the guard's name.
	Name string
	// Key keys the fingerprints of findings. Without a key they are left
	// empty: an unkeyed digest of a short secret is as good as the secret.
	Key []byte
	// Verdict replaces the verdict of every rule, unless it is Allow.
	Verdict guard.Verdict
	// HoldLimit is the most bytes that are held for a match, but for a rune
	// that is not whole. One that is longer is masked from its group's start on
	// until it is decided. 0 means DefaultHoldLimit; the least is
	// LeastHoldLimit.
	HoldLimit int
	// SwallowLimit is the most bytes that such a mask can have before Policy is
	// asked. 0 means DefaultSwallowLimit; it is not less than HoldLimit.
	SwallowLimit int
	// Policy is that of the rules that have none.
	Policy Policy
	// Evasions are the tricks that the engine reads through.
	Evasions Evasion
}

// Compile makes a guard of the rules. Where two findings start together, the
// one whose rule comes first is reported first.
func Compile(rules []Rule, opt Options) (*Engine, error) {
	if len(rules) == 0 {
		return nil, fmt.Errorf("compile guard %q: it has no rules", opt.Name)
	}
	limits, err := opt.limits()
	if err != nil {
		return nil, fmt.Errorf("compile guard %q: %w", opt.Name, err)
	}
	e := &Engine{name: opt.Name, key: append([]byte(nil), opt.Key...), limits: limits}
	e.searches.New = func() any { return &search{} }
	e.prints.New = func() any { p := newPrint(e.key); return &p }
	seen := make(map[string]bool)
	for _, r := range rules {
		if seen[r.ID] {
			return nil, fmt.Errorf("compile guard %q: two rules are named %q", opt.Name, r.ID)
		}
		seen[r.ID] = true
		p, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("compile rule %q: %w", r.ID, err)
		}
		v := r.Verdict
		if opt.Verdict != guard.Allow {
			v = opt.Verdict
		}
		e.rules = append(e.rules, &rule{
			id: r.ID, index: len(e.rules), validators: r.Validators, severity: r.Severity, verdict: v,
			policy: cmp.Or(r.Policy, opt.Policy, Release), prog: p, budget: stateBudget,
		})
	}
	if opt.Evasions != 0 {
		e.disguise = newDisguise(opt.Evasions, names(e.rules))
	}
	e.classes = classify(e.rules)
	for _, r := range e.rules {
		r.init()
	}
	e.columns = newColumns(e.classes, len(e.rules[0].shared))
	e.fronts = newFronts(e.rules, e.classes, e.columns, limits.hold)
	return e, nil
}

// Check compiles the rule and tries its examples. The error names the first
// example that fails.
func (r Rule) Check() error {
	e, err := Compile([]Rule{r}, Options{Name: "check"})
	if err != nil {
		return err
	}
	for _, text := range r.Match {
		if n, err := e.count(text); err != nil || n == 0 {
			return errors.Join(err, fmt.Errorf("rule %q: no finding in %q", r.ID, text))
		}
	}
	for _, text := range r.NoMatch {
		if n, err := e.count(text); err != nil || n > 0 {
			return errors.Join(err, fmt.Errorf("rule %q: a finding in %q", r.ID, text))
		}
	}
	return nil
}
