package playbook

import "slices"

var gotoCheck = &CheckDoc{
	ID: "goto", Summary: "a goto that leads nowhere, or forward",
	Explain: `A goto leads to a handler (handler: true), which runs only then, or back to a step that the step with the goto follows, or to itself. From a handler it leads back to what every step that goes to the handler follows. It does not skip ahead: what would be skipped may be a pause. then belongs to a handler: it says what follows it.`,
	run: func(l *linter) {
		ids := l.graph.ids()
		for i, s := range l.Steps {
			if s.Then != nil && !s.Handler.Value {
				l.errorf(s.Then.Span, "write handler: true, or remove it", "step %q has then, and is no handler", s.ID.Value)
			}
			for _, a := range s.actions() {
				if a.action.Do != DoGoto {
					continue
				}
				id := a.action.Goto
				to, ok := l.graph.byID[id.Value]
				switch {
				case !ok:
					l.errorf(id.Span, suggestion(id.Value, ids), "there is no step %q", id.Value)
				case l.graph.handler(to), l.graph.back(i, to):
				default:
					l.errorf(id.Span, "write handler: true at that step, or needs", "this does not lead back: not every way to step %q begins behind step %q, and that is no handler", s.ID.Value, id.Value)
				}
			}
		}
	},
}

// back says whether a goto from one step to another leads back, whatever step it
// began at.
func (g *graph) back(from, to int) bool {
	origins := g.origins(from)
	return len(origins) > 0 && !slices.ContainsFunc(origins, func(o int) bool { return o != to && !g.follows(o, to) })
}
