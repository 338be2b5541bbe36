package playbook

var duplicateIDCheck = &CheckDoc{
	ID: "duplicate-id", Summary: "two steps of one name",
	Explain: `An id names one step: in needs, in gotos, in expressions, and in the record of the run.`,
	run: func(l *linter) {
		for i, s := range l.Steps {
			if first, ok := l.graph.byID[s.ID.Value]; ok && first != i {
				l.errorf(s.ID.Span, "choose another", "step %q is there already, on line %d", s.ID.Value, l.Steps[first].ID.Span.Line)
			}
		}
	},
}
