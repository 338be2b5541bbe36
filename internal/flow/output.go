package flow

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
)

// keptBytes is how much of the end of a stream of a step's later steps see.
const keptBytes = 64 << 10

// output takes what an attempt says, has it screened, and gives it to the journal,
// in segments, and to the observer. It is safe for use by several goroutines.
type output struct {
	w      *attempt
	chain  *guard.Chain
	ctx    context.Context
	denied func() // ends the attempt

	mu       sync.Mutex
	filters  map[string]*guard.Filter
	tails    map[string][]byte
	segments *journal.Segments
	timer    *time.Timer // of what waits to be written
	stop     *guard.Stop
	err      error
	over     bool
}

func newOutput(ctx context.Context, w *attempt, denied func()) *output {
	return &output{
		w: w, ctx: ctx, denied: denied, chain: guard.NewChain(guard.Options{}, w.hold.profile.Guards...),
		filters: map[string]*guard.Filter{}, tails: map[string][]byte{}, segments: segmentsOf(w.n, w.number),
	}
}

// stream is one of an attempt's channels, to be written to.
type stream struct {
	out     *output
	channel string
}

func (s stream) Write(p []byte) (int, error) {
	s.out.write(s.channel, p)
	return len(p), nil
}

// write screens the next piece of a channel.
func (o *output) write(channel string, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.stop != nil {
		return
	}
	f := o.filters[channel]
	if f == nil {
		f = guard.NewFilter(o.chain.Open(o.ctx, guard.Channel{Name: "step/" + o.w.step.ID.Value + "/" + channel, Role: "tool", Tool: o.w.step.ID.Value}))
		o.filters[channel] = f
	}
	out, step := f.Write(nil, p)
	o.release(channel, out)
	o.stopped(step)
}

func (o *output) stopped(step guard.Step) {
	if step.Stop == nil || o.stop != nil {
		return
	}
	o.stop = step.Stop
	o.denied()
}

// show takes text that was screened before.
func (o *output) show(channel, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.release(channel, []byte(text))
	}
}

// release gives on what may be seen.
func (o *output) release(channel string, text []byte) {
	if len(text) == 0 {
		return
	}
	tail := append(o.tails[channel], text...)
	if len(tail) > 2*keptBytes {
		tail = append([]byte(nil), tail[len(tail)-keptBytes:]...)
	}
	o.tails[channel] = tail
	now := time.Now()
	o.segments.Add(channel, strings.ToValidUTF8(string(text), "\uFFFD"), now)
	if o.w.observation != nil {
		o.w.observation.feed(channel, string(text))
	}
	due := o.segments.Due()
	switch {
	case due.IsZero():
	case !due.After(now):
		o.keep(now)
	case o.timer == nil:
		o.timer = time.AfterFunc(due.Sub(now), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.keep(time.Now())
		})
	}
}

// keep hands in what was gathered. Its caller holds the lock.
func (o *output) keep(now time.Time) {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if err := o.w.hold.later(o.segments.Take(), now); err != nil && o.err == nil {
		o.err = err
	}
}

// end closes the channels and says what stopped one; nil for nothing.
func (o *output) end() (*guard.Stop, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for channel, f := range o.filters {
		out, step := f.Close(nil)
		if o.stop == nil {
			o.release(channel, out)
			o.stopped(step)
		}
	}
	now := time.Now()
	o.segments.End(now)
	o.keep(now)
	o.over = true
	return o.stop, o.err
}

// kept is the end of what a channel said.
func (o *output) kept(channel string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tails[channel]
	if len(tail) > keptBytes {
		tail = tail[len(tail)-keptBytes:]
	}
	return valid(string(tail))
}

// valid is text as a journal takes it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
