package playbook

var playbookCycleCheck = &CheckDoc{
	ID: "playbook-cycle", Summary: "playbooks that call each other in a circle",
	Explain: `A playbook that calls itself, directly or by way of others, would never end. To do something again, lead back with a goto, which has a ceiling.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			call, ok := s.Work.(*Call)
			if !ok {
				continue
			}
			if b := l.callee(call); b != nil && b.reading {
				l.errorf(call.File.Span, "take one of the calls away", "playbook %q leads back to itself", call.File.Value)
			}
		}
	},
}
