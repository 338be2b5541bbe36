package approval_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/journaltest"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

var call = approval.Call{
	Run: "run_01k44tn5c0abcdefghjkmnpqrs", Step: 3, Call: 2, Tool: "run_command",
	Args: json.RawMessage(` {"z":[1, 2.0], "a":"\u00e9\u2028\u003c", "n":15e-1} `), Workdir: "/srv/app", ProfileDigest: "ab",
}

// The digest of a call is the one of the format, computed apart from this program:
// SHA-256 of the RFC 8785 JSON, written out.
func TestDigestOfOldSample(t *testing.T) {
	const want = "297e04889bf624574cbd6de1ae1fe0b6210f9618c07edccf0f10a67a36d04740"
	if got := fmt.Sprintf("%x", digest(t, call)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func digest(t *testing.T, s approval.Subject) [32]byte {
	t.Helper()
	d, err := approval.Digest(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Whatever differs in what would run, differs in the digest; spelling does not.
func TestDigestBinds(t *testing.T) {
	change := func(f func(*approval.Call)) approval.Call {
		c := call
		f(&c)
		return c
	}
	args := func(s string) approval.Call {
		return change(func(c *approval.Call) { c.Args = json.RawMessage(s) })
	}
	different := []approval.Subject{
		call,
		change(func(c *approval.Call) { c.Run += "x" }),
		change(func(c *approval.Call) { c.Step++ }),
		change(func(c *approval.Call) { c.Call++ }),
		change(func(c *approval.Call) { c.Tool = "read_file" }),
		change(func(c *approval.Call) { c.Workdir = "/srv" }),
		change(func(c *approval.Call) { c.ProfileDigest = "ac" }),
		args(`{"id":9007199254740993}`),
		args(`{"id":9007199254740992}`), // the same double
		args(`{"id":"9007199254740992"}`),
		args(`{"id":0.1}`),
		args(`{"id":0.1000000000000000055511151231257827}`), // the same double
		args(`{"id":1e400}`),
		args(`{"id":1e401}`),
		args(`{"id":1e-400}`),
		args(`{"id":1e-999999999}`),
		args(`{"id":0}`),
		args(`null`),
		approval.Withheld{Run: call.Run, Step: 3, Side: "answer", Text: []byte("a"), Findings: json.RawMessage(`[]`)},
		approval.Withheld{Run: call.Run, Step: 3, Side: "request", Text: []byte("a"), Findings: json.RawMessage(`[]`)},
		approval.Withheld{Run: call.Run, Step: 3, Side: "answer", Text: []byte("b"), Findings: json.RawMessage(`[]`)},
		approval.Withheld{Run: call.Run, Step: 3, Side: "answer", Text: []byte("a"), Findings: json.RawMessage(`[1]`)},
		approval.Going{Run: call.Run, Step: 3, Signals: json.RawMessage(`[]`)},
		approval.Going{Run: call.Run, Step: 4, Signals: json.RawMessage(`[]`)},
		approval.Reply{Run: call.Run, Step: 3, Call: 1, Question: "a"},
		approval.Reply{Run: call.Run, Step: 3, Call: 1, Question: "b"},
	}
	seen := map[[32]byte]int{}
	for i, s := range different {
		d := digest(t, s)
		if j, ok := seen[d]; ok {
			t.Errorf("%+v and %+v have the same digest", s, different[j])
		}
		seen[d] = i
	}
	for _, same := range [][2]string{
		{`{"a":1,"b":2}`, "{ \"b\" : 2 ,\n\"a\":1.0 }"},
		{`{"a":"é/"}`, `{"a":"\u00e9\/"}`},
		{`{"a":1500}`, `{"a":1.5e3}`},
		{`{"a":0}`, `{"a":-0.0}`},
		{`{"a":1e21}`, `{"a":1000000000000000000000}`},
	} {
		if digest(t, args(same[0])) != digest(t, args(same[1])) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":`, ``} {
		if bad == "" {
			continue // no arguments are null
		}
		if _, err := approval.Digest(args(bad)); err == nil {
			t.Errorf("%q has a digest", bad)
		}
	}
}

type world struct {
	*testing.T
	ctx   context.Context
	path  string
	clock *journaltest.Clock
	ids   *journal.IDs
	store *sqlite.Store
	lease journal.Lease
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "stoplog.db"), clock: journaltest.NewClock()}
	w.ids = journal.NewIDs(w.clock.Now, rand.Reader)
	w.store = w.open()
	r := journal.Run{Ref: journal.Ref{Tenant: journal.DefaultTenant, Run: w.id(journal.RunPrefix)}, Kind: journal.TurnRun, Starter: "ann"}
	w.do(func(tx journal.Tx) (err error) {
		if err = tx.Create(w.ctx, r); err == nil {
			w.lease, err = tx.Claim(w.ctx, r.Ref, journal.Worker{Owner: "w"}, 24*time.Hour)
		}
		return err
	})
	return w
}

func (w *world) open() *sqlite.Store {
	w.Helper()
	s, err := sqlite.Open(w.ctx, w.path, sqlite.Options{Now: w.clock.Now})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { s.Close() })
	return s
}

func (w *world) id(p journal.Prefix) journal.ID {
	id, err := w.ids.New(p)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) do(fn func(tx journal.Tx) error) {
	w.Helper()
	if err := w.store.Update(w.ctx, func(_ context.Context, tx journal.Tx) error { return fn(tx) }); err != nil {
		w.Fatal(err)
	}
}

// ask asks about the call, for an hour.
func (w *world) ask(notBy string) (q journal.Question) {
	w.Helper()
	w.do(func(tx journal.Tx) (err error) {
		q, err = approval.Ask(w.ctx, tx, w.lease, approval.Request{
			ID: w.id(journal.ApprovalPrefix), About: "call", Subject: call, Expires: w.clock.Now().Add(time.Hour), NotBy: notBy,
		})
		return err
	})
	return q
}

func (w *world) decide(q journal.Question, state journal.QuestionState, by string) error {
	_, err := approval.Decide(w.ctx, w.store, journal.DefaultTenant, approval.Decision{ID: q.ID, Digest: q.Digest, State: state, By: by, Text: "because"}, nil)
	return err
}

func (w *world) take(q journal.Question, now approval.Subject) (taken approval.Taken, err error) {
	err = w.store.Update(w.ctx, func(_ context.Context, tx journal.Tx) error {
		taken, err = approval.Take(w.ctx, tx, w.lease, q.ID, q.Digest, now)
		return err
	})
	return taken, err
}

func TestShown(t *testing.T) {
	w := newWorld(t)
	q := w.ask("")
	got, err := w.store.Question(w.ctx, journal.DefaultTenant, q.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject != "step 3, call 2: run_command" || got.Digest != digest(t, call) || got.About != "call" {
		t.Errorf("asked %+v", got)
	}
	var shown map[string]any
	if err := json.Unmarshal(got.Shown, &shown); err != nil || shown["workdir"] != "/srv/app" || shown["tool"] != "run_command" {
		t.Errorf("shown %s, %v", got.Shown, err)
	}
}

func TestTake(t *testing.T) {
	other := call
	other.Args = json.RawMessage(`{"a":"rm"}`)
	for _, c := range []struct {
		name     string
		state    journal.QuestionState
		now      approval.Subject
		tamper   string // what was done to the row behind the run's back
		wait     time.Duration
		approved bool
	}{
		{"approved", journal.QuestionApproved, call, "", 0, true},
		{"denied", journal.QuestionDenied, call, "", 0, false},
		{"words where a yes is needed", journal.QuestionAnswered, call, "", 0, false},
		{"nobody in time", "", call, "", time.Hour, false},
		{"approved in time, taken late", journal.QuestionApproved, call, "", 2 * time.Hour, true},
		{"another call would run", journal.QuestionApproved, other, "", 0, false},
		{"another digest on the row", journal.QuestionApproved, call, `UPDATE questions SET digest = zeroblob(32)`, 0, false},
		{"a denial made an approval of another call", journal.QuestionDenied, other, `UPDATE questions SET state = 'approved'`, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.T = t
			q := w.ask("")
			if c.state != "" {
				if err := w.decide(q, c.state, "bea"); err != nil {
					t.Fatal(err)
				}
			} else if _, err := w.take(q, call); !errors.Is(err, journal.ErrPending) {
				t.Errorf("taken before it was decided: %v", err)
			}
			if c.tamper != "" {
				db, err := sql.Open("sqlite", w.path)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.Exec(c.tamper); err != nil {
					t.Fatal(err)
				}
			}
			w.clock.Advance(c.wait)
			taken, err := w.take(q, c.now)
			if err != nil || taken.Approved() != c.approved {
				t.Errorf("taken as %+v, %v; want approved %v", taken, err, c.approved)
			}
			if _, err := w.take(q, c.now); !errors.Is(err, journal.ErrUsed) {
				t.Errorf("taken again: %v", err)
			}
		})
	}
}

func TestDecideRefuses(t *testing.T) {
	w := newWorld(t)
	q := w.ask("ann")
	if err := w.decide(q, journal.QuestionApproved, ""); !errors.Is(err, approval.ErrNoName) {
		t.Errorf("nobody decided: %v", err)
	}
	if err := w.decide(q, journal.QuestionApproved, "ann"); !errors.Is(err, approval.ErrSecondPerson) {
		t.Errorf("who asked decided: %v", err)
	}
	seen := q
	seen.Digest[0]++
	if err := w.decide(seen, journal.QuestionApproved, "bea"); !errors.Is(err, approval.ErrNotShown) {
		t.Errorf("decided of something else: %v", err)
	}
	if got, err := w.store.Question(w.ctx, journal.DefaultTenant, q.ID); err != nil || got.State != journal.QuestionPending {
		t.Errorf("it is %s, %v", got.State, err)
	}
	if err := w.decide(q, journal.QuestionApproved, "bea"); err != nil {
		t.Error(err)
	}
	var decided *journal.DecidedError
	err := w.decide(q, journal.QuestionDenied, "cid")
	if want := "already approved by bea at 2026-09-01T12:00:00Z"; !errors.As(err, &decided) || decided.Error() != want {
		t.Errorf("decided twice: %v, want %s", err, want)
	}

	late := w.ask("")
	w.clock.Advance(time.Hour)
	err = w.decide(late, journal.QuestionApproved, "bea")
	if want := "expired at 2026-09-01T13:00:00Z"; !errors.As(err, &decided) || decided.Error() != want {
		t.Errorf("decided late: %v, want %s", err, want)
	}

	over := w.ask("")
	w.do(func(tx journal.Tx) error {
		return tx.SetStatus(w.ctx, w.lease, journal.Change{Status: journal.Cancelled, Reason: "cancelled"})
	})
	var settled *journal.SettledError
	if err := w.decide(over, journal.QuestionApproved, "bea"); !errors.As(err, &settled) {
		t.Errorf("decided behind the end: %v", err)
	}
}

// What follows from a decision is in its transaction: it is not decided if that fails.
func TestDecideThen(t *testing.T) {
	w := newWorld(t)
	q := w.ask("")
	d := approval.Decision{ID: q.ID, Digest: q.Digest, State: journal.QuestionApproved, By: "bea"}
	stop := errors.New("stop")
	_, err := approval.Decide(w.ctx, w.store, journal.DefaultTenant, d, func(_ context.Context, _ journal.Tx, q journal.Question) error {
		if q.State != journal.QuestionApproved || q.By != "bea" {
			t.Errorf("then sees %+v", q)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if got, err := w.store.Question(w.ctx, journal.DefaultTenant, q.ID); err != nil || got.State != journal.QuestionPending {
		t.Errorf("it is %s, %v", got.State, err)
	}
}

// Many take, and one has it, over two stores on one file.
func TestTakenOnce(t *testing.T) {
	w := newWorld(t)
	q := w.ask("")
	if err := w.decide(q, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	stores := []journal.Store{w.store, w.open()}
	var mu sync.Mutex
	took := 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			err := stores[i%2].Update(w.ctx, func(ctx context.Context, tx journal.Tx) error {
				_, err := approval.Take(ctx, tx, w.lease, q.ID, q.Digest, call)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				took++
			case !errors.Is(err, journal.ErrUsed):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took != 1 {
		t.Errorf("%d took it", took)
	}
}
