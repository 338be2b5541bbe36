package sqlite

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/seal"
)

// reader implements [journal.Reader] on a pool or in a transaction.
type reader struct {
	q interface {
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
	key  journal.Key
	ring *seal.Ring
	now  func() time.Time
}

type nullTime = sql.NullInt64

func named(name string, v any) sql.NamedArg { return sql.Named(name, v) }

// collect reads all rows, each into what dst names of a T, and closes them.
func collect[T any](rows *sql.Rows, dst func(*T) []any) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		var v T
		if err := rows.Scan(dst(&v)...); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

const selectRun = `
SELECT tenant, run, kind, parent, session, profile, starter, capture, profile_digest, workdir, host, status, reason,
	created_at, ended_at, wake_at, cancel_by, lease_owner, lease_until, fence, seq, chain,
	snapshot_seq, snapshot_bytes, since_bytes
FROM runs `

// runRow is a row of runs as it is read.
type runRow struct {
	journal.Run
	created, ended, wake, until nullTime
	link                        []byte
}

func (r *runRow) dst() []any {
	return []any{&r.Tenant, &r.Run.Run, &r.Kind, &r.Parent, &r.Session, &r.Profile, &r.Starter, &r.Capture,
		&r.ProfileDigest, &r.Workdir, &r.Host, &r.Status, &r.Reason, &r.created, &r.ended, &r.wake, &r.CancelBy, &r.Owner, &r.until, &r.Fence, &r.Tail.Seq, &r.link,
		&r.Run.Snapshot, &r.SnapshotBytes, &r.Since}
}

func (r *runRow) value() (journal.Run, error) {
	r.Created, r.Ended, r.WakeAt = moment(r.created), moment(r.ended), moment(r.wake)
	if r.Owner != "" {
		r.Until = moment(r.until)
	}
	return r.Run, into(r.Tail.Link[:], r.link)
}

// Run implements [journal.Reader].
func (r reader) Run(ctx context.Context, ref journal.Ref) (journal.Run, error) {
	var row runRow
	err := r.q.QueryRowContext(ctx, selectRun+`WHERE tenant = ? AND run = ?`, ref.Tenant, ref.Run).Scan(row.dst()...)
	if err != nil {
		return journal.Run{}, fmt.Errorf("read run %s: %w", ref, mapError(err))
	}
	return row.value()
}

// page is how many rows a list has if its query does not say.
const page = 100

func limit(n int) int {
	if n <= 0 {
		return page
	}
	return n
}

// where is a condition that names only what is asked for, so that SQLite finds the
// index that fits.
type where struct {
	text string
	args []any
}

func (w *where) and(condition string, arg any) {
	if w.text == "" {
		w.text = `WHERE ` + condition
	} else {
		w.text += ` AND ` + condition
	}
	w.args = append(w.args, arg)
}

func (w *where) andIf(asked bool, condition string, arg any) {
	if asked {
		w.and(condition, arg)
	}
}

// Runs implements [journal.Reader].
func (r reader) Runs(ctx context.Context, q journal.RunQuery) ([]journal.Run, error) {
	var w where
	w.and(`tenant = ?`, q.Tenant)
	w.andIf(q.Status != "", `status = ?`, q.Status)
	w.andIf(q.Kind != "", `kind = ?`, q.Kind)
	w.andIf(q.Session != "", `session <> '' AND session = ?`, q.Session)
	w.andIf(q.Parent != "", `parent <> '' AND parent = ?`, q.Parent)
	w.andIf(q.Before != "", `run < ?`, q.Before)
	rows, err := r.q.QueryContext(ctx, selectRun+w.text+` ORDER BY run DESC LIMIT ?`, append(w.args, limit(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", mapError(err))
	}
	found, err := collect(rows, (*runRow).dst)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", mapError(err))
	}
	runs := make([]journal.Run, len(found))
	for i := range found {
		if runs[i], err = found[i].value(); err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
	}
	return runs, nil
}

// A purged event shows no payload, even if another run still holds an equal one.
const selectEvents = `
SELECT e.seq, e.at, e.kind, e.version, e.content, coalesce(e.payload, b.body),
	e.payload IS NULL, coalesce(b.key_id, e.key_id), e.purged_at, e.digest, e.chain
FROM events AS e LEFT JOIN blobs AS b
	ON e.payload IS NULL AND e.purged_at IS NULL AND b.tenant = e.tenant AND b.digest = e.digest
WHERE e.tenant = ? AND e.run = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`

// eventRow is a row of events as it is read.
type eventRow struct {
	journal.Record
	at, purged   nullTime
	apart        bool // the payload lies in blobs
	keyID        string
	digest, link []byte
}

func (e *eventRow) dst() []any {
	return []any{&e.Seq, &e.at, &e.Kind, &e.Version, &e.Content, (*[]byte)(&e.Payload), &e.apart, &e.keyID, &e.purged, &e.digest, &e.link}
}

// eventPage bounds a query of events: small enough that no read transaction stays
// open long, large enough that a query's own cost does not count.
const eventPage = 128

// Events implements [journal.Reader].
func (r reader) Events(ctx context.Context, ref journal.Ref, after uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for {
			records, err := r.events(ctx, ref, after)
			if err != nil {
				yield(journal.Record{}, fmt.Errorf("read the events of run %s behind %d: %w", ref, after, mapError(err)))
				return
			}
			for _, rec := range records {
				if !yield(rec, nil) {
					return
				}
				after = rec.Seq
			}
			if len(records) < eventPage {
				return
			}
		}
	}
}

func (r reader) events(ctx context.Context, ref journal.Ref, after uint64) ([]journal.Record, error) {
	rows, err := r.q.QueryContext(ctx, selectEvents, ref.Tenant, ref.Run, after, eventPage)
	if err != nil {
		return nil, err
	}
	found, err := collect(rows, (*eventRow).dst)
	if err != nil {
		return nil, err
	}
	records := make([]journal.Record, len(found))
	for i, e := range found {
		e.Ref, e.At, e.Purged = ref, moment(e.at), moment(e.purged)
		e.Ref = ref
		err := r.openEvent(&e)
		if err := errors.Join(err, into(e.Digest[:], e.digest), into(e.Link[:], e.link)); err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		records[i] = e.Record
	}
	return records, nil
}

// Snapshot implements [journal.Reader].
func (r reader) Snapshot(ctx context.Context, ref journal.Ref) (s journal.Snapshot, err error) {
	var digest []byte
	var key string
	err = r.q.QueryRowContext(ctx, `SELECT seq, version, key_id, state, digest FROM snapshots WHERE tenant = ? AND run = ?`,
		ref.Tenant, ref.Run).Scan(&s.Seq, &s.Version, &key, &s.State, &digest)
	if err == nil {
		s.State, err = r.open(snapshotColumn(ref, s.Seq), key, s.State)
	}
	if err == nil {
		s.State, err = unpack(s.State)
	}
	if want := r.key.Snapshot(ref, s); err == nil && !hmac.Equal(digest, want[:]) {
		err = journal.ErrAltered
	}
	if err != nil {
		return s, fmt.Errorf("read the snapshot of run %s: %w", ref, mapError(err))
	}
	return s, nil
}

const selectQuestion = `
SELECT tenant, question, run, about, subject, digest, key_id, shown, not_by, asked_at, expires_at, state, decider, said_key, said, decided_at, used_at
FROM questions `

// questionRow is a row of questions as it is read.
type questionRow struct {
	journal.Question
	asked, expires, decided, used nullTime
	digest                        []byte
	key, saidKey                  string
}

func (q *questionRow) dst() []any {
	return []any{&q.Tenant, &q.ID, &q.Run, &q.About, &q.Subject, &q.digest, &q.key, (*[]byte)(&q.Shown), &q.NotBy, &q.asked, &q.expires, &q.State,
		&q.By, &q.saidKey, &q.Text, &q.decided, &q.used}
}

func (q *questionRow) value(r reader) (journal.Question, error) {
	if err := r.openQuestion(q); err != nil {
		return journal.Question{}, err
	}
	q.Asked, q.Expires, q.Decided, q.Used = moment(q.asked), moment(q.expires), moment(q.decided), moment(q.used)
	return q.Question, into(q.Digest[:], q.digest)
}

// Question implements [journal.Reader].
func (r reader) Question(ctx context.Context, tenant string, id journal.ID) (journal.Question, error) {
	var row questionRow
	err := r.q.QueryRowContext(ctx, selectQuestion+`WHERE tenant = ? AND question = ?`, tenant, id).Scan(row.dst()...)
	if err != nil {
		return journal.Question{}, fmt.Errorf("read approval %s: %w", id, mapError(err))
	}
	return row.value(r)
}

// Questions implements [journal.Reader].
func (r reader) Questions(ctx context.Context, q journal.QuestionQuery) ([]journal.Question, error) {
	var w where
	w.and(`tenant = ?`, q.Tenant)
	w.andIf(q.Run != "", `run = ?`, q.Run)
	w.andIf(q.State != "", `state = ?`, q.State)
	w.andIf(q.Before != "", `question < ?`, q.Before)
	rows, err := r.q.QueryContext(ctx, selectQuestion+w.text+` ORDER BY question DESC LIMIT ?`, append(w.args, limit(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", mapError(err))
	}
	found, err := collect(rows, (*questionRow).dst)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", mapError(err))
	}
	questions := make([]journal.Question, len(found))
	for i := range found {
		questions[i], err = found[i].value(r)
		if errors.Is(err, journal.ErrSealed) || errors.Is(err, journal.ErrAltered) {
			// One that cannot be read hides no other; asked for alone it says so.
			found[i].key, found[i].Shown, found[i].saidKey, found[i].Text = plain, nil, plain, ""
			questions[i], err = found[i].value(r)
		}
		if err != nil {
			return nil, fmt.Errorf("list approvals: %w", err)
		}
	}
	return questions, nil
}

// Find implements [journal.Reader].
func (r reader) Find(ctx context.Context, tenant, partial string) (journal.ID, error) {
	var query string
	switch journal.ID(partial).Prefix() {
	case journal.RunPrefix:
		query = `SELECT run FROM runs WHERE tenant = ? AND run >= ? AND run < ? ORDER BY run LIMIT 8`
	case journal.ApprovalPrefix:
		query = `SELECT question FROM questions WHERE tenant = ? AND question >= ? AND question < ? ORDER BY question LIMIT 8`
	default:
		return "", fmt.Errorf("find %q: %w", partial, journal.ErrNotFound)
	}
	// '~' sorts behind all that an id is made of.
	rows, err := r.q.QueryContext(ctx, query, tenant, partial, partial+"~")
	if err != nil {
		return "", fmt.Errorf("find %q: %w", partial, mapError(err))
	}
	ids, err := collect(rows, func(id *journal.ID) []any { return []any{id} })
	switch {
	case err != nil:
		return "", fmt.Errorf("find %q: %w", partial, mapError(err))
	case len(ids) == 0:
		return "", fmt.Errorf("find %q: %w", partial, journal.ErrNotFound)
	case len(ids) > 1:
		return "", &journal.AmbiguousError{Partial: partial, IDs: ids}
	}
	return ids[0], nil
}
