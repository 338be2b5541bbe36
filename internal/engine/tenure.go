package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// A tenure is the time in which this engine advances a run under one lease. Its
// fields are its goroutine's own, but for the channels and live.
type tenure struct {
	e     *Engine
	lease journal.Lease
	live  *live
	poked chan struct{} // holds a token when there is something to look at
	inbox chan arrival
	gone  chan struct{} // closed when nobody reads the inbox any more
	why   error         // why the tenure ended, if the run did not; to be read once gone is closed

	ctx    context.Context // ends with the tenure
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // of what is under way

	row   journal.Run
	agent Agent
	state run.State
	told  told
	ends  map[string]int64 // how much text the newest attempt has released, by channel
	ledger

	underway map[string]bool // by key; tools' begin with toolKey
	stepCtx  context.Context // of what is under way for the step; nil: nothing was begun
	cutOff   context.CancelFunc
	retryAt  time.Time // when a model call is due that is not due yet
	draining bool      // the engine is to end
}

// arrival is what came of something that was under way. No event is nothing.
type arrival struct {
	key   string
	event run.Event
	ends  map[string]int64 // of the text that it released; nil: it released none
}

const toolKey = "tool "

func newTenure(e *Engine, l journal.Lease) *tenure {
	t := &tenure{
		e: e, lease: l, live: newLive(l.Fence), poked: make(chan struct{}, 1),
		inbox: make(chan arrival), gone: make(chan struct{}), underway: map[string]bool{},
	}
	t.ctx, t.cancel = context.WithCancelCause(e.ctx)
	t.ledger = ledger{store: e.Store, lease: l}
	return t
}

// lose tells the tenure that its lease is another's.
func (t *tenure) lose() { t.cancel(journal.ErrFenced) }

// hold is the tenure, from its beginning to its end.
func (t *tenure) hold(first *Resolving) {
	err := t.take(first)
	var settled *journal.SettledError
	if errors.Is(err, journal.ErrFenced) || errors.As(err, &settled) {
		err = nil // another worker goes on with the run, or has ended it
	}
	t.why = err
	t.live.end(err)
	close(t.gone)
	t.cancel(errors.New("the tenure is over"))
	t.work.Wait() // before anybody takes the run up: what is under way here is still the run's

	orphan := false
	switch {
	case errors.Is(err, journal.ErrAltered):
		// Nobody can go on with it, ever: it is over, and says so on its row.
		t.e.Log.Error("a run was ended: its log was altered", "run", t.lease.Run, "err", err)
		orphan = t.e.letGo(t.lease, journal.Change{Status: journal.Failed, Reason: string(run.ReasonInternalError)}) != nil
	case err != nil:
		t.e.Log.Error("a run was put off", "run", t.lease.Run, "err", err)
		orphan = t.e.giveUp(t.lease, t.e.Lease) != nil
	}
	if t.row.Parent != "" {
		t.e.poke(journal.Ref{Tenant: t.row.Tenant, Run: t.row.Parent})
	}
	if t.e.over(t, orphan) {
		// Whoever poked found a tenure that did not look again.
		t.e.wake(t.e.ctx, t.lease.Ref)
	}
}

// take takes the run up: a turn is advanced here, and what is none by the Other of
// its kind.
func (t *tenure) take(first *Resolving) (err error) {
	if t.row, err = t.store.Run(t.ctx, t.lease.Ref); err != nil {
		return fmt.Errorf("take up run %s: %w", t.lease.Ref, err)
	}
	switch other := t.e.Others[t.row.Kind]; {
	case t.row.Kind == journal.TurnRun:
		return t.advance(first)
	case other == nil:
		return fmt.Errorf("take up run %s: nothing here advances a %s", t.lease.Ref, t.row.Kind)
	default:
		return t.other(other, first)
	}
}

