package govern

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/wire"
)

const (
	// cutAfter is how long a settled part of a frame waits for the rest of it.
	cutAfter = 250 * time.Millisecond
	// drainFor is how long an upstream is read on that has nothing more to say
	// that would be shown: after a stop, for the usage; after its end mark.
	drainFor = 30 * time.Second
	// lingerFor is how long an upstream may take to close an answer that it has
	// ended: its connection can then be used again.
	lingerFor = 100 * time.Millisecond
	// chunkSize is how much is read from the upstream at once. It is held by every
	// stream, and a connection's own buffer is no larger.
	chunkSize = 4 << 10
)

// streamBody is the body of a governed stream. Everything happens in Read or
// WriteTo, on the caller's goroutine:
//
//	nothing waits      read the upstream
//	something waits    read it on a goroutine, and watch the clock
//
// The goroutine lives for one reading. Close ends what is under way and waits.
type streamBody struct {
	call     *call
	stream   *wire.Stream
	upstream io.Closer
	from     io.Reader
	buf      []byte
	quit     chan struct{}
	once     sync.Once
	unwatch  func() bool // stops watching for the caller to leave
	watcher  sync.WaitGroup

	mu       sync.Mutex // held by Read, by WriteTo and by the end of Close
	readings chan chunk // of the goroutine
	reading  bool       // there is one
	over     bool       // the upstream has ended or broken
	released bool
	out      []byte // to be handed out; the stream's until it is asked again
	store    []byte // of what was handed over before that
	cut      *time.Timer
	waits    int64 // the frame that cut is for
	drain    *time.Timer
	err      error              // what Read returns once out is empty
	keep     *keeping           // nil where nothing is kept for a person
	unwait   context.CancelFunc // ends the wait for one; nil where there is none
}

type chunk struct {
	data []byte
	err  error // after data; io.EOF where the upstream ended by itself
}

func newStreamBody(c *call, opt wire.Options, upstream io.Closer, from io.Reader) *streamBody {
	b := &streamBody{
		call: c, upstream: upstream, from: from,
		buf: make([]byte, chunkSize), quit: make(chan struct{}), readings: make(chan chunk, 1),
	}
	b.keepIn(&opt)
	b.stream = c.format.NewStream(opt)
	b.watcher.Add(1)
	b.unwatch = context.AfterFunc(c.ctx, func() {
		defer b.watcher.Done()
		upstream.Close()
	})
	return b
}

