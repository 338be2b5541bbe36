package journaltest

import (
	"context"
	"errors"
	"slices"

	"github.com/stoplog/stoplog/internal/journal"
)

var followTests = []test{
	{"a follower reads what is there, what comes, and the end", func(w *world) {
		w.follows(w)
	}},

	{"a follower hears of what another process writes", func(w *world) {
		w.follows(w.on(w.again()))
	}},

	{"a follower that comes back with a number goes on behind it", func(w *world) {
		l := w.started()
		w.append(l, notes(1, 9)...)
		w.status(l, journal.Completed, "")
		var seen []uint64
		for r, err := range journal.Follow(w.ctx, w.again(), l.Ref, 6) {
			if err != nil {
				w.Fatal(err)
			}
			seen = append(seen, r.Seq)
		}
		if !slices.Equal(seen, []uint64{7, 8, 9}) {
			w.Errorf("it read %v", seen)
		}
	}},

	{"a follower of nothing is told so", func(w *world) {
		for _, err := range journal.Follow(w.ctx, w.Store, journal.Ref{Tenant: "t", Run: w.id(journal.RunPrefix)}, 0) {
			w.wantErr(err, journal.ErrNotFound)
			return
		}
		w.Error("it read nothing, and no error")
	}},

	{"a follower leaves when its context ends", func(w *world) {
		l := w.started()
		w.append(l, note(1))
		ctx, cancel := context.WithCancelCause(w.ctx)
		defer cancel(nil)
		gone := errors.New("gone")
		var last error
		for _, err := range journal.Follow(ctx, w.Store, l.Ref, 0) {
			last = err
			cancel(gone)
		}
		if !errors.Is(last, gone) && !errors.Is(last, context.Canceled) {
			w.Errorf("it ended with %v", last)
		}
	}},

	{"who waits for a store that closes is told so", func(w *world) {
		l := w.started()
		s := w.again()
		waiting := make(chan error, 1)
		go func() { waiting <- s.Await(w.ctx, l.Ref, 0) }()
		if err := s.Close(); err != nil {
			w.Fatal(err)
		}
		if err := <-waiting; err == nil {
			w.Error("it heard of something")
		}
	}},
}

// follows has a follower on writer's side of the store read along, one event at
// a time, with what this world writes.
func (w *world) follows(reader *world) {
	l := w.started()
	w.append(l, notes(1, 3)...)
	seen, failed := make(chan uint64), make(chan error, 1)
	go func() {
		defer close(seen)
		for r, err := range journal.Follow(w.ctx, reader.Store, l.Ref, 0) {
			if err != nil {
				failed <- err
				return
			}
			seen <- r.Seq
		}
	}()
	for n := uint64(1); n <= 20; n++ {
		if n > 3 {
			w.append(l, note(int(n)))
		}
		if got, ok := <-seen; !ok || got != n {
			w.Fatalf("it read %d, want %d (%v)", got, n, ok)
		}
	}
	w.status(l, journal.Completed, "")
	if got, ok := <-seen; ok {
		w.Errorf("behind the end it read %d", got)
	}
	select {
	case err := <-failed:
		w.Error(err)
	default:
	}
}
