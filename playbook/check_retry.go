package playbook

var retryCheck = &CheckDoc{
	ID: "retry", Summary: "a step that is tried again and may not be",
	Explain: `A step that is irreversible, or touches money or an identity, or calls a playbook that does, is never tried again: the first try may have done it. A step that declares no effect might be one of them; say effect: read, idempotent or write to have it tried again. A verdict retry needs a retry: {attempts: N}, which bounds it.`,
	run: func(l *linter) {
		for i, s := range l.Steps {
			_, run := s.Work.(*Run)
			_, call := s.Work.(*Call)
			switch {
			case s.Retry == nil:
			case l.irreversible(i):
				l.errorf(s.Retry.Span, "remove retry", "step %q is irreversible, and is not tried again", s.ID.Value)
			case (run || call) && !s.Effect.Written() && !s.flawed:
				l.errorf(s.Retry.Span, "say effect: read, idempotent or write", "step %q would be tried again, and does not say what it does", s.ID.Value)
			}
			for _, a := range s.actions() {
				if a.action.Do == DoRetry && s.Retry == nil && !s.flawed && !l.irreversible(i) {
					l.errorf(a.action.Span, "write retry: {attempts: 3}", "verdict %q tries step %q again, without a bound", a.value.Value, s.ID.Value)
				}
			}
		}
	},
}
