package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// rowVersion is the form of rows that this program writes.
const rowVersion = 1

// txn is a transaction of the writer. It serves the ops of a group in turn.
type txn struct {
	reader
	s      *Store
	tx     *sql.Tx
	stmts  map[string]*sql.Stmt
	at     time.Time            // when the op under way began: the time of all it writes
	seen   map[journal.Ref]bool // the runs that it wrote to
	broken error                // set when SQLite gave the whole transaction up
}

var _ journal.Tx = (*txn)(nil)

// SQL returns the database/sql transaction behind tx, for those who must write
// to tables of their own in the same commit. It panics if tx is not of this package.
func SQL(tx journal.Tx) *sql.Tx { return tx.(*txn).tx }

// hot are the statements of every step, prepared once a store.
var hot = []string{
	selectTail, insertEvent, updateTail, updateStatus,
	selectSpent, selectBlocks, upsertSpent, upsertBlock,
}

// note keeps an error of SQLite's that ended more than its statement.
func (t *txn) note(err error) error {
	if err == nil {
		return nil
	}
	ends := broken(err)
	err = mapError(err)
	if ends {
		t.broken = err
	}
	return err
}

func (t *txn) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.changed(ctx, query, args...)
	return err
}

// changed runs a statement and returns how many rows it changed.
func (t *txn) changed(ctx context.Context, query string, args ...any) (n int64, err error) {
	var res sql.Result
	if stmt := t.stmts[query]; stmt != nil {
		res, err = t.tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	} else {
		res, err = t.tx.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, t.note(err)
	}
	n, err = res.RowsAffected()
	return n, t.note(err)
}

// row reads one row into dst; journal.ErrNotFound if there is none.
func (t *txn) row(ctx context.Context, query string, args []any, dst ...any) error {
	if stmt := t.stmts[query]; stmt != nil {
		return t.note(t.tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...).Scan(dst...))
	}
	return t.note(t.tx.QueryRowContext(ctx, query, args...).Scan(dst...))
}

// micros is a time as it is stored.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// moment reads what micros wrote.
func moment(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return time.UnixMicro(v.Int64).UTC()
}
