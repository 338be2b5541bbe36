package playbook

import "strings"

var unreachableCheck = &CheckDoc{
	ID: "unreachable", Summary: "a step that never runs",
	Explain: `A handler that no goto leads to, a step whose when is false, a step behind one that never passes (a claude step of which every verdict fails): it looks like a safeguard and is none. A warning for what is written as false; else an error.`,
	run: func(l *linter) {
		never := make([]bool, len(l.Steps)) // does not pass, as far as can be seen
		for i, s := range l.Steps {
			switch before := l.barred(i, never); {
			case s.Handler.Value && len(l.graph.to[i]) == 0:
				l.errorf(s.at(), "let a goto lead to it, or remove handler: true", "handler %q never runs: no goto leads to it", s.ID.Value)
			case strings.TrimSpace(s.When.Value) == "false":
				l.warnf(s.When.Span, "remove the step", "step %q never runs: when is false", s.ID.Value)
				never[i] = !s.lifts()
			case before >= 0:
				l.errorf(s.at(), "let a verdict of it continue, or remove this step", "step %q never runs: it follows %q, which never passes", s.ID.Value, l.Steps[before].ID.Value)
				never[i] = true
			default:
				never[i] = s.neverPasses() && !s.lifts()
			}
		}
	},
}

// barred gives a step that a step follows and that never passes, or -1. It looks
// at steps that stand before it in the file.
func (l *linter) barred(i int, never []bool) int {
	if l.graph.handler(i) {
		return -1
	}
	for _, n := range l.graph.after[i] {
		if n < i && never[n] {
			return n
		}
	}
	return -1
}

// lifts says whether what follows the step goes on although it did not pass.
func (s *Step) lifts() bool { return s.OnFail != nil && s.OnFail.Do == DoContinue }

// neverPasses says of a claude step that no verdict lets it pass. A goto may: its
// handler can go on.
func (s *Step) neverPasses() bool {
	c, ok := s.Work.(*Claude)
	if !ok || len(c.OnVerdict) == 0 || s.OnFail != nil {
		return false
	}
	for _, v := range c.OnVerdict {
		if v.Action.Do != DoFail && v.Action.Do != DoRetry {
			return false
		}
	}
	return true
}
