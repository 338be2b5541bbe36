package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// live is the text of the model call that a tenure has under way, where those who
// watch in this process read it as it comes. Nobody is waited for: each reads
// from where it got to.
type live struct {
	fence uint64 // of the tenure's lease

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	step     int
	attempt  int
	channels []liveChannel // in the order in which they began
	err      error         // why the tenure ended, if the run did not
}

// liveChannel is a channel's text, from an offset on.
type liveChannel struct {
	name string
	from int64
	text []byte // only ever appended to
}

func newLive(fence uint64) *live { return &live{fence: fence, changed: make(chan struct{})} }

// change makes a change and tells who waits for one.
func (l *live) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.changed)
	l.changed = make(chan struct{})
}

// begin begins an attempt, or goes on with one that has released text.
func (l *live) begin(step, attempt int, ends map[string]int64) {
	l.change(func() {
		l.step, l.attempt, l.channels = step, attempt, nil
		for _, name := range slices.Sorted(maps.Keys(ends)) {
			l.channels = append(l.channels, liveChannel{name: name, from: ends[name]})
		}
	})
}

func (l *live) add(channel, text string) {
	l.change(func() {
		i := slices.IndexFunc(l.channels, func(c liveChannel) bool { return c.name == channel })
		if i < 0 {
			i = len(l.channels)
			l.channels = append(l.channels, liveChannel{name: channel})
		}
		l.channels[i].text = append(l.channels[i].text, text...)
	})
}

func (l *live) end(err error) { l.change(func() { l.err = err }) }

// output takes the text that an attempt releases: at once to those who watch, and
// in segments to the journal.
type output struct {
	t *tenure

	mu       sync.Mutex
	segments journal.Segments
	timer    *time.Timer // of what waits to be written
	over     bool
}

// output opens an attempt's output, behind the text that it has released.
func (t *tenure) output(step, attempt int) *output {
	o := &output{t: t, segments: journal.Segments{Step: step, Attempt: attempt}}
	o.segments.From(t.ends)
	t.live.begin(step, attempt, t.ends)
	return o
}

// show is the attempt's [Show].
func (o *output) show(channel, text string) {
	if text == "" {
		return
	}
	o.t.live.add(channel, text)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	now := time.Now()
	o.segments.Add(channel, text, now)
	due := o.segments.Due()
	switch {
	case due.IsZero():
	case !due.After(now):
		o.write()
	case o.timer == nil:
		o.timer = time.AfterFunc(due.Sub(now), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.write()
		})
	}
}

// end writes what is left, and returns how much text there is. What comes later
// belongs to no attempt.
func (o *output) end() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.segments.End(time.Now())
	o.write()
	return o.segments.Ends()
}

// write hands in what was gathered. Its caller holds the lock, so that segments
// are handed in in order, and before the event that ends the attempt.
func (o *output) write() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	var entries []journal.Entry
	for _, r := range o.segments.Take() {
		e, err := r.Entry()
		if err != nil {
			o.t.e.Log.Error("record released text", "run", o.t.lease.Run, "err", err)
			continue
		}
		e.At = time.Now()
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return
	}
	lease := o.t.lease
	o.t.later(func(ctx context.Context, tx journal.Tx) error {
		_, err := tx.Append(ctx, lease, entries...)
		return err
	})
}
