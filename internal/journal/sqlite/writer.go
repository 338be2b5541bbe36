package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// maxGroup bounds the writes that share a commit, so that no other process waits
// long for its turn.
const maxGroup = 256

// op is a write that was handed in.
type op struct {
	ctx    context.Context // its end takes the op back while it has not begun
	fn     func(context.Context, journal.Tx) error
	settle func(error)
	seen   []journal.Ref // the runs that fn wrote to
	err    error         // fn's
}

// A writer is the one goroutine that writes to the store.
type writer struct {
	s     *Store
	stmts map[string]*sql.Stmt // the hot ones, prepared on its one connection
	kick  chan struct{}        // holds a token when there is something new to see
	ended chan struct{}

	mu     sync.Mutex
	queue  []*op
	urgent int // how many of the queue somebody waits for
	closed bool

	polled  time.Time
	version int64 // SQLite's count of other connections' commits, as polled

	commits, writes atomic.Int64
}

// Stats counts what a store has done since it was opened.
type Stats struct {
	Commits int64 // transactions that were committed
	Writes  int64 // updates that succeeded in them, waited for or not
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.writer.commits.Load(), Writes: s.writer.writes.Load()}
}

func newWriter(s *Store) *writer {
	w := &writer{s: s, stmts: map[string]*sql.Stmt{}, kick: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.loop()
	return w
}

func (w *writer) update(ctx context.Context, fn func(context.Context, journal.Tx) error) error {
	p, settle := journal.NewPending()
	if err := w.hand(&op{ctx: ctx, fn: fn, settle: settle}, true); err != nil {
		return err
	}
	<-p.Done() // the writer looks at ctx when the op's turn comes
	var panicked *panicError
	if errors.As(p.Err(), &panicked) {
		panic(panicked) // in the goroutine whose bug it is
	}
	return p.Err()
}

func (w *writer) later(fn func(context.Context, journal.Tx) error) *journal.Pending {
	p, settle := journal.NewPending()
	if err := w.hand(&op{ctx: context.Background(), fn: fn, settle: settle}, false); err != nil {
		settle(err)
	}
	return p
}

func (w *writer) hand(o *op, urgent bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return journal.ErrClosed
	}
	w.queue = append(w.queue, o)
	if urgent {
		w.urgent++
	}
	w.nudge()
	return nil
}

// nudge makes the loop look again.
func (w *writer) nudge() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// close ends the loop behind what was handed in.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.nudge()
	w.mu.Unlock()
	<-w.ended
}

func (w *writer) loop() {
	defer close(w.ended)
	var lazySince time.Time
	for {
		w.mu.Lock()
		waiting, urgent, closed := len(w.queue), w.urgent > 0, w.closed
		w.mu.Unlock()
		if waiting == 0 {
			lazySince = time.Time{}
		} else if lazySince.IsZero() {
			lazySince = time.Now()
		}
		switch {
		case waiting > 0 && (urgent || closed || time.Since(lazySince) >= linger):
			w.commit(w.take())
			lazySince = time.Time{}
			continue
		case closed:
			return
		}
		w.listen()
		w.rest(waiting > 0)
	}
}

// rest waits until there may be something to do.
func (w *writer) rest(lazy bool) {
	var wake <-chan time.Time
	switch {
	case lazy:
		wake = time.After(linger)
	case w.s.topics.any():
		wake = time.After(poll)
	}
	select {
	case <-w.kick:
	case <-wake:
	}
}

// take removes the next group from the queue.
func (w *writer) take() []*op {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxGroup)
	group := w.queue[:n:n]
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue, w.urgent = nil, 0
	}
	return group
}

// listen wakes those who Await when another process has written.
func (w *writer) listen() {
	if !w.s.topics.any() || time.Since(w.polled) < poll {
		return
	}
	w.polled = time.Now()
	var v int64
	if err := w.s.write.QueryRow(`PRAGMA data_version`).Scan(&v); err != nil || v != w.version {
		w.version = v // on an error those who wait look for themselves, and see it
		w.s.topics.wakeAll()
	}
}

// commit runs a group in one transaction and settles each of its ops.
func (w *writer) commit(group []*op) {
	if err := w.attempt(group); err != nil && len(group) > 1 {
		// What one of them asked too much of may still do for the others: each
		// tries alone.
		for _, o := range group {
			if err := w.attempt([]*op{o}); err != nil {
				o.err = err
			}
			w.finish(o)
		}
		return
	} else if err != nil {
		group[0].err = err
	}
	for _, o := range group {
		w.finish(o)
	}
}

func (w *writer) finish(o *op) {
	if o.err == nil {
		w.s.topics.wake(o.seen)
	}
	o.settle(o.err)
}

// attempt runs a group in one transaction; what became of an op is in the op.
// It returns an error if the transaction ended under the group, and none of it
// was written. A store that cannot be written to at all fails each op, so that
// the group does not wait for a lock once for each of its members.
func (w *writer) attempt(group []*op) error {
	for _, o := range group {
		o.seen, o.err = nil, nil
	}
	tx, err := w.begin()
	if err != nil {
		for _, o := range group {
			o.err = fmt.Errorf("begin to write to %s: %w", w.s.path, mapError(err))
		}
		return nil
	}
	t := &txn{reader: reader{q: tx, key: w.s.key, ring: w.s.options.Seal, now: w.s.now}, s: w.s, tx: tx, stmts: w.stmts}
	wrote := 0
	for _, o := range group {
		o.err = t.run(o, len(group) > 1)
		if t.broken != nil {
			_ = tx.Rollback() // SQLite has already; database/sql has to hear of it
			return t.broken
		}
		if o.err == nil {
			wrote++
		}
	}
	if wrote == 0 {
		_ = tx.Rollback() // of nothing
		return nil
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit to %s: %w", w.s.path, mapError(err))
	}
	w.commits.Add(1)
	w.writes.Add(int64(wrote))
	return nil
}

func (w *writer) begin() (*sql.Tx, error) {
	if err := w.prepare(); err != nil {
		return nil, err
	}
	return w.s.write.Begin()
}

// prepare prepares the hot statements, once.
func (w *writer) prepare() error {
	for _, q := range hot {
		if w.stmts[q] != nil {
			continue
		}
		stmt, err := w.s.write.Prepare(q)
		if err != nil {
			return fmt.Errorf("prepare %.40q: %w", q, err)
		}
		w.stmts[q] = stmt
	}
	return nil
}

// run runs one op, in a savepoint if others share the transaction.
func (t *txn) run(o *op, shared bool) error {
	if err := context.Cause(o.ctx); err != nil {
		return err
	}
	ctx := context.Background()
	t.at = t.s.now().UTC().Truncate(time.Microsecond)
	t.seen = map[journal.Ref]bool{}
	if shared {
		if err := t.exec(ctx, `SAVEPOINT op`); err != nil {
			return err
		}
	}
	err := safely(func() error { return o.fn(ctx, t) })
	if t.broken != nil {
		return err
	}
	switch {
	case err == nil && shared:
		err = t.exec(ctx, `RELEASE op`)
	case err != nil && shared:
		if undo := t.exec(ctx, `ROLLBACK TO op; RELEASE op`); undo != nil {
			t.broken = undo
		}
	}
	for ref := range t.seen {
		o.seen = append(o.seen, ref)
	}
	return err
}

// panicError carries a panic of an op to the goroutine that handed it in.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("panic in a transaction: %v\n%s", e.value, e.stack)
}

func safely(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return fn()
}
