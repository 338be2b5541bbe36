package playbook

import "strings"

var preferObserverCheck = &CheckDoc{
	ID: "prefer-observer", Summary: "a claude step whose verdict decides nothing",
	Explain: `A claude step is for a verdict that something depends on. Where every verdict leads to continue and no expression reads it, the step only watches: make it an observer of the step that it is about. That reads along while the step runs, needs no step of its own, and files a ticket when it sees something (on_anomaly: file-ticket). See ` + "`stoplog explain step-type`" + `. A warning.`,
	run: func(l *linter) {
		var read map[string]bool
		for _, s := range l.Steps {
			c, ok := s.Work.(*Claude)
			if !ok || len(c.OnVerdict) == 0 || !s.ID.Written() {
				continue
			}
			decides := false
			for _, v := range c.OnVerdict {
				decides = decides || v.Action.Do != DoContinue
			}
			if decides {
				continue
			}
			if read == nil {
				read = l.namedSteps()
			}
			if !read[s.ID.Value] {
				l.warnf(s.at(), "make it an observer of the step that it is about, or let a verdict fail or pause; `stoplog explain step-type`",
					"step %q decides nothing: all of %s lead to continue, and nothing reads its output", s.ID.Value, verdictNames(c.OnVerdict))
			}
		}
	},
}

func verdictNames(on []Verdict) string {
	names := make([]string, len(on))
	for i, v := range on {
		names[i] = v.Value.Value
	}
	return strings.Join(names, ", ")
}

// namedSteps are the steps that some expression names.
func (l *linter) namedSteps() map[string]bool {
	named := map[string]bool{}
	for _, e := range l.allExpressions() {
		for _, r := range l.language().read(e.Value).refs {
			if !r.input {
				named[r.name] = true
			}
		}
	}
	return named
}
