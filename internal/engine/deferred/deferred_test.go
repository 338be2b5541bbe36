package deferred_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/engine/deferred"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
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
