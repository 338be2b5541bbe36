package playbook

import "github.com/stoplog/stoplog/internal/prompt"

var modelFloatingCheck = &CheckDoc{
	ID: "model-floating", Summary: "a model without a date",
	Explain: `A name without a date (claude-sonnet-4-5, …-latest) is whatever the provider serves under it: verdicts change without a change in any file. A pin is NAME@DATE; NAME-DATE is what is sent, and what the provider must say that it served. In a draft this is a warning; an active playbook is refused.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if !q.ask.Model.Written() {
				continue
			}
			if _, err := prompt.ParsePin(q.ask.Model.Value); err != nil {
				l.report(l.strict(), q.ask.Model.Span, "", "%v", err)
			}
		}
	},
}
