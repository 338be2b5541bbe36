package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stoplog/stoplog/internal/journal"
)

var writingTests = []test{
	{"many writers, in two processes, and every run is whole", func(w *world) {
		const workers, steps = 12, 25
		other := w.on(w.again())
		leases := make([]journal.Lease, workers)
		for i := range leases {
			leases[i] = w.started()
		}
		var wg sync.WaitGroup
		for i, l := range leases {
			in := []*world{w, other}[i%2]
			wg.Go(func() {
				for n := range steps {
					if err := in.try(func(tx journal.Tx) error {
						_, err := tx.Append(w.ctx, l, note(n), note(n))
						return err
					}); err != nil {
						w.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, l := range leases {
			rep := w.verify(l.Ref, journal.Link{})
			if rep.Broken != nil || rep.Events != 2*steps {
				w.Errorf("%+v", rep)
			}
		}
	}},

	{"one that fails does not take the others along", func(w *world) {
		l := w.started()
		stop := errors.New("stop")
		var pending []*journal.Pending
		for n := range 30 {
			pending = append(pending, w.Later(func(ctx context.Context, tx journal.Tx) error {
				if _, err := tx.Append(ctx, l, note(n)); err != nil || n%3 != 0 {
					return err
				}
				return stop
			}))
		}
		for n, p := range pending {
			if err := p.Wait(w.ctx); (n%3 == 0) != errors.Is(err, stop) {
				w.Errorf("write %d: %v", n, err)
			}
		}
		if got := w.log(l.Ref, 0); len(got) != 20 {
			w.Errorf("%d events, want 20", len(got))
		}
		if rep := w.verify(l.Ref, journal.Link{}); rep.Broken != nil {
			w.Error(rep.Broken)
		}
	}},

	{"what was handed in before an update has its outcome when that returns", func(w *world) {
		l := w.started()
		var pending []*journal.Pending
		for n := range 10 {
			pending = append(pending, w.Later(func(ctx context.Context, tx journal.Tx) error {
				_, err := tx.Append(ctx, l, note(n))
				return err
			}))
		}
		if tail := w.append(l, note(10)); tail.Seq != 11 {
			w.Errorf("the update's event has number %d", tail.Seq)
		}
		for n, p := range pending {
			select {
			case <-p.Done():
				if p.Err() != nil {
					w.Error(p.Err())
				}
			default:
				w.Errorf("write %d has no outcome", n)
			}
		}
		for i, r := range w.log(l.Ref, 0) {
			if want := fmt.Sprintf(`{"n":%d,"v":1}`, i); string(r.Payload) != want {
				w.Errorf("event %d is %s, want %s", r.Seq, r.Payload, want)
			}
		}
	}},

	{"what was handed in becomes durable though nobody waits", func(w *world) {
		l := w.started()
		p := w.Later(func(ctx context.Context, tx journal.Tx) error {
			_, err := tx.Append(ctx, l, note(1))
			return err
		})
		<-p.Done()
		if got := w.on(w.again()).log(l.Ref, 0); len(got) != 1 {
			w.Errorf("%d events", len(got))
		}
	}},

	{"closing is behind what was handed in, and nothing is behind closing", func(w *world) {
		l := w.started()
		s := w.again()
		p := s.Later(func(ctx context.Context, tx journal.Tx) error {
			_, err := tx.Append(ctx, l, note(1))
			return err
		})
		if err := s.Close(); err != nil {
			w.Fatal(err)
		}
		if err := p.Wait(w.ctx); err != nil {
			w.Error(err)
		}
		w.wantErr(s.Update(w.ctx, func(context.Context, journal.Tx) error { return nil }), journal.ErrClosed)
		w.wantErr(s.Later(func(context.Context, journal.Tx) error { return nil }).Wait(w.ctx), journal.ErrClosed)
		if got := w.log(l.Ref, 0); len(got) != 1 {
			w.Errorf("%d events", len(got))
		}
	}},

	{"an update whose context has ended does not begin", func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		began := false
		err := w.Update(ctx, func(context.Context, journal.Tx) error { began = true; return nil })
		w.wantErr(err, context.Canceled)
		if began {
			w.Error("it began")
		}
	}},

	{"an update that has begun does not end with its caller's context", func(w *world) {
		l := w.started()
		ctx, cancel := context.WithCancel(w.ctx)
		err := w.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
			cancel()
			_, err := tx.Append(ctx, l, note(1))
			return err
		})
		if err != nil || len(w.log(l.Ref, 0)) != 1 {
			w.Errorf("got %v, and %d events", err, len(w.log(l.Ref, 0)))
		}
	}},

	{"a bug in an update is its caller's, and the store goes on", func(w *world) {
		l := w.started()
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "a bug") {
					w.Errorf("recovered %v", v)
				}
			}()
			_ = w.try(func(tx journal.Tx) error {
				if _, err := tx.Append(w.ctx, l, note(1)); err != nil {
					return err
				}
				panic("a bug")
			})
		}()
		if tail := w.append(l, note(2)); tail.Seq != 1 {
			w.Errorf("the next event has number %d", tail.Seq)
		}
	}},
}
