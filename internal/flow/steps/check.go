package steps

import (
	"fmt"
	"slices"
)

// Rejection is why an event was not taken. A late one is no fault of anybody's.
type Rejection struct {
	Event string // its kind
	Phase Phase
	Why   string
}

func (r *Rejection) Error() string {
	return fmt.Sprintf("%s is not taken while the run is %s: %s", r.Event, r.Phase, r.Why)
}

// Check says whether Apply takes the event in the state: nil if it does, else a
// *Rejection.
func Check(s State, e Event) error {
	if why := refuse(s, e); why != "" {
		return &Rejection{Event: e.Kind(), Phase: s.Phase, Why: why}
	}
	return nil
}

// refuse says what speaks against an event; empty if nothing does.
func refuse(s State, e Event) string {
	_, created := e.(Created)
	switch {
	case s.Phase == Over:
		return fmt.Sprintf("it has ended (%s, %s)", s.Then.Status, s.Then.Reason)
	case created != (s.Phase == Fresh):
		return "it has no place here"
	case byWorker(e) && !s.Held:
		return "no worker holds it"
	}
	switch e := e.(type) {
	case Created:
		return e.Plan.flaw(e.From)
	case Claimed:
		if s.Phase == Resting {
			return "it waits, and there is nothing to do"
		}
	case Weighed:
		return s.refuseStep(e.Step, 0, Weighing)
	case StepStarted:
		return s.refuseStep(e.Step, e.Attempt-1, Due)
	case StepWaits:
		return s.refuseStep(e.Step, 0, Going)
	case StepEnded:
		if !e.Result.State.Over() {
			return fmt.Sprintf("%q is no end", e.Result.State)
		}
		return s.refuseStep(e.Step, e.Attempt, Going)
	case Observed:
		return s.refuseStep(e.Step, e.Attempt, Observing)
	case StepEvaluated:
		return s.refuseStep(e.Step, e.Attempt, Judging)
	case Asked:
		return s.refuseAsked(e)
	case Decided:
		return s.refuseDecision(e)
	case Expired:
		return s.refuseExpiry(e)
	case Resolved:
		return s.refuseStep(e.Step, 0, InDoubt)
	case Filed:
		if e.Step < 1 || e.Step > len(s.Steps) || !s.Step(e.Step).File {
			return "no ticket is to be filed"
		}
	case RunCancelled, InternalError:
		if s.Phase == Ending {
			return fmt.Sprintf("its outcome is decided (%s, %s)", s.Then.Status, s.Then.Reason)
		}
	case Ended:
		if s.Phase != Ending || e.Status != s.Then.Status || e.Reason != s.Then.Reason {
			return fmt.Sprintf("its outcome is %s, %s", s.Then.Status, s.Then.Reason)
		}
	default:
		return "nothing knows it"
	}
	return ""
}

// byWorker reports whether only the worker that holds the run may say this. People,
// and the machine, may speak at any time.
func byWorker(e Event) bool {
	switch e.(type) {
	case Created, Claimed, StepWaits, Decided, Expired, Resolved, RunCancelled, InternalError:
		return false
	}
	return true
}

// refuseStep speaks against what is not the step's turn. Attempt 0 is any.
func (s State) refuseStep(n, attempt int, stage Stage) string {
	if n < 1 || n > len(s.Steps) {
		return fmt.Sprintf("there is no step %d", n)
	}
	switch step := s.Step(n); {
	case step.Stage != stage:
		return fmt.Sprintf("the step %s is %s, not %s", s.Plan.step(n).ID, step.Stage, stage)
	case attempt != step.Started && (attempt != 0 || stage == Due):
		return fmt.Sprintf("the step %s has made %d attempts", s.Plan.step(n).ID, step.Started)
	}
	return ""
}

func (s State) refuseAsked(e Asked) string {
	if why := s.refuseStep(e.Step, 0, Asking); why != "" {
		return why
	}
	if e.ID == "" || s.open(e.ID) > 0 {
		return fmt.Sprintf("%q cannot be the id of a question", e.ID)
	}
	if !e.When().Before(e.Expires) {
		return "the question would be born expired"
	}
	return ""
}

func (s State) refuseDecision(e Decided) string {
	n := s.open(e.ID)
	if n == 0 {
		return fmt.Sprintf("%s is not open", e.ID)
	}
	made := e.Made
	if made.IsZero() {
		made = e.When()
	}
	switch q := s.Step(n).Question; {
	case q.Digest != e.Digest:
		return fmt.Sprintf("%s is not about what was shown", e.ID)
	case !made.Before(q.Expires):
		return fmt.Sprintf("%s had expired", e.ID)
	}
	return ""
}

func (s State) refuseExpiry(e Expired) string {
	n := s.open(e.ID)
	switch {
	case n == 0:
		return fmt.Sprintf("%s is not open", e.ID)
	case e.When().Before(s.Step(n).Question.Expires):
		return fmt.Sprintf("%s has not expired", e.ID)
	}
	return ""
}

// flaw says why a plan cannot be carried out; empty if it can.
func (p Plan) flaw(from int) string {
	if len(p.Steps) == 0 || from < 0 || from > len(p.Steps) {
		return "the plan has no steps, or does not have the one to begin at"
	}
	for _, s := range p.Steps {
		targets := []int{s.Then.To, s.OnFail.To}
		for _, m := range append(s.Verdicts, s.Observer...) {
			targets = append(targets, m.Action.To)
		}
		for _, n := range append(targets, s.After...) {
			if n < 0 || n > len(p.Steps) {
				return fmt.Sprintf("the step %s names a step %d, which there is not", s.ID, n)
			}
		}
	}
	if n := p.cycle(); n > 0 {
		return fmt.Sprintf("the step %s follows itself", p.step(n).ID)
	}
	return ""
}

// cycle returns a step that follows itself; 0 if there is none. What follows nothing
// that is left is taken away, until nothing can be.
func (p Plan) cycle() int {
	behind, left := make([][]int, len(p.Steps)), make([]int, len(p.Steps))
	var free []int
	for i, s := range p.Steps {
		for _, a := range s.After {
			behind[a-1] = append(behind[a-1], i)
		}
		if left[i] = len(s.After); left[i] == 0 {
			free = append(free, i)
		}
	}
	gone := 0
	for ; gone < len(free); gone++ {
		for _, i := range behind[free[gone]] {
			if left[i]--; left[i] == 0 {
				free = append(free, i)
			}
		}
	}
	if gone == len(p.Steps) {
		return 0
	}
	return 1 + slices.IndexFunc(left, func(n int) bool { return n > 0 })
}
