package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/seal"
)

// secretColumn is what a secret is bound to. The names are lengths apart: no two
// rows have the same.
func secretColumn(tenant string, s journal.Secret) seal.Column {
	return seal.Column{Tenant: tenant, Name: "secrets." + s.Kind, Run: s.Owner, Row: s.Name}
}

// Keep implements [journal.SecretWriter].
func (t *txn) Keep(ctx context.Context, tenant string, secrets ...journal.Secret) error {
	for _, s := range secrets {
		fail := func(err error) error { return fmt.Errorf("keep %s of %s: %w", s.Kind, s.Owner, err) }
		key, sealed, err := t.ring.Seal(secretColumn(tenant, s), s.Value)
		if err != nil {
			return fail(err)
		}
		n, err := t.changed(ctx, `INSERT INTO secrets (tenant, kind, owner, name, v, key_id, body, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, tenant, s.Kind, s.Owner, s.Name, rowVersion, key, sealed, s.Until.UnixMicro())
		if err != nil {
			return fail(err)
		}
		if n == 0 {
			return fail(journal.ErrExists)
		}
	}
	return nil
}

// KeepUntil implements [journal.SecretWriter].
func (t *txn) KeepUntil(ctx context.Context, tenant, kind, owner string, until time.Time) (int, error) {
	n, err := t.changed(ctx, `UPDATE secrets SET until = ? WHERE tenant = ? AND kind = ? AND owner = ? AND until > ?`,
		until.UnixMicro(), tenant, kind, owner, t.at.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("keep %s of %s longer: %w", kind, owner, err)
	}
	return int(n), nil
}

// Destroy implements [journal.SecretWriter].
func (t *txn) Destroy(ctx context.Context, tenant, kind, owner string) (int, error) {
	n, err := t.changed(ctx, `DELETE FROM secrets WHERE tenant = ? AND kind = ? AND owner = ?`, tenant, kind, owner)
	if err != nil {
		return 0, fmt.Errorf("destroy %s of %s: %w", kind, owner, err)
	}
	return int(n), nil
}

// purgeSecrets destroys those whose time has passed.
func (t *txn) purgeSecrets(ctx context.Context, limit int) error {
	return t.exec(ctx, `DELETE FROM secrets WHERE (tenant, kind, owner, name) IN
		(SELECT tenant, kind, owner, name FROM secrets WHERE until <= ? ORDER BY until LIMIT ?)`, t.at.UnixMicro(), limit)
}

// secretRow is a row of secrets as it is read.
type secretRow struct {
	journal.Secret
	key   string
	until int64
}

// Secrets implements [journal.Reader].
func (r reader) Secrets(ctx context.Context, tenant, kind, owner string) ([]journal.Secret, error) {
	fail := func(err error) ([]journal.Secret, error) {
		return nil, fmt.Errorf("read %s of %s: %w", kind, owner, err)
	}
	rows, err := r.q.QueryContext(ctx, `SELECT name, key_id, body, until FROM secrets
		WHERE tenant = ? AND kind = ? AND owner = ? AND until > ? ORDER BY name`, tenant, kind, owner, r.now().UnixMicro())
	if err != nil {
		return fail(mapError(err))
	}
	found, err := collect(rows, func(s *secretRow) []any { return []any{&s.Name, &s.key, &s.Value, &s.until} })
	if err != nil {
		return fail(mapError(err))
	}
	var secrets []journal.Secret
	for _, row := range found {
		s := row.Secret
		s.Kind, s.Owner, s.Until = kind, owner, time.UnixMicro(row.until).UTC()
		if row.key == plain {
			return fail(fmt.Errorf("%s: %w: it is not sealed", s.Name, journal.ErrAltered))
		}
		if s.Value, err = r.open(secretColumn(tenant, s), row.key, s.Value); err != nil {
			return fail(fmt.Errorf("%s: %w", s.Name, err))
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}
