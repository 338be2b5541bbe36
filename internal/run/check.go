package run

import (
	"fmt"
	"slices"
)

// Rejection is why an event was not taken. A late one is no fault of anybody's: a
// host writes down that it came, and goes on.
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
	switch {
	case s.Phase == Over:
		return fmt.Sprintf("it has ended (%s, %s)", s.Then.Status, s.Then.Reason)
	case !possible(s.Phase, e.Kind()):
		return "it has no place here"
	case !s.Clock.Held && byWorker(e):
		return "no worker holds it"
	}
	switch e := e.(type) {
	case ModelStarted:
		return s.refuseAttempt(e.Step, e.Attempt-1)
	case ModelAnswered:
		return s.refuseAttempt(e.Step, e.Attempt)
	case ModelWithheld:
		return s.refuseAttempt(e.Step, e.Attempt)
	case ModelFailed:
		return s.refuseAttempt(e.Step, e.Attempt)
	case CallStarted:
		return s.refuseCall(e.Step, e.Call, Due)
	case CallFinished:
		return s.refuseCall(e.Step, e.Call, Running)
	case Resolved:
		return s.refuseCall(e.Step, e.Call, InDoubt)
	case Asked:
		return s.refuseAsked(e)
	case Decided:
		return s.refuseDecision(e)
	case Replied:
		return s.refuseReply(e)
	case Expired:
		return s.refuseExpiry(e)
	case AnswerReleased:
		if e.Step != s.Step.Number || s.Step.Release == 0 {
			return "no answer is to be released"
		}
	case StepEvaluated:
		return s.refuseEvaluation(e)
	case Cancelled, InternalError:
		return s.refuseStop()
	case TimedOut:
		if e.When().Before(s.Deadline()) {
			return "its time is not up"
		}
		return s.refuseStop()
	case Ended:
		if e.Status != s.Then.Status || e.Reason != s.Then.Reason {
			return fmt.Sprintf("its outcome is %s, %s", s.Then.Status, s.Then.Reason)
		}
	}
	return ""
}

// byWorker reports whether only the worker that holds the run may say this.
// People, and the machine, may speak at any time.
func byWorker(e Event) bool {
	switch e.(type) {
	case Created, Claimed, Decided, Replied, Expired, Resolved, Cancelled, InternalError:
		return false
	}
	return true
}

func (s State) refuseAttempt(step, attempt int) string {
	if step != s.Step.Number || attempt != s.Step.Attempt {
		return fmt.Sprintf("it is at step %d, and has made %d attempts", s.Step.Number, s.Step.Attempt)
	}
	return ""
}

func (s State) refuseCall(step, call int, stage Stage) string {
	if step != s.Step.Number {
		return fmt.Sprintf("it is at step %d", s.Step.Number)
	}
	w, ok := s.call(call)
	if !ok {
		return fmt.Sprintf("the step has no call %d", call)
	}
	if w.Stage != stage {
		return fmt.Sprintf("call %d is %s, not %s", call, w.Stage, stage)
	}
	return ""
}

func (s State) refuseAsked(e Asked) string {
	if e.Step != s.Step.Number || s.due(e.About, e.Call) < 0 {
		return "no such question is due"
	}
	if _, taken := s.open(e.ID); taken || e.ID == "" {
		return fmt.Sprintf("%q cannot be the id of a question", e.ID)
	}
	if !e.When().Before(e.Expires) {
		return "the question would be born expired"
	}
	return ""
}

func (s State) refuseDecision(e Decided) string {
	q, ok := s.open(e.ID)
	switch {
	case !ok:
		return fmt.Sprintf("%s is not open", e.ID)
	case q.About == AboutReply:
		return fmt.Sprintf("%s asks for an answer, not for a decision", e.ID)
	case q.Digest != e.Digest:
		return fmt.Sprintf("%s is not about what was shown", e.ID)
	case !q.inTime(e.Made, e.When()):
		return fmt.Sprintf("%s had expired", e.ID)
	}
	return ""
}

func (s State) refuseReply(e Replied) string {
	q, ok := s.open(e.ID)
	switch {
	case !ok:
		return fmt.Sprintf("%s is not open", e.ID)
	case q.About != AboutReply:
		return fmt.Sprintf("%s asks for a decision, not for an answer", e.ID)
	case !q.inTime(e.Made, e.When()):
		return fmt.Sprintf("%s had expired", e.ID)
	}
	return ""
}

func (s State) refuseExpiry(e Expired) string {
	q, ok := s.open(e.ID)
	switch {
	case !ok:
		return fmt.Sprintf("%s is not open", e.ID)
	case e.When().Before(q.Expires):
		return fmt.Sprintf("%s has not expired", e.ID)
	}
	return ""
}

func (s State) refuseEvaluation(e StepEvaluated) string {
	pause := 0
	if s.Phase == Pausing {
		pause = s.Pauses + 1
	}
	if e.Step != s.Step.Number || e.Pause != pause {
		return fmt.Sprintf("what is to be evaluated is step %d, pause %d", s.Step.Number, pause)
	}
	return ""
}

// refuseStop speaks for the outcome that came first.
func (s State) refuseStop() string {
	if s.Phase == Judging && s.Then.stops() {
		return fmt.Sprintf("its outcome is decided (%s, %s)", s.Then.Status, s.Then.Reason)
	}
	return ""
}

// possible reports whether the table has the event in the phase.
func possible(p Phase, kind string) bool {
	return slices.ContainsFunc(Transitions, func(t Transition) bool { return t.From == p && t.On == kind })
}
