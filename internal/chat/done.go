package chat

import (
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/internal/run"
)

// outcome is how a run stands where its stream ends.
type outcome struct {
	status  run.Status
	reason  run.Reason
	message string
}

func (r *Reader) outcome() outcome {
	return outcome{status: r.state.Status(), reason: r.state.Reason(), message: r.state.Message}
}

// done closes a stream.
func (r *Reader) done(o outcome) Done {
	d := Done{
		Status: string(o.status), Reason: string(o.reason), Message: o.message,
		Run: string(r.row.Run), Session: string(r.row.Session),
		Guard: r.withheld.Guard, Rule: r.withheld.Rule,
	}
	switch o.status {
	case run.StatusCompleted:
		d.Success = true
		d.Guard, d.Rule = "", ""
		d.Message = r.state.Step.Answer.Text
	case run.StatusBlocked:
		d.Status = StatusBlocked
		d.Answer = r.text
	case run.StatusWaitingApproval, run.StatusWaitingInput, run.StatusWaitingDecision:
		d = r.pause(d, o.status)
	default:
		d.Answer = r.text
	}
	return d
}

// pause says what the run waits for, all of it, and names the most urgent.
func (r *Reader) pause(d Done, s run.Status) Done {
	d.Answer = r.text
	for _, q := range r.state.Questions {
		if q.About == run.AboutReply {
			asked := r.question(q)
			d.Question = &asked
			continue
		}
		d.Approvals = append(d.Approvals, r.approval(q))
	}
	for i, w := range r.state.Step.Work {
		if w.Stage == run.InDoubt {
			t := toolOf(r.state.Step.Number, i+1, w)
			t.Args = w.Args
			d.InDoubt = append(d.InDoubt, t)
		}
	}
	switch s {
	case run.StatusWaitingDecision:
		d.Reason = ReasonInDoubt
		d.Message = "Waiting for a decision: " + called(d.InDoubt) + " may have taken effect, and its end was lost."
	case run.StatusWaitingApproval:
		d.Status = StatusApproval
		d.Reason = ReasonApproval
		d.Message = "Waiting for approval: " + whats(d.Approvals) + "."
	default:
		d.Reason = ReasonInput
		d.Message = d.Question.Text
	}
	return d
}

func called(calls []Tool) string {
	names := make([]string, len(calls))
	for i, t := range calls {
		names[i] = fmt.Sprintf("%s (step %d, call %d)", t.Tool, t.Step, t.Call)
	}
	return strings.Join(names, ", ")
}

func whats(as []Approval) string {
	lines := make([]string, len(as))
	for i, a := range as {
		lines[i] = a.What
	}
	return strings.Join(lines, "; ")
}
