package playbook

import (
	"errors"

	"github.com/stoplog/stoplog/internal/prompt"
)

var promptVersionCheck = &CheckDoc{
	ID: "prompt-version", Summary: "a prompt without a version",
	Explain: `NAME.md@v3 is one text for ever; NAME.md is whatever the file says today. In a draft a missing version is a warning; an active playbook is refused. A ref that is malformed, or leads out of the prompt roots, is always an error.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if !q.ask.PromptRef.Written() {
				continue
			}
			_, err := prompt.ParseRef(q.ask.PromptRef.Value)
			switch {
			case errors.Is(err, prompt.ErrUnversioned):
				l.report(l.strict(), q.ask.PromptRef.Span, "", "%v", err)
			case err != nil:
				l.errorf(q.ask.PromptRef.Span, "", "%v", err)
			}
		}
	},
}
