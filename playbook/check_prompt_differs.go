package playbook

import "github.com/stoplog/stoplog/internal/prompt"

var promptDiffersCheck = &CheckDoc{
	ID: "prompt-differs", Summary: "a step that asks another model, or for another output, than its prompt is for",
	Explain: `A prompt says which model it was tried with, and what it gives. A step with another model, or another output, would use a prompt that nobody tried that way. Make a new version of the prompt, or use what it says.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			p := l.promptOf(q)
			if p == nil {
				continue
			}
			_, err := prompt.ParsePin(q.ask.Model.Value)
			if err == nil && q.ask.Model.Value != p.Model.Value {
				l.errorf(q.ask.Model.Span, "the prompt is for "+p.Model.Value, "%s asks another model than its prompt %s is for", q.what, p.File)
			}
			if q.output != nil && p.Output != nil && !q.output.Equal(p.Output) {
				l.errorf(q.output.Span, "write the same schema in both", "the output of %s differs from that of its prompt %s", q.what, p.File)
			}
		}
	},
}
