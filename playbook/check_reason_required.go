package playbook

var reasonRequiredCheck = &CheckDoc{
	ID: "reason-required", Summary: "a pause that does not say what it is about",
	Explain: `Whoever is asked sees the reason first. show: adds values, preview: adds the output of a command; both are part of what the answer binds to.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			if p, ok := s.Work.(*Pause); ok && !s.flawed && !p.Reason.Written() {
				l.errorf(s.at(), "write reason: …", "pause %q has no reason", s.ID.Value)
			}
		}
	},
}
