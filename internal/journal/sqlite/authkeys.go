package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/journal"
)

var _ auth.Store = (*Store)(nil)

// said is the stored form of what was said of a key when it was made.
type said struct {
	Labels   auth.Labels `json:"labels"`
	Limits   auth.Limits `json:"limits"`
	Profiles []string    `json:"profiles,omitempty"`
}

// AddAuthKey implements [auth.Store]. A name is free again once its key is
// revoked; one that has merely expired still bears it.
func (s *Store) AddAuthKey(ctx context.Context, k auth.Key) error {
	doc, err := json.Marshal(said{k.Labels, k.Limits, k.Profiles})
	if err != nil {
		return err
	}
	return s.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		n, err := tx.(*txn).changed(ctx, `
			INSERT INTO auth_keys (id, v, name, role, said, digest, created_at, created_by, expires_at, revoked_by)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '') ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING`,
			k.ID, rowVersion, k.Name, k.Role, string(doc), k.Digest[:], k.Created.UnixMicro(), k.CreatedBy, micros(k.Expires))
		if err == nil && n == 0 {
			err = auth.ErrName
		}
		return err
	})
}

// RevokeAuthKey implements [auth.Store].
func (s *Store) RevokeAuthKey(ctx context.Context, id string, at time.Time, by string) (revoked bool, err error) {
	err = s.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		n, err := tx.(*txn).changed(ctx, `UPDATE auth_keys SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at IS NULL`,
			at.UnixMicro(), by, id)
		revoked = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("revoke key %s: %w", id, err)
	}
	return revoked, nil
}

// AuthKeys implements [auth.Store].
func (s *Store) AuthKeys(ctx context.Context) ([]auth.Key, error) {
	rows, err := s.q.QueryContext(ctx, `
		SELECT id, name, role, said, digest, created_at, created_by, expires_at, revoked_at, revoked_by FROM auth_keys ORDER BY created_at, id`)
	if err != nil {
		return nil, mapError(err)
	}
	type row struct {
		auth.Key
		doc              string
		digest           []byte
		created          int64
		expires, revoked sql.NullInt64
	}
	found, err := collect(rows, func(r *row) []any {
		return []any{&r.ID, &r.Name, &r.Role, &r.doc, &r.digest, &r.created, &r.CreatedBy, &r.expires, &r.revoked, &r.RevokedBy}
	})
	if err != nil {
		return nil, mapError(err)
	}
	keys := make([]auth.Key, 0, len(found))
	for _, r := range found {
		var doc said
		if err := json.Unmarshal([]byte(r.doc), &doc); err != nil || len(r.digest) != len(r.Digest) {
			return nil, fmt.Errorf("key %s: %w", r.ID, journal.ErrAltered)
		}
		k := r.Key
		k.Labels, k.Limits, k.Profiles, k.Digest = doc.Labels, doc.Limits, doc.Profiles, [32]byte(r.digest)
		k.Created, k.Expires, k.Revoked = time.UnixMicro(r.created).UTC(), when(r.expires), when(r.revoked)
		keys = append(keys, k)
	}
	return keys, nil
}

// when is a time as it was stored.
func when(t sql.NullInt64) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return time.UnixMicro(t.Int64).UTC()
}
