package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
)

// A hold is the time in which this process advances a run under one lease. Its
// fields are its goroutine's own, but for inbox and gone.
type hold struct {
	h      *Host
	engine Engine
	hand   engine.Hand
	row    journal.Run

	ctx    context.Context // ends with the hold
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // of what is under way
	inbox  chan arrival
	gone   chan struct{} // closed when nobody reads the inbox any more

	script  *script
	profile Profile
	state   steps.State
	ledger

	underway map[string]bool // by key
	fenced   map[string]bool // of what is under way: those that must be let end
	stepsCtx context.Context
	cutOff   context.CancelFunc
	watched  map[int]*observation // by step: of the attempt that is under way, or has just ended
	retryAt  time.Time            // when an attempt is due that is not due yet
	draining bool
	wasCut   bool // what was under way when the run was stopped has ended
}

// arrival is what came of something that was under way. No event is nothing.
type arrival struct {
	key   string
	event steps.Event
	err   error // the hold cannot go on: its end is not known
}

// Advance implements [engine.Other].
func (h *Host) Advance(ctx context.Context, hand engine.Hand) error {
	e, err := h.attached()
	if err != nil {
		return err
	}
	t := &hold{
		h: h, engine: e, hand: hand, row: hand.Row,
		inbox: make(chan arrival), gone: make(chan struct{}),
		underway: map[string]bool{}, fenced: map[string]bool{}, watched: map[int]*observation{},
		ledger: ledger{store: h.Store, lease: hand.Lease, row: hand.Row},
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.stepsCtx, t.cutOff = context.WithCancel(t.ctx)
	defer func() {
		close(t.gone)
		t.cancel(errors.New("the hold is over"))
		t.work.Wait()
		for _, o := range t.watched {
			o.close()
		}
	}()
	if err := t.load(); err != nil {
		return fmt.Errorf("take up run %s: %w", t.row.Ref, err)
	}
	if r := hand.Resolve; r != nil {
		r.Answer(t.resolve(r.Resolution))
	}
	return t.advance()
}

// load reads the run, link by link.
func (t *hold) load() error {
	var tail journal.Tail
	for r, err := range t.store.Events(t.ctx, t.row.Ref, 0) {
		if err != nil {
			return err
		}
		var broken *journal.Broken
		if tail, broken = tail.Follow(t.store.Key(), r); broken != nil {
			return fmt.Errorf("%w: %w", journal.ErrAltered, broken)
		}
		if err := replay(&t.state, r); err != nil {
			return err
		}
	}
	if tail != t.row.Tail {
		return fmt.Errorf("%w: the log ends with event %d, and was to end with %d", journal.ErrAltered, tail.Seq, t.row.Tail.Seq)
	}
	t.durable = t.state.Events
	var err error
	if t.script, err = open(t.state.Book); err != nil {
		return err
	}
	t.profile, err = t.h.Profiles(t.row.Profile)
	return err
}

// replay takes a record in.
func replay(s *steps.State, r journal.Record) error {
	if !steps.IsEvent(r.Kind) {
		return nil // text, and others' own
	}
	if !r.Purged.IsZero() {
		return fmt.Errorf("event %d (%s): %w", r.Seq, r.Kind, journal.ErrPurged)
	}
	e, err := steps.Unmarshal(r.Kind, r.At, r.Payload)
	if err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	if err := steps.Check(*s, e); err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	*s = steps.Apply(*s, e)
	return nil
}

// advance goes on with the run until it rests, ends, or the hold must.
func (t *hold) advance() error {
	if err := t.look(); err != nil {
		return err
	}
	if t.state.Phase != steps.Resting {
		t.happen(steps.Claimed{Stamp: now(), By: t.hand.Owner})
	}
	for {
		over, err := t.begin()
		if over || err != nil {
			return err
		}
		if t.draining && len(t.fenced) == 0 {
			return t.flush(&journal.Change{Status: journal.Queued}) // which gives the lease up
		}
		if len(t.underway) == 0 && t.retryAt.IsZero() && !t.draining {
			phase := t.state.Phase
			if !t.happen(steps.InternalError{Stamp: now(), Error: "nothing is under way, and nothing is to be done"}) {
				return fmt.Errorf("run %s is %s, with nothing under way and nothing to be done", t.row.Ref, phase)
			}
			continue
		}
		if err := t.wait(); err != nil {
			return err
		}
	}
}

// company is how long an event that nothing hangs on waits for others to be written
// with it.
const company = 2 * time.Millisecond

// wait waits for what comes next, and takes it in.
func (t *hold) wait() error {
	var due, write <-chan time.Time
	if !t.retryAt.IsZero() {
		timer := time.NewTimer(time.Until(t.retryAt))
		defer timer.Stop()
		due = timer.C
	}
	if !t.batch.empty() {
		write = time.After(company)
	}
	quit := t.hand.Quit
	if t.draining {
		quit = nil
	}
	select {
	case a := <-t.inbox:
		return t.arrive(a)
	case <-t.hand.Poked:
		return t.look()
	case <-due:
	case <-write:
		return t.flush(nil)
	case <-quit:
		t.drain()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	return nil
}

// arrive takes in what came of something. What the end of the engine broke off has
// no end: whoever takes the run up begins it again.
func (t *hold) arrive(a arrival) error {
	delete(t.underway, a.key)
	fenced := t.fenced[a.key]
	delete(t.fenced, a.key)
	if a.err != nil {
		return a.err
	}
	if a.event == nil || t.draining && !fenced {
		return nil
	}
	if q, ok := a.event.(question); ok {
		t.asked(q)
		return nil
	}
	t.happen(a.event)
	return nil
}

// drain begins the end: nothing more is begun, and only what may not be repeated
// is let end.
func (t *hold) drain() {
	t.draining = true
	if len(t.fenced) == 0 {
		t.cutOff()
	}
}

// launch has fn done beside the hold, which takes in the event that it returns.
func (t *hold) launch(key string, fenced bool, fn func(context.Context) (steps.Event, error)) {
	ctx := t.stepsCtx
	t.underway[key] = true
	if fenced {
		t.fenced[key] = true
	}
	t.work.Go(func() {
		a := arrival{key: key}
		a.event, a.err = t.safely(ctx, key, fn)
		select {
		case t.inbox <- a:
		case <-t.gone:
		}
	})
}

// safely turns a panic, which is a bug, into the end of that run alone.
func (t *hold) safely(ctx context.Context, key string, fn func(context.Context) (steps.Event, error)) (event steps.Event, err error) {
	defer func() {
		if v := recover(); v != nil {
			t.h.Log.Error("panic", "run", t.row.Run, "in", key, "value", v, "stack", string(debug.Stack()))
			event, err = steps.InternalError{Stamp: now(), Error: fmt.Sprintf("panic in %s: %v", key, v)}, nil
		}
	}()
	return fn(ctx)
}

// look takes in what others have written for the run: that somebody wants it
// cancelled, what was decided of what it asks, and that a run which is a step's
// work has gone on.
func (t *hold) look() error {
	row, err := t.store.Run(t.ctx, t.row.Ref)
	if err != nil {
		return err
	}
	if row.CancelBy != "" {
		t.happen(steps.RunCancelled{Stamp: now(), By: row.CancelBy})
	}
	for i, step := range t.state.Steps {
		switch {
		case step.Stage == steps.Open:
			if err := t.takeDecision(i + 1); err != nil {
				return fmt.Errorf("take the decision on %s: %w", step.Question.ID, err)
			}
		case step.Stage == steps.Going && step.WaitsFor != "" && t.state.Phase == steps.Resting:
			part, err := t.store.Run(t.ctx, journal.Ref{Tenant: t.row.Tenant, Run: journal.ID(step.Run)})
			if err != nil {
				return err
			}
			if string(part.Status) != step.WaitsFor {
				t.happen(steps.StepWaits{Stamp: now(), Step: i + 1})
			}
		}
	}
	return nil
}

// resolve carries out what a person says of a step in doubt.
func (t *hold) resolve(r engine.Resolution) error {
	if r.Step == 0 {
		for i, step := range t.state.Steps {
			if step.Stage != steps.InDoubt {
				continue
			}
			if r.Step != 0 {
				return errors.New("several steps are in doubt: say which")
			}
			r.Step = i + 1
		}
	}
	text := strings.ToValidUTF8(r.Text, "\uFFFD")
	e := steps.Resolved{Stamp: now(), Step: r.Step, Choice: r.Choice, By: r.By, Text: text}
	if err := steps.Check(t.state, e); err != nil {
		return err
	}
	t.happen(e)
	return t.flush(&journal.Change{Status: journal.Running})
}

func now() steps.Stamp { return steps.At(time.Now()) }
