// Package deferred has runs woken by jobs of River, a queue in the journal's own
// database: what is to happen later is a row of the transaction that caused it,
// and whichever process has an engine up carries it out.
//
// A job is a hint. One that comes twice wakes a run that is awake; one that comes
// late, or never, is made up for by the engines' sweep, which needs no job. So no
// job is unique, none is tried for long, and a job that was lost in a process
// that died is not looked for.
//
// The package knows no database: New takes River's driver for the one at hand.
package deferred

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/stoplog/stoplog/internal/journal"
)

const (
	// queue is the queue of jobs that do next to nothing.
	queue = "wake"
	// workers is how many of them are done at a time in a process.
	workers = 8
	// pollEvery is how soon a process with an engine hears of another's decision.
	// A third of a sweep's round; each look is one read.
	pollEvery = time.Second
	// attempts is how often a job is tried: the sweep is the second line.
	attempts = 2
	// keep is how long River keeps what is done, for people to look at.
	keep = time.Hour
	// rescueAfter is when River takes a job for lost. Long: a woken run is no
	// part of its job, and a job takes milliseconds.
	rescueAfter = 24 * time.Hour
)

// Jobs defers wake-ups; it is an engine.Jobs. TTx is the transaction of the
// database's driver.
type Jobs[TTx any] struct {
	client *river.Client[TTx]
	tx     func(journal.Tx) TTx
	wake   *waker
}

// Migrate makes or updates River's tables. One process at a time may.
func Migrate[TTx any](ctx context.Context, driver riverdriver.Driver[TTx]) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return nil
}

// New returns jobs that go into the database by driver, as part of the
// transaction that tx finds behind a journal's. They are carried out where
// somebody has called Start.
func New[TTx any](driver riverdriver.Driver[TTx], tx func(journal.Tx) TTx, log *slog.Logger) (*Jobs[TTx], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	j := &Jobs[TTx]{tx: tx, wake: &waker{}}
	all := river.NewWorkers()
	if err := river.AddWorkerSafely(all, j.wake); err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	var err error
	j.client, err = river.NewClient(driver, &river.Config{
		Logger:                      log,
		Queues:                      map[string]river.QueueConfig{queue: {MaxWorkers: workers}},
		Workers:                     all,
		PollOnly:                    true, // a notification is one more write in each transaction
		FetchPollInterval:           pollEvery,
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        rescueAfter,
		MaxAttempts:                 attempts,
		CompletedJobRetentionPeriod: keep,
	})
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	return j, nil
}

// Wake has the run woken at a time, if the transaction commits.
func (j *Jobs[TTx]) Wake(ctx context.Context, tx journal.Tx, ref journal.Ref, at time.Time) error {
	_, err := j.client.InsertTx(ctx, j.tx(tx), wakeArgs{Tenant: ref.Tenant, Run: ref.Run}, &river.InsertOpts{Queue: queue, ScheduledAt: at})
	if err != nil {
		return fmt.Errorf("have run %s woken at %s: %w", ref, at.Format(time.RFC3339), err)
	}
	return nil
}

// Start carries jobs out in this process by wake, an engine's Wake, until Stop.
func (j *Jobs[TTx]) Start(ctx context.Context, wake func(context.Context, journal.Ref)) error {
	if j.wake.fn != nil {
		return errors.New("start the queue: it was started before")
	}
	j.wake.fn = wake
	if err := j.client.Start(ctx); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	return nil
}

// Stop ends what Start began, and waits for it.
func (j *Jobs[TTx]) Stop(ctx context.Context) error {
	if err := j.client.Stop(ctx); err != nil {
		return fmt.Errorf("stop the queue: %w", err)
	}
	return nil
}

// wakeArgs are what lies in the queue; a member is never renamed.
type wakeArgs struct {
	Tenant string     `json:"tenant"`
	Run    journal.ID `json:"run"`
}

// Kind is the job's name in the queue.
func (wakeArgs) Kind() string { return "wake_run" }

type waker struct {
	river.WorkerDefaults[wakeArgs]
	fn func(context.Context, journal.Ref)
}

// Work wakes the run.
func (w *waker) Work(ctx context.Context, job *river.Job[wakeArgs]) error {
	w.fn(ctx, journal.Ref{Tenant: job.Args.Tenant, Run: job.Args.Run})
	return nil
}
