package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stoplog/stoplog/internal/journal"
)

// An Other advances the runs of a kind that is no turn, such as playbooks. The
// engine gives it runs to hold, keeps their leases, and takes up those of the dead;
// what happens to them is the Other's to write, under the hand's lease.
type Other interface {
	// Advance goes on with a run, from what the journal says, until it waits, has
	// ended, or the engine is to end: it returns nil once it has given the lease up
	// with a status that says which. An error means that it cannot go on now: the
	// run is put off, or, if it is journal.ErrAltered, has failed. When ctx ends,
	// the run is another's, or there is no more time: Advance returns soon. It does
	// not return before what it has under way for the run has ended.
	Advance(ctx context.Context, h Hand) error
}

// Hand is a run in hand, under a lease.
type Hand struct {
	Row   journal.Run
	Lease journal.Lease
	Owner string // the worker's name
	// Poked holds a token when others may have written for the run: a decision, a
	// cancellation, the end of a run that is part of it.
	Poked <-chan struct{}
	// Quit is closed when the engine is to end.
	Quit <-chan struct{}
	// Resolve, unless it is nil, is what a person says of what is in doubt. It is
	// the first thing to be taken in.
	Resolve *Resolving
}

// Resolving is a resolution whose outcome somebody waits for.
type Resolving struct {
	Resolution
	outcome chan error
}

// Answer says what came of the resolution; nil if it was carried out. It is called
// once.
func (r *Resolving) Answer(err error) { r.outcome <- err }

// kinds are the kinds of runs that the engine advances.
func (e *Engine) kinds() []journal.RunKind {
	return append([]journal.RunKind{journal.TurnRun}, slices.Sorted(maps.Keys(e.Others))...)
}

// Begin makes a run of another kind with its first event, and advances it from
// here on, in the background. The run is durable when Begin returns. An empty id is
// made up; one that is there already is an error.
func (e *Engine) Begin(ctx context.Context, row journal.Run, first journal.Entry) (journal.Ref, error) {
	if row.Kind != journal.TurnRun && e.Others[row.Kind] == nil {
		return row.Ref, fmt.Errorf("start a run: nothing here advances a %s", row.Kind)
	}
	if row.Run == "" {
		id, err := e.ids.New(journal.RunPrefix)
		if err != nil {
			return row.Ref, err
		}
		row.Run = id
	}
	if row.Workdir != "" {
		row.Host = e.Host
	}
	var l journal.Lease
	err := e.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) (err error) {
		if err = tx.Create(ctx, row); err != nil {
			return err
		}
		if l, err = tx.Claim(ctx, row.Ref, e.worker, e.Lease); err != nil {
			return err
		}
		_, err = tx.Append(ctx, l, first)
		return err
	})
	if err != nil {
		return row.Ref, fmt.Errorf("start a run: %w", err)
	}
	if _, err = e.adopt(l, nil); errors.Is(err, errClosed) {
		err = errors.Join(err, e.giveUp(l, 0))
	}
	return row.Ref, err
}

// NewID makes an id.
func (e *Engine) NewID(p journal.Prefix) (journal.ID, error) { return e.ids.New(p) }

// Tell wakes the run that another is part of, in the transaction in which that
// ends. A parent that has ended needs no telling.
func Tell(ctx context.Context, tx journal.Tx, row journal.Run, c journal.Change) error {
	if row.Parent == "" || !c.Status.Terminal() {
		return nil
	}
	parent := journal.Ref{Tenant: row.Tenant, Run: row.Parent}
	at, err := tx.Run(ctx, parent)
	if errors.Is(err, journal.ErrNotFound) || err == nil && at.Status.Terminal() {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.Wake(ctx, parent, at.Created)
}
