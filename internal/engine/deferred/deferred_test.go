package deferred_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/engine/deferred"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

var _ engine.Jobs = (*deferred.Jobs[*sql.Tx])(nil)

// open opens a store, as a process does, and jobs on it.
func open(t *testing.T, path string) (*sqlite.Store, *deferred.Jobs[*sql.Tx]) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := s.Pool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	driver := riversqlite.New(pool)
	if err := s.Locked(func() error { return deferred.Migrate(t.Context(), driver) }); err != nil {
		t.Fatal(err)
	}
	jobs, err := deferred.New(driver, sqlite.SQL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, jobs
}

// start carries jobs out, and hands each run that is woken to the channel.
func start(t *testing.T, jobs *deferred.Jobs[*sql.Tx]) <-chan journal.Ref {
	t.Helper()
	woken := make(chan journal.Ref, 100)
	if err := jobs.Start(t.Context(), func(_ context.Context, ref journal.Ref) { woken <- ref }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := jobs.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return woken
}

func created(t *testing.T, s journal.Store) journal.Ref {
	t.Helper()
	id, err := journal.NewIDs(time.Now, rand.Reader).New(journal.RunPrefix)
	if err != nil {
		t.Fatal(err)
	}
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: id}
	if err := s.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
		return tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.TurnRun})
	}); err != nil {
		t.Fatal(err)
	}
	return ref
}

// An engine whose sweep is an hour away goes on with a run at once when a process
// without an engine has decided what it asks: the job is in that decision's
// transaction.
func TestEngineIsWoken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s, jobs := open(t, path)
	e, err := engine.New(engine.Options{Store: s, Agents: gated{}, Jobs: jobs, Lease: 4 * time.Hour, Tick: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := jobs.Start(t.Context(), e.Wake); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := jobs.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	ref, err := e.Start(t.Context(), engine.Task{Text: "do it", Starter: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	paused := false
	for n, err := range e.Watch(t.Context(), ref, 0) {
		if err != nil {
			t.Fatal(err)
		}
		h, ok := n.(engine.Happened)
		if !ok || h.State.Status() != run.StatusWaitingApproval || paused {
			continue
		}
		paused = true
		other, theirs := open(t, path)
		q := h.State.Questions[0]
		row, err := other.Question(t.Context(), ref.Tenant, journal.ID(q.ID))
		if err != nil {
			t.Fatal(err)
		}
		d := approval.Decision{ID: row.ID, Digest: row.Digest, State: journal.QuestionApproved, By: "bea"}
		if _, err := engine.Decide(t.Context(), other, theirs, ref.Tenant, d); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.Run(t.Context(), ref); err != nil || r.Status != journal.Completed || !paused {
		t.Errorf("it came to %s, %v", r.Status, err)
	}
}

// gated is an agent whose model makes one call that a person must approve.
type gated struct{}

func (g gated) Agent(context.Context, journal.Run) (engine.Agent, error) {
	return engine.Agent{Model: g, Tools: g, Evaluator: g}, nil
}

func (gated) Messages(engine.ModelCall, int) ([]json.RawMessage, error) { return nil, nil }

func (gated) Ask(_ context.Context, c engine.ModelCall, _ engine.Show) run.Event {
	if c.Step > 1 {
		return run.ModelAnswered{Answer: run.Answer{Text: "done"}}
	}
	return run.ModelAnswered{Answer: run.Answer{Calls: []run.Call{{Tool: "write", Args: `{}`, Ruling: run.Gated}}}}
}

func (gated) Call(context.Context, engine.ToolCall) engine.ToolResult {
	return engine.ToolResult{Text: "written"}
}

func (gated) Evaluate(context.Context, signal.History) signal.Evaluation { return signal.Evaluation{} }

// A wake-up is carried out by whichever process has an engine up, once its
// transaction has committed, not before its time, and not at all if it has not.
func TestWake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	here, hereJobs := open(t, path)
	_, thereJobs := open(t, path)
	now, later, never := created(t, here), created(t, here), created(t, here)
	stop := errors.New("stop")
	err := here.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
		return errors.Join(hereJobs.Wake(ctx, tx, never, time.Now()), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if err := here.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
		return errors.Join(
			hereJobs.Wake(ctx, tx, later, time.Now().Add(time.Hour)),
			hereJobs.Wake(ctx, tx, now, time.Now()),
			hereJobs.Wake(ctx, tx, now, time.Now())) // no job is unique
	}); err != nil {
		t.Fatal(err)
	}
	woken := start(t, thereJobs)
	for range 2 {
		if ref := <-woken; ref != now {
			t.Errorf("woke %v, want %v", ref, now)
		}
	}
	select {
	case ref := <-woken:
		t.Errorf("woke %v too", ref)
	default:
	}
	var waiting, total int
	if err := here.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
		return sqlite.SQL(tx).QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE state = 'scheduled'), count(*) FROM river_job`).Scan(&waiting, &total)
	}); err != nil || waiting != 1 || total != 3 {
		t.Errorf("%d jobs wait of %d, %v", waiting, total, err)
	}
	if err := thereJobs.Start(t.Context(), nil); err == nil {
		t.Error("started twice")
	}
}
