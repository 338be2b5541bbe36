package playbook

import (
	"io/fs"

	"github.com/stoplog/stoplog/internal/prompt"
)

var corpusCheck = &CheckDoc{
	ID: "corpus-missing", Summary: "a prompt without a corpus",
	Explain: `NAME@vN.corpus/, beside the prompt, has cases and the verdicts that they must get. Without one nobody can tell whether a model that changed still decides as it did. A warning.`,
	run: func(l *linter) {
		seen := map[string]bool{}
		for _, q := range l.questions() {
			ref, err := prompt.ParseRef(q.ask.PromptRef.Value)
			if l.lib.options.Tree == nil || err != nil {
				continue
			}
			found := l.lib.prompt(l.roots(), ref)
			if found.prompt == nil || seen[found.corpus] {
				continue
			}
			seen[found.corpus] = true
			if info, err := fs.Stat(l.lib.options.Tree, found.corpus); err != nil || !info.IsDir() {
				l.warnf(q.ask.PromptRef.Span, "make the folder "+found.corpus, "prompt %s has no corpus", q.ask.PromptRef.Value)
			}
		}
	},
}
