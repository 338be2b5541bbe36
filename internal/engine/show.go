package engine

import (
	"context"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// live is the text of the model call that a tenure has under way, where those who
// watch in this process read it as it comes. Nobody is waited for: each reads
// from where it got to.
type live struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	step    int
	attempt int
	names   []string          // of channels, in the order in which they began
	text    map[string][]byte // only ever appended to
	ended   bool
	err     error // why the tenure ended, if the run did not
}

func newLive() *live { return &live{changed: make(chan struct{}), text: map[string][]byte{}} }

// change makes a change and tells who waits for one.
func (l *live) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.changed)
	l.changed = make(chan struct{})
}

// begin begins an attempt.
func (l *live) begin(step, attempt int) {
	l.change(func() { l.step, l.attempt, l.names, l.text = step, attempt, nil, map[string][]byte{} })
}

func (l *live) add(channel, text string) {
	l.change(func() {
		if _, known := l.text[channel]; !known {
			l.names = append(l.names, channel)
		}
		l.text[channel] = append(l.text[channel], text...)
	})
}

func (l *live) end(err error) { l.change(func() { l.ended, l.err = true, err }) }

// output takes the text that an attempt releases: at once to those who watch, and
// in segments to the journal.
type output struct {
	t *tenure

	mu       sync.Mutex
	segments journal.Segments
	timer    *time.Timer // of what waits to be written
	over     bool
}

func (t *tenure) output(step, attempt int) *output {
	return &output{t: t, segments: journal.Segments{Step: step, Attempt: attempt}}
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

// end writes what is left. What comes later belongs to no attempt.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.segments.End(time.Now())
	o.write()
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
