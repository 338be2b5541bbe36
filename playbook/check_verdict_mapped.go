package playbook

import (
	"slices"

	"github.com/stoplog/stoplog/internal/diag"
)

var verdictMappedCheck = &CheckDoc{
	ID: "verdict-mapped", Summary: "a verdict that leads nowhere, or is never given",
	Explain: `on_verdict says what each value of verdict leads to: continue, pause, fail, retry or {goto: ID}. A value without an entry would be decided by a default that nobody wrote down; an entry for a value that is never given is misspelt. An observer's verdicts are those of its prompt, and observer_failed for one that gave none: not mapped, that fails the step.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if q.observer != nil {
				l.observerVerdicts(q)
				continue
			}
			c, ok := q.step.Work.(*Claude)
			if !ok || c.Output == nil || len(c.Output.Verdicts) == 0 {
				continue
			}
			switch {
			case c.OnVerdict == nil && q.flawed:
			case c.OnVerdict == nil:
				l.errorf(q.at, "write on_verdict: {"+c.Output.Verdicts[0].Value+": continue, …}", "%s does not say what its verdicts lead to", q.what)
			default:
				l.mapped(q, c.OnVerdict, values(c.Output.Verdicts), q.flawed)
			}
		}
	},
}

func (l *linter) observerVerdicts(q question) {
	p := l.promptOf(q)
	switch {
	case q.observer.OnVerdict == nil && q.flawed:
	case q.observer.OnVerdict == nil:
		l.errorf(q.at, "write on_verdict: {clean: continue, broken: fail}, with the verdicts of its prompt", "%s does not say what its verdicts lead to", q.what)
	case p != nil && p.Output != nil && len(p.Output.Verdicts) > 0:
		l.mapped(q, q.observer.OnVerdict, values(p.Output.Verdicts), q.flawed)
	}
}

// mapped compares the verdicts that can be given with those that lead somewhere.
func (l *linter) mapped(q question, on []Verdict, given []string, flawed bool) {
	known := given
	if q.observer != nil {
		known = append(slices.Clone(given), ObserverFailed)
	}
	for _, v := range on {
		if !slices.Contains(known, v.Value.Value) {
			hint := "it gives " + list(known)
			if near := diag.Suggest(v.Value.Value, known); near != "" {
				hint = `did you mean "` + near + `"? ` + hint
			}
			l.errorf(v.Value.Span, hint, "%s never gives the verdict %q", q.what, v.Value.Value)
		}
		if v.Value.Value == ObserverFailed && v.Action.Do == DoContinue {
			l.warnf(v.Value.Span, "write pause or fail", "%s lets the step pass when it has seen nothing", q.what)
		}
	}
	for _, value := range given {
		if !flawed && !slices.ContainsFunc(on, func(v Verdict) bool { return v.Value.Value == value }) {
			l.errorf(missedAt(q, on), "write "+value+": fail, or another action", "%s does not say what the verdict %q leads to", q.what, value)
		}
	}
}

// missedAt is where a verdict that is not mapped is missed.
func missedAt(q question, on []Verdict) Span {
	if len(on) > 0 {
		return on[0].Value.Span
	}
	return q.at
}

func values(all []Text) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t.Value
	}
	return out
}
