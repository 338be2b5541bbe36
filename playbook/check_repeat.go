package playbook

var repeatCheck = &CheckDoc{
	ID: "verdict-repeats", Summary: "a verdict or a goto that does an irreversible step again",
	Explain: `A goto that leads back runs the step it leads to again, and all that follow it. Where one of them is irreversible and may have run, it would be done twice on the word of a model. Not even a pause in between makes that right: what was approved was one deploy, one payment. Lead back only to before what is irreversible has begun, or call the playbook anew.`,
	run: func(l *linter) {
		for i, s := range l.Steps {
			for _, a := range s.actions() {
				if a.action.Do == DoRetry && l.irreversible(i) {
					l.errorf(a.action.Span, "write pause or fail", "verdict %q does step %q again, which is irreversible", a.value.Value, s.ID.Value)
				}
			}
		}
		var irreversible []int
		for i := range l.Steps {
			if l.irreversible(i) {
				irreversible = append(irreversible, i)
			}
		}
		for _, j := range l.graph.gotos {
			for _, i := range irreversible {
				if l.graph.repeats(j, i) {
					l.errorf(j.action.Span, "lead back to a step behind it, or let it fail", "this leads back to %q, and so does step %q again, which is irreversible", l.Steps[j.to].ID.Value, l.Steps[i].ID.Value)
					break
				}
			}
		}
		for _, i := range irreversible {
			if o := l.graph.shared(i); o >= 0 {
				l.errorf(l.Steps[i].at(), "give each step a handler of its own", "handler %q is irreversible, and is done again when step %q goes to it too", l.Steps[i].ID.Value, l.Steps[o].ID.Value)
			}
		}
	},
}

// repeats says whether a goto can do an irreversible step a second time: the
// step is the goto's target or follows it, and may have begun when the goto is
// taken, which is not so where it follows the step at which it all began. A
// handler is done again where a goto to it is in a loop; see shared beside that.
func (g *graph) repeats(j jump, i int) bool {
	switch {
	case i == j.to && g.handler(i):
		return g.follows(j.from, i)
	case g.handler(j.to):
		return false
	case i == j.to || i == j.from:
		return true
	case !g.follows(i, j.to):
		return false
	}
	for _, o := range g.origins(j.from) {
		if i == o || !g.follows(i, o) {
			return true
		}
	}
	return false
}

// origins are the steps that are no handlers and from which gotos lead to a
// handler; of another step, the step itself.
func (g *graph) origins(i int) (found []int) {
	seen := map[int]bool{i: true}
	queue := []int{i}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if !g.handler(at) {
			found = append(found, at)
			continue
		}
		for _, n := range g.after[at] {
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return found
}

// shared gives a step whose goto may do a handler a second time, after another
// step's goto to it; -1 if there is none. Where the handler ends the way of the
// step that it is for, what follows that step goes to nothing any more, so two
// steps of which one follows the other do not both come to it.
func (g *graph) shared(h int) int {
	if !g.handler(h) {
		return -1
	}
	origins := g.origins(h)
	goesOn := g.goesOn(h)
	for k, o := range origins {
		if k > 0 && (goesOn || !g.follows(o, origins[k-1]) && !g.follows(origins[k-1], o)) {
			return o
		}
		goesOn = goesOn || g.steps[o].lifts()
	}
	return -1
}

// goesOn says whether a run may go on behind a handler, or behind one that it
// goes to.
func (g *graph) goesOn(h int) bool {
	seen := map[int]bool{h: true}
	for queue := []int{h}; len(queue) > 0; queue = queue[1:] {
		s := g.steps[queue[0]]
		if !s.Handler.Value || s.Then != nil && s.Then.Do == DoContinue {
			return true
		}
		for _, j := range g.from[queue[0]] {
			if to := g.gotos[j].to; !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return false
}
