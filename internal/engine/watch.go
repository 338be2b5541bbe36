package engine

import (
	"context"
	"iter"
	"slices"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// Notice is what a watcher sees of a run: a [Happened], a [Shown] or a
// [Superseded].
type Notice interface{ notice() }

// Happened is an event of the run, durable.
type Happened struct {
	Seq   uint64 // its number in the journal: come back with it, and go on behind it
	Event run.Event
	State run.State // what the event led to
}

// Shown is text that may be shown.
type Shown struct {
	Seq           uint64 // as in Happened; 0: the text is not in the journal yet
	Step, Attempt int
	Channel       string
	Start         int64 // of Text, in bytes of what the attempt has shown on the channel
	Text          string
}

// Superseded says that the model is asked again: text that an earlier attempt has
// shown counts for nothing.
type Superseded struct{ Step, Attempt int }

func (Happened) notice()   {}
func (Shown) notice()      {}
func (Superseded) notice() {}

// Watch yields what happens to a run behind the event after, until the run ends,
// ctx does, or the caller has seen enough. It works in any process; in the one
// that advances the run, text comes as it is released. Text comes once: what was
// shown before it was in the journal is not shown again from there, though the
// numbers go on. If the engine cannot go on with the run for want of a journal,
// Watch yields the reason and ends.
//
// Whoever comes back with a number sees text again that it was shown without one;
// Start says where it goes.
func (e *Engine) Watch(ctx context.Context, ref journal.Ref, after uint64) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watcher{e: e, ref: ref, after: after, yield: yield, shown: map[string]int64{}}
		for w.look(ctx) && w.wait(ctx) {
		}
		if cancel(); w.journal != nil {
			<-w.journal
		}
		if w.err != nil {
			yield(nil, w.err)
		}
	}
}

type watcher struct {
	e     *Engine
	ref   journal.Ref
	after uint64 // what the caller has seen
	yield func(Notice, error) bool
	err   error

	seq           uint64 // what this watcher has read
	replay        replay
	step, attempt int              // of the model call that text is of
	shown         map[string]int64 // bytes of its text that the caller was shown, by channel

	live    *live           // nil: the run is not advanced here
	moved   <-chan struct{} // closed when live changes, or, without one, when a tenure begins here
	journal chan error      // what Await says; nil: nobody waits
}

// look yields what there is to see. It reports whether there may be more to come.
func (w *watcher) look(ctx context.Context) (more bool) {
	// In this order: what is released after live was looked up moves it, and what
	// the row says of the end holds for the events that are read behind it.
	w.moved = w.e.begins()
	w.live = w.e.lookUp(w.ref)
	if w.live != nil {
		w.moved = w.live.moves()
	}
	row, err := w.e.Store.Run(ctx, w.ref)
	if err != nil {
		return w.fail(err)
	}
	if w.live != nil && row.Fence > w.live.fence {
		w.live, w.moved = nil, w.e.begins() // the run has gone on elsewhere
	}
	for r, err := range w.e.Store.Events(ctx, w.ref, w.seq) {
		if err != nil {
			return w.fail(err)
		}
		if !w.record(r) {
			return false
		}
	}
	if row.Status.Terminal() && w.seq >= row.Tail.Seq {
		return false
	}
	return w.watchLive()
}

func (w *watcher) fail(err error) bool {
	w.err = err
	return false
}

// record takes in a record, and yields it if it is news.
func (w *watcher) record(r journal.Record) bool {
	w.seq = r.Seq
	e, err := w.replay.take(r)
	switch {
	case err != nil:
		return w.fail(err)
	case r.Kind == journal.TextReleased:
		return w.segment(r)
	case e == nil:
		return true // the journal's own: not for watchers
	}
	if m, ok := e.(run.ModelStarted); ok && !w.call(m) {
		return false
	}
	return r.Seq <= w.after || w.yield(Happened{Seq: r.Seq, Event: e, State: w.replay.state}, nil)
}

// call begins the text of a model call, which may supersede that of another.
func (w *watcher) call(m run.ModelStarted) bool {
	superseded := m.Step == w.step && len(w.shown) > 0 && w.seq > w.after
	old := Superseded{Step: w.step, Attempt: w.attempt}
	w.step, w.attempt = m.Step, m.Attempt
	clear(w.shown)
	return !superseded || w.yield(old, nil)
}

// segment yields what the caller was not shown of a segment.
func (w *watcher) segment(r journal.Record) bool {
	var s journal.Released
	if err := r.Decode(&s); err != nil {
		return w.fail(err)
	}
	if s.Step != w.step || s.Attempt != w.attempt {
		return true // it came too late to count
	}
	seen, end := w.shown[s.Channel], s.Start+int64(len(s.Text))
	if end <= seen {
		return true
	}
	w.shown[s.Channel] = end
	if r.Seq <= w.after {
		return true
	}
	from := max(seen, s.Start)
	return w.yield(Shown{
		Seq: r.Seq, Step: s.Step, Attempt: s.Attempt, Channel: s.Channel, Start: from, Text: s.Text[from-s.Start:],
	}, nil)
}

// watchLive yields the text that is not in the journal yet.
func (w *watcher) watchLive() bool {
	if w.live == nil {
		return true
	}
	now := w.live.read()
	if now.err != nil {
		return w.fail(now.err)
	}
	if now.step != w.step || now.attempt != w.attempt {
		return true // the journal will tell of it first
	}
	for _, c := range now.channels {
		seen := w.shown[c.name]
		end := c.from + int64(len(c.text))
		if end <= seen || c.from > seen {
			continue // seen, or to be read in the journal first
		}
		w.shown[c.name] = end
		if !w.yield(Shown{Step: w.step, Attempt: w.attempt, Channel: c.name, Start: seen, Text: string(c.text[seen-c.from:])}, nil) {
			return false
		}
	}
	return true
}

// wait waits for more. What the journal waits for is begun once and goes on while
// live moves.
func (w *watcher) wait(ctx context.Context) bool {
	if w.journal == nil {
		news, seq := make(chan error, 1), w.seq
		w.journal = news
		go func() { news <- w.e.Store.Await(ctx, w.ref, seq) }() // Watch ends it, and waits for it
	}
	for {
		select {
		case err := <-w.journal:
			w.journal = nil
			if err != nil {
				return w.fail(err)
			}
			return true
		case <-w.moved:
			if w.live == nil {
				w.moved = w.e.begins()
				if w.e.lookUp(w.ref) != nil {
					return true
				}
				continue
			}
			w.moved = w.live.moves()
			if !w.watchLive() {
				return false
			}
		}
	}
}

// lookUp finds the text of the tenure that a run has here; nil if there is none.
func (e *Engine) lookUp(ref journal.Ref) *live {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lives[ref]
}

// begins is closed when the next tenure begins here, of whatever run.
func (e *Engine) begins() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.began
}

// moves is closed when something changes.
func (l *live) moves() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// liveText is a look at a model call that is under way.
type liveText struct {
	step, attempt int
	channels      []liveChannel
	err           error
}

func (l *live) read() liveText {
	l.mu.Lock()
	defer l.mu.Unlock()
	return liveText{step: l.step, attempt: l.attempt, channels: slices.Clone(l.channels), err: l.err}
}
