package playbook

// graph is the steps of a playbook and how they follow each other, by number in
// the file. All of it is built in one pass, and linear in the file.
type graph struct {
	steps []*Step
	byID  map[string]int // the first of an id
	// after are the steps that a step follows: those of its needs, or the one
	// before it that is no handler. A handler follows the steps that go to it.
	after [][]int
	// behind is after, the other way round, of steps that are no handlers.
	behind [][]int
	gotos  []jump
	from   [][]int // the jumps of a step, as indexes of gotos
	to     [][]int // the jumps to a step
	chain  []link
}

// jump is a goto.
type jump struct {
	from, to int
	action   *Action
	// then is true of a handler's own end: the handler has passed.
	then bool
}

// link is a step's place in a run of steps each of which follows the one before
// it alone: whether one step follows another of the same chain is a comparison.
type link struct{ head, place int }

func newGraph(p *Playbook) *graph {
	n := len(p.Steps)
	g := &graph{
		steps: p.Steps, byID: make(map[string]int, n), after: make([][]int, n), behind: make([][]int, n),
		from: make([][]int, n), to: make([][]int, n), chain: make([]link, n),
	}
	for i, s := range p.Steps {
		if _, ok := g.byID[s.ID.Value]; !ok && s.ID.Written() {
			g.byID[s.ID.Value] = i
		}
	}
	g.order()
	g.jumps()
	for i := range g.steps {
		g.chain[i] = link{head: i}
		if g.handler(i) || len(g.after[i]) != 1 {
			continue
		}
		// In the file's order, so that the one before is linked already. Where
		// several steps follow one, the first goes on with its chain.
		if before := g.after[i][0]; before < i && !g.handler(before) && g.behind[before][0] == i {
			g.chain[i] = link{g.chain[before].head, g.chain[before].place + 1}
		}
	}
	return g
}

// order fills after and behind for steps that are no handlers.
func (g *graph) order() {
	before := -1
	for i, s := range g.steps {
		if g.handler(i) {
			continue
		}
		switch {
		case s.Needs.Written():
			for _, id := range s.Needs.Value {
				if n, ok := g.byID[id.Value]; ok {
					g.after[i] = append(g.after[i], n)
				}
			}
		case before >= 0:
			g.after[i] = []int{before}
		}
		for _, n := range g.after[i] {
			g.behind[n] = append(g.behind[n], i)
		}
		before = i
	}
}

func (g *graph) handler(i int) bool { return g.steps[i].Handler.Value }

// jumps collects the gotos, and lets handlers follow those that go to them.
func (g *graph) jumps() {
	for i, s := range g.steps {
		for _, a := range s.actions() {
			if a.action.Do != DoGoto {
				continue
			}
			to, ok := g.byID[a.action.Goto.Value]
			if !ok {
				continue
			}
			g.from[i] = append(g.from[i], len(g.gotos))
			g.to[to] = append(g.to[to], len(g.gotos))
			g.gotos = append(g.gotos, jump{from: i, to: to, action: a.action, then: a.then})
			if g.handler(to) {
				g.after[to] = append(g.after[to], i)
			}
		}
	}
}

// taken is an action of a step.
type taken struct {
	action *Action
	value  Text // the verdict's, if it is one's
	then   bool
}

// actions are all that a step, its verdicts and its observer's may lead to.
func (s *Step) actions() (all []taken) {
	if s.OnFail != nil {
		all = append(all, taken{action: s.OnFail})
	}
	if s.Then != nil {
		all = append(all, taken{action: s.Then, then: true})
	}
	verdicts := func(vs []Verdict) {
		for i := range vs {
			all = append(all, taken{action: &vs[i].Action, value: vs[i].Value})
		}
	}
	if c, ok := s.Work.(*Claude); ok {
		verdicts(c.OnVerdict)
	}
	if s.Observer != nil {
		verdicts(s.Observer.OnVerdict)
	}
	return all
}

// follows says whether step b comes before step a on the way to it. It walks
// chains, not steps: one look for a playbook in order.
func (g *graph) follows(a, b int) bool {
	seen := map[int]bool{} // steps at which a chain was entered
	queue := []int{a}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		c := g.chain[at]
		if c.head == g.chain[b].head && g.chain[b].place < c.place {
			return true
		}
		for _, before := range g.after[c.head] {
			if before == b {
				return true
			}
			if !seen[before] {
				seen[before] = true
				queue = append(queue, before)
			}
		}
	}
	return false
}

// ids are the ids of all steps.
func (g *graph) ids() []string {
	ids := make([]string, 0, len(g.steps))
	for _, s := range g.steps {
		if s.ID.Written() {
			ids = append(ids, s.ID.Value)
		}
	}
	return ids
}
