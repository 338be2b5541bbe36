package playbook

import "github.com/stoplog/stoplog/internal/prompt"

var promptFileCheck = &CheckDoc{
	ID: "prompt-file", Summary: "a prompt that is not there, or does not check",
	Explain: `The prompt of NAME.md@vN is the file NAME@vN.md in prompts/, library/prompts/, or a folder of prompt_roots. It begins with front matter (model, inputs, output), and its body names those inputs as {{NAME}} and has no other braces of that kind.`,
	run: func(l *linter) {
		told := map[*loaded]bool{}
		for _, q := range l.questions() {
			ref, err := prompt.ParseRef(q.ask.PromptRef.Value)
			if l.lib.options.Tree == nil || err != nil {
				continue
			}
			at := q.ask.PromptRef.Span
			found := l.lib.prompt(l.roots(), ref)
			list, malformed := asList(found.err)
			switch {
			case found.err == nil:
			case malformed:
				l.errorf(at, "mend the prompt", "prompt %s does not check", ref)
				if !told[found] {
					told[found] = true
					for _, d := range list {
						l.found = append(l.found, Finding{Check: l.check.ID, Severity: Error, Diagnostic: d})
					}
				}
			case missing(found.err):
				l.errorf(at, "write the file, or name its folder under prompt_roots", "there is %v", found.err)
			default:
				l.errorf(at, "", "%v", found.err)
			}
		}
	},
}
