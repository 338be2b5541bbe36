package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/stoplog/stoplog/internal/journal"
)

// mapError says in the journal's words what SQLite said.
func mapError(err error) error {
	switch primary(err) {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("other processes wrote to the store for %v without a pause: %w", busyTimeout, err)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return journal.ErrNotFound
	}
	return err
}

// primary returns SQLite's result code without its extension; 0 if err is not
// SQLite's.
func primary(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// broken reports whether err may have ended the whole transaction, not only the
// statement: SQLite rolls back by itself when it cannot go on.
func broken(err error) bool {
	switch primary(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
		return true
	}
	return false
}
