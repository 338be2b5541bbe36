package flow

import (
	"context"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
)

// A ledger writes what happens in a hold, in order. Its zero batch is empty.
type ledger struct {
	store   journal.Store
	lease   journal.Lease
	row     journal.Run
	status  journal.Status // on the row, as this hold has set it
	durable int            // events of the run that are durable
	batch   batch
}

// batch is what is to be written together.
type batch struct {
	before  []func(context.Context, journal.Tx) error
	entries []journal.Entry
}

func (b batch) empty() bool { return len(b.entries) == 0 && len(b.before) == 0 }

// happen applies an event that the run takes, has it written with the next flush,
// and reports true. One that the run does not take changes nothing: it was late.
func (t *hold) happen(e steps.Event) bool {
	if err := steps.Check(t.state, e); err != nil {
		t.h.Log.Debug("not taken", "run", t.row.Run, "event", e.Kind(), "why", err)
		return false
	}
	entry, err := entryOf(e)
	if err != nil {
		t.fail(err)
		return false
	}
	t.state = steps.Apply(t.state, e)
	t.batch.entries = append(t.batch.entries, entry)
	return true
}

// fail ends the run: the host cannot go on with it.
func (t *hold) fail(why error) {
	t.happen(steps.InternalError{Stamp: now(), Error: strings.ToValidUTF8(why.Error(), "\uFFFD")})
}

// flush writes what has happened, and the status that the row comes to: to, or, if
// to is nil, that it runs. It returns when all of it is durable. A failure ends the
// hold: the journal then has a beginning of what happened, and the run is taken up
// from there.
func (t *hold) flush(to *journal.Change) error {
	b := t.batch
	if to == nil && t.status != journal.Running {
		to = &journal.Change{Status: journal.Running}
	}
	if b.empty() && to == nil && t.durable == t.state.Events {
		return nil
	}
	t.batch = batch{}
	err := t.store.Update(t.ctx, func(ctx context.Context, tx journal.Tx) error {
		for _, before := range b.before {
			if err := before(ctx, tx); err != nil {
				return err
			}
		}
		if len(b.entries) > 0 {
			if _, err := tx.Append(ctx, t.lease, b.entries...); err != nil {
				return err
			}
		}
		if to == nil {
			return nil
		}
		if err := tx.SetStatus(ctx, t.lease, *to); err != nil {
			return err
		}
		return engine.Tell(ctx, tx, t.row, *to)
	})
	if err != nil {
		return err
	}
	if to != nil {
		t.status = to.Status
	}
	t.durable = t.state.Events
	return nil
}

// entryOf is the journal's form of an event.
func entryOf(e steps.Event) (journal.Entry, error) {
	kind, payload, err := steps.Marshal(e)
	if err != nil {
		return journal.Entry{}, err
	}
	return journal.Entry{Kind: kind, At: e.When(), Content: contentOf(e), Payload: payload}, nil
}

// contentOf says which events have the words of people, models and programs.
func contentOf(e steps.Event) journal.Content {
	switch e.(type) {
	case steps.Created, steps.Weighed, steps.StepEnded, steps.Observed, steps.Asked, steps.Decided, steps.Resolved, steps.Ended:
		return journal.Text
	}
	return journal.Structure
}

// segmentsOf are the text of an attempt as it is journaled.
func segmentsOf(step, attempt int) *journal.Segments {
	return &journal.Segments{Step: step, Attempt: attempt}
}

// later writes segments of text without waiting. One that fails has lost the lease,
// which the hold finds out with its next write.
func (l *ledger) later(all []journal.Released, at time.Time) error {
	var entries []journal.Entry
	for _, r := range all {
		e, err := r.Entry()
		if err != nil {
			return err
		}
		e.At = at
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil
	}
	lease := l.lease
	l.store.Later(func(ctx context.Context, tx journal.Tx) error {
		_, err := tx.Append(ctx, lease, entries...)
		return err
	})
	return nil
}
