package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Report is what [Verify] found of a run.
type Report struct {
	Ref    Ref
	Events uint64 // that fit the chain
	Purged uint64 // of these, without payload
	Sealed uint64 // of these, with one that no key here opens: it was not held against its digest
	Tail   Tail   // the end of the part that fits
	// Broken says where the chain breaks first; nil if it is whole.
	Broken *Broken
}

// Broken is the first event of a run that does not fit.
type Broken struct {
	Seq uint64
	Why string
}

func (b *Broken) Error() string { return fmt.Sprintf("event %d: %s", b.Seq, b.Why) }

// Verify reads a run's log and finds the first link that is broken: an event
// that was altered, put in, left out or cut off. What it cannot see alone is a
// log cut at its end together with its row; whoever kept the last link from
// before, as printed when it was made, gives it as expect (else the zero Link),
// and the log must come by it.
func Verify(ctx context.Context, s Store, ref Ref, expect Link) (Report, error) {
	rep := Report{Ref: ref}
	run, err := s.Run(ctx, ref)
	if err != nil {
		return rep, err
	}
	passed := expect == Link{}
	for r, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return rep, err
		}
		next, broken := rep.Tail.Follow(s.Key(), r)
		if broken != nil {
			rep.Broken = broken
			return rep, nil
		}
		rep.Events++
		if !r.Purged.IsZero() {
			rep.Purged++
		}
		if errors.Is(r.Unread, ErrSealed) {
			rep.Sealed++
		}
		rep.Tail = next
		passed = passed || r.Link == expect
		if why := pastEnd(run, r); why != "" {
			rep.Broken = &Broken{Seq: r.Seq, Why: why}
			return rep, nil
		}
	}
	switch {
	case rep.Tail.Seq < run.Tail.Seq:
		rep.Broken = &Broken{Seq: rep.Tail.Seq + 1, Why: fmt.Sprintf("missing: the run's row says that there are %d", run.Tail.Seq)}
	case !passed:
		rep.Broken = &Broken{Seq: rep.Tail.Seq + 1, Why: "missing: the log does not come by the expected link " + expect.String()}
	}
	return rep, nil
}

// pastEnd says why an event cannot stand where it does beside the run's row,
// which was read first; empty if it can.
func pastEnd(run Run, r Record) string {
	switch {
	case r.Seq == run.Tail.Seq && r.Link != run.Tail.Link:
		return "its link is not the last one on the run's row"
	case r.Seq > run.Tail.Seq && run.Status.Terminal():
		return fmt.Sprintf("put in: the run ended with event %d", run.Tail.Seq)
	}
	return ""
}

// Follow checks that a record is the one behind the tail, unaltered, and returns
// the tail behind it. Whoever acts on what a log says follows it.
func (t Tail) Follow(key Key, r Record) (Tail, *Broken) {
	if why := misfit(key, t, r); why != "" {
		return t, &Broken{Seq: t.Seq + 1, Why: why}
	}
	return Tail{Seq: r.Seq, Link: r.Link}, nil
}

// misfit says why an event cannot follow the tail; empty if it can.
func misfit(key Key, tail Tail, r Record) string {
	switch {
	case r.Seq != tail.Seq+1:
		return fmt.Sprintf("missing: the next one there is %d", r.Seq)
	case errors.Is(r.Unread, ErrSealed):
		if r.chain(tail.Link) != r.Link {
			return "its link does not follow: it, or the event before it, was altered"
		}
		return ""
	case r.Unread != nil:
		return "its payload was altered after " + r.At.Format(time.RFC3339)
	case r.Purged.IsZero() && r.Payload == nil:
		return "its payload is gone, and nothing says that it was purged"
	case r.Purged.IsZero() && key.Digest(r.Payload) != r.Digest:
		return "its payload was altered after " + r.At.Format(time.RFC3339)
	case r.chain(tail.Link) != r.Link:
		return "its link does not follow: it, or the event before it, was altered"
	}
	return ""
}
