package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// ask puts a question to a person: its row and the event are one write.
func (t *tenure) ask(eff run.Ask) func() {
	fail := func(err error) func() {
		t.fail(fmt.Errorf("ask about the %s of step %d: %w", eff.About, eff.Step, err))
		return nil
	}
	id, err := t.e.ids.New(journal.ApprovalPrefix)
	if err != nil {
		return fail(err)
	}
	subject, err := t.subject(eff.About, eff.Call)
	if err != nil {
		return fail(err)
	}
	digest, err := approval.Digest(subject)
	if err != nil {
		return fail(err)
	}
	request := approval.Request{
		ID: id, About: eff.About.String(), Subject: subject,
		Expires: time.Now().Add(cmp.Or(t.agent.Expire, 24*time.Hour)).UTC().Truncate(time.Microsecond),
	}
	if t.agent.SecondPerson {
		request.NotBy = t.row.Starter
	}
	asked := t.happen(run.Asked{
		Stamp: now(), Step: eff.Step, About: eff.About, Call: eff.Call,
		ID: string(id), Digest: hex.EncodeToString(digest[:]), Expires: request.Expires,
	})
	if !asked {
		return nil
	}
	t.batch.before = append(t.batch.before, func(ctx context.Context, tx journal.Tx) error {
		_, err := approval.Ask(ctx, tx, t.lease, request)
		return err
	})
	return func() {} // the question is durable before anybody is told of it
}

// subject is what a question is about, as the run and its profile stand.
func (t *tenure) subject(about run.About, call int) (approval.Subject, error) {
	id, step := t.row.Run, t.state.Step.Number
	switch about {
	case run.AboutCall, run.AboutReply:
		w := t.state.Step.Work[call-1]
		if about == run.AboutReply {
			return approval.Reply{Run: id, Step: step, Call: call, Question: w.Args}, nil
		}
		return approval.Call{
			Run: id, Step: step, Call: call, Tool: w.Tool, Args: json.RawMessage(w.Args),
			Workdir: t.row.Workdir, ProfileDigest: t.agent.ProfileDigest,
		}, nil
	case run.AboutRequest, run.AboutAnswer:
		keeper, ok := t.agent.Model.(Withholder)
		if !ok {
			return nil, errNotKept
		}
		c := ModelCall{Run: t.row, State: t.state, Step: step, Attempt: t.state.Step.Attempt}
		text, findings, err := keeper.Withheld(c, about)
		if err != nil {
			return nil, err
		}
		return approval.Withheld{Run: id, Step: step, Side: about.String(), Text: text, Findings: findings}, nil
	case run.AboutStep:
		signals, err := t.judgement(step)
		return approval.Going{Run: id, Step: step, Signals: signals}, err
	}
	return nil, fmt.Errorf("no question is about a %s", about)
}

// judgement is the evaluator's record of a step, from the journal.
func (t *tenure) judgement(step int) (json.RawMessage, error) {
	if err := t.flush(true, nil); err != nil {
		return nil, err
	}
	var found json.RawMessage
	for r, err := range t.store.Events(t.ctx, t.lease.Ref, 0) {
		if err != nil {
			return nil, err
		}
		if r.Kind != (run.StepEvaluated{}).Kind() {
			continue
		}
		var stored struct {
			Step, Pause int
			Signals     json.RawMessage
		}
		if err := r.Decode(&stored); err != nil {
			return nil, err
		}
		if stored.Step == step && stored.Pause == 0 {
			found = stored.Signals
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the journal has no judgement of step %d", step)
	}
	return found, nil
}

// look takes in what others have written for the run: that somebody wants it
// cancelled, and what was decided of what it asks.
func (t *tenure) look() error {
	row, err := t.store.Run(t.ctx, t.lease.Ref)
	if err != nil {
		return err
	}
	if row.CancelBy != "" {
		t.happen(run.Cancelled{Stamp: now(), By: row.CancelBy})
	}
	for _, q := range t.state.Questions {
		if q.ID == "" {
			continue
		}
		if err := t.takeDecision(q); err != nil {
			return fmt.Errorf("take the decision on %s: %w", q.ID, err)
		}
	}
	return nil
}

// takeDecision takes in what became of a question, if something did. The row is
// marked as used in the write that also appends the event.
func (t *tenure) takeDecision(q run.Question) error {
	row, err := t.store.Question(t.ctx, t.lease.Tenant, journal.ID(q.ID))
	if err != nil {
		return err
	}
	if row.State == journal.QuestionPending && time.Now().Before(q.Expires) {
		return nil
	}
	asked, err := digestOf(q)
	if err != nil {
		return err
	}
	seen := approval.Taken{Question: row}
	subject, err := t.subject(q.About, q.Call)
	gone := errors.Is(err, journal.ErrNotFound) // an answer that was destroyed: nothing binds to it
	if err != nil && !gone {
		return err
	}
	if !gone {
		would, err := approval.Digest(subject)
		if err != nil {
			return err
		}
		seen.Bound = would == asked && would == row.Digest
	}
	event := verdict(q, seen)
	if run.Check(t.state, event) != nil {
		return nil // the run has moved on, and asks this no longer
	}
	t.batch.before = append(t.batch.before, func(ctx context.Context, tx journal.Tx) error {
		taken := approval.Taken{}
		var err error
		if gone {
			taken.Question, err = tx.Use(ctx, t.lease, row.ID)
		} else {
			taken, err = approval.Take(ctx, tx, t.lease, row.ID, asked, subject)
		}
		if err != nil {
			return err
		}
		if taken.Bound != seen.Bound || taken.State != seen.State && taken.State != journal.QuestionExpired {
			return errors.New("the row changed while it was read")
		}
		return nil
	})
	t.happen(event)
	return nil
}

// verdict is what a taken decision means to the run. A decision that is not about
// what would go on is a no.
func verdict(q run.Question, taken approval.Taken) run.Event {
	decided := run.Decided{Stamp: now(), ID: q.ID, Digest: q.Digest, By: taken.By, Reason: taken.Text, Made: taken.Decided}
	switch {
	case taken.State == journal.QuestionPending || taken.State == journal.QuestionExpired:
		return run.Expired{Stamp: now(), ID: q.ID}
	case q.About == run.AboutReply && taken.State == journal.QuestionAnswered:
		return run.Replied{Stamp: now(), ID: q.ID, By: taken.By, Text: taken.Text, Made: taken.Decided}
	case !taken.Bound && taken.State != journal.QuestionDenied: // a no needs nothing to be about
		decided.By, decided.Reason = "stoplog", "what was decided is not what would go on"
		return decided
	}
	decided.Approved = taken.Approved()
	return decided
}

func digestOf(q run.Question) (d [32]byte, err error) {
	b, err := hex.DecodeString(q.Digest)
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("%q is not a digest", q.Digest)
	}
	return [32]byte(b), nil
}

// resolve carries out what a person says of a call in doubt.
func (t *tenure) resolve(r Resolution) error {
	if r.Step == 0 {
		r.Step = t.state.Step.Number
	}
	if r.Call == 0 {
		for i, w := range t.state.Step.Work {
			if w.Stage != run.InDoubt {
				continue
			}
			if r.Call != 0 {
				return errors.New("several calls are in doubt: say which")
			}
			r.Call = i + 1
		}
	}
	e := run.Resolved{Stamp: now(), Step: r.Step, Call: r.Call, Choice: r.Choice, By: r.By, Text: r.Text}
	if err := run.Check(t.state, e); err != nil {
		return err
	}
	t.happen(e)
	return t.flush(true, &journal.Change{Status: journal.Running})
}