// other has a run advanced by the Other of its kind. A panic there is a bug, and
// the run's alone.
func (t *tenure) other(o Other, first *Resolving) (err error) {
	defer func() {
		if v := recover(); v != nil {
			t.e.Log.Error("panic", "run", t.lease.Run, "in", "a "+t.row.Kind, "value", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return o.Advance(t.ctx, Hand{
		Row: t.row, Lease: t.lease, Owner: t.e.worker.Owner, Poked: t.poked, Quit: t.e.quit, Resolve: first,
	})
}

// advance goes on with a turn from what the journal says, until it waits, ends, or
// the tenure must.
func (t *tenure) advance(first *Resolving) error {
	if err := t.load(); err != nil {
		return fmt.Errorf("take up run %s: %w", t.lease.Ref, err)
	}
	lost := t.lost()
	var err error
	if t.agent, err = t.e.Agents.Agent(t.ctx, t.row); err == nil && !t.agent.whole() {
		err = errors.New("its agent has no model, no tools or no evaluator")
	}
	if err != nil && t.row.CancelBy == "" {
		return fmt.Errorf("take up run %s under profile %q: %w", t.lease.Ref, t.row.Profile, err)
	}
	if first != nil {
		first.Answer(t.resolve(first.Resolution))
	}
	if err := t.look(); err != nil {
		return err
	}
	if t.state.Phase != run.Waiting {
		t.happen(run.Claimed{Stamp: now(), By: t.e.worker.Owner, Lost: lost})
	}
	for {
		over, err := t.begin()
		if over || err != nil {
			return err
		}
		if len(t.underway) == 0 && t.retryAt.IsZero() && !t.draining {
			// Nothing will come: what was under way came to something that the run
			// does not take.
			if phase := t.state.Phase; !t.happen(run.InternalError{Stamp: now(), Error: "nothing is under way, and nothing is to be done"}) {
				return fmt.Errorf("run %s is %s, with nothing under way and nothing to be done", t.lease.Ref, phase)
			}
			continue
		}
		if t.draining && !t.toolsUnderway() {
			return t.flush(true, &journal.Change{Status: journal.Queued}) // which gives the lease up
		}
		if err := t.wait(); err != nil {
			return err
		}
	}
}

// company is how long an event that nothing hangs on waits for others to be written
// with it. A call of a quick tool, its end and the judgement of the step are one
// write, and where an effect demands it they are written at once.
const company = 2 * time.Millisecond

// wait waits for what comes next, and takes it in.
func (t *tenure) wait() error {
	if err := t.failure(); err != nil {
		return err
	}
	timer, stop := t.alarm()
	defer stop()
	var write <-chan time.Time
	if !t.batch.empty() {
		write = time.After(company)
	}
	quit := t.e.quit
	if t.draining {
		quit = nil
	}
	select {
	case a := <-t.inbox:
		t.arrive(a)
	case <-t.poked:
		return t.look()
	case <-timer:
		if d := t.state.Deadline(); !d.IsZero() && !time.Now().Before(d) {
			t.happen(run.TimedOut{Stamp: now()})
		}
	case <-write:
		return t.flush(false, nil)
	case <-quit:
		t.drain()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	return nil
}

// alarm fires when the run's time is up or a model call is due.
func (t *tenure) alarm() (<-chan time.Time, func()) {
	at := t.state.Deadline()
	if !t.retryAt.IsZero() && (at.IsZero() || t.retryAt.Before(at)) {
		at = t.retryAt
	}
	if at.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(at))
	return timer.C, func() { timer.Stop() }
}

// arrive takes in what came of something. What comes of a model call or a
// judgement that the end of the engine broke off is not its answer.
func (t *tenure) arrive(a arrival) {
	delete(t.underway, a.key)
	if a.ends != nil {
		t.ends = a.ends
	}
	if a.event == nil || t.draining && !isTool(a.key) {
		return
	}
	t.happen(a.event)
}

// drain begins the end: nothing more is begun, and only tools may finish.
func (t *tenure) drain() {
	t.draining = true
	if !t.toolsUnderway() && t.cutOff != nil {
		t.cutOff()
	}
}

func isTool(key string) bool { return len(key) > len(toolKey) && key[:len(toolKey)] == toolKey }

func (t *tenure) toolsUnderway() bool {
	for key := range t.underway {
		if isTool(key) {
			return true
		}
	}
	return false
}

// launch has fn done beside the tenure, which takes in the event that it returns.
// It ends with the step at the latest. out takes the text that it releases; it may
// be nil.
func (t *tenure) launch(key string, out *output, fn func(context.Context) run.Event) {
	if t.stepCtx == nil {
		t.stepCtx, t.cutOff = context.WithCancel(t.ctx)
	}
	ctx := t.stepCtx
	t.underway[key] = true
	t.work.Go(func() {
		a := arrival{key: key, event: t.safely(ctx, key, fn)}
		if out != nil {
			a.ends = out.end()
		}
		select {
		case t.inbox <- a:
		case <-t.gone:
		}
	})
}

// safely turns a panic, which is a bug in what the run acts through, into the end
// of that run alone.
func (t *tenure) safely(ctx context.Context, key string, fn func(context.Context) run.Event) (event run.Event) {
	defer func() {
		if v := recover(); v != nil {
			t.e.Log.Error("panic", "run", t.lease.Run, "in", key, "value", v, "stack", string(debug.Stack()))
			event = run.InternalError{Stamp: now(), Error: fmt.Sprintf("panic in %s: %v", key, v)}
		}
	}()
	return fn(ctx)
}

func now() run.Stamp { return run.At(time.Now()) }
