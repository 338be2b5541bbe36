package playbook

import (
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
)

var promptInputsCheck = &CheckDoc{
	ID: "prompt-inputs", Summary: "a step gives its prompt other inputs than it declares",
	Explain: `A prompt declares its inputs in its front matter; the step gives each of them under with, and no other; the runtime itself gives an observer what it reads, as events, and what it noted before, as notes. An input that the prompt declares and does not use is a warning: the model would not see it.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if p := l.promptOf(q); p != nil {
				l.matchInputs(q, p)
			}
		}
	},
}

func (l *linter) matchInputs(q question, p *prompt.Prompt) {
	var declared []string
	for _, in := range p.Inputs {
		declared = append(declared, in.Name.Value)
	}
	observes := q.observer != nil
	for _, w := range q.ask.With {
		if observes && slices.Contains(ObserverInputs, w.Name.Value) {
			l.errorf(w.Name.Span, "remove it", "the runtime itself gives an observer %q", w.Name.Value)
			continue
		}
		if !slices.Contains(declared, w.Name.Value) {
			hint := "it declares " + list(declared)
			if near := diag.Suggest(w.Name.Value, declared); near != "" {
				hint = `did you mean "` + near + `"? ` + hint
			}
			l.errorf(w.Name.Span, hint, "prompt %s declares no input %q", q.ask.PromptRef.Value, w.Name.Value)
		}
	}
	for _, in := range p.Inputs {
		given := slices.ContainsFunc(q.ask.With, func(w Named) bool { return w.Name.Value == in.Name.Value })
		switch {
		case observes && slices.Contains(ObserverInputs, in.Name.Value):
		case !given && !q.flawed:
			l.errorf(q.ask.PromptRef.Span, "write with: {"+in.Name.Value+": EXPRESSION}", "%s does not give its prompt the input %q", q.what, in.Name.Value)
		case given && !p.Uses(in.Name.Value):
			l.warnf(q.ask.PromptRef.Span, "name it in the body as {{"+in.Name.Value+"}}", "prompt %s does not use its input %q", q.ask.PromptRef.Value, in.Name.Value)
		}
	}
}

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
