package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/internal/journal"
)

// inline is the longest payload that lies in its event's row; a longer one is
// stored once a tenant.
const inline = 4096

const selectTail = `
SELECT status, reason, ended_at, lease_owner, fence, seq, chain, since_bytes
FROM runs WHERE tenant = ? AND run = ?`

// tail is what a write to a log needs to know of the run.
type tail struct {
	journal.Tail
	since int64
}

// held checks the lease and returns the end of the log.
func (t *txn) held(ctx context.Context, l journal.Lease) (tl tail, err error) {
	var (
		status, reason, owner string
		ended                 nullTime
		fence                 uint64
		link                  []byte
	)
	err = t.row(ctx, selectTail, []any{l.Tenant, l.Run}, &status, &reason, &ended, &owner, &fence, &tl.Seq, &link, &tl.since)
	switch {
	case err != nil:
		return tl, err
	case ended.Valid:
		return tl, &journal.SettledError{Ref: l.Ref, Status: journal.Status(status), Reason: reason, At: moment(ended)}
	case owner == "" || fence != l.Fence:
		return tl, journal.ErrFenced
	}
	return tl, into(tl.Link[:], link)
}

const insertEvent = `
INSERT INTO events (tenant, run, seq, at, kind, version, content, key_id, payload, digest, chain)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateTail = `UPDATE runs SET seq = ?, chain = ?, since_bytes = ? WHERE tenant = ? AND run = ?`

// Append implements [journal.LogWriter].
func (t *txn) Append(ctx context.Context, l journal.Lease, entries ...journal.Entry) (journal.Tail, error) {
	tl, err := t.held(ctx, l)
	if err != nil {
		return tl.Tail, fmt.Errorf("append to run %s: %w", l.Ref, err)
	}
	for _, e := range entries {
		if err := t.append(ctx, l.Ref, &tl, e); err != nil {
			return tl.Tail, fmt.Errorf("append %s to run %s: %w", e.Kind, l.Ref, err)
		}
	}
	t.seen[l.Ref] = true
	err = t.exec(ctx, updateTail, tl.Seq, tl.Link[:], tl.since, l.Tenant, l.Run)
	if err != nil {
		return tl.Tail, fmt.Errorf("append to run %s: %w", l.Ref, err)
	}
	return tl.Tail, nil
}

func (t *txn) append(ctx context.Context, ref journal.Ref, tl *tail, e journal.Entry) error {
	r, next, err := tl.Next(t.s.key, ref, t.at, e)
	if err != nil {
		return err
	}
	payload := []byte(r.Payload)
	if len(payload) > inline {
		if err := t.hold(ctx, ref, r.Digest, payload, r.Content); err != nil {
			return err
		}
		payload = nil
	}
	id, sealed, err := t.seal(eventColumn(ref, r.Seq), pack(payload))
	if err != nil {
		return err
	}
	err = t.exec(ctx, insertEvent, r.Tenant, r.Run, r.Seq, r.At.UnixMicro(), r.Kind, r.Version, r.Content,
		id, sealed, r.Digest[:], r.Link[:])
	if err != nil {
		return err
	}
	tl.Tail = next
	tl.since += int64(len(r.Payload))
	return nil
}

// Save implements [journal.LogWriter].
func (t *txn) Save(ctx context.Context, l journal.Lease, s journal.Snapshot) error {
	fail := func(err error) error { return fmt.Errorf("save a snapshot of run %s at %d: %w", l.Ref, s.Seq, err) }
	tl, err := t.held(ctx, l)
	if err != nil {
		return fail(err)
	}
	if s.Seq != tl.Seq {
		return fail(fmt.Errorf("the log ends at %d: a snapshot is of its end", tl.Seq))
	}
	digest := t.s.key.Snapshot(l.Ref, s)
	id, sealed, err := t.seal(snapshotColumn(l.Ref, s.Seq), pack(s.State))
	if err != nil {
		return fail(err)
	}
	err = t.exec(ctx, `INSERT OR REPLACE INTO snapshots (tenant, run, seq, version, key_id, state, digest) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		l.Tenant, l.Run, s.Seq, s.Version, id, sealed, digest[:])
	if err != nil {
		return fail(err)
	}
	err = t.exec(ctx, `UPDATE runs SET snapshot_seq = ?, snapshot_bytes = ?, since_bytes = 0 WHERE tenant = ? AND run = ?`,
		s.Seq, len(s.State), l.Tenant, l.Run)
	if err != nil {
		return fail(err)
	}
	t.seen[l.Ref] = true
	return nil
}

var errLength = errors.New("a stored hash has not 32 bytes")

// into copies a stored hash.
func into(dst, src []byte) error {
	if len(src) != len(dst) {
		return errLength
	}
	copy(dst, src)
	return nil
}
