package playbook

var promptRequiredCheck = &CheckDoc{
	ID: "prompt-required", Summary: "a question to a model does not say what is asked",
	Explain: `What a model is asked is code: it stands in a file of its own, has a version, and is reviewed. prompt_ref: NAME.md@vN names it.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if !q.flawed && !q.ask.PromptRef.Written() {
				l.errorf(q.at, "write prompt_ref: NAME.md@vN", "%s has no prompt_ref", q.what)
			}
		}
	},
}
