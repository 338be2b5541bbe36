package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// Options of an engine. Store and Agents must be set.
type Options struct {
	Store  journal.Store
	Agents Agents
	// Others advance the runs of other kinds than turns.
	Others map[journal.RunKind]Other
	// Jobs has other processes wake runs; nil: their sweeps will.
	Jobs Jobs
	// Host is this machine's name: runs with a folder stay on it.
	Host string
	// Profiles are those that Agents knows: the sweep takes up runs of no others.
	// Empty: all.
	Profiles []string
	// Log is for operators; nil: nothing is said.
	Log *slog.Logger
	// Lease is how long a worker that has died holds its runs; 0 is 15 seconds.
	Lease time.Duration
	// Tick is how often leases are renewed and the runs of the dead looked for; 0
	// is 3 seconds. It is well below Lease.
	Tick time.Duration
	// MaxRuns is how many runs the sweep takes up at a time; 0 is 256. Whoever
	// starts or resumes a run is not held to it.
	MaxRuns int
}

// Engine advances runs in this process. It is safe for use by several goroutines.
type Engine struct {
	Options
	worker journal.Worker
	ids    *journal.IDs

	ctx  context.Context // ends when the engine is closed in a hurry
	kill context.CancelCauseFunc
	quit chan struct{} // closed when it is to end
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	tenures map[journal.Ref]*tenure
	lives   map[journal.Ref]*live
	began   chan struct{}   // closed when the next tenure begins
	orphans []journal.Lease // of tenures that could not give them up
}

// errClosed: the engine takes nothing on any more.
var errClosed = errors.New("the engine is closed")

// New returns an engine that sweeps. Close it.
func New(o Options) (*Engine, error) {
	if o.Store == nil || o.Agents == nil {
		return nil, errors.New("make an engine: it needs a store and agents")
	}
	o.Lease, o.Tick, o.MaxRuns = cmp.Or(o.Lease, 15*time.Second), cmp.Or(o.Tick, 3*time.Second), cmp.Or(o.MaxRuns, 256)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		Options: o, ids: journal.NewIDs(time.Now, rand.Reader), quit: make(chan struct{}),
		tenures: map[journal.Ref]*tenure{}, lives: map[journal.Ref]*live{},
		began: make(chan struct{}),
	}
	name := make([]byte, 8)
	if _, err := rand.Read(name); err != nil {
		return nil, fmt.Errorf("name a worker: %w", err)
	}
	e.worker = journal.Worker{Owner: fmt.Sprintf("%s/%x", cmp.Or(o.Host, "worker"), name), Host: o.Host, Kinds: e.kinds(), Profiles: o.Profiles}
	e.ctx, e.kill = context.WithCancelCause(context.Background())
	e.wg.Go(e.sweep)
	return e, nil
}

// Worker returns who the engine is to the journal. What else this process holds
// under that name has its lease renewed with the engine's runs, and is settled by
// others as abandoned if the process dies.
func (e *Engine) Worker() journal.Worker { return e.worker }

// Task is a run that is to be started.
type Task struct {
	Tenant  string     // empty: journal.DefaultTenant
	Run     journal.ID // empty: made up
	Session journal.ID
	Parent  journal.ID
	Profile string
	// ProfileDigest is of the profile as it is now.
	ProfileDigest string
	Starter       string
	Capture       journal.Capture
	// Workdir is the folder that the run works in. A run with one stays on this
	// host.
	Workdir string
	Text    string
	Limits  run.Limits
}

// Start makes a run and advances it from here on, in the background. The run is
// durable when Start returns.
func (e *Engine) Start(ctx context.Context, task Task) (journal.Ref, error) {
	row := journal.Run{
		Ref:  journal.Ref{Tenant: cmp.Or(task.Tenant, journal.DefaultTenant), Run: task.Run},
		Kind: journal.TurnRun, Session: task.Session, Parent: task.Parent, Profile: task.Profile,
		ProfileDigest: task.ProfileDigest, Starter: task.Starter, Capture: task.Capture, Workdir: task.Workdir,
	}
	first, err := entryOf(run.Created{Stamp: run.At(time.Now()), Task: task.Text, Limits: task.Limits})
	if err != nil {
		return row.Ref, fmt.Errorf("start a run: %w", err)
	}
	return e.Begin(ctx, row, first)
}

// Resume takes a run up, in the background, whether it is due or not. A run that
// waits for a decision goes on waiting. It fails if another worker holds the run
// (*journal.LeasedError), if it depends on another machine, or has ended. A run
// that this engine holds is nudged.
func (e *Engine) Resume(ctx context.Context, ref journal.Ref) error {
	if e.poke(ref) {
		return nil
	}
	_, err := e.enter(ctx, ref, nil)
	return err
}

// enter takes a run up with something to tell it first.
func (e *Engine) enter(ctx context.Context, ref journal.Ref, first *Resolving) (*tenure, error) {
	var l journal.Lease
	var back journal.Change
	err := e.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) (err error) {
		// What waits is left waiting by an engine that ends: to be claimed and given
		// up would show it as queued.
		if e.ending() {
			return errClosed
		}
		row, err := tx.Run(ctx, ref)
		if err != nil {
			return err
		}
		if back = (journal.Change{Status: row.Status, WakeAt: row.WakeAt}); row.Status == journal.Running {
			back = journal.Change{Status: journal.Queued}
		}
		l, err = tx.Claim(ctx, ref, e.worker, e.Lease)
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := e.adopt(l, first)
	if errors.Is(err, errClosed) {
		err = errors.Join(err, e.letGo(l, back)) // as it was
	}
	return t, err
}

