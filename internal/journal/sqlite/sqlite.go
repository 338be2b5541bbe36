// Package sqlite keeps a journal in one SQLite file.
//
// Any number of processes on one machine may have the file open. Within a
// process one goroutine writes:
//
//	Update ─┐            ┌──────────── one transaction ───────────┐
//	Update ─┼─► queue ─► │ savepoint fn │ savepoint fn │ … │ commit │ ─► wake
//	Later  ─┘            └─────────────────────────────────────────┘
//
// While a commit is on its way to the disk the next ones gather, and share the
// next transaction: a group commit. An fn that fails is rolled back to its
// savepoint, the others go on. Between processes SQLite's own lock decides who
// writes; a reader waits for nobody.
//
// # What is chosen, and why
//
// WAL with synchronous=FULL: one fsync a commit, and a committed transaction
// survives a cut of power. Transactions begin IMMEDIATE, so that none finds out
// in the middle that another process was first. Pages of 512 bytes: a commit
// writes whole pages, and a step's events are small; for a run of 1,000 steps a
// fifth less is written than with 1 KB and half as much as with 4 KB, and it is
// read as fast. secure_delete: what is purged is overwritten in the file.
//
// Reads go through a pool of their own and are cut into queries of bounded size,
// since a read transaction that stays open keeps the write-ahead log from being
// used again.
//
// SQLite's locks and shared memory do not work on network file systems; [Open]
// refuses those that it knows.
package sqlite

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite" // also registers the driver

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/seal"
)

// Options of a store; the zero value is the default.
type Options struct {
	// Now is the store's clock; nil is time.Now.
	Now func() time.Time
	// Retention says how long payloads stay after the end of their run.
	Retention journal.Retention
	// Seal has the keys that payloads are sealed with. Nil: they lie in the file as
	// they are, what was sealed before is not read, and secrets are refused.
	Seal *seal.Ring
	// MaxBytes bounds the file; 0 is no bound. A write that would pass it fails
	// with journal.ErrFull, as on a full disk.
	MaxBytes int64
}

const (
	// pageSize is of a new file, in bytes.
	pageSize = 512
	// busyTimeout is how long a write waits for other processes' writes.
	busyTimeout = 5 * time.Second
	// linger is the longest that what was handed to Later waits for company.
	linger = 10 * time.Millisecond
	// poll is how soon those who Await hear of what another process wrote.
	poll = 50 * time.Millisecond
)

// Store is a journal in a file.
type Store struct {
	reader
	path      string
	options   Options
	key       journal.Key
	now       func() time.Time
	retention journal.Retention
	write     *sql.DB
	read      *sql.DB
	writer    *writer
	topics    topics
}

var _ journal.Store = (*Store)(nil)

// Open opens the store in the file path, and makes both if they are not there:
// the file and, beside it in path.key, the store's own key, each with mode 0600.
// It refuses a file on a network file system, one that others may read, one
// whose key is not the one beside it, one that another program wrote, and, with
// a *journal.NewerError, one that a newer version of this program wrote.
func Open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{path: path, options: o, now: o.Now, retention: o.Retention}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), s.closePools())
	}
	s.reader = reader{q: s.read, key: s.key, ring: o.Seal, now: o.Now}
	s.writer = newWriter(s)
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	if err := refuseNetwork(filepath.Dir(s.path)); err != nil {
		return err
	}
	// A commit needs the data on the disk, not the file's time stamps. Where
	// there is no fdatasync SQLite goes on with fsync, which is as durable.
	_, _ = sqlite.Fdatasync(true)
	lock, err := lockKey(s.path)
	if err != nil {
		return err
	}
	defer lock.Close() // and so unlocks
	if err := createPrivate(s.path); err != nil {
		return err
	}
	if s.write, err = sql.Open("sqlite", s.dsn(true, o)); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	fresh, err := s.migrate(ctx)
	if err != nil {
		return err
	}
	if s.key, err = lock.key(fresh); err != nil {
		return err
	}
	if err := s.proveKey(ctx, fresh); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", s.dsn(false, o)); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	s.read.SetMaxIdleConns(4)
	return nil
}

// dsn returns the name under which the driver opens the file.
func (s *Store) dsn(write bool, o Options) string {
	q := url.Values{"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())}}
	pragmas := []string{"query_only(ON)"}
	if write {
		q.Set("_txlock", "immediate")
		// The driver applies the journal mode behind the pragmas, and must: it
		// writes the first page, and so ends the time when a page size counts.
		q.Set("_journal_mode", "WAL")
		pragmas = []string{fmt.Sprintf("page_size(%d)", pageSize), "synchronous(FULL)", "secure_delete(ON)"}
		if o.MaxBytes > 0 {
			pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", max(1, o.MaxBytes/pageSize)))
		}
	}
	q["_pragma"] = pragmas
	return (&url.URL{Scheme: "file", Path: s.path, RawQuery: q.Encode()}).String()
}

// proof is what only the store's own key gives.
func proof(k journal.Key) []byte {
	d := k.Digest([]byte("stoplog store"))
	return d[:]
}

// proveKey marks a fresh store with its key, and refuses another store's key.
func (s *Store) proveKey(ctx context.Context, fresh bool) error {
	if fresh {
		_, err := s.write.ExecContext(ctx, `INSERT INTO store (one, made_at, key_proof) VALUES (1, ?, ?)`,
			s.now().UnixMicro(), proof(s.key))
		return err
	}
	var have []byte
	if err := s.write.QueryRowContext(ctx, `SELECT key_proof FROM store`).Scan(&have); err != nil {
		return err
	}
	if !hmac.Equal(have, proof(s.key)) {
		return fmt.Errorf("the key in %s is another store's: put this store's own key back", keyPath(s.path))
	}
	return nil
}

// Pool opens one more connection to the file, with the settings of the store's
// own writer, for those who keep tables of their own in it. The caller closes it,
// before the store.
func (s *Store) Pool() (*sql.DB, error) {
	db, err := sql.Open("sqlite", s.dsn(true, s.options))
	if err != nil {
		return nil, fmt.Errorf("open another connection to %s: %w", s.path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Locked runs fn while no other process opens the store or is in a Locked: to
// make or change tables beside the journal's.
func (s *Store) Locked(fn func() error) error {
	lock, err := lockKey(s.path)
	if err != nil {
		return fmt.Errorf("lock store %s: %w", s.path, err)
	}
	return errors.Join(fn(), lock.Close())
}

// Seals reports whether there is a key that what is kept is sealed with.
func (s *Store) Seals() bool { return s.options.Seal != nil }

// Path returns the file's absolute path.
func (s *Store) Path() string { return s.path }

// Key returns the store's own key.
func (s *Store) Key() journal.Key { return s.key }

// Update implements [journal.Store].
func (s *Store) Update(ctx context.Context, fn func(context.Context, journal.Tx) error) error {
	return s.writer.update(ctx, fn)
}

// Later implements [journal.Store].
func (s *Store) Later(fn func(context.Context, journal.Tx) error) *journal.Pending {
	return s.writer.later(fn)
}

// Close implements [journal.Store].
func (s *Store) Close() error {
	s.writer.close()
	s.topics.wakeAll()
	return s.closePools()
}

func (s *Store) closePools() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
