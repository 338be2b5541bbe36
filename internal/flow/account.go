package flow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
)

// AccountOf reads a playbook's run and gives account of it: what ran, what was
// decided of it, and why it stopped.
func AccountOf(ctx context.Context, s journal.Reader, ref journal.Ref) (chat.Account, error) {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return chat.Account{}, err
	}
	a := chat.Account{
		Run: string(row.Run), Profile: row.Profile, Status: string(row.Status), Reason: row.Reason,
		Began: row.Created, Ended: row.Ended, Entries: []chat.Entry{},
	}
	var state steps.State
	for rec, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return a, err
		}
		if !steps.IsEvent(rec.Kind) {
			continue
		}
		if !rec.Purged.IsZero() {
			a.Purged = true
			return a, nil
		}
		e, err := steps.Unmarshal(rec.Kind, rec.At, rec.Payload)
		if err != nil {
			return a, fmt.Errorf("event %d of %s: %w", rec.Seq, ref.Run, err)
		}
		entry := chat.Entry{Seq: rec.Seq, At: rec.At, What: rec.Kind}
		late := steps.Check(state, e)
		entry.Step, entry.Text = say(e, state)
		if late != nil {
			entry.Text += " (too late: " + late.Error() + ")"
		}
		if judged, ok := e.(steps.StepEvaluated); ok {
			entry.Signals = chat.SignalsOf(judged.Evaluation())
		}
		a.Entries = append(a.Entries, entry)
		state = steps.Apply(state, e)
	}
	a.Task, a.Message = "playbook "+state.Book.Name, state.Message
	return a, nil
}

// say says an event in a line, and which step it is of.
func say(e steps.Event, s steps.State) (step int, text string) {
	name := func(n int) string {
		if n < 1 || n > len(s.Plan.Steps) {
			return "?"
		}
		return s.Plan.Steps[n-1].ID
	}
	asker := func(id string) (int, string) {
		for i, p := range s.Steps {
			if p.Question.ID == id {
				return i + 1, s.Plan.Steps[i].ID + ": "
			}
		}
		return 0, ""
	}
	switch e := e.(type) {
	case steps.Created:
		return 0, sayCreated(e)
	case steps.Claimed:
		return 0, "taken up by " + e.By
	case steps.Weighed:
		return e.Step, name(e.Step) + ": " + sayWeighed(e)
	case steps.StepStarted:
		text := fmt.Sprintf("%s: started (attempt %d)", name(e.Step), e.Attempt)
		if e.Run != "" {
			text += ", as run " + e.Run
		}
		return e.Step, text
	case steps.StepWaits:
		if e.For == "" {
			return e.Step, name(e.Step) + ": its run goes on"
		}
		return e.Step, fmt.Sprintf("%s: its run is %s", name(e.Step), e.For)
	case steps.StepEnded:
		return e.Step, name(e.Step) + ": " + sayEnded(e.Result)
	case steps.Observed:
		return e.Step, fmt.Sprintf("%s: its observer says %s%s", name(e.Step), e.Verdict, behind(e.Why))
	case steps.StepEvaluated:
		return e.Step, name(e.Step) + ": " + sayJudged(e)
	case steps.Asked:
		return e.Step, fmt.Sprintf("%s: asks a person (%s), until %s", name(e.Step), e.ID, e.Expires.Format(time.RFC3339))
	case steps.Filed:
		return e.Step, fmt.Sprintf("%s: %s", name(e.Step), sayFiled(e))
	case steps.Resolved:
		return e.Step, fmt.Sprintf("%s, in doubt: %s says %s%s", name(e.Step), e.By, e.Choice, behind(e.Text))
	case steps.Decided:
		n, who := asker(e.ID)
		verb := "denied"
		if e.Approved {
			verb = "approved"
		}
		return n, fmt.Sprintf("%s%s %s by %s%s", who, e.ID, verb, e.By, behind(e.Reason))
	case steps.Expired:
		n, who := asker(e.ID)
		return n, fmt.Sprintf("%s%s expired: nobody decided", who, e.ID)
	case steps.RunCancelled:
		return 0, "cancelled by " + e.By
	case steps.InternalError:
		return 0, "an error inside stoplog: " + e.Error
	case steps.Ended:
		return 0, fmt.Sprintf("ended: %s (%s)", e.Status, e.Reason)
	}
	return 0, e.Kind()
}

func sayCreated(e steps.Created) string {
	text := fmt.Sprintf("playbook %s from %s, with %d steps", e.Book.Name, e.Book.File, len(e.Plan.Steps))
	for _, in := range e.Book.Inputs {
		text += fmt.Sprintf("; %s = %s", in.Name, in.Value)
	}
	if e.From > 0 {
		text += "; it begins at " + e.Plan.Steps[e.From-1].ID
	}
	return text
}

func sayWeighed(e steps.Weighed) string {
	switch {
	case e.Error != "":
		return "its condition could not be evaluated: " + e.Error
	case e.Holds:
		return "its condition holds"
	}
	return "its condition does not hold"
}

func sayEnded(r steps.Result) string {
	parts := []string{string(r.State)}
	if r.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *r.ExitCode))
	}
	if r.Verdict != "" {
		parts = append(parts, "verdict "+r.Verdict)
	}
	if r.Served != "" {
		parts = append(parts, "served by "+r.Served)
	}
	if r.Usage != nil && r.Usage.Input+r.Usage.Output > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens in, %d out", r.Usage.Input, r.Usage.Output))
	}
	return strings.Join(parts, ", ") + behind(r.Why)
}

func sayJudged(e steps.StepEvaluated) string {
	worst := e.Evaluation().Worst()
	if worst.Signal == "" {
		return "was evaluated: ok"
	}
	return fmt.Sprintf("was evaluated: %s, by %s", worst.Result, worst.Signal)
}

func sayFiled(e steps.Filed) string {
	switch {
	case e.Ticket == "":
		return "what is odd is on record here, and no ticket is kept"
	case e.New:
		return "ticket " + e.Ticket + " was filed"
	}
	return "ticket " + e.Ticket + " has it already"
}

func behind(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
