package playbook

import "github.com/stoplog/stoplog/internal/prompt"

var modelUnknownCheck = &CheckDoc{
	ID: "model-unknown", Summary: "a model that is not in the price list",
	Explain: `A pin that the price list does not have is misspelt, new or retired. What it costs is not known, so no budget can hold it, and a retired one cannot be asked. In a draft this is a warning; an active playbook is refused.`,
	run: func(l *linter) {
		if l.lib.options.Known == nil {
			return
		}
		for _, q := range l.questions() {
			pin, err := prompt.ParsePin(q.ask.Model.Value)
			if q.ask.Model.Written() && err == nil && !l.lib.options.Known(pin) {
				l.report(l.strict(), q.ask.Model.Span, "see `stoplog budget` for the models that have a price", "model %q is not known", q.ask.Model.Value)
			}
		}
	},
}
