package sqlite

import (
	"context"
	"sync"

	"github.com/stoplog/stoplog/internal/journal"
)

// topics wake those who wait for a run. Its zero value is ready.
type topics struct {
	mu    sync.Mutex
	waits map[journal.Ref]*topic
}

type topic struct {
	changed chan struct{} // closed at the run's next change
	waiters int
}

// wait returns a channel that is closed when the run changes next, and the
// function that ends the wait.
func (t *topics) wait(ref journal.Ref) (changed <-chan struct{}, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waits[ref]
	if w == nil {
		if t.waits == nil {
			t.waits = map[journal.Ref]*topic{}
		}
		w = &topic{changed: make(chan struct{})}
		t.waits[ref] = w
	}
	w.waiters++
	return w.changed, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.waiters--; w.waiters == 0 && t.waits[ref] == w {
			delete(t.waits, ref)
		}
	}
}

func (t *topics) wake(refs []journal.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range refs {
		if w := t.waits[ref]; w != nil {
			close(w.changed)
			delete(t.waits, ref)
		}
	}
}

func (t *topics) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waits {
		close(w.changed)
	}
	clear(t.waits)
}

// any reports whether anybody waits.
func (t *topics) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waits) > 0
}

// Await implements [journal.Store].
func (s *Store) Await(ctx context.Context, ref journal.Ref, after uint64) error {
	for {
		news, err := s.await(ctx, ref, after)
		if news || err != nil {
			return err
		}
	}
}

// await waits for one change of the run, unless there are news already.
func (s *Store) await(ctx context.Context, ref journal.Ref, after uint64) (news bool, err error) {
	changed, end := s.topics.wait(ref)
	defer end()
	s.writer.nudge() // while somebody waits, it listens to other processes
	run, err := s.Run(ctx, ref)
	if err != nil || run.Tail.Seq > after || run.Status.Terminal() {
		return true, err
	}
	select {
	case <-changed:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-s.writer.ended:
		return false, journal.ErrClosed
	}
}
