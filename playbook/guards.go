package playbook

// guards says of each step whether a person was asked on every way to it. It is
// a forward analysis: everything is taken to be guarded, and what is not guarded
// is lowered until nothing changes. A step is lowered once, so it is linear in
// steps, needs and gotos.
//
//	before(step)     = a step that it follows was passed by way of a yes
//	                   ∧ each goto back to it starts behind a yes
//	before(handler)  = every goto to it starts behind a yes
//	after(pause)     = yes, unless `on_fail: continue` lets a no pass
//	after(call)      = the called playbook cannot pass without a yes
//	after(other)     = before
//	after(any)       ∧ whoever a handler goes on for it, with `then: continue`
//
// All of what a step follows must have passed, so one yes among them is enough.
// A step whose pause is skipped is skipped itself, so `when` on a pause opens
// nothing.
type guards struct {
	graph  *graph
	passes []bool // a step that can only be passed by way of a yes of its own
	before []bool
	after  []bool
	goesOn []bool // what a handler gives to the step that it goes on for
	// work counts the looks at a step or a goto, for the test that it is linear.
	work int
}

func newGuards(g *graph, asks func(int) bool) *guards {
	n := len(g.steps)
	all := func() []bool {
		b := make([]bool, n)
		for i := range b {
			b[i] = true
		}
		return b
	}
	d := &guards{graph: g, passes: make([]bool, n), before: all(), after: all(), goesOn: all()}
	queue := make([]int, 0, n)
	queued := make([]bool, n)
	push := func(i int) {
		if !queued[i] {
			queued[i] = true
			queue = append(queue, i)
		}
	}
	for i := range g.steps {
		lifted := g.steps[i].OnFail != nil && g.steps[i].OnFail.Do == DoContinue
		d.passes[i] = asks(i) && !lifted
		push(i)
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		queued[i] = false
		if !d.look(i) {
			continue
		}
		for _, n := range g.behind[i] {
			push(n)
		}
		for _, j := range g.from[i] {
			push(g.gotos[j].to)
		}
		for _, j := range g.to[i] {
			push(g.gotos[j].from)
		}
	}
	return d
}

// look computes what holds at a step anew, and says whether it changed.
func (d *guards) look(i int) bool {
	d.work += 1 + len(d.graph.after[i]) + len(d.graph.to[i]) + len(d.graph.from[i])
	before, after, goesOn := d.enter(i), true, true
	if !d.passes[i] {
		after = before
	}
	s := d.graph.steps[i]
	if d.graph.handler(i) {
		goesOn = s.Then == nil || s.Then.Do != DoContinue || after
	}
	for _, j := range d.graph.from[i] {
		if to := d.graph.gotos[j].to; d.graph.handler(to) {
			after = after && d.goesOn[to]
			if d.graph.handler(i) {
				goesOn = goesOn && d.goesOn[to]
			}
		}
	}
	changed := before != d.before[i] || after != d.after[i] || goesOn != d.goesOn[i]
	d.before[i], d.after[i], d.goesOn[i] = before, after, goesOn
	return changed
}

// enter is before, from what is known of the others.
func (d *guards) enter(i int) bool {
	guarded := d.graph.handler(i)
	if !guarded {
		for _, n := range d.graph.after[i] {
			guarded = guarded || d.after[n]
		}
	}
	for _, j := range d.graph.to[i] {
		jump := d.graph.gotos[j]
		at := d.before[jump.from]
		if jump.then {
			at = d.after[jump.from]
		}
		guarded = guarded && at
	}
	return guarded
}

// open gives a way to a step on which nobody is asked, as ids from its start: at
// most most of the last ones.
func (d *guards) open(i, most int) (way []string) {
	seen := map[int]bool{}
	for !seen[i] && len(way) < most {
		seen[i] = true
		way = append([]string{d.graph.steps[i].ID.Value}, way...)
		next := -1
		for _, j := range d.graph.to[i] {
			if from := d.graph.gotos[j].from; !d.before[from] && !seen[from] {
				next = from
			}
		}
		if !d.graph.handler(i) && len(d.graph.after[i]) > 0 {
			next = d.graph.after[i][0]
		}
		if next < 0 {
			break
		}
		i = next
	}
	return way
}

// summary is what a playbook that calls another needs to know of it.
type summary struct {
	asks         bool // it cannot pass without a person's yes
	irreversible bool // a step of it, or of a playbook that it calls, is irreversible
}

// summarise says it of the playbook that was checked.
func (l *linter) summarise() (sum summary) {
	if l.graph == nil {
		return summary{}
	}
	certain := make([]bool, len(l.Steps)) // neither the step nor one that it follows can be skipped
	for i, s := range l.Steps {
		certain[i] = !s.Handler.Value && !s.When.Written()
		for _, n := range l.graph.after[i] {
			certain[i] = certain[i] && n < i && certain[n]
		}
		if certain[i] && l.asks(i) && s.OnFail == nil {
			sum.asks = true
		}
		sum.irreversible = sum.irreversible || l.irreversible(i)
	}
	return sum
}

// asks says whether a step passes only by a person's yes: a pause, or a call of
// a playbook that asks.
func (l *linter) asks(i int) bool {
	switch w := l.Steps[i].Work.(type) {
	case *Pause:
		return true
	case *Call:
		b := l.callee(w)
		return b != nil && !b.reading && b.sum.asks
	}
	return false
}

// irreversible says whether a step does what cannot be undone, as far as it is
// declared, or a playbook that it calls does.
func (l *linter) irreversible(i int) bool {
	s := l.Steps[i]
	if s.Effect.Value == Irreversible || len(s.Touches) > 0 {
		return true
	}
	call, ok := s.Work.(*Call)
	if !ok {
		return false
	}
	b := l.callee(call)
	return b != nil && !b.reading && b.sum.irreversible
}

// guarded is the analysis of this playbook, made once.
func (l *linter) guarded() *guards {
	if l.guards == nil {
		l.guards = newGuards(l.graph, l.asks)
	}
	return l.guards
}
