package flow

import (
	"context"
	"fmt"
	"iter"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// A Story turns the records of a playbook's run, in order, into the events that its
// readers see. It is a fold: it asks no clock and no store.
type Story struct {
	row   journal.Run
	state steps.State
	gone  bool // a payload was purged: the rest cannot be told
}

// NewStory returns the story of a run, given its row.
func NewStory(row journal.Run) *Story { return &Story{row: row} }

// State is the run as it stands behind the last record.
func (s *Story) State() steps.State { return s.state }

// Take returns what the next record shows.
func (s *Story) Take(rec journal.Record) ([]chat.Item, error) {
	if !rec.Purged.IsZero() {
		s.gone = true
	}
	events, err := s.read(rec)
	if err != nil {
		return nil, fmt.Errorf("event %d of %s: %w", rec.Seq, rec.Ref.Run, err)
	}
	items := make([]chat.Item, len(events))
	for i, e := range events {
		items[i] = chat.Item{At: chat.Position{Seq: rec.Seq, Part: i + 1}, Event: e}
	}
	if n := len(items); n > 0 {
		items[n-1].At.Part = 0
	}
	return items, nil
}

func (s *Story) read(rec journal.Record) ([]chat.Event, error) {
	switch {
	case s.gone && rec.Seq == 1:
		return []chat.Event{chat.Run{ID: string(s.row.Run), Profile: s.row.Profile}}, nil
	case s.gone && rec.Kind == (steps.Ended{}).Kind():
		return []chat.Event{s.done(run.Status(s.row.Status), run.Reason(s.row.Reason), "")}, nil
	case s.gone:
		return nil, nil
	case rec.Kind == journal.TextReleased:
		var t journal.Released
		if err := rec.Decode(&t); err != nil {
			return nil, err
		}
		return []chat.Event{chat.Delta{Step: t.Step, Attempt: t.Attempt, Channel: t.Channel, Start: t.Start, Text: t.Text}}, nil
	case !steps.IsEvent(rec.Kind):
		return nil, nil
	}
	e, err := steps.Unmarshal(rec.Kind, rec.At, rec.Payload)
	if err != nil {
		return nil, err
	}
	if steps.Check(s.state, e) != nil {
		return nil, nil // it came too late, and changed nothing
	}
	before := s.state
	s.state = steps.Apply(before, e)
	return s.tell(e, before), nil
}

// tell is what an event shows: what it says itself, and where it has led.
func (s *Story) tell(e steps.Event, before steps.State) []chat.Event {
	var out []chat.Event
	if _, ok := e.(steps.Created); ok {
		out = append(out, chat.Run{ID: string(s.row.Run), Profile: s.row.Profile, Playbook: s.state.Book.Name})
	}
	for i := range s.state.Steps {
		if len(before.Steps) == 0 || !same(before.Steps[i], s.state.Steps[i]) {
			out = append(out, s.step(i+1))
		}
	}
	switch e := e.(type) {
	case steps.Asked:
		out = append(out, s.approval(e.Step))
	case steps.Ended:
		return append(out, s.done(e.Status, e.Reason, e.Message))
	}
	if s.state.Phase == steps.Resting && before.Phase != steps.Resting {
		out = append(out, s.rest())
	}
	return out
}

// same reports whether there is nothing new to tell of a step.
func same(a, b *steps.Step) bool {
	return a == b || a.Standing() == b.Standing() && a.Started == b.Started && a.Ticket == b.Ticket &&
		a.Observed.Verdict == b.Observed.Verdict && a.Why == b.Why && a.Run == b.Run
}

// step is a step as it stands.
func (s *Story) step(n int) chat.Step {
	p, at := s.state.Plan.Steps[n-1], s.state.Steps[n-1]
	return chat.Step{
		Step: n, ID: p.ID, Type: string(p.Type), State: string(at.Standing()), Attempt: at.Started, Why: at.Why,
		ExitCode: at.Result.ExitCode, Verdict: at.Result.Verdict, Observer: at.Observed.Verdict, Ticket: at.Ticket, Run: at.Run,
	}
}

// Steps are the steps of a run as they stand.
func Steps(s steps.State) []chat.Step {
	story := Story{state: s}
	all := []chat.Step{}
	for i := range s.Steps {
		all = append(all, story.step(i+1))
	}
	return all
}

func (s *Story) approval(n int) chat.Approval {
	q := s.state.Steps[n-1].Question
	return chat.Approval{
		ID: q.ID, Digest: q.Digest, About: q.About, Step: n, Expires: q.Expires,
		What: fmt.Sprintf("step %s of playbook %s", s.state.Plan.Steps[n-1].ID, s.state.Book.Name),
	}
}

// rest is the end of a turn in which the run waits.
func (s *Story) rest() chat.Done {
	d := s.done(s.state.Status(), "", "")
	for i, p := range s.state.Steps {
		switch id := s.state.Plan.Steps[i].ID; {
		case p.Stage == steps.Open:
			d.Approvals = append(d.Approvals, s.approval(i+1))
			d.Message = fmt.Sprintf("The step %s waits for a person.", id)
		case p.Stage == steps.InDoubt:
			d.InDoubt = append(d.InDoubt, chat.Tool{Step: i + 1, Call: 1, Tool: id, State: chat.ToolInDoubt})
			d.Message = fmt.Sprintf("The step %s was begun, and nobody knows how it ended: a person must say.", id)
		case p.Stage == steps.Going && d.Message == "":
			d.Message = fmt.Sprintf("The step %s waits for run %s.", id, p.Run)
		}
	}
	return d
}

// done is the end of a story, or of a part of it.
func (s *Story) done(status run.Status, reason run.Reason, message string) chat.Done {
	d := chat.Done{
		Success: status == run.StatusCompleted, Status: string(status), Reason: string(reason), Message: message, Run: string(s.row.Run),
	}
	switch status {
	case run.StatusBlocked:
		d.Status = chat.StatusBlocked
	case run.StatusWaitingApproval:
		d.Status, d.Reason = chat.StatusApproval, chat.ReasonApproval
	case run.StatusWaitingInput:
		d.Reason = chat.ReasonInput
	case run.StatusWaitingDecision:
		d.Reason = chat.ReasonInDoubt
	}
	return d
}

// Follow reads the story of a run behind a position, and goes on as it grows, until
// the run's end: the last item is then its Done. The Dones of pauses come too.
func Follow(ctx context.Context, store journal.Store, ref journal.Ref, after chat.Position) iter.Seq2[chat.Item, error] {
	return func(yield func(chat.Item, error) bool) {
		row, err := store.Run(ctx, ref)
		if err != nil {
			yield(chat.Item{}, err)
			return
		}
		s := NewStory(row)
		for rec, err := range journal.Follow(ctx, store, ref, 0) {
			var items []chat.Item
			if err == nil {
				if !rec.Purged.IsZero() {
					if s.row, err = store.Run(ctx, ref); err != nil {
						yield(chat.Item{}, err)
						return
					}
				}
				items, err = s.Take(rec)
			}
			if err != nil {
				yield(chat.Item{}, err)
				return
			}
			for _, item := range items {
				if item.At.After(after) && !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Items is the story of a run as far as it has come.
func Items(ctx context.Context, store journal.Reader, ref journal.Ref) ([]chat.Item, error) {
	row, err := store.Run(ctx, ref)
	if err != nil {
		return nil, err
	}
	s := NewStory(row)
	var all []chat.Item
	for rec, err := range store.Events(ctx, ref, 0) {
		if err != nil {
			return nil, err
		}
		items, err := s.Take(rec)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// StateOf reads a playbook's run.
func StateOf(ctx context.Context, store journal.Reader, ref journal.Ref) (steps.State, error) {
	var s steps.State
	for rec, err := range store.Events(ctx, ref, 0) {
		if err == nil {
			err = replay(&s, rec)
		}
		if err != nil {
			return s, fmt.Errorf("read run %s: %w", ref.Run, err)
		}
	}
	return s, nil
}
