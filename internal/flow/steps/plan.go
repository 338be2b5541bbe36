package steps

import (
	"maps"
	"slices"
	"time"
)

// Plan is what a playbook's run does: its steps, numbered from 1, and what each
// leads to. It is written down when the run is made; what becomes of the file later
// does not matter to the run.
type Plan struct {
	Steps []Planned `json:"steps"`
}

// Planned is a step as it is planned.
type Planned struct {
	ID   string `json:"id"`
	Type Type   `json:"type"`
	// After are the numbers of the steps that it follows.
	After []int `json:"after,omitempty"`
	// Handler: it runs only when a goto leads to it, and Then says what follows.
	Handler bool   `json:"handler,omitempty"`
	Then    Action `json:"then,omitzero"`

	When bool `json:"when,omitempty"` // it has a condition
	// Attempts is how often it is tried, the first included; at least 1. Before the
	// second it waits for Backoff, and twice as long before each further one.
	Attempts int           `json:"attempts,omitempty"`
	Backoff  time.Duration `json:"backoff_ns,omitempty"`
	// Repeatable: doing it twice does no more than doing it once.
	Repeatable bool `json:"repeatable,omitempty"`
	// Irreversible: it is started once, whatever a verdict says.
	Irreversible bool `json:"irreversible,omitempty"`

	Verdicts []Mapped `json:"verdicts,omitempty"` // of type claude
	OnFail   Action   `json:"on_fail,omitzero"`   // the zero Action is fail

	Observed bool     `json:"observed,omitempty"`
	Observer []Mapped `json:"observer,omitempty"` // what its observer's verdicts lead to
	Tickets  bool     `json:"tickets,omitempty"`  // what its observer finds odd is filed

	// Ceiling is how often a goto may lead back to it.
	Ceiling int `json:"ceiling,omitempty"`
}

// Type is a type of step.
type Type string

const (
	Run      Type = "run"      // a command
	Claude   Type = "claude"   // a verdict of a model
	Agent    Type = "agent"    // a turn of the governed loop: a run of its own
	Pause    Type = "pause"    // a decision of a person
	Playbook Type = "playbook" // another playbook: a run of its own
)

// apart reports whether the step's work is a run of its own, which goes on
// whatever becomes of this one's worker.
func (p Planned) apart() bool { return p.Type == Agent || p.Type == Playbook }

// Action is what something leads to. The zero Action is to fail.
type Action struct {
	Do Do  `json:"do,omitempty"`
	To int `json:"to,omitempty"` // of Goto: the number of a step
}

// Do is a kind of action, in order of severity: of two, the severer is taken.
type Do string

const (
	Continue Do = "continue"
	Retry    Do = "retry"
	Goto     Do = "goto"
	AskFirst Do = "pause"
	Fail     Do = ""
)

var severity = []Do{Continue, Retry, Goto, AskFirst, Fail}

// severer returns the severer of two actions; of two that are alike, a.
func severer(a, b Action) Action {
	if slices.Index(severity, b.Do) > slices.Index(severity, a.Do) {
		return b
	}
	return a
}

// Mapped is what a verdict leads to.
type Mapped struct {
	Verdict string `json:"verdict"`
	Action  Action `json:"action"`
}

// ObserverFailed is the verdict of an observer that gave none.
const ObserverFailed = "observer_failed"

// leads returns what a verdict leads to. One that nobody mapped leads nowhere.
func leads(verdicts []Mapped, verdict string) (Action, bool) {
	for _, m := range verdicts {
		if m.Verdict == verdict {
			return m.Action, true
		}
	}
	return Action{Do: Fail}, false
}

// maxBackoff is as long as an attempt waits for its turn.
const maxBackoff = 5 * time.Minute

// backoff is how long to wait before an attempt, numbered from 2.
func (p Planned) backoff(attempt int) time.Duration {
	d := p.Backoff
	for range attempt - 2 {
		if d >= maxBackoff {
			break
		}
		d *= 2
	}
	return min(d, maxBackoff)
}

// Preceding are the steps that a step follows, directly or not, by number.
func (p Plan) Preceding(n int) []int { return slices.Sorted(maps.Keys(p.precedes(n))) }

// Times is how often a step may be started in a run, at most, if nobody resolves
// what is in doubt: its attempts, for each time that it may have its turn.
func (p Plan) Times(n int) int { return p.turns(n) * p.attempts(n) }

func (p Plan) attempts(n int) int {
	if p.step(n).Irreversible {
		return 1
	}
	return max(1, p.step(n).Attempts)
}

// turns is how often a step may have its turn: once, and again for each time that a
// goto may lead back to it or before it; of a handler, for each turn of the steps
// that lead to it.
func (p Plan) turns(n int) int {
	if p.step(n).Irreversible {
		return 1
	}
	turns := 1
	for to := range p.Steps {
		if p.ledBackTo(to+1) && p.followers(to + 1)[n] {
			turns += p.Steps[to].Ceiling
		}
	}
	if !p.step(n).Handler {
		return turns
	}
	turns = 0
	for from, s := range p.Steps {
		if !s.Handler && slices.Contains(s.targets(), n) {
			turns += p.turns(from + 1)
		}
	}
	return turns
}

// ledBackTo reports whether a goto leads back to a step.
func (p Plan) ledBackTo(n int) bool {
	return !p.step(n).Handler && slices.ContainsFunc(p.Steps, func(s Planned) bool { return slices.Contains(s.targets(), n) })
}

// targets are the steps that a step's gotos lead to.
func (p Planned) targets() (all []int) {
	actions := []Action{p.Then, p.OnFail}
	for _, m := range slices.Concat(p.Verdicts, p.Observer) {
		actions = append(actions, m.Action)
	}
	for _, a := range actions {
		if a.Do == Goto {
			all = append(all, a.To)
		}
	}
	return all
}

// step is the plan of the step with a number.
func (p Plan) step(n int) Planned { return p.Steps[n-1] }

// followers are the steps that follow a step, directly or not, itself included, by
// number.
func (p Plan) followers(n int) map[int]bool {
	set := map[int]bool{n: true}
	for grown := true; grown; {
		grown = false
		for i, s := range p.Steps {
			if !set[i+1] && slices.ContainsFunc(s.After, func(a int) bool { return set[a] }) {
				set[i+1], grown = true, true
			}
		}
	}
	return set
}

// precedes are the steps that a step follows, directly or not, by number.
func (p Plan) precedes(n int) map[int]bool {
	set := map[int]bool{}
	for todo := slices.Clone(p.step(n).After); len(todo) > 0; {
		a := todo[0]
		todo = todo[1:]
		if !set[a] {
			set[a] = true
			todo = append(todo, p.step(a).After...)
		}
	}
	return set
}
