package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/stoplog/stoplog/internal/journal"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as ours: "stpl" in ASCII.
const applicationID = 0x7374706c

// migrate brings the schema up to date and reports whether the store is new. Its
// caller holds the store's lock, so that no two processes migrate at once.
func (s *Store) migrate(ctx context.Context) (fresh bool, err error) {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return false, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return false, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.write, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return false, err
	}
	sources := p.ListSources()
	known := sources[len(sources)-1].Version
	if have > known {
		return false, &journal.NewerError{Store: s.path, Have: have, Known: known}
	}
	if have < known {
		if _, err := p.Up(ctx); err != nil {
			return false, fmt.Errorf("bring the schema from %d to %d: %w", have, known, err)
		}
	}
	// Whoever made the schema may have died before the key was proved.
	var proved int
	if err := s.write.QueryRowContext(ctx, `SELECT count(*) FROM store`).Scan(&proved); err != nil {
		return false, err
	}
	return proved == 0, nil
}

// schemaVersion returns the version of the store's schema, 0 if it has none yet.
func (s *Store) schemaVersion(ctx context.Context) (int64, error) {
	var id, tables int64
	err := s.write.QueryRowContext(ctx, `SELECT a.application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id AS a`).Scan(&id, &tables)
	if err != nil {
		return 0, mapError(err)
	}
	switch {
	case id == 0 && tables == 0:
		_, err := s.write.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
		return 0, mapError(err)
	case id != applicationID:
		return 0, errors.New("the file is another program's database")
	case tables == 0:
		return 0, nil
	}
	var v int64
	err = s.write.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}
