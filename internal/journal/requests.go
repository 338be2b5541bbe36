package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Requests keeps requests in a store, each a run of kind request. It holds nothing
// of a request itself, and is safe for use by several goroutines.
type Requests struct {
	Store  Store
	Tenant string
	// Worker holds the requests of this process. They are settled as abandoned,
	// by an engine of another, when Lease runs out, so a process with an engine
	// gives that engine's worker, whose leases are renewed.
	Worker Worker
	Lease  time.Duration
}

// RequestFact is a fact about a request.
type RequestFact struct {
	Run  ID
	At   time.Time
	Kind string // RequestStarted, RequestVerdict or RequestSettled
	// Payload is what [Started], [Verdict] and [Settled] are in JSON.
	Payload any
}

// RequestLease is the right to write to a request, for as long as it has not been
// left to a person.
func RequestLease(ref Ref) Lease { return Lease{Ref: ref, Fence: requestFence} }

// requestFence is the number of the one claim that a request ever has.
const requestFence = 1

// Append appends facts of requests, in order, in one write. Started makes the run
// and settled ends it. If wait is true it returns when they are durable; else they
// become so with the next commit of the store, and the Pending, which nobody has to
// wait for, tells of it.
func (q *Requests) Append(ctx context.Context, wait bool, facts ...RequestFact) (*Pending, error) {
	write := func(ctx context.Context, tx Tx) error {
		for _, f := range facts {
			if err := q.append(ctx, tx, f); err != nil {
				return fmt.Errorf("record %s of request %s: %w", f.Kind, f.Run, err)
			}
		}
		return nil
	}
	if !wait {
		return q.Store.Later(write), nil
	}
	p, settle := NewPending()
	err := q.Store.Update(ctx, write)
	settle(err)
	return p, err
}

func (q *Requests) append(ctx context.Context, tx Tx, f RequestFact) error {
	l := RequestLease(Ref{Tenant: q.Tenant, Run: f.Run})
	e, err := NewEntry(f.Kind, 1, Structure, f.Payload)
	if err != nil {
		return err
	}
	e.At = f.At
	if f.Kind == RequestStarted {
		var s Started
		if err := json.Unmarshal(e.Payload, &s); err != nil {
			return err
		}
		if err := tx.Create(ctx, Run{Ref: l.Ref, Kind: RequestRun, Profile: s.Profile, Parent: s.Parent}); err != nil {
			return err
		}
		if _, err := tx.Claim(ctx, l.Ref, q.Worker, q.Lease); err != nil {
			return err
		}
		if err := tx.SetStatus(ctx, l, Change{Status: Running}); err != nil {
			return err
		}
	}
	if _, err := tx.Append(ctx, l, e); err != nil {
		return err
	}
	if f.Kind != RequestSettled {
		return nil
	}
	var s Settled
	if err := json.Unmarshal(e.Payload, &s); err != nil {
		return err
	}
	if !s.Status.Terminal() {
		return fmt.Errorf("%q ends no request", s.Status)
	}
	return tx.SetStatus(ctx, l, Change{Status: s.Status, Reason: s.Reason})
}
