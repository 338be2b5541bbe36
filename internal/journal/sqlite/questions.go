package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/internal/journal"
)

// Ask implements [journal.QuestionWriter].
func (t *txn) Ask(ctx context.Context, l journal.Lease, q journal.Question) error {
	fail := func(err error) error { return fmt.Errorf("ask %s about %s of run %s: %w", q.ID, q.Subject, l.Ref, err) }
	if q.ID.Prefix() != journal.ApprovalPrefix {
		return fail(fmt.Errorf("an approval has an id %s…", journal.ApprovalPrefix))
	}
	if _, err := t.held(ctx, l); err != nil {
		return fail(err)
	}
	key, shown, err := t.seal(shownColumn(l.Ref, q.ID), q.Shown)
	if err != nil {
		return fail(err)
	}
	err = t.exec(ctx, `
		INSERT INTO questions (tenant, question, v, key_id, run, about, subject, digest, shown, not_by, asked_at, expires_at, state, decider, said)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', '', '')`,
		l.Tenant, q.ID, rowVersion, key, l.Run, q.About, q.Subject, q.Digest[:], shown, q.NotBy, t.at.UnixMicro(), micros(q.Expires))
	if err != nil {
		return fail(err)
	}
	t.seen[l.Ref] = true
	return nil
}

// expire turns a pending question whose time has passed into a denial, and
// returns the row as it stands then.
func (t *txn) expire(ctx context.Context, tenant string, id journal.ID) (journal.Question, error) {
	err := t.exec(ctx, `
		UPDATE questions SET state = 'expired', decided_at = expires_at
		WHERE tenant = ? AND question = ? AND state = 'pending' AND expires_at <= ?`, tenant, id, t.at.UnixMicro())
	if err != nil {
		return journal.Question{}, err
	}
	return t.Question(ctx, tenant, id)
}

// Decide implements [journal.QuestionWriter].
func (t *txn) Decide(ctx context.Context, tenant string, id journal.ID, d journal.Decision) (journal.Question, error) {
	fail := func(err error) (journal.Question, error) {
		return journal.Question{}, fmt.Errorf("decide %s: %w", id, err)
	}
	switch d.State {
	case journal.QuestionApproved, journal.QuestionDenied, journal.QuestionAnswered:
	default:
		return fail(fmt.Errorf("%q is no decision", d.State))
	}
	q, err := t.Question(ctx, tenant, id)
	if err != nil {
		return fail(err)
	}
	if q.State == journal.QuestionPending && !q.Expires.IsZero() && !q.Expires.After(t.at) {
		q.State, q.Decided = journal.QuestionExpired, q.Expires
	}
	if q.State != journal.QuestionPending {
		return fail(&journal.DecidedError{Question: q})
	}
	if err := t.Wake(ctx, q.Ref, t.at); err != nil {
		return fail(err)
	}
	key, said, err := t.sealText(saidColumn(q.Ref, id), d.Text)
	if err != nil {
		return fail(err)
	}
	err = t.exec(ctx, `
		UPDATE questions SET state = ?, decider = ?, said = ?, said_key = ?, decided_at = ?
		WHERE tenant = ? AND question = ? AND state = 'pending'`, d.State, d.By, said, key, t.at.UnixMicro(), tenant, id)
	if err != nil {
		return fail(err)
	}
	return t.Question(ctx, tenant, id)
}

// Use implements [journal.QuestionWriter].
func (t *txn) Use(ctx context.Context, l journal.Lease, id journal.ID) (journal.Question, error) {
	fail := func(q journal.Question, err error) (journal.Question, error) {
		return q, fmt.Errorf("use the answer to %s: %w", id, err)
	}
	if _, err := t.held(ctx, l); err != nil {
		return fail(journal.Question{}, err)
	}
	q, err := t.expire(ctx, l.Tenant, id)
	switch {
	case err != nil:
		return fail(q, err)
	case q.Ref != l.Ref:
		return fail(q, errors.New("it is another run's"))
	case q.State == journal.QuestionPending:
		return fail(q, journal.ErrPending)
	}
	n, err := t.changed(ctx, `UPDATE questions SET used_at = ? WHERE tenant = ? AND question = ? AND used_at IS NULL`,
		t.at.UnixMicro(), l.Tenant, id)
	switch {
	case err != nil:
		return fail(q, err)
	case n == 0:
		return fail(q, journal.ErrUsed)
	}
	q.Used = t.at
	return q, nil
}
