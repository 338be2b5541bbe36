package flow

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/playbook"
)

// planOf makes a playbook's plan.
func planOf(pb *playbook.Playbook) (steps.Plan, error) {
	c := compiler{pb: pb, number: map[string]int{}}
	for i, s := range pb.Steps {
		c.number[s.ID.Value] = i + 1
	}
	var plan steps.Plan
	before := 0
	for i, s := range pb.Steps {
		p, err := c.step(s, before)
		if err != nil {
			return plan, fmt.Errorf("step %s: %w", s.ID.Value, err)
		}
		plan.Steps = append(plan.Steps, p)
		if !s.Handler.Value {
			before = i + 1
		}
	}
	return plan, nil
}

type compiler struct {
	pb     *playbook.Playbook
	number map[string]int
}

// step plans a step; before is the one before it that is no handler.
func (c compiler) step(s *playbook.Step, before int) (p steps.Planned, err error) {
	p = steps.Planned{
		ID: s.ID.Value, Handler: s.Handler.Value, When: s.When.Written(), Attempts: 1,
		Repeatable: repeatable(s), Irreversible: irreversible(s),
		Ceiling: int(cmp.Or(s.MaxIterations.Value, c.pb.MaxIterations.Value)),
	}
	switch work := s.Work.(type) {
	case *playbook.Run:
		p.Type = steps.Run
	case *playbook.Claude:
		p.Type = steps.Claude
		p.Verdicts, err = c.verdicts(work.OnVerdict)
	case *playbook.Agent:
		p.Type = steps.Agent
	case *playbook.Pause:
		p.Type = steps.Pause
	case *playbook.Call:
		p.Type = steps.Playbook
	default:
		err = fmt.Errorf("nothing here runs a %T", s.Work)
	}
	if err != nil {
		return p, err
	}
	if s.Retry != nil {
		p.Attempts = int(s.Retry.Attempts.Value)
		p.Backoff = time.Second
		if s.Retry.Backoff.Written() {
			p.Backoff = s.Retry.Backoff.Value
		}
	}
	if p.After, err = c.after(s, before); err != nil {
		return p, err
	}
	if p.Then, err = c.action(s.Then); err != nil {
		return p, err
	}
	if p.OnFail, err = c.action(s.OnFail); err != nil {
		return p, err
	}
	if s.Observer != nil {
		p.Observed, p.Tickets = true, s.Observer.OnAnomaly.Written()
		p.Observer, err = c.verdicts(s.Observer.OnVerdict)
	}
	return p, err
}

// after are the steps that a step follows.
func (c compiler) after(s *playbook.Step, before int) ([]int, error) {
	if s.Handler.Value {
		return nil, nil
	}
	if !s.Needs.Written() {
		if before == 0 {
			return nil, nil
		}
		return []int{before}, nil
	}
	var all []int
	for _, id := range s.Needs.Value {
		n, err := c.find(id.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (c compiler) find(id string) (int, error) {
	n := c.number[id]
	if n == 0 {
		return 0, fmt.Errorf("there is no step %q", id)
	}
	return n, nil
}

func (c compiler) verdicts(all []playbook.Verdict) (mapped []steps.Mapped, err error) {
	for _, v := range all {
		act, err := c.action(&v.Action)
		if err != nil {
			return nil, err
		}
		mapped = append(mapped, steps.Mapped{Verdict: v.Value.Value, Action: act})
	}
	return mapped, nil
}

var actions = map[playbook.Do]steps.Do{
	playbook.DoContinue: steps.Continue, playbook.DoPause: steps.AskFirst, playbook.DoFail: steps.Fail,
	playbook.DoRetry: steps.Retry, playbook.DoGoto: steps.Goto,
}

func (c compiler) action(a *playbook.Action) (act steps.Action, err error) {
	if a == nil {
		return act, nil
	}
	do, ok := actions[a.Do]
	if !ok {
		return act, fmt.Errorf("nothing here does %q", a.Do)
	}
	act.Do = do
	if do == steps.Goto {
		act.To, err = c.find(a.Goto.Value)
	}
	return act, err
}

// repeatable reports whether a step may be started again after its end was lost. A
// model that may neither write nor run anything changes nothing.
func repeatable(s *playbook.Step) bool {
	switch s.Effect.Value {
	case playbook.Read, playbook.Idempotent:
		return true
	case "":
		if _, ok := s.Work.(*playbook.Claude); ok {
			return s.Scope == nil || len(s.Scope.CanWrite.Value)+len(s.Scope.CanRun.Value)+len(s.Scope.CanReach.Value) == 0
		}
	}
	return false
}

// irreversible reports whether a step is done once, and behind a person. What spends
// money or changes an identity is, unless it is declared to do no more when it is
// done twice.
func irreversible(s *playbook.Step) bool {
	return s.Effect.Value == playbook.Irreversible || len(s.Touches) > 0 && !repeatable(s)
}

// needsPerson reports whether a step may begin only behind a person's yes.
func needsPerson(s *playbook.Step) bool {
	return s.Effect.Value == playbook.Irreversible || len(s.Touches) > 0
}
