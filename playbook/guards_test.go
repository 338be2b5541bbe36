package playbook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestGuardsAgainstRuns compares the analysis of pauses with running: a
// simulator that knows only what [Step] says of order and gotos takes every
// course that a small playbook can take. A step that some course begins with
// nobody asked is not guarded. The other way round the analysis may be stricter
// than need be; how often is bounded, or it could say of everything that it is
// not guarded.
func TestGuardsAgainstRuns(t *testing.T) {
	steps, stricter := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawPlaybook(t)
		p, err := Parse("drawn.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		g := newGraph(p)
		if !leadsBack(g) {
			return // another check refuses it
		}
		d := newGuards(g, func(i int) bool { _, ok := p.Steps[i].Work.(*Pause); return ok })
		sim := simulate(g)
		for i, s := range p.Steps {
			if sim.unasked[i] && d.before[i] {
				t.Fatalf("step %s can begin with nobody asked, and is called guarded:\n%s", s.ID.Value, text)
			}
			if sim.begun[i] {
				steps++
				if !sim.unasked[i] && !d.before[i] {
					stricter++
				}
			}
		}
	})
	if stricter > steps/20 {
		t.Errorf("%d of %d steps are called unguarded, and no course shows it", stricter, steps)
	}
}

// TestRepeatsAgainstRuns: a step that some course begins twice is one that the
// check of repeats would report if it were irreversible.
func TestRepeatsAgainstRuns(t *testing.T) {
	once, reported := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawPlaybook(t)
		p, err := Parse("drawn.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		g := newGraph(p)
		if !leadsBack(g) {
			return
		}
		sim := simulate(g)
		for i, s := range p.Steps {
			found := g.shared(i) >= 0 || slices.ContainsFunc(g.gotos, func(j jump) bool { return g.repeats(j, i) })
			switch {
			case sim.twice[i] && !found:
				t.Fatalf("step %s can begin twice, and no goto is reported:\n%s", s.ID.Value, text)
			case sim.begun[i] && !sim.twice[i]:
				once++
				if found {
					reported++
				}
			}
		}
	})
	if reported > once/10 {
		t.Errorf("%d of %d steps are reported, and no course begins them twice", reported, once)
	}
}

// leadsBack says whether every goto leads to a handler or back.
func leadsBack(g *graph) bool {
	return !slices.ContainsFunc(g.gotos, func(j jump) bool { return !g.handler(j.to) && !g.back(j.from, j.to) })
}

// drawPlaybook makes a small playbook of runs and pauses with every way to go on.
func drawPlaybook(t *rapid.T) string {
	n, handlers := rapid.IntRange(2, 5).Draw(t, "steps"), rapid.IntRange(0, 2).Draw(t, "handlers")
	var b strings.Builder
	b.WriteString("playbook: drawn\nsteps:\n")
	for i := range n + handlers {
		work := rapid.SampledFrom([]string{"type: run, run: ./a", "type: run, run: ./a", "type: pause, reason: x"}).Draw(t, "work")
		fmt.Fprintf(&b, "  - {id: s%d, %s", i, work)
		var back []string // where a goto may lead: handlers, and steps that this one follows for sure
		for h := n; h < n+handlers; h++ {
			back = append(back, fmt.Sprintf("{goto: s%d}", h))
		}
		if i < n {
			if rapid.IntRange(0, 3).Draw(t, "needs") == 0 {
				needs := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 2, rapid.ID[int]).Draw(t, "which")
				needs = slices.DeleteFunc(needs, func(j int) bool { return j >= i })
				ids := make([]string, len(needs))
				for k, j := range needs {
					ids[k] = fmt.Sprintf("s%d", j)
				}
				fmt.Fprintf(&b, ", needs: [%s]", strings.Join(ids, ", "))
			}
			if rapid.IntRange(0, 3).Draw(t, "when") == 0 {
				b.WriteString(", when: 1 == 1")
			}
			back = append(back, fmt.Sprintf("{goto: s%d}", rapid.IntRange(0, i).Draw(t, "back")))
		} else {
			b.WriteString(", handler: true")
			then := append([]string{"fail", "continue"}, back...)
			then = append(then, fmt.Sprintf("{goto: s%d}", rapid.IntRange(0, n-1).Draw(t, "back")))
			fmt.Fprintf(&b, ", then: %s", rapid.SampledFrom(then).Draw(t, "then"))
		}
		fail := append([]string{"fail", "fail", "continue"}, back...)
		fmt.Fprintf(&b, ", on_fail: %s}\n", rapid.SampledFrom(fail).Draw(t, "on_fail"))
	}
	return b.String()
}

