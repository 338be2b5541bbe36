package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Account is what there is to say of a run afterwards: what ran, what was decided
// of it, and why it stopped.
type Account struct {
	Run     string    `json:"run"`
	Profile string    `json:"profile"`
	Task    string    `json:"task"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"` // that the run ended with
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	// Purged: the payload of an event is gone, and with it what came behind it.
	Purged bool `json:"purged,omitempty"`
	// Spend is what the run took of models.
	Spend Spend `json:"spend"`
	// Entries are in the order in which things happened.
	Entries []Entry `json:"entries"`
}

// Entry is one thing that happened.
type Entry struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Step int       `json:"step,omitempty"`
	// What is the event's kind, and Text says it in a line.
	What string `json:"what"`
	Text string `json:"text"`
	// Request is the request of the run in whose log it stands, and Seq is its
	// number there; empty: it stands in the run's own.
	Request string `json:"request,omitempty"`
	// Signals is what the evaluator said, where it was asked.
	Signals []Signal `json:"signals,omitempty"`
}

// Signal is one signal's part in an evaluation.
type Signal struct {
	Signal string  `json:"signal"`
	Mode   string  `json:"mode"`
	Result string  `json:"result"`
	Would  string  `json:"would,omitempty"` // of one in shadow: what it would have done
	Value  float64 `json:"value,omitempty"`
	Limit  float64 `json:"limit,omitempty"`
	Note   string  `json:"note,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// AccountOf reads a run's log and gives account of it.
func AccountOf(ctx context.Context, s journal.Reader, ref journal.Ref) (Account, error) {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return Account{}, err
	}
	a := Account{
		Run: string(row.Run), Profile: row.Profile, Status: string(row.Status), Reason: row.Reason,
		Began: row.Created, Ended: row.Ended, Entries: []Entry{},
	}
	if a.Spend, err = SpendOf(ctx, s, ref); err != nil {
		return Account{}, err
	}
	r := NewReader(row)
	for rec, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return Account{}, err
		}
		if !rec.Purged.IsZero() {
			a.Purged = true
			return a, nil
		}
		before := r.state
		if _, err := r.Take(rec); err != nil {
			return Account{}, err
		}
		if e, ok, err := entry(rec, before); err != nil {
			return Account{}, err
		} else if ok {
			a.Entries = append(a.Entries, e)
		}
	}
	if err := a.addRequests(ctx, s, ref); err != nil {
		return Account{}, err
	}
	a.Task, a.Message = r.state.Task, r.state.Message
	return a, nil
}

// entry says what a record is about, given the state that it came upon.
func entry(rec journal.Record, before run.State) (Entry, bool, error) {
	e := Entry{Seq: rec.Seq, At: rec.At, What: rec.Kind}
	switch {
	case rec.Kind == journal.RequestVerdict:
		var v journal.Verdict
		if err := rec.Decode(&v); err != nil {
			return e, false, err
		}
		e.Step = before.Step.Number
		e.Text = sayVerdict(v)
		return e, true, nil
	case rec.Kind == journal.RequestWithheld:
		var v journal.Withheld
		if err := rec.Decode(&v); err != nil {
			return e, false, err
		}
		e.Text = fmt.Sprintf("the rest of the answer was withheld by %s, rule %s, and waits for a person: %s", v.Guard, v.Rule, v.Approval)
		if v.Denied != "" {
			e.Text += ", who can only deny it: " + v.Denied
		}
		return e, true, nil
	case !isRun(rec.Kind):
		return e, false, nil
	}
	event, err := run.Unmarshal(rec.Kind, rec.At, rec.Payload)
	if err != nil {
		return e, false, fmt.Errorf("event %d of %s: %w", rec.Seq, rec.Ref.Run, err)
	}
	e.Step, e.Text = say(event, before)
	if why := run.Check(before, event); why != nil {
		e.Text += " (too late: " + why.Error() + ")"
	}
	if judged, ok := event.(run.StepEvaluated); ok {
		e.Signals = SignalsOf(judged.Evaluation)
	}
	return e, true, nil
}

// say says an event in a line, and which step it is of.
func say(e run.Event, s run.State) (step int, text string) {
	switch e := e.(type) {
	case run.Created:
		return 0, "asked: " + e.Task
	case run.Claimed:
		return 0, "taken up by " + e.By
	case run.ModelStarted:
		return e.Step, fmt.Sprintf("the model is asked (attempt %d)", e.Attempt)
	case run.ModelAnswered:
		return e.Step, "the model answered" + after(e.Answer.Text) + calls(e.Answer.Calls)
	case run.ModelWithheld:
		what, verdict := "the answer", "withheld"
		if e.Request {
			what = "the request"
		}
		if e.Deny {
			verdict = "denied"
		}
		return e.Step, fmt.Sprintf("guard %s %s %s (rule %s)", e.Guard, verdict, what, e.Rule)
	case run.ModelFailed:
		return e.Step, "the model failed: " + e.Error
	case run.BudgetSpent:
		return s.Step.Number, "out of budget: " + e.Envelope
	case run.CallStarted:
		return e.Step, fmt.Sprintf("call %d (%s) started", e.Call, tool(s, e.Call))
	case run.CallFinished:
		verb := "returned"
		if e.Failed {
			verb = "failed"
		}
		return e.Step, fmt.Sprintf("call %d (%s) %s%s", e.Call, tool(s, e.Call), verb, after(e.Text))
	case run.AnswerReleased:
		return e.Step, "the withheld answer was let out"
	case run.StepEvaluated:
		return e.Step, judged(e)
	case run.Ended:
		return 0, fmt.Sprintf("ended: %s (%s)", e.Status, e.Reason)
	}
	return s.Step.Number, sayPerson(e, s)
}

// sayPerson says what has to do with people, and what came from outside.
func sayPerson(e run.Event, s run.State) string {
	switch e := e.(type) {
	case run.Asked:
		return fmt.Sprintf("%s asks about the %s%s, until %s", e.ID, e.About, ofCall(s, e.Call), e.Expires.Format(time.RFC3339))
	case run.Decided:
		verb := "denied"
		if e.Approved {
			verb = "approved"
		}
		return fmt.Sprintf("%s %s by %s%s", e.ID, verb, e.By, after(e.Reason))
	case run.Replied:
		return fmt.Sprintf("%s answered by %s%s", e.ID, e.By, after(e.Text))
	case run.Expired:
		return e.ID + " expired: nobody decided"
	case run.Resolved:
		return fmt.Sprintf("call %d (%s), in doubt: %s says %s%s", e.Call, tool(s, e.Call), e.By, e.Choice, after(e.Text))
	case run.Cancelled:
		return "cancelled by " + e.By
	case run.TimedOut:
		return "the time limit was reached"
	case run.InternalError:
		return "an error inside stoplog: " + e.Error
	}
	return e.Kind()
}

// judged says what decided an evaluation.
func judged(e run.StepEvaluated) string {
	what := "the step"
	if e.Pause > 0 {
		what = fmt.Sprintf("pause %d", e.Pause)
	}
	worst := e.Evaluation.Worst()
	if worst.Signal == "" {
		return what + " was evaluated: ok"
	}
	return fmt.Sprintf("%s was evaluated: %s, by %s", what, worst.Result, worst.Signal)
}

// SignalsOf is what the signals of an evaluation said.
func SignalsOf(e signal.Evaluation) (all []Signal) {
	for _, r := range e.Reports {
		all = append(all, Signal{
			Signal: r.Signal, Mode: r.Mode.String(), Result: r.Result.String(), Would: r.Would(),
			Value: r.Value, Limit: r.Limit, Note: r.Note, Error: r.Error,
		})
	}
	return all
}

// workOf returns a call of the step that the run is in, numbered from 1; the zero
// Work if there is none.
func workOf(s run.State, call int) run.Work {
	if call < 1 || call > len(s.Step.Work) {
		return run.Work{}
	}
	return s.Step.Work[call-1]
}

func tool(s run.State, call int) string { return workOf(s, call).Tool }

func ofCall(s run.State, call int) string {
	if call == 0 {
		return ""
	}
	w := workOf(s, call)
	return fmt.Sprintf(" %d (%s %s)", call, w.Tool, w.Args)
}

func calls(cs []run.Call) string {
	text := ""
	for i, c := range cs {
		text += fmt.Sprintf("; call %d: %s %s, %s", i+1, c.Tool, c.Args, c.Ruling)
		if c.Why != "" {
			text += " (" + c.Why + ")"
		}
	}
	return text
}

// after is a text behind a colon; nothing if it is empty.
func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
