// Package requestlog keeps what the door says about its requests in the journal:
// each request is a run of kind request, with a log of its own.
//
//	govern.Record{Run, Fact} ──► Log ──► started    the run is made, and held
//	                                     verdict    …
//	                                     settled    the run has its end
//
// A verdict that holds something back is durable when Record returns; the rest
// follows with the next commit (the journal's Later), and an error of it comes
// back with the request's next fact.
//
// The runs are held under the name of this process's engine, which renews their
// leases; if the process dies, another's sweep settles them as abandoned.
package requestlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
)

// Log writes requests down. It is safe for use by several goroutines.
type Log struct {
	store  journal.Store
	tenant string
	ids    *journal.IDs

	mu     sync.Mutex
	worker journal.Worker
	open   map[string]*request
}

// request is a request that has not been settled.
type request struct {
	lease journal.Lease // the journal's writer alone touches it

	mu      sync.Mutex
	pending []*journal.Pending
}

// New returns a log in a journal. Hold is called before the first request.
func New(store journal.Store) *Log {
	return &Log{store: store, tenant: journal.DefaultTenant, ids: journal.NewIDs(time.Now, rand.Reader), open: map[string]*request{}}
}

// Hold says under whose name requests are held: an engine's, which renews them.
func (l *Log) Hold(w journal.Worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker = w
}

var errBefore = errors.New("an earlier fact of the request was not kept")

// Record keeps facts about one request, in order, in one transaction. It is a
// govern.Config.Record.
func (l *Log) Record(records ...govern.Record) error {
	if len(records) == 0 {
		return nil
	}
	r, worker := l.request(records)
	write := func(ctx context.Context, tx journal.Tx) error { return l.write(ctx, tx, r, worker, records) }
	if err := r.failed(); err != nil {
		return fmt.Errorf("%w: %w", errBefore, err)
	}
	if urgent(records) {
		return l.store.Update(context.Background(), write)
	}
	r.wait(l.store.Later(write))
	return nil
}

// request finds the request that records are about: a new one if they begin it,
// none if they are about none. One that they end is forgotten.
func (l *Log) request(records []govern.Record) (*request, journal.Worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := records[0].Run
	if _, ok := records[0].Fact.(govern.Started); ok {
		l.open[id] = &request{}
	}
	r := l.open[id]
	if _, ok := records[len(records)-1].Fact.(govern.Settled); ok {
		delete(l.open, id)
	}
	return r, l.worker
}

// wait notes what was handed in and not waited for.
func (r *request) wait(p *journal.Pending) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, p)
}

// failed is the first error of what was handed in before.
func (r *request) failed() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

// urgent reports whether one of the records must be durable before anything goes on.
func urgent(records []govern.Record) bool { return slices.ContainsFunc(records, acted) }

// acted reports whether a record is a verdict that changed something.
func acted(r govern.Record) bool {
	v, ok := r.Fact.(govern.Verdict)
	return ok && v.Mode == guard.Enforce && v.Verdict > guard.Allow
}

// write appends facts to the request's log. The journal calls it, one at a time.
func (l *Log) write(ctx context.Context, tx journal.Tx, r *request, w journal.Worker, records []govern.Record) error {
	if r == nil {
		return l.aside(ctx, tx, w, records)
	}
	for _, rec := range records {
		if started, ok := rec.Fact.(govern.Started); ok {
			var err error
			made := journal.Run{Ref: l.ref(rec.Run), Profile: started.Profile, Parent: journal.ID(started.Parent)}
			if r.lease, err = l.begin(ctx, tx, w, made); err != nil {
				return err
			}
		}
		if err := l.append(ctx, tx, r.lease, rec); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) ref(id string) journal.Ref { return journal.Ref{Tenant: l.tenant, Run: journal.ID(id)} }

// ttl is how long a request's run is held without being renewed: an engine's own
// lease (design: 15 seconds).
const ttl = 15 * time.Second

func (l *Log) begin(ctx context.Context, tx journal.Tx, w journal.Worker, run journal.Run) (journal.Lease, error) {
	run.Kind, run.Capture = journal.RequestRun, journal.CaptureMetadata
	if err := tx.Create(ctx, run); err != nil {
		return journal.Lease{}, err
	}
	lease, err := tx.Claim(ctx, run.Ref, w, ttl)
	if err != nil {
		return lease, err
	}
	return lease, tx.SetStatus(ctx, lease, journal.Change{Status: journal.Running})
}

// aside keeps verdicts that are about no request but about a run: on its tool
// calls. The run's own log is its worker's alone, so they are a request that is
// part of it.
func (l *Log) aside(ctx context.Context, tx journal.Tx, w journal.Worker, records []govern.Record) error {
	id, err := l.ids.New(journal.RunPrefix)
	if err != nil {
		return err
	}
	lease, err := l.begin(ctx, tx, w, journal.Run{Ref: l.ref(string(id)), Parent: journal.ID(records[0].Run)})
	if err != nil {
		return err
	}
	end := govern.Record{Run: string(id), At: records[0].At, Fact: govern.Settled{Status: "completed", Reason: "completed"}}
	for _, rec := range append(slices.Clone(records), end) {
		if err := l.append(ctx, tx, lease, rec); err != nil {
			return err
		}
	}
	return nil
}

// append writes one fact, and gives the run its end with the last.
func (l *Log) append(ctx context.Context, tx journal.Tx, lease journal.Lease, rec govern.Record) error {
	kind, payload := payloadOf(rec.Fact)
	entry, err := journal.NewEntry(kind, 1, journal.Structure, payload)
	if err != nil {
		return err
	}
	entry.At = rec.At
	if _, err := tx.Append(ctx, lease, entry); err != nil {
		return err
	}
	if s, ok := rec.Fact.(govern.Settled); ok {
		return tx.SetStatus(ctx, lease, journal.Change{Status: journal.Status(s.Status), Reason: s.Reason})
	}
	return nil
}

// payloadOf is a fact in the journal's words.
func payloadOf(f govern.Fact) (kind string, payload any) {
	switch f := f.(type) {
	case govern.Started:
		return journal.RequestStarted, journal.Started{Mount: f.Mount, Profile: f.Profile, Upstream: f.Upstream, Model: f.Model, Stream: f.Stream}
	case govern.Verdict:
		return journal.RequestVerdict, journal.Verdict{
			Channel: f.Channel, Guard: f.Guard, Rule: f.Rule, Mode: f.Mode.String(), Verdict: f.Verdict.String(),
			Start: f.Start, End: f.End, Severity: f.Severity.String(), Fingerprint: f.Fingerprint, Error: f.Error,
		}
	case govern.Settled:
		return journal.RequestSettled, journal.Settled{
			Status: f.Status, Reason: f.Reason, Detail: f.Detail,
			Usage: journal.Usage{Input: f.Usage.Input, Output: f.Usage.Output, Estimated: f.Usage.Estimated},
		}
	}
	panic(fmt.Sprintf("requestlog: the door says a %T", f))
}
