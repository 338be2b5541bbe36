package journal

import (
	"context"
	"iter"
)

// Follow reads a run's log behind the event after and goes on as it grows, until
// the run has ended and all of it was read, or ctx ends. A reader that went away
// with n as the last number it saw misses nothing and sees nothing twice when it
// comes back with n, in any process.
func Follow(ctx context.Context, s Store, ref Ref, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			// The row is read first: what it says of the end holds for the
			// events that are read behind it.
			run, err := s.Run(ctx, ref)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for rec, err := range s.Events(ctx, ref, after) {
				if !yield(rec, err) || err != nil {
					return
				}
				after = rec.Seq
			}
			if run.Status.Terminal() && after >= run.Tail.Seq {
				return
			}
			if err := s.Await(ctx, ref, after); err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}
