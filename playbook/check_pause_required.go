package playbook

import "strings"

var pauseRequiredCheck = &CheckDoc{
	ID: "pause-required", Summary: "an irreversible step that a run can reach without asking a person",
	Explain: `What is irreversible, destructive, spends money or changes an identity is decided by a person; no model's verdict stands in for one. A step with effect: irreversible, or with touches, needs a pause on every way to it. All ways count: the order of steps, needs, gotos back and handlers that go on. A pause with on_fail: continue asks and does not heed the answer, so it does not count. A playbook that is called counts if it cannot pass without a pause of its own.`,
	run: func(l *linter) {
		for i, s := range l.Steps {
			at, what := s.Effect.Span, "is irreversible"
			switch {
			case s.Effect.Value == Irreversible:
			case len(s.Touches) > 0:
				at, what = s.Touches[0].Span, "touches "+string(s.Touches[0].Value)
			default:
				continue
			}
			if !l.guarded().before[i] {
				l.errorf(at, "put a step of type pause before it; `stoplog explain step-type`", "step %q %s, and nobody is asked on the way %s", s.ID.Value, what, l.way(i))
			}
		}
	},
}

// way spells a way to a step on which nobody is asked.
func (l *linter) way(i int) string {
	const most = 6
	way := l.guarded().open(i, most)
	if len(way) == most {
		way[0] = "…"
	}
	return strings.Join(way, " → ")
}
