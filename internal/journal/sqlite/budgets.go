package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/journal"
)

// Budgets returns the ledger of what may be spent. It is in the store's file, and
// what is written to it shares the journal's commits.
func (s *Store) Budgets() budget.Ledger { return budgets{s} }

type budgets struct{ s *Store }

// The statements of every entry.
const (
	selectSpent = `SELECT tokens, usd, estimated_tokens, estimated_usd, unpriced_tokens FROM budget_accounts
		WHERE tenant = ? AND day = ? AND kind = ? AND name = ?`
	selectBlocks = `SELECT owner, tokens, usd, held_tokens, held_usd, until FROM budget_blocks
		WHERE tenant = ? AND day = ? AND kind = ? AND name = ?`
	upsertSpent = `INSERT INTO budget_accounts (tenant, day, kind, name, v, tokens, usd, estimated_tokens, estimated_usd, unpriced_tokens)
		VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, estimated_tokens = excluded.estimated_tokens,
			estimated_usd = excluded.estimated_usd, unpriced_tokens = excluded.unpriced_tokens`
	upsertBlock = `INSERT INTO budget_blocks (tenant, day, kind, name, owner, v, tokens, usd, held_tokens, held_usd, until)
		VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, held_tokens = excluded.held_tokens,
			held_usd = excluded.held_usd, until = excluded.until`
	deleteBlock = `DELETE FROM budget_blocks WHERE tenant = ? AND day = ? AND kind = ? AND name = ? AND owner = ?`
)

// Write implements [budget.Ledger].
func (b budgets) Write(ctx context.Context, owner string, wait bool, entries []budget.Entry) ([]budget.Standing, error) {
	var out []budget.Standing
	write := func(ctx context.Context, tx journal.Tx) error {
		t := tx.(*txn)
		out = out[:0]
		for _, e := range entries {
			s, err := t.budget(ctx, owner, e)
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		return nil
	}
	if wait {
		if err := b.s.Update(ctx, write); err != nil {
			return nil, err
		}
		return out, nil
	}
	p := b.s.Later(write)
	<-p.Done()
	if p.Err() != nil {
		return nil, p.Err()
	}
	return out, nil
}

// budget writes one entry.
func (t *txn) budget(ctx context.Context, owner string, e budget.Entry) (budget.Standing, error) {
	key := account(e.ID)
	spent, err := t.spent(ctx, key)
	if err != nil {
		return budget.Standing{}, err
	}
	before, others, mine := spent, budget.Amount{}, false
	if !e.Limit.None() {
		blocks, err := t.blocks(ctx, key)
		if err != nil {
			return budget.Standing{}, err
		}
		for who, b := range blocks {
			switch {
			case who == owner:
				mine = true
			case b.Until.Before(t.at):
				spent = spent.Plus(b.Expire())
				if err := t.exec(ctx, deleteBlock, append(key, who)...); err != nil {
					return budget.Standing{}, err
				}
			default:
				others = others.Plus(b.Amount)
			}
		}
	}
	s := e.Apply(spent, others)
	if s.Spent != before {
		d := s.Spent
		if err := t.exec(ctx, upsertSpent, append(key, d.Tokens, int64(d.USD), d.Estimated.Tokens, int64(d.Estimated.USD), d.Unpriced)...); err != nil {
			return budget.Standing{}, err
		}
	}
	switch {
	case s.Block != (budget.Amount{}) || e.Held != (budget.Amount{}):
		err = t.exec(ctx, upsertBlock, append(key, owner, s.Block.Tokens, int64(s.Block.USD), e.Held.Tokens, int64(e.Held.USD), t.at.Add(budget.Lease).UnixMicro())...)
	case mine:
		err = t.exec(ctx, deleteBlock, append(key, owner)...)
	}
	return s, err
}

// account is the key of an envelope's rows. It has no room behind it, so that
// what is appended to it is a copy.
func account(id budget.ID) []any {
	key := []any{journal.DefaultTenant, int64(id.Day), string(id.Kind), id.Name}
	return key[:len(key):len(key)]
}

func (t *txn) spent(ctx context.Context, key []any) (d budget.Debit, err error) {
	err = t.row(ctx, selectSpent, key, &d.Tokens, &d.USD, &d.Estimated.Tokens, &d.Estimated.USD, &d.Unpriced)
	if errors.Is(err, journal.ErrNotFound) {
		return budget.Debit{}, nil
	}
	return d, err
}

// blocks are all owners' blocks of an envelope.
func (t *txn) blocks(ctx context.Context, key []any) (map[string]budget.Block, error) {
	rows, err := t.query(ctx, selectBlocks, key...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	blocks := map[string]budget.Block{}
	for rows.Next() {
		var owner string
		var b budget.Block
		var until int64
		if err := rows.Scan(&owner, &b.Tokens, &b.USD, &b.Held.Tokens, &b.Held.USD, &until); err != nil {
			return nil, t.note(err)
		}
		b.Until = time.UnixMicro(until)
		blocks[owner] = b
	}
	return blocks, t.note(rows.Err())
}

func (t *txn) query(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	if stmt := t.stmts[query]; stmt != nil {
		rows, err = t.tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	} else {
		rows, err = t.tx.QueryContext(ctx, query, args...)
	}
	return rows, t.note(err)
}

// Accounts implements [budget.Ledger].
func (b budgets) Accounts(ctx context.Context, day budget.Day) ([]budget.Account, error) {
	const query = `
		SELECT a.kind, a.name, a.day, a.tokens, a.usd, a.estimated_tokens, a.estimated_usd, a.unpriced_tokens,
			sum(b.tokens), sum(b.usd), sum(b.held_tokens), sum(b.held_usd)
		FROM (
			SELECT tenant, day, kind, name, tokens, usd, estimated_tokens, estimated_usd, unpriced_tokens FROM budget_accounts
			UNION ALL
			SELECT DISTINCT tenant, day, kind, name, 0, 0, 0, 0, 0 FROM budget_blocks AS only
				WHERE NOT EXISTS (SELECT 1 FROM budget_accounts AS x
					WHERE x.tenant = only.tenant AND x.day = only.day AND x.kind = only.kind AND x.name = only.name)
		) AS a LEFT JOIN budget_blocks AS b USING (tenant, day, kind, name)
		WHERE a.tenant = ? AND (a.day = ? OR a.day = 0 AND b.owner IS NOT NULL)
		GROUP BY a.kind, a.name, a.day ORDER BY a.kind, a.name, a.day`
	rows, err := b.s.read.QueryContext(ctx, query, journal.DefaultTenant, int64(day))
	if err != nil {
		return nil, mapError(err)
	}
	defer rows.Close()
	var out []budget.Account
	for rows.Next() {
		var a budget.Account
		var block [4]sql.NullInt64
		if err := rows.Scan(&a.Kind, &a.Name, &a.Day, &a.Spent.Tokens, &a.Spent.USD, &a.Spent.Estimated.Tokens, &a.Spent.Estimated.USD, &a.Spent.Unpriced,
			&block[0], &block[1], &block[2], &block[3]); err != nil {
			return nil, mapError(err)
		}
		a.Blocked = budget.Amount{Tokens: block[0].Int64, USD: budget.USD(block[1].Int64)}
		a.Held = budget.Amount{Tokens: block[2].Int64, USD: budget.USD(block[3].Int64)}
		out = append(out, a)
	}
	return out, mapError(rows.Err())
}
