package playbook

import "github.com/stoplog/stoplog/internal/diag"

var needsCheck = &CheckDoc{
	ID: "needs", Summary: "needs that name no step, or form a circle",
	Explain: `needs lists the steps that a step follows; without it a step follows the one before it, and with needs: [] it follows nothing. A handler follows whatever goes to it, so it has no needs, and no step needs it. Steps that need each other in a circle never begin.`,
	run: func(l *linter) {
		ids := l.graph.ids()
		for i, s := range l.Steps {
			if s.Handler.Value && s.Needs.Written() {
				l.errorf(s.Needs.Span, "remove it", "handler %q has needs: it follows what goes to it", s.ID.Value)
				continue
			}
			for _, id := range s.Needs.Value {
				n, ok := l.graph.byID[id.Value]
				switch {
				case !ok:
					l.errorf(id.Span, suggestion(id.Value, ids), "there is no step %q", id.Value)
				case n == i:
					l.errorf(id.Span, "remove it", "step %q needs itself", id.Value)
				case l.Steps[n].Handler.Value:
					l.errorf(id.Span, "let the handler go on with then: continue", "step %q is a handler, and runs only when a goto leads to it", id.Value)
				}
			}
		}
		for _, i := range l.graph.circle() {
			s := l.Steps[i]
			l.errorf(s.at(), "take one of the needs away", "step %q needs itself, by way of what it needs", s.ID.Value)
		}
	},
}

// suggestion is a hint for a name that is not known.
func suggestion(name string, known []string) string {
	if near := diag.Suggest(name, known); near != "" {
		return `did you mean "` + near + `"?`
	}
	if len(known) > 20 {
		return ""
	}
	return "there are " + list(known)
}

// circle gives one step of each circle of needs, but for a step that needs
// itself directly.
func (g *graph) circle() (found []int) {
	const (
		fresh = iota
		open
		done
	)
	state := make([]uint8, len(g.steps))
	type visit struct{ step, next int }
	for start := range g.steps {
		if state[start] != fresh || g.handler(start) {
			continue
		}
		stack := []visit{{step: start}}
		state[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(g.after[top.step]) {
				state[top.step] = done
				stack = stack[:len(stack)-1]
				continue
			}
			n := g.after[top.step][top.next]
			top.next++
			switch {
			case g.handler(n):
			case state[n] == fresh:
				state[n] = open
				stack = append(stack, visit{step: n})
			case state[n] == open && n != top.step:
				found = append(found, n)
			}
		}
	}
	return found
}
