package guard

import "context"

// A Resetter is a [Screen] that can begin anew. Judging many short texts, one
// after the other, then takes no memory for each.
type Resetter interface {
	// Reset makes of the screen what its guard's Open would have returned. It
	// may be called at any time, but not after an error or a panic.
	Reset(context.Context, Channel)
}

// Reset ends the stream's channel, if it was not closed, and begins another:
// the stream is then as if the chain had just opened it. Screens that are no
// [Resetter], or have failed, are opened anew. What the stream gave out before is
// no longer valid, but for a [Stop].
func (s *Stream) Reset(ctx context.Context, ch Channel) {
	if !s.closed {
		s.Close()
	}
	for _, all := range [][]*judge{s.enforcing, s.watching} {
		for _, j := range all {
			j.reset(ctx, ch)
		}
	}
	if s.chain.allowed != nil {
		s.allowed = s.chain.allowed()
	}
	s.read, s.settled, s.stop, s.closed = 0, 0, nil, false
	s.text = reuse(s.text, idleText)
	s.pending, s.union = reuse(s.pending, idleItems), nil
	s.edits, s.decisions = reuse(s.edits, idleItems), reuse(s.decisions, idleItems)
}

// What a stream keeps of memory that it does not need: bytes of text, and
// findings.
const (
	idleText  = 64 << 10
	idleItems = 256
)

// reuse empties a slice, whose memory is kept if that is not too much.
func reuse[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	return s[:0]
}

// reset gives the judge a new text to judge.
func (j *judge) reset(ctx context.Context, ch Channel) {
	r, ok := j.screen.(Resetter)
	if ok = ok && j.failed == nil; ok {
		_, err := guarded(func() (Progress, error) { r.Reset(ctx, ch); return Progress{}, nil })
		ok = err == nil
	}
	if !ok {
		j.screen = screen(ctx, j.guard, j.mode, ch)
	}
	j.read, j.settled, j.most, j.failed, j.open = 0, 0, 0, nil, j.open[:0]
}

// Reset implements [Resetter].
func (a *auditor) Reset(ctx context.Context, ch Channel) {
	*a = auditor{ctx: ctx, guard: a.guard, channel: ch, head: reuse(a.head, idleText), tail: reuse(a.tail, idleText)}
}
