package govern

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/wire"
)

const (
	// cutAfter is how long a settled part of a frame waits for the rest of it.
	cutAfter = 250 * time.Millisecond
	// drainFor is how long an answer that was stopped is read on, for its usage.
	drainFor = 30 * time.Second
	// chunkSize is how much is read from the upstream at once.
	chunkSize = 16 << 10
)

// streamBody is the body of a governed stream. A goroutine reads the upstream;
// everything else happens in Read, on the caller's. Close ends both and waits.
type streamBody struct {
	call     *call
	stream   *wire.Stream
	upstream io.Closer
	chunks   chan chunk  // what the upstream said, in order; closed at its end
	free     chan []byte // buffers to read into
	quit     chan struct{}
	once     sync.Once

	mu    sync.Mutex // held by Read and by the end of Close
	out   []byte     // to be handed out
	store []byte     // what out is made of
	timer *time.Timer
	drain *time.Timer
	err   error // what Read returns once out is empty
}

type chunk struct {
	data []byte
	err  error // after data; io.EOF where the upstream ended by itself
}

func newStreamBody(c *call, opt wire.Options, upstream io.Closer, from io.Reader) *streamBody {
	b := &streamBody{
		call: c, stream: c.format.NewStream(opt), upstream: upstream,
		chunks: make(chan chunk), free: make(chan []byte, 2), quit: make(chan struct{}),
	}
	b.free <- make([]byte, chunkSize)
	b.free <- make([]byte, chunkSize)
	go b.pump(from)
	return b
}

// pump reads the upstream until its end, or until somebody quits.
func (b *streamBody) pump(from io.Reader) {
	defer close(b.chunks)
	for {
		var buf []byte
		select {
		case buf = <-b.free:
		case <-b.quit:
			return
		}
		n, err := from.Read(buf[:chunkSize])
		select {
		case b.chunks <- chunk{buf[:n], err}:
		case <-b.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read hands out what may be shown. It returns a [*UpstreamError] if the
// upstream broke, after all that may be shown and the protocol's own error.
func (b *streamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.next()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// next waits for one thing to happen and acts on it.
func (b *streamBody) next() {
	var cut, drained <-chan time.Time
	if b.stream.Waiting() {
		cut = b.start(&b.timer, cutAfter)
	} else if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if b.stream.Stopped() {
		drained = b.start(&b.drain, drainFor)
	}
	select {
	case c := <-b.chunks:
		b.take(c)
	case <-cut:
		b.timer = nil
		b.show(b.stream.Cut())
	case <-drained:
		b.end(errors.New("the upstream did not end the answer in time"))
	case <-b.call.ctx.Done():
		b.leave(b.call.ctx.Err())
	case <-b.quit:
		b.leave(errClosed)
	}
}

var errClosed = errors.New("govern: the body was closed")

func (b *streamBody) start(t **time.Timer, d time.Duration) <-chan time.Time {
	if *t == nil {
		*t = time.NewTimer(d)
	}
	return (*t).C
}

// take judges what the upstream said.
func (b *streamBody) take(c chunk) {
	if len(c.data) > 0 {
		b.show(b.stream.Write(c.data))
		if b.err != nil {
			return
		}
	}
	switch {
	case b.stream.Ended():
		b.end(nil)
	case c.err == io.EOF:
		b.end(nil)
	case c.err != nil && b.call.ctx.Err() != nil:
		b.leave(b.call.ctx.Err())
	case c.err != nil:
		b.end(errors.New("the upstream's answer broke off"))
	default:
		b.free <- c.data[:cap(c.data)]
	}
}

// show records what was decided, then lets it out.
func (b *streamBody) show(out []byte) {
	if err := b.call.keepVerdicts(b.stream.Decisions()); err != nil {
		b.halt(err)
		return
	}
	if len(b.out) == 0 {
		b.out = b.store[:0]
	}
	b.out = append(b.out, out...)
	b.store = b.out[:0]
}

// halt ends the body where the record cannot be kept: nothing more leaves.
func (b *streamBody) halt(err error) {
	b.out, b.err = nil, err
	b.call.watch.set(b.call.run, wire.Outcome{Status: wire.UpstreamFailed, Reason: "the record could not be kept"})
	b.release()
}

// end ends the answer after the upstream's last byte.
func (b *streamBody) end(cause error) {
	b.show(b.stream.Close(cause))
	if b.err != nil {
		return
	}
	o := b.stream.Outcome()
	b.err = io.EOF
	if o.Status == wire.UpstreamFailed {
		b.err = &UpstreamError{Upstream: b.call.upstream.Name, Err: errors.New(o.Reason)}
	}
	if err := b.call.settle(o); err != nil {
		b.out, b.err = nil, err
	}
	b.release()
}

// leave settles an answer that nobody reads to its end. What was held is
// decided for the record, and goes nowhere.
func (b *streamBody) leave(cause error) {
	b.stream.Close(cause)
	err := b.call.keepVerdicts(b.stream.Decisions())
	o := b.stream.Outcome()
	if !b.stream.Complete() {
		o.Status, o.Guard, o.Rule, o.Reason = wire.Cancelled, "", "", "the caller left before the end"
	}
	b.out, b.err = nil, errors.Join(cause, err, b.call.settle(o))
	b.release()
}

// release lets go of the upstream and the timers.
func (b *streamBody) release() {
	for _, t := range []*time.Timer{b.timer, b.drain} {
		if t != nil {
			t.Stop()
		}
	}
	b.once.Do(func() { close(b.quit) })
	b.upstream.Close()
	for range b.chunks { // until the pump has ended
	}
}

// Close ends the answer, also while a Read waits.
func (b *streamBody) Close() error {
	b.once.Do(func() { close(b.quit) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.leave(errClosed)
	}
	b.out = nil
	return nil
}
