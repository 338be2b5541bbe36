package chat

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/stoplog/stoplog/internal/journal"
)

// Source is where stories are read. Store must be set.
type Source struct {
	Store journal.Store
	// Live gives text sooner than the log has it. It may be nil.
	Live Live
}

// Live is text on its way into the log.
type Live interface {
	// Text yields text of a run as it is released, until ctx or the run ends. What
	// it leaves out, the log has. An error only means that there is no more.
	Text(ctx context.Context, ref journal.Ref) iter.Seq2[Delta, error]
}

// Follow reads the story of a run behind a position, and goes on as it grows,
// until the run's end: the last item is then its Done. The Dones of pauses are
// no part of it, since the run goes on behind them; they are what ends a [Turn].
//
// Text that is not in the log yet has no position. Who comes back behind an
// event may see such text again: its Start says where it goes.
func (s Source) Follow(ctx context.Context, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for item, err := range s.follow(ctx, ref, after) {
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
func (s Source) Turn(ctx context.Context, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for item, err := range s.follow(ctx, ref, after) {
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
func (s Source) follow(ctx context.Context, ref journal.Ref, after Position) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		row, err := s.Store.Run(ctx, ref)
		if err != nil {
			yield(Item{}, err)
			return
		}
		if after.Seq > row.Tail.Seq {
			yield(Item{}, fmt.Errorf("follow %s behind event %s: %w: the last one is %d", ref.Run, after, ErrAhead, row.Tail.Seq))
			return
		}
		reader := NewReader(row)
		for u, err := range s.arrivals(ctx, ref) {
			var items []Item
			switch {
			case err != nil:
			case u.live:
				items = reader.live(u.text)
			default:
				items, err = s.take(ctx, reader, u.record)
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range items {
				if (item.At.IsZero() || item.At.After(after)) && !yield(item, nil) {
					return
				}
			}
		}
	}
}

// take gives a record to the reader. Where something was purged the row, which
// may have been read before the run's end, is read again: it says how that was.
func (s Source) take(ctx context.Context, r *Reader, rec journal.Record) ([]Item, error) {
	if !rec.Purged.IsZero() && !r.row.Status.Terminal() {
		row, err := s.Store.Run(ctx, rec.Ref)
		if err != nil {
			return nil, err
		}
		r.row = row
	}
	return r.Take(rec)
}

// arrival is a record, or text that is not in the log yet.
type arrival struct {
	record journal.Record
	live   bool
	text   Delta
}

// arrivals reads the log to its end, and live text beside it.
func (s Source) arrivals(ctx context.Context, ref journal.Ref) iter.Seq2[arrival, error] {
	return func(yield func(arrival, error) bool) {
		if s.Live == nil {
			for rec, err := range journal.Follow(ctx, s.Store, ref, 0) {
				if !yield(arrival{record: rec}, err) {
					return
				}
			}
			return
		}
		ctx, stop := context.WithCancel(ctx)
		var readers sync.WaitGroup
		defer readers.Wait()
		defer stop()
		records, texts := make(chan fetched[journal.Record]), make(chan fetched[Delta])
		readers.Go(func() { fetch(ctx, journal.Follow(ctx, s.Store, ref, 0), records) })
		readers.Go(func() { fetch(ctx, s.Live.Text(ctx, ref), texts) })
		for {
			select {
			case f, more := <-records:
				if !more || !yield(arrival{record: f.value}, f.err) {
					return
				}
			case f, more := <-texts:
				if !more || f.err != nil {
					texts = nil // the log has the rest
				} else if !yield(arrival{live: true, text: f.value}, nil) {
					return
				}
			}
		}
	}
}

type fetched[T any] struct {
	value T
	err   error
}

// fetch hands values over one by one, and closes the channel behind the last. An
// end of the context is left to who asked for it.
func fetch[T any](ctx context.Context, seq iter.Seq2[T, error], to chan<- fetched[T]) {
	defer close(to)
	for v, err := range seq {
		select {
		case to <- fetched[T]{v, err}:
		case <-ctx.Done():
			return
		}
	}
}

// Read returns the reader of a run as it stands, and the place of its last pause.
func Read(ctx context.Context, s journal.Reader, ref journal.Ref) (r *Reader, paused Position, err error) {
	r, items, err := readAll(ctx, s, ref)
	for _, item := range items {
		if d, ok := item.Event.(Done); ok && d.Waits() {
			paused = item.At
		}
	}
	return r, paused, err
}

// Items returns the story of a run as it stands, with the Dones of its pauses.
func Items(ctx context.Context, s journal.Reader, ref journal.Ref) ([]Item, error) {
	_, items, err := readAll(ctx, s, ref)
	return items, err
}

func readAll(ctx context.Context, s journal.Reader, ref journal.Ref) (r *Reader, all []Item, err error) {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	r = NewReader(row)
	for rec, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return nil, nil, err
		}
		items, err := r.Take(rec)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, items...)
	}
	return r, all, nil
}
