package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// Status is what people and programs are told of where a run stands.
type Status string

const (
	StatusQueued          Status = "queued"           // no worker holds it
	StatusRunning         Status = "running"          //
	StatusWaitingApproval Status = "waiting_approval" // for a decision
	StatusWaitingInput    Status = "waiting_input"    // for an answer to the model's question
	StatusWaitingDecision Status = "waiting_decision" // in doubt: a call may have taken effect

	StatusCompleted Status = "completed"
	StatusBlocked   Status = "blocked" // by policy
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Terminal reports whether the status is one that no run leaves.
func (s Status) Terminal() bool {
	switch s {
	case StatusCompleted, StatusBlocked, StatusFailed, StatusCancelled:
		return true
	}
	return false
}

// Reason says why a run ended as it did. Beside those listed there is
// signal_NAME for each signal, and signal_error for one that could not judge.
type Reason string

const (
	ReasonCompleted       Reason = "completed"
	ReasonGuardDenied     Reason = "guard_denied"
	ReasonApprovalDenied  Reason = "approval_denied"
	ReasonApprovalExpired Reason = "approval_expired"
	ReasonInputExpired    Reason = "input_expired"
	ReasonMaxIterations   Reason = "max_iterations"
	ReasonStalled         Reason = "stalled"
	ReasonToolErrors      Reason = "tool_errors"
	ReasonMalformedOutput Reason = "malformed_output"
	ReasonTimeout         Reason = "timeout"
	ReasonBudgetExceeded  Reason = "budget_exceeded"
	ReasonModelFailed     Reason = "model_failed"
	ReasonAbandoned       Reason = "abandoned"
	ReasonCancelled       Reason = "cancelled"
	ReasonInternalError   Reason = "internal_error"
)

// Outcome is what a run comes to. The zero Outcome is none.
type Outcome struct {
	Status Status
	Reason Reason
	// Why is the sentence that tells the user, without its full stop; empty for
	// a run that has completed.
	Why string
}

// stops reports whether the outcome is one that the evaluator cannot change.
func (o Outcome) stops() bool { return o.Why != "" }

var completed = Outcome{Status: StatusCompleted, Reason: ReasonCompleted}

// A limit that a profile sets, a guard, a signal or a person's no is policy, and
// the run is blocked. Where something broke or ran out, it has failed.

func guardDenied(e ModelWithheld) Outcome {
	what := "the answer"
	if e.Request {
		what = "what was to be sent to the model"
	}
	return Outcome{StatusBlocked, ReasonGuardDenied, fmt.Sprintf("guard %s denied %s (rule %s)", e.Guard, what, e.Rule)}
}

func approvalDenied(q Question, e Decided) Outcome {
	return Outcome{StatusBlocked, ReasonApprovalDenied, fmt.Sprintf("%s was %s", q.About.subject(), denial(e))}
}

func questionExpired(q Question) Outcome {
	if q.About == AboutReply {
		return Outcome{StatusBlocked, ReasonInputExpired, "nobody answered the question in time"}
	}
	return Outcome{StatusBlocked, ReasonApprovalExpired, fmt.Sprintf("nobody approved %s in time", q.About.subject())}
}

func halted(r signal.Report) Outcome {
	why := fmt.Sprintf("the signal %s halted the run", r.Signal)
	if r.Error != "" {
		why = fmt.Sprintf("the signal %s could not judge the run", r.Signal)
	}
	return Outcome{StatusBlocked, Reason("signal_" + r.Cause()), why}
}

func maxIterations(l Limits) Outcome {
	return Outcome{StatusBlocked, ReasonMaxIterations, fmt.Sprintf("the limit of %d steps was reached", l.MaxIterations)}
}

func stalled(l Limits) Outcome {
	return Outcome{StatusBlocked, ReasonStalled, fmt.Sprintf("the same calls gave the same results %d times over", l.Stall)}
}

func toolErrors(n int) Outcome {
	return Outcome{StatusFailed, ReasonToolErrors, fmt.Sprintf("%d tool calls in a row failed", n)}
}

func malformedOutput(n int) Outcome {
	return Outcome{StatusFailed, ReasonMalformedOutput, fmt.Sprintf("%d answers of the model in a row could not be used", n)}
}

func timedOut(l Limits) Outcome {
	return Outcome{StatusFailed, ReasonTimeout, fmt.Sprintf("the time limit of %s was reached", spoken(l.Timeout))}
}

func budgetSpent(e BudgetSpent) Outcome {
	return Outcome{StatusFailed, ReasonBudgetExceeded, "out of budget: " + e.Envelope}
}

func modelFailed(s Step, e ModelFailed) Outcome {
	why := fmt.Sprintf("the model gave no answer (attempts: %d)", s.Attempt)
	if e.Released {
		why = "the model broke off its answer"
	}
	return Outcome{StatusFailed, ReasonModelFailed, why}
}

func internalError(what string) Outcome {
	return Outcome{StatusFailed, ReasonInternalError, what}
}

func abandoned(e Resolved) Outcome {
	return Outcome{StatusCancelled, ReasonAbandoned, fmt.Sprintf("%s abandoned the run", e.By)}
}

func cancelled(e Cancelled) Outcome {
	return Outcome{StatusCancelled, ReasonCancelled, fmt.Sprintf("%s cancelled the run", e.By)}
}

// spoken is a duration without what is zero at its end: 10m, not 10m0s.
func spoken(d time.Duration) string {
	s := d.String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, unit) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Status says where the run stands, in the words of the API. A run that has not
// been created has none.
func (s State) Status() Status {
	switch {
	case s.Phase == Fresh:
		return ""
	case s.Phase == Over:
		return s.Then.Status
	case s.Phase == Waiting:
		return s.waitingFor()
	case !s.Clock.Held:
		return StatusQueued
	}
	return StatusRunning
}

// waitingFor names what a waiting run needs most: what may already have happened
// comes before what may not happen yet, and that before what somebody asks.
func (s State) waitingFor() Status {
	for _, w := range s.Step.Work {
		if w.Stage == InDoubt {
			return StatusWaitingDecision
		}
	}
	for _, q := range s.Questions {
		if q.About != AboutReply {
			return StatusWaitingApproval
		}
	}
	return StatusWaitingInput
}

// Reason says why the run ended; empty before it has.
func (s State) Reason() Reason {
	if s.Phase != Over {
		return ""
	}
	return s.Then.Reason
}
