package playbook

import (
	"encoding/json"
	"slices"
)

var outputSchemaCheck = &CheckDoc{
	ID: "output-schema", Summary: "an output that is no schema, or has no verdict",
	Explain: `output is a JSON Schema (draft 2020-12) that refers to nothing outside itself. That of a claude step, and that of an observer's prompt, has type: object, verdict in required, and under properties verdict: {enum: […]}, of strings. An output without a required verdict could be met by an answer that decides nothing.`,
	run: func(l *linter) {
		compiled := map[string]error{}
		for _, q := range l.questions() {
			if q.output != nil {
				err, ok := compiled[string(q.output.JSON)]
				if !ok {
					_, err = q.output.Compile()
					compiled[string(q.output.JSON)] = err
				}
				if err != nil {
					l.errorf(q.output.Span, "", "the output of %s: %v", q.what, err)
					continue
				}
			}
			if _, ok := q.step.Work.(*Claude); ok && q.observer == nil && q.output != nil {
				l.verdictIn(q.output.Span, "the output of "+q.what, q.output)
			}
			if p := l.promptOf(q); p != nil && q.observer != nil {
				if p.Output == nil {
					l.errorf(q.ask.PromptRef.Span, "declare it in the prompt's front matter", "the prompt of %s has no output, so it has no verdict", q.what)
				} else {
					l.verdictIn(q.ask.PromptRef.Span, "the output of the prompt of "+q.what, p.Output)
				}
			}
		}
	},
}

// verdictIn reports a schema that can be met without a verdict.
func (l *linter) verdictIn(at Span, what string, s *Schema) {
	var form struct {
		Type     any
		Required []string
	}
	if err := json.Unmarshal(s.JSON, &form); err != nil || form.Type != "object" {
		l.errorf(at, "write type: object", "%s is not of type object", what)
		return
	}
	switch {
	case len(s.Verdicts) == 0:
		l.errorf(at, "write properties: {verdict: {enum: [go, no-go]}}", "%s has no enum of verdicts", what)
	case !slices.Contains(form.Required, "verdict"):
		l.errorf(at, "write required: [verdict]", "%s does not require its verdict", what)
	}
}
