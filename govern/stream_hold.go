package govern

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/wire"
)

// beatEvery is how often the client of a stream that stands hears that it does.
const beatEvery = 15 * time.Second

// heartbeat is a comment between two frames. It ends with one line end: with two it
// would be an event without data, which some clients take for one.
var heartbeat = []byte(": waiting\n")

// keeping is a stream of which a person may have to approve the rest. Where a guard
// asks for that, the stream stands; what comes is judged a second time from the
// beginning, under guards that let through what a yes would let through:
//
//	upstream ─┬─► stream ── stands ─────────────► no: its end, as it was withheld
//	          └─► lifted ──► full, which is kept ─► yes: full, behind what was sent
//
// Both say the same up to where the stream stands, byte for byte: that is checked
// before a client gets the rest of the one behind the beginning of the other.
type keeping struct {
	opt    wire.Options // of lifted
	raw    []byte       // what came, until the stream stands
	rest   []byte       // and what came then
	sum    hash.Hash    // of what was sent
	sent   int
	lifted *wire.Stream // nil until the stream stands
	full   []byte
	big    bool // more came than is kept

	deadline, beat *time.Timer
	id             string // of the approval, once there is one
	until          time.Time
	ctx            context.Context // ends with the caller, and with the body
}

// keepIn makes a body keep what is withheld of it.
func (b *streamBody) keepIn(opt *wire.Options) {
	if !b.call.keeps() || opt.Choices > 1 {
		return
	}
	k := &keeping{sum: sha256.New(), opt: *opt}
	k.opt.Chain, k.opt.Choices = opt.Chain.Lifted(), 1
	k.ctx, b.unwait = context.WithCancel(b.call.ctx)
	opt.Hold = true
	b.keep = k
}

// standing reports whether the stream stands where a person must approve the rest.
func (b *streamBody) standing() bool { return b.keep != nil && b.keep.lifted != nil }

// saw notes what came before the stream stands.
func (k *keeping) saw(data []byte) {
	if k.big = k.big || len(k.raw)+len(data) > maxWithheld; k.big {
		k.raw = nil
		return
	}
	k.raw = append(k.raw, data...)
}

// stand begins to read for the lifted stream.
func (b *streamBody) stand(c chunk) {
	k := b.keep
	k.lifted = b.call.format.NewStream(k.opt)
	k.full = append(k.full, k.lifted.Write(k.raw)...)
	k.raw = nil
	k.deadline, k.beat = time.NewTimer(withheldFor), time.NewTimer(beatEvery)
	b.listen(c.err)
}

// takeStanding takes what comes while the stream stands.
func (b *streamBody) takeStanding(c chunk) {
	k := b.keep
	k.rest = append(k.rest, c.data...)
	k.full = append(k.full, k.lifted.Write(c.data)...)
	k.big = k.big || len(k.full) > maxWithheld
	b.listen(c.err)
}

// listen goes on, or concludes what came.
func (b *streamBody) listen(err error) {
	k := b.keep
	switch {
	case k.big:
		b.conclude(errTooLarge)
	case k.lifted.Ended(), err == io.EOF:
		b.conclude(nil)
	case err == nil:
		if k.lifted.Complete() && b.drain == nil {
			restart(&b.drain, lingerFor)
		}
	case b.call.ctx.Err() != nil:
		b.leave(b.call.ctx.Err())
	case b.closing():
		b.leave(errClosed)
	default:
		b.conclude(errLost)
	}
}

// nextStanding waits for one thing to happen while the stream stands.
func (b *streamBody) nextStanding() {
	k := b.keep
	if k.id != "" {
		b.awaitDecision()
		return
	}
	var complete <-chan time.Time
	if b.drain != nil {
		complete = b.drain.C
	}
	b.startReading()
	select {
	case c := <-b.readings:
		b.reading = false
		b.over = c.err != nil
		b.takeStanding(c)
	case <-complete:
		b.conclude(nil)
	case <-k.deadline.C:
		b.conclude(errLost)
	case <-k.beat.C:
		k.beat.Reset(beatEvery)
		b.out = heartbeat
	}
}

// conclude keeps what came, and asks a person; the client waits, or is told.
func (b *streamBody) conclude(err error) {
	k := b.keep
	k.full = append(k.full, k.lifted.Close(err)...)
	o := k.lifted.Outcome()
	if err == nil && o.Status == wire.UpstreamFailed {
		err = errLost
	}
	if err == nil && len(k.full) > maxWithheld {
		err = errTooLarge
	}
	if err == nil {
		released := Released{Status: 200, Kind: "text/event-stream", Body: k.full}
		k.id, err = b.call.withhold(o, k.lifted.Decisions(), released, b.stream.Outcome())
	}
	wait := b.call.wait()
	switch {
	case err != nil:
		b.letGo("", notKept(err))
	case b.call.parent() != "":
		k.id = ""
		b.letGo("", waitsInRun)
	case wait > 0:
		k.until = time.Now().Add(wait)
	default:
		b.letGo(k.id, waits(k.id))
	}
}

// awaitDecision waits for the person, and shows that it does.
func (b *streamBody) awaitDecision() {
	k := b.keep
	left := time.Until(k.until)
	ctx, stop := context.WithTimeout(k.ctx, min(left, beatEvery))
	d, err := b.call.t.approvals.Await(ctx, k.id)
	stop()
	switch {
	case k.ctx.Err() != nil:
		b.leave(errors.Join(b.call.ctx.Err(), errClosed))
	case err == nil && d.Approved:
		b.goOn()
	case err == nil:
		b.letGo(k.id, d.Words)
	case time.Until(k.until) <= 0:
		b.letGo(k.id, waits(k.id))
	default:
		b.out = heartbeat
	}
}

// goOn sends the rest of an answer that was approved.
func (b *streamBody) goOn() {
	k := b.keep
	var had [sha256.Size]byte
	if k.sent <= len(k.full) {
		had = sha256.Sum256(k.full[:k.sent])
	}
	if !bytes.Equal(had[:], k.sum.Sum(nil)) { // cut otherwise than it was sent
		b.letGo(k.id, waits(k.id))
		return
	}
	b.stream.Close(nil) // whose end is not shown
	b.out = k.full[k.sent:]
	b.call.watch.set(b.call.run, k.lifted.Outcome())
	b.over, b.err = true, io.EOF
}

// letGo sends the end of an answer that stays withheld. If it is kept, its record
// is what becomes of the question.
func (b *streamBody) letGo(id, why string) {
	k := b.keep
	out := slices.Clone(b.stream.LetGo(id, why))
	out = append(out, b.stream.Write(k.rest)...)
	out = append(out, b.stream.Close(nil)...)
	b.over = true
	b.keep = nil
	b.unwait()
	k.end()
	if id == "" {
		b.store = append(b.store[:0], b.out...)
		b.out = b.store
		b.show(out)
		b.finish()
		return
	}
	b.stream.Decisions() // of what was judged when the answer was kept
	b.out = append(b.out, out...)
	b.call.watch.set(b.call.run, b.stream.Outcome())
	b.err = io.EOF
}

// end stops the clocks.
func (k *keeping) end() {
	for _, t := range []*time.Timer{k.deadline, k.beat} {
		if t != nil {
			t.Stop()
		}
	}
}