// ending reports whether the engine takes nothing on any more.
func (e *Engine) ending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Resolution is what a person says of a call in doubt.
type Resolution struct {
	Step, Call int // 0: the only call of the run that is in doubt
	Choice     run.Choice
	By         string
	Text       string // the call's result, where it is taken as done
}

// Resolve carries out what a person decided of a call in doubt, and goes on with
// the run. What the run does not take is an error, a *run.Rejection.
func (e *Engine) Resolve(ctx context.Context, ref journal.Ref, r Resolution) error {
	outcome := make(chan error, 1)
	t, err := e.enter(ctx, ref, &Resolving{Resolution: r, outcome: outcome})
	if err == nil {
		select {
		case err = <-outcome:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-t.gone:
			select {
			case err = <-outcome: // it was over soon
			default:
				err = cmp.Or(t.why, journal.ErrFenced)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("resolve run %s: %w", ref, err)
	}
	return nil
}

// Decide takes a person's decision on a question, and goes on with the run, here
// if that is possible.
func (e *Engine) Decide(ctx context.Context, tenant string, d approval.Decision) (journal.Question, error) {
	q, err := Decide(ctx, e.Store, e.Jobs, tenant, d)
	if err == nil {
		e.wake(ctx, q.Ref)
	}
	return q, err
}

// Decide takes a person's decision on a question, in a process that need not have
// an engine: whoever has one is told, by jobs (which may be nil) or by its sweep.
func Decide(ctx context.Context, s journal.Store, jobs Jobs, tenant string, d approval.Decision) (journal.Question, error) {
	return approval.Decide(ctx, s, tenant, d, func(ctx context.Context, tx journal.Tx, q journal.Question) error {
		if jobs == nil {
			return nil
		}
		return jobs.Wake(ctx, tx, q.Ref, q.Decided)
	})
}

// Cancel ends a run, whoever holds it: at once if it is this engine or nobody, at
// the latest with the holder's next tick if it is another. It returns when the
// wish is durable. A run that has ended gives a *journal.SettledError.
func (e *Engine) Cancel(ctx context.Context, ref journal.Ref, by string) error {
	err := e.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) error { return tx.AskCancel(ctx, ref, by) })
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", ref, err)
	}
	e.wake(ctx, ref)
	return nil
}

// Wake takes up a run if that is possible now. It is a hint: what it cannot do
// somebody else does, or does not need to.
func (e *Engine) Wake(ctx context.Context, ref journal.Ref) { e.wake(ctx, ref) }

func (e *Engine) wake(ctx context.Context, ref journal.Ref) {
	if err := e.Resume(ctx, ref); err != nil {
		e.Log.Debug("not taken up", "run", ref.Run, "why", err)
	}
}

// adopt starts a tenure.
func (e *Engine) adopt(l journal.Lease, first *Resolving) (*tenure, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	if old := e.tenures[l.Ref]; old != nil {
		old.lose() // its lease is an older one: this one's claim has ended it
	}
	t := newTenure(e, l)
	e.tenures[l.Ref] = t
	e.lives[l.Ref] = t.live
	close(e.began)
	e.began = make(chan struct{})
	e.mu.Unlock()
	e.wg.Go(func() { t.hold(first) })
	return t, nil
}

// over takes a tenure off the books, and reports whether it was poked behind its
// last look.
func (e *Engine) over(t *tenure, orphan bool) (poked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tenures[t.lease.Ref] == t {
		delete(e.tenures, t.lease.Ref)
		if t.why == nil {
			delete(e.lives, t.lease.Ref) // else it tells why, until somebody takes the run up
		}
	}
	if orphan {
		e.orphans = append(e.orphans, t.lease)
	}
	select {
	case <-t.poked:
		return true
	default:
		return false
	}
}

// poke has the tenure of a run look around; false if there is none.
func (e *Engine) poke(ref journal.Ref) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tenures[ref]
	if t == nil {
		return false
	}
	select {
	case t.poked <- struct{}{}:
	default: // it has not looked since it was poked last
	}
	return true
}

// giveUp lets a run go that this engine holds and does not advance, for others to
// take up after a delay.
func (e *Engine) giveUp(l journal.Lease, delay time.Duration) error {
	return e.letGo(l, journal.Change{Status: journal.Queued, WakeAt: time.Now().Add(delay)})
}

// letGo gives up a lease with a status. One that is lost needs no giving up.
func (e *Engine) letGo(l journal.Lease, c journal.Change) error {
	err := e.Store.Update(e.ctx, func(ctx context.Context, tx journal.Tx) error { return tx.SetStatus(ctx, l, c) })
	var settled *journal.SettledError
	if errors.Is(err, journal.ErrFenced) || errors.As(err, &settled) {
		return nil
	}
	return err
}

// Close ends the engine: it takes nothing on, breaks model calls off, lets tool
// calls that are under way end, and gives its runs up for others to go on with.
// When ctx ends first, tool calls are cut off too. It waits for all it started.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.quit)
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		e.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	e.kill(errClosed)
	<-done
	return nil
}
