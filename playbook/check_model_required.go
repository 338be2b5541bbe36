package playbook

var modelRequiredCheck = &CheckDoc{
	ID: "model-required", Summary: "a question to a model does not say which",
	Explain: `A claude step, an agent step and an observer name the exact model that they were reviewed with: model: NAME@DATE. Without it the verdict would be that of whatever a default happens to be on the day.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if !q.flawed && !q.ask.Model.Written() {
				l.errorf(q.at, "write model: NAME@DATE, as in claude-sonnet-4-5@20250929", "%s has no model", q.what)
			}
		}
	},
}
