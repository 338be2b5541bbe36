package playbook

var outputRequiredCheck = &CheckDoc{
	ID: "output-required", Summary: "a claude step without an output",
	Explain: `The verdict is what a claude step is for. output is a JSON Schema with a property verdict, an enum of strings, which is required; the runtime checks what the model said against it, and fails the step if it does not fit.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			if c, ok := s.Work.(*Claude); ok && !s.flawed && c.Output == nil {
				l.errorf(s.at(), "write output: {type: object, required: [verdict], properties: {verdict: {enum: [go, no-go]}}}", "step %q has no output", s.ID.Value)
			}
		}
	},
}
