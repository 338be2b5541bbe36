package playbook

var scopeRequiredCheck = &CheckDoc{
	ID: "scope-required", Summary: "a model without a scope",
	Explain: `A claude step, an agent step and an observer say what they may read, write and run, even if that is nothing: scope: {can_read: [], can_write: [], can_run: []}. All three lists stand there, so that what is left out was left out on purpose.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			switch {
			case q.scope == nil && !q.flawed:
				l.errorf(q.at, "write scope: {can_read: [], can_write: [], can_run: []}", "%s has no scope", q.what)
			case q.scope == nil || q.scope.flawed:
			default:
				for _, part := range q.scope.lists() {
					if part.name != "can_reach" && !part.list.Written() {
						l.errorf(q.scope.Span, "write "+part.name+": []", "the scope of %s does not say %s", q.what, part.name)
					}
				}
			}
		}
	},
}

// part is one list of a scope.
type part struct {
	name string
	list Texts
}

func (s *Scope) lists() []part {
	return []part{{"can_read", s.CanRead}, {"can_write", s.CanWrite}, {"can_run", s.CanRun}, {"can_reach", s.CanReach}}
}
