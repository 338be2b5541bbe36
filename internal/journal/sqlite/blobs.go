package sqlite

import (
	"context"
	"fmt"

	"github.com/stoplog/stoplog/internal/journal"
)

// hold makes the run hold a large payload, and stores it if it is not there. It
// stays as long as some run holds it.
func (t *txn) hold(ctx context.Context, ref journal.Ref, digest journal.Digest, body []byte, content journal.Content) error {
	// What the run holds already stays as long as the longer of the two wishes.
	n, err := t.changed(ctx, `UPDATE holds SET content = min(content, ?) WHERE tenant = ? AND run = ? AND digest = ?`,
		content, ref.Tenant, ref.Run, digest[:])
	if err != nil || n > 0 {
		return err
	}
	err = t.exec(ctx, `INSERT INTO holds (tenant, run, digest, content) VALUES (?, ?, ?, ?)`,
		ref.Tenant, ref.Run, digest[:], content)
	if err != nil {
		return err
	}
	id, sealed, err := t.seal(blobColumn(ref.Tenant, digest[:]), pack(body))
	if err != nil {
		return err
	}
	return t.exec(ctx, `
		INSERT INTO blobs (tenant, digest, v, key_id, refs, body) VALUES (?, ?, ?, ?, 1, ?)
		ON CONFLICT DO UPDATE SET refs = refs + 1`, ref.Tenant, digest[:], rowVersion, id, sealed)
}

// ended is a run whose payloads' time has come.
type ended struct {
	journal.Ref
	capture journal.Capture
	at      int64
}

// Purge implements [journal.Sweeper].
func (t *txn) Purge(ctx context.Context, limit int) (int, error) {
	rows, err := t.tx.QueryContext(ctx, `SELECT tenant, run, capture, ended_at FROM runs WHERE purge_at <= ? ORDER BY purge_at LIMIT ?`,
		t.at.UnixMicro(), limit)
	if err != nil {
		return 0, fmt.Errorf("find what to purge: %w", t.note(err))
	}
	due, err := collect(rows, func(e *ended) []any { return []any{&e.Tenant, &e.Run, &e.capture, &e.at} })
	if err != nil {
		return 0, fmt.Errorf("find what to purge: %w", t.note(err))
	}
	if err := t.purgeSecrets(ctx, limit); err != nil {
		return 0, fmt.Errorf("purge secrets: %w", err)
	}
	for _, e := range due {
		if err := t.purge(ctx, e); err != nil {
			return 0, fmt.Errorf("purge run %s: %w", e.Ref, err)
		}
	}
	return len(due), nil
}

func (t *txn) purge(ctx context.Context, e ended) error {
	end := moment(nullTime{Int64: e.at, Valid: true})
	gone, next := t.s.retention.Due(e.capture, t.at.Sub(end))
	for _, content := range gone {
		err := t.exec(ctx, `UPDATE events SET payload = NULL, purged_at = ? WHERE tenant = ? AND run = ? AND content = ? AND purged_at IS NULL`,
			t.at.UnixMicro(), e.Tenant, e.Run, content)
		if err != nil {
			return err
		}
		if content == journal.Text {
			err := t.exec(ctx, `UPDATE questions SET shown = NULL WHERE tenant = ? AND run = ?`, e.Tenant, e.Run)
			if err != nil {
				return err
			}
		}
		if err := t.releaseAll(ctx, e.Ref, content); err != nil {
			return err
		}
	}
	var at any
	if next > 0 {
		at = micros(end.Add(next))
	}
	t.seen[e.Ref] = true
	return t.exec(ctx, `UPDATE runs SET purge_at = ? WHERE tenant = ? AND run = ?`, at, e.Tenant, e.Run)
}

// releaseAll gives up what a run holds of a content.
func (t *txn) releaseAll(ctx context.Context, ref journal.Ref, content journal.Content) error {
	rows, err := t.tx.QueryContext(ctx, `DELETE FROM holds WHERE tenant = ? AND run = ? AND content = ? RETURNING digest`,
		ref.Tenant, ref.Run, content)
	if err != nil {
		return t.note(err)
	}
	digests, err := collect(rows, func(d *[]byte) []any { return []any{d} })
	if err != nil {
		return t.note(err)
	}
	for _, d := range digests {
		err := t.exec(ctx, `UPDATE blobs SET refs = refs - 1 WHERE tenant = ? AND digest = ?`, ref.Tenant, d)
		if err != nil {
			return err
		}
		err = t.exec(ctx, `DELETE FROM blobs WHERE tenant = ? AND digest = ? AND refs = 0`, ref.Tenant, d)
		if err != nil {
			return err
		}
	}
	return nil
}