// Read hands out what may be shown. It returns a [*UpstreamError] if the
// upstream broke, after all that may be shown and the protocol's own error.
func (b *streamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.await(); err != nil {
		return 0, err
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// WriteTo is Read in a loop, without a copy: each of its writes is what may be
// shown at one time.
func (b *streamBody) WriteTo(w io.Writer) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var written int64
	for {
		err := b.await()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(b.out)
		written += int64(n)
		b.out = nil
		if err != nil {
			return written, err
		}
	}
}

// await waits until there is something to hand out, or nothing more.
func (b *streamBody) await() error {
	for len(b.out) == 0 {
		if b.err != nil {
			b.release()
			return b.err
		}
		b.next()
	}
	return nil
}

// next waits for one thing to happen and acts on it.
func (b *streamBody) next() {
	if b.standing() {
		b.nextStanding()
		return
	}
	cut, drained := b.clocks()
	if cut == nil && drained == nil && !b.reading {
		b.take(b.readUpstream())
		return
	}
	b.startReading()
	select {
	case c := <-b.readings:
		b.reading = false
		b.take(c)
	case <-cut:
		b.show(b.stream.Cut())
	case <-drained:
		b.expire()
	}
}

// clocks are what there is to wait for beside the upstream.
func (b *streamBody) clocks() (cut, drained <-chan time.Time) {
	if waits := b.stream.Waiting(); waits != b.waits {
		if b.waits = waits; waits != 0 {
			restart(&b.cut, cutAfter)
		}
	}
	if b.waits != 0 {
		cut = b.cut.C
	}
	if b.drain == nil && (b.stream.Stopped() || b.stream.Complete()) {
		restart(&b.drain, drainFor)
	}
	if b.drain != nil {
		drained = b.drain.C
	}
	return cut, drained
}

func restart(t **time.Timer, d time.Duration) {
	if *t == nil {
		*t = time.NewTimer(d)
		return
	}
	(*t).Reset(d)
}

func (b *streamBody) readUpstream() chunk {
	n, err := b.from.Read(b.buf)
	return chunk{b.buf[:n], err}
}

func (b *streamBody) startReading() {
	if !b.reading {
		b.reading = true
		go func() { b.readings <- b.readUpstream() }()
	}
}

var errClosed = errors.New("govern: the body was closed")

// take judges what the upstream said.
func (b *streamBody) take(c chunk) {
	b.over = c.err != nil
	if len(c.data) > 0 {
		if b.keep != nil {
			b.keep.saw(c.data)
		}
		if b.show(b.stream.Write(c.data)); b.err != nil {
			return
		}
		if b.keep != nil && b.stream.Holding() {
			b.stand(c)
			return
		}
		if refusal := b.call.reach(b.stream.Spent()); refusal != nil && !b.stream.Ended() && !b.stream.Complete() && !b.stream.Stopped() {
			b.exhaust(refusal)
			return
		}
	}
	switch {
	case b.stream.Ended(), c.err == io.EOF:
		b.end(nil)
	case c.err == nil:
		if b.drain != nil && !b.stream.Stopped() && !b.stream.Complete() {
			b.drain.Stop() // one more message began
			b.drain = nil
		}
	case b.call.ctx.Err() != nil:
		b.leave(b.call.ctx.Err())
	case b.closing():
		b.leave(errClosed)
	default:
		b.end(errors.New("the upstream's answer broke off"))
	}
}

func (b *streamBody) closing() bool {
	select {
	case <-b.quit:
		return true
	default:
		return false
	}
}

// expire ends an answer whose upstream goes on without anything to show.
func (b *streamBody) expire() {
	b.over = true
	if b.stream.Complete() {
		b.end(nil)
		return
	}
	b.end(errors.New("the upstream did not end the answer in time"))
}

// show records what was decided, then lets it out.
func (b *streamBody) show(out []byte) {
	if err := b.call.keepVerdicts(b.stream.Decisions()); err != nil {
		b.halt(err)
		return
	}
	b.call.remember(b.stream.Thoughts())
	if b.keep != nil {
		b.keep.sum.Write(out)
		b.keep.sent += len(out)
	}
	if len(b.out) == 0 {
		b.out = out
		return
	}
	b.out = append(b.out, out...)
}

// halt ends the body where the record cannot be kept: nothing more leaves.
func (b *streamBody) halt(err error) {
	b.stream.Close(err)
	b.call.debit(b.stream.Outcome().Usage)
	b.out, b.err, b.over = nil, err, true
	b.release()
}

// end ends the answer after the upstream's last byte.
func (b *streamBody) end(cause error) {
	b.store = append(b.store, b.out...) // the stream is asked again
	b.out = b.store
	b.show(b.stream.Close(cause))
	b.finish()
}

// finish settles an answer of which all that may be shown is there.
func (b *streamBody) finish() {
	if b.err != nil {
		return
	}
	o := b.stream.Outcome()
	if err := b.call.settle(o); err != nil {
		b.halt(err)
		return
	}
	b.err = io.EOF
	if o.Status == wire.UpstreamFailed {
		b.err = &UpstreamError{Upstream: b.call.upstream.Name, Err: errors.New(o.Reason)}
	}
}

// leave settles an answer that nobody reads to its end. What was held is
// decided for the record, and goes nowhere. What ended it before stays its end.
func (b *streamBody) leave(cause error) {
	if b.standing() && b.keep.id != "" { // what becomes of it is with the question
		b.out, b.err, b.over = nil, cause, true
		b.release()
		return
	}
	ended := b.stream.Complete()
	before := b.stream.Outcome()
	if ended {
		b.stream.Close(nil)
	} else {
		b.stream.Close(cause)
	}
	err := b.call.keepVerdicts(b.stream.Decisions())
	o := b.stream.Outcome()
	switch {
	case ended:
	case before.Status == wire.Blocked, before.Status == wire.ApprovalRequired:
		before.Usage = o.Usage
		o = before
	default:
		o.Status, o.Guard, o.Rule, o.Reason = wire.Cancelled, "", "", "the caller left before the end"
	}
	if err == nil {
		err = b.call.settle(o)
	}
	b.out, b.err, b.over = nil, errors.Join(cause, err), true
	b.release()
}

// release lets go of the upstream and the clocks, once. An upstream that has
// said all may close the answer first.
func (b *streamBody) release() {
	if b.released {
		return
	}
	b.released = true
	if b.keep != nil {
		b.unwait()
		b.keep.end()
	}
	for _, t := range []*time.Timer{b.cut, b.drain} {
		if t != nil {
			t.Stop()
		}
	}
	if !b.over {
		b.linger()
	}
	if b.unwatch() {
		b.watcher.Done()
	}
	b.upstream.Close()
	b.watcher.Wait()
	if b.reading {
		<-b.readings
	}
}

func (b *streamBody) linger() {
	b.startReading()
	t := time.NewTimer(lingerFor)
	defer t.Stop()
	select {
	case <-b.readings:
		b.reading = false
	case <-t.C:
	case <-b.call.ctx.Done():
	}
}

// Close ends the answer, also while a Read waits.
func (b *streamBody) Close() error {
	b.once.Do(func() {
		close(b.quit)
		if b.unwait != nil {
			b.unwait()
		}
	})
	if !b.mu.TryLock() { // somebody waits for the upstream
		b.upstream.Close()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.err == nil {
		b.leave(errClosed)
	}
	b.out = nil
	b.release()
	return nil
}
