// Package journaltest is the suite that every back end of package journal passes.
//
// [Exercise] is split by behaviour, a file each. It talks to a store through the
// contract alone; what only one back end can show (an altered row, a full disk,
// a second process) is tested beside it.
package journaltest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// Options of a store that the suite asks for.
type Options struct {
	Now       func() time.Time
	Retention journal.Retention
	// Seal asks for a store that has a key to seal with; two over the same data
	// have the same. A store may have one unasked.
	Seal bool
}

// An Opener opens the store that lies in an empty or known directory. Opened
// twice, it gives two stores over the same data, as two processes have them. The
// suite closes what it opens.
type Opener func(t *testing.T, dir string, o Options) journal.Store

// Exercise runs the suite.
func Exercise(t *testing.T, open Opener) {
	for _, part := range []struct {
		name  string
		tests []test
	}{
		{"runs", runTests},
		{"leases", leaseTests},
		{"log", logTests},
		{"chain", chainTests},
		{"messages", messageTests},
		{"questions", questionTests},
		{"capture", captureTests},
		{"requests", requestTests},
		{"secrets", secretTests},
		{"follow", followTests},
		{"writing", writingTests},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newWorld(t, open, part.name == "secrets"))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(*world)
}

// Clock is a clock that moves when told.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at a fixed moment.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 9, 1, 12, 0, 0, 123456000, time.UTC)}
}

// Now returns what the clock says.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ttl is the leases' length in this suite.
const ttl = 15 * time.Second

var (
	alice = journal.Worker{Owner: "alice", Host: "here"}
	bob   = journal.Worker{Owner: "bob", Host: "here"}
)

// world is what a test has: a store, its clock, and words for what to do with it.
type world struct {
	*testing.T
	journal.Store
	ctx   context.Context
	clock *Clock
	ids   *journal.IDs
	again func() journal.Store // opens the same store once more
}

func newWorld(t *testing.T, open Opener, seal bool) *world {
	clock, dir := NewClock(), t.TempDir()
	w := &world{T: t, ctx: t.Context(), clock: clock, ids: journal.NewIDs(clock.Now, rand.Reader)}
	w.again = func() journal.Store {
		s := open(t, dir, Options{Now: clock.Now, Seal: seal})
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return s
	}
	w.Store = w.again()
	return w
}

// on returns the same world seen through another store.
func (w *world) on(s journal.Store) *world {
	other := *w
	other.Store = s
	return &other
}

func (w *world) id(p journal.Prefix) journal.ID {
	w.Helper()
	id, err := w.ids.New(p)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// do runs an update that must succeed.
func (w *world) do(fn func(tx journal.Tx) error) {
	w.Helper()
	if err := w.Update(w.ctx, func(_ context.Context, tx journal.Tx) error { return fn(tx) }); err != nil {
		w.Fatal(err)
	}
}

// try runs an update and returns its error.
func (w *world) try(fn func(tx journal.Tx) error) error {
	return w.Update(w.ctx, func(_ context.Context, tx journal.Tx) error { return fn(tx) })
}

// create makes a run, with what change makes of its row.
func (w *world) create(change ...func(*journal.Run)) journal.Ref {
	w.Helper()
	r := journal.Run{
		Ref:  journal.Ref{Tenant: journal.DefaultTenant, Run: w.id(journal.RunPrefix)},
		Kind: journal.TurnRun, Profile: "default", Starter: "ann",
	}
	for _, c := range change {
		c(&r)
	}
	w.do(func(tx journal.Tx) error { return tx.Create(w.ctx, r) })
	return r.Ref
}

// claim takes a run for a worker.
func (w *world) claim(ref journal.Ref, by journal.Worker) (l journal.Lease) {
	w.Helper()
	w.do(func(tx journal.Tx) (err error) {
		l, err = tx.Claim(w.ctx, ref, by, ttl)
		return err
	})
	return l
}

// started makes a run that alice advances.
func (w *world) started(change ...func(*journal.Run)) journal.Lease {
	w.Helper()
	l := w.claim(w.create(change...), alice)
	w.status(l, journal.Running, "")
	return l
}

func (w *world) status(l journal.Lease, s journal.Status, reason string) {
	w.Helper()
	w.do(func(tx journal.Tx) error {
		return tx.SetStatus(w.ctx, l, journal.Change{Status: s, Reason: reason})
	})
}

func (w *world) append(l journal.Lease, entries ...journal.Entry) (tail journal.Tail) {
	w.Helper()
	w.do(func(tx journal.Tx) (err error) {
		tail, err = tx.Append(w.ctx, l, entries...)
		return err
	})
	return tail
}

func (w *world) row(ref journal.Ref) journal.Run {
	w.Helper()
	r, err := w.Run(w.ctx, ref)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// Run reads a run's row; without it the name would be testing.T's.
func (w *world) Run(ctx context.Context, ref journal.Ref) (journal.Run, error) {
	return w.Store.Run(ctx, ref)
}

func (w *world) log(ref journal.Ref, after uint64) []journal.Record {
	w.Helper()
	var all []journal.Record
	for r, err := range w.Events(w.ctx, ref, after) {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// wantErr fails unless err is, or wraps, want.
func (w *world) wantErr(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got error %v, want %v", err, want)
	}
}

// wantAs fails unless err is, or wraps, an E, and returns it.
func wantAs[E error](w *world, err error) E {
	w.Helper()
	var e E
	if !errors.As(err, &e) {
		w.Fatalf("got error %v, want a %T", err, e)
	}
	return e
}

// note is an entry with a payload of its own.
func note(n int) journal.Entry {
	return journal.Entry{Kind: "note", Content: journal.Text, Payload: fmt.Appendf(nil, `{"n":%d,"v":1}`, n)}
}

func notes(from, to int) (all []journal.Entry) {
	for n := from; n <= to; n++ {
		all = append(all, note(n))
	}
	return all
}
