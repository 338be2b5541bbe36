package engine

import (
	"context"
	"errors"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
)

const (
	// purges is how many runs give up payloads in a tick.
	purges = 16
	// abandons is how many requests of dead processes are settled in a tick.
	abandons = 64
)

// sweep renews leases, and takes up what is due, until the engine ends.
func (e *Engine) sweep() {
	ticker := time.NewTicker(e.Tick)
	defer ticker.Stop()
	for {
		e.tick()
		select {
		case <-ticker.C:
		case <-e.quit:
			return
		}
	}
}

// tick is one round of the sweep, in one commit; one that finds nothing to do
// writes nothing.
func (e *Engine) tick() {
	e.retryOrphans()
	before := e.held()
	var held []journal.Held
	var due []journal.Lease
	err := e.Store.Update(e.ctx, func(ctx context.Context, tx journal.Tx) (err error) {
		// Others of this process, such as a gateway, may hold runs in its name.
		if held, err = tx.Renew(ctx, e.worker, e.Lease); err != nil {
			return err
		}
		if free := e.MaxRuns - len(before); free > 0 {
			if due, err = tx.ClaimDue(ctx, e.worker, e.Lease, free); err != nil {
				return err
			}
		}
		if err := e.abandon(ctx, tx); err != nil {
			return err
		}
		_, err = tx.Purge(ctx, purges)
		return err
	})
	if err != nil {
		e.Log.Error("sweep", "err", err)
		return
	}
	for _, h := range held {
		if t := before[h.Ref]; t != nil && t.lease == h.Lease {
			delete(before, h.Ref)
		}
		if h.Woken {
			e.poke(h.Ref)
		}
	}
	for _, t := range before {
		t.lose() // or it has ended meanwhile, and does not mind
	}
	for _, l := range due {
		_, err := e.adopt(l, nil)
		if errors.Is(err, errClosed) {
			err = errors.Join(err, e.giveUp(l, 0))
		}
		if err != nil {
			e.Log.Error("take up a run that is due", "run", l.Run, "err", err)
		}
	}
}

// abandon settles requests whose process died: nobody can go on with them.
func (e *Engine) abandon(ctx context.Context, tx journal.Tx) error {
	worker := e.worker
	worker.Kinds, worker.Profiles = []journal.RunKind{journal.RequestRun}, nil
	dead, err := tx.ClaimDue(ctx, worker, e.Lease, abandons)
	if err != nil {
		return err
	}
	const reason = "abandoned"
	for _, l := range dead {
		waited, err := approval.Lapse(ctx, tx, l)
		if waited && err == nil {
			continue // for a person, who said nothing
		}
		if err != nil { // what cannot be concluded as it should is ended all the same
			e.Log.Error("end what waited for a person", "run", l.Run, "err", err)
		}
		entry, err := journal.NewEntry(journal.RequestSettled, 1, journal.Structure, journal.Settled{
			Status: journal.Failed, Reason: reason, Usage: journal.Usage{Estimated: true},
		})
		if err != nil {
			return err
		}
		if _, err := tx.Append(ctx, l, entry); err != nil {
			return err
		}
		if err := tx.SetStatus(ctx, l, journal.Change{Status: journal.Failed, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// held are the tenures that there are.
func (e *Engine) held() map[journal.Ref]*tenure {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[journal.Ref]*tenure, len(e.tenures))
	for ref, t := range e.tenures {
		all[ref] = t
	}
	return all
}

// retryOrphans gives up the runs that could not be given up before.
func (e *Engine) retryOrphans() {
	e.mu.Lock()
	orphans := e.orphans
	e.orphans = nil
	e.mu.Unlock()
	for _, l := range orphans {
		if err := e.giveUp(l, e.Lease); err != nil {
			e.Log.Error("give up a run", "run", l.Run, "err", err)
			e.mu.Lock()
			e.orphans = append(e.orphans, l)
			e.mu.Unlock()
		}
	}
}