// standing is where a step stands in a course.
type standing uint8

const (
	pending standing = iota
	passed           // what follows it may go on
	stopped          // it failed or was skipped, and what follows it is skipped
)

// course is a run so far.
type course struct {
	state []standing
	begun []bool
	asked bool // a person said yes
	jumps int
}

func (c course) with(i int, s standing) course {
	c.state = slices.Clone(c.state)
	c.state[i] = s
	return c
}

// mostJumps bounds the gotos of a course.
const mostJumps = 3

type simulator struct {
	graph   *graph
	seen    map[string]bool
	unasked []bool // steps that began with nobody asked
	begun   []bool
	twice   []bool
}

// simulate takes every course of a playbook.
func simulate(g *graph) *simulator {
	n := len(g.steps)
	m := &simulator{graph: g, seen: map[string]bool{}, unasked: make([]bool, n), begun: make([]bool, n), twice: make([]bool, n)}
	m.explore(course{state: make([]standing, n), begun: make([]bool, n)})
	return m
}

// explore takes every course from here on.
func (m *simulator) explore(c course) {
	key := fmt.Sprint(c)
	if m.seen[key] {
		return
	}
	m.seen[key] = true
	for i, s := range m.graph.steps {
		if s.Handler.Value || c.state[i] != pending || slices.ContainsFunc(m.graph.after[i], func(n int) bool { return c.state[n] == pending }) {
			continue
		}
		if slices.ContainsFunc(m.graph.after[i], func(n int) bool { return c.state[n] == stopped }) {
			m.explore(c.with(i, stopped))
			continue
		}
		if s.When.Written() {
			m.explore(c.with(i, unless(s.lifts())))
		}
		m.begin(c, i, i)
	}
}

// unless is where a step stands that did not pass.
func unless(lifted bool) standing {
	if lifted {
		return passed
	}
	return stopped
}

// begin runs a step, or a handler for the step at which it all began.
func (m *simulator) begin(c course, i, origin int) {
	s := m.graph.steps[i]
	m.begun[i] = true
	m.twice[i] = m.twice[i] || c.begun[i]
	c.begun = slices.Clone(c.begun)
	c.begun[i] = true
	m.unasked[i] = m.unasked[i] || !c.asked
	yes := c
	if _, ok := s.Work.(*Pause); ok {
		yes.asked = true
	}
	m.pass(yes, i, origin)
	switch {
	case s.lifts():
		m.pass(c, i, origin)
	case s.OnFail.Do == DoGoto:
		m.jump(c, s.OnFail, origin)
	default:
		m.explore(c.with(origin, stopped))
	}
}

// pass goes on behind a step, or behind a handler.
func (m *simulator) pass(c course, i, origin int) {
	s := m.graph.steps[i]
	switch {
	case !s.Handler.Value || s.Then.Do == DoContinue:
		m.explore(c.with(origin, passed))
	case s.Then.Do == DoGoto:
		m.jump(c, s.Then, origin)
	default:
		m.explore(c.with(origin, stopped))
	}
}

// jump takes a goto.
func (m *simulator) jump(c course, a *Action, origin int) {
	if c.jumps++; c.jumps > mostJumps {
		return
	}
	to := m.graph.byID[a.Goto.Value]
	if m.graph.handler(to) {
		m.begin(c, to, origin)
		return
	}
	c = c.with(to, pending)
	for i := range m.graph.steps {
		if !m.graph.handler(i) && m.graph.follows(i, to) {
			c.state[i] = pending
		}
	}
	c.state[origin] = pending
	m.explore(c)
}
