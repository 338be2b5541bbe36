package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// A ledger writes what happens in a tenure. What is handed in becomes durable in
// its order: once a write has failed, no later one is made, so that the journal
// has a beginning of what happened and never a part with a hole.
type ledger struct {
	store   journal.Store
	lease   journal.Lease
	status  rowStatus
	durable int         // events of the run that are durable
	since   journal.Run // the row's counts of bytes: whether a snapshot is due

	batch batch

	mu      sync.Mutex
	pending []*journal.Pending // writes that nobody waits for, and whose outcome was not known
	failed  error              // of the first write that failed
}

// batch is what is to be written together.
type batch struct {
	before  []func(context.Context, journal.Tx) error // rows of questions
	entries []journal.Entry
}

func (b batch) empty() bool { return len(b.entries) == 0 && len(b.before) == 0 }

// failure is that of the first write that is known to have failed.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.pending[:0]
	for _, p := range l.pending {
		select {
		case <-p.Done():
			if l.failed == nil {
				l.failed = p.Err()
			}
		default:
			waiting = append(waiting, p)
		}
	}
	l.pending = waiting
	return l.failed
}

// write writes in turn. It is the only way in which a tenure writes. The outcome
// of each write that was handed in before is known when this one's turn comes, or
// both are of one transaction: so it is enough to look back here.
func (l *ledger) write(ctx context.Context, tx journal.Tx, fn func(context.Context, journal.Tx) error) error {
	if err := l.failure(); err != nil {
		return err
	}
	err := fn(ctx, tx)
	if err != nil {
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
	}
	return err
}

// later writes without waiting; a failure stops what comes after.
func (l *ledger) later(fn func(context.Context, journal.Tx) error) {
	l.mu.Lock() // so that no later write looks back before this one is there to be seen
	defer l.mu.Unlock()
	l.pending = append(l.pending, l.store.Later(func(ctx context.Context, tx journal.Tx) error { return l.write(ctx, tx, fn) }))
}

// happen applies an event that the run takes, has it written with the next flush,
// and reports true. One that the run does not take changes nothing: it was late.
func (t *tenure) happen(e run.Event) bool {
	if err := run.Check(t.state, e); err != nil {
		t.e.Log.Debug("not taken", "run", t.lease.Run, "event", e.Kind(), "why", err)
		return false
	}
	entry, err := entryOf(e)
	if err != nil {
		t.fail(err)
		return false
	}
	t.state = run.Apply(t.state, e)
	t.note(entry)
	return true
}

// fail ends the run: the host cannot go on with it.
func (t *tenure) fail(why error) {
	t.happen(run.InternalError{Stamp: now(), Error: strings.ToValidUTF8(why.Error(), "\uFFFD")})
}

// note has an entry written with the next flush.
func (t *tenure) note(entry journal.Entry) {
	t.batch.entries = append(t.batch.entries, entry)
	t.since.Since += int64(len(entry.Payload))
}

// flush hands in what has happened, and the status that the row comes to: to, or,
// if to is nil, the state's. If wait is true it returns when all that happened so
// far is durable.
func (t *tenure) flush(wait bool, to *journal.Change) error {
	if err := t.failure(); err != nil {
		return err
	}
	b := t.batch
	if to == nil {
		to = t.status.change(t.state)
	}
	if b.empty() && to == nil && !(wait && t.durable < t.state.Events) {
		return nil
	}
	t.batch = batch{}
	snapshot, err := t.snapshot(len(b.entries) > 0)
	if err != nil {
		return err
	}
	if to != nil {
		t.status = rowStatus(to.Status)
	}
	row := t.row
	fn := func(ctx context.Context, tx journal.Tx) error {
		if err := b.write(ctx, tx, t.lease, snapshot, to); err != nil || to == nil {
			return err
		}
		return Tell(ctx, tx, row, *to)
	}
	if !wait {
		t.later(fn)
		return nil
	}
	err = t.store.Update(t.ctx, func(ctx context.Context, tx journal.Tx) error { return t.write(ctx, tx, fn) })
	if err != nil {
		return err
	}
	t.durable = t.state.Events
	return nil
}

func (b batch) write(ctx context.Context, tx journal.Tx, l journal.Lease, snapshot []byte, to *journal.Change) error {
	for _, before := range b.before {
		if err := before(ctx, tx); err != nil {
			return err
		}
	}
	if len(b.entries) > 0 {
		tail, err := tx.Append(ctx, l, b.entries...)
		if err != nil {
			return err
		}
		if snapshot != nil {
			if err := tx.Save(ctx, l, journal.Snapshot{Seq: tail.Seq, Version: snapshotVersion, State: snapshot}); err != nil {
				return err
			}
		}
	}
	if to != nil {
		return tx.SetStatus(ctx, l, *to)
	}
	return nil
}

// rowStatus is the status on the row, as this tenure has set it; empty: it has not.
type rowStatus journal.Status

// change is what a state makes of the row: that it runs, or what it came to. That
// it waits is the effect Wait's to say, for it gives the lease up.
func (r rowStatus) change(s run.State) *journal.Change {
	want := journal.Status(s.Status())
	if want == journal.Status(r) || want != journal.Running && !want.Terminal() {
		return nil
	}
	return &journal.Change{Status: want, Reason: string(s.Reason())}
}

// entryOf is the journal's form of an event.
func entryOf(e run.Event) (journal.Entry, error) {
	kind, payload, err := run.Marshal(e)
	if err != nil {
		return journal.Entry{}, err
	}
	return journal.Entry{Kind: kind, At: e.When(), Content: contentOf(e), Payload: payload}, nil
}

// contentOf says which events have the words of people, models and tools.
func contentOf(e run.Event) journal.Content {
	switch e.(type) {
	case run.Created, run.ModelAnswered, run.ModelWithheld, run.ModelFailed, run.CallFinished, run.AnswerReleased,
		run.Decided, run.Replied, run.Resolved, run.Ended:
		return journal.Text
	}
	return journal.Structure
}

// errNotAnEvent: the record is one of the journal's own kinds.
var errNotAnEvent = errors.New("not an event of the run")

// eventOf reads an event of the run.
func eventOf(r journal.Record) (run.Event, error) {
	switch r.Kind {
	case journal.MessagesAdded, journal.TextReleased:
		return nil, errNotAnEvent
	}
	if !r.Purged.IsZero() {
		return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Kind, journal.ErrPurged)
	}
	e, err := run.Unmarshal(r.Kind, r.At, r.Payload)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	return e, nil
}
