package chat

import (
	"context"
	"fmt"
	"iter"

	"github.com/stoplog/stoplog/internal/journal"
)

// Follow reads the story of a run behind a position, and goes on as it grows,
// until the run's end: the last item is then its Done. The Dones of pauses are
// no part of it, since the run goes on behind them; they are what ends a [Turn].
func Follow(ctx context.Context, s journal.Store, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for item, err := range follow(ctx, s, ref, after) {
			if d, ok := item.Event.(Done); ok && d.Waits() {
				continue
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// Turn reads the story behind a position until the run waits for people or has
// ended, whichever comes first. The last item is a Done.
func Turn(ctx context.Context, s journal.Store, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for item, err := range follow(ctx, s, ref, after) {
			if !yield(item, err) {
				return
			}
			if _, ok := item.Event.(Done); ok {
				return
			}
		}
	}
}

// follow reads all of the story behind a position. What comes before it is read
// too, since what a record shows depends on it.
func follow(ctx context.Context, s journal.Store, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		row, err := s.Run(ctx, ref)
		if err != nil {
			yield(Item{}, err)
			return
		}
		if after.Seq > row.Tail.Seq {
			yield(Item{}, fmt.Errorf("follow %s behind event %s: %w: the last one is %d", ref.Run, after, ErrAhead, row.Tail.Seq))
			return
		}
		reader := NewReader(row)
		for rec, err := range journal.Follow(ctx, s, ref, 0) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !rec.Purged.IsZero() {
				if reader.row, err = s.Run(ctx, ref); err != nil { // how it ended may be known by now
					yield(Item{}, err)
					return
				}
			}
			items, err := reader.Take(rec)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range items {
				if item.At.After(after) && !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Read returns the reader of a run as it stands, and the place of its last pause.
func Read(ctx context.Context, s journal.Reader, ref journal.Ref) (r *Reader, paused Position, err error) {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return nil, Position{}, err
	}
	r = NewReader(row)
	for rec, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return nil, Position{}, err
		}
		items, err := r.Take(rec)
		if err != nil {
			return nil, Position{}, err
		}
		for _, item := range items {
			if d, ok := item.Event.(Done); ok && d.Waits() {
				paused = item.At
			}
		}
	}
	return r, paused, nil
}
