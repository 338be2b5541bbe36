package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

const insertRun = `
INSERT INTO runs (tenant, run, v, kind, parent, session, profile, starter, capture, profile_digest, workdir, host,
	status, reason, created_at, wake_at, woken, cancel_by, lease_owner, lease_until, fence,
	seq, chain, snapshot_seq, snapshot_bytes, since_bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', '', ?, ?, 0, '', '', 0, 0, 0, zeroblob(32), 0, 0, 0)`

// Create implements [journal.RunWriter].
func (t *txn) Create(ctx context.Context, r journal.Run) error {
	capture, err := journal.ParseCapture(string(r.Capture))
	if err != nil {
		return fmt.Errorf("create run %s: %w", r.Ref, err)
	}
	if r.Tenant == "" || r.Run.Prefix() != journal.RunPrefix {
		return fmt.Errorf("create run %s: a run has a tenant and an id %s…", r.Ref, journal.RunPrefix)
	}
	t.seen[r.Ref] = true
	err = t.exec(ctx, insertRun, r.Tenant, r.Run, rowVersion, r.Kind, r.Parent, r.Session, r.Profile,
		r.Starter, capture, r.ProfileDigest, r.Workdir, r.Host, t.at.UnixMicro(), t.at.UnixMicro())
	if err != nil {
		return fmt.Errorf("create run %s: %w", r.Ref, err)
	}
	return nil
}

// A run may be claimed by a worker when it is open, when nobody holds it or the
// lease is past its time, and when it depends on no other host.
const claimable = `ended_at IS NULL AND (lease_owner = '' OR lease_until <= @now) AND host IN ('', @host)`

const claimRun = `
UPDATE runs SET lease_owner = @owner, lease_until = @until, fence = fence + 1, wake_at = @now, woken = 0
WHERE tenant = @tenant AND run = @run AND ` + claimable + `
RETURNING fence`

// Claim implements [journal.RunWriter].
func (t *txn) Claim(ctx context.Context, ref journal.Ref, w journal.Worker, ttl time.Duration) (journal.Lease, error) {
	l := journal.Lease{Ref: ref}
	if w.Owner == "" {
		return l, fmt.Errorf("claim run %s: the worker has no name", ref)
	}
	err := t.row(ctx, claimRun, []any{named("owner", w.Owner), named("until", t.at.Add(ttl).UnixMicro()),
		named("now", t.at.UnixMicro()), named("host", w.Host), named("tenant", ref.Tenant), named("run", ref.Run)}, &l.Fence)
	if errors.Is(err, journal.ErrNotFound) {
		err = t.whyNotClaimed(ctx, ref, w)
	}
	if err != nil {
		return l, fmt.Errorf("claim run %s: %w", ref, err)
	}
	t.seen[ref] = true
	return l, nil
}

// whyNotClaimed says what of claimable the run is not.
func (t *txn) whyNotClaimed(ctx context.Context, ref journal.Ref, w journal.Worker) error {
	r, err := t.Run(ctx, ref)
	switch {
	case err != nil:
		return err
	case r.Status.Terminal():
		return settled(r)
	case r.Host != "" && r.Host != w.Host:
		return &journal.PlacedError{Ref: ref, Host: r.Host}
	}
	return &journal.LeasedError{Ref: ref, Owner: r.Owner, Until: r.Until}
}

func settled(r journal.Run) error {
	return &journal.SettledError{Ref: r.Ref, Status: r.Status, Reason: r.Reason, At: r.Ended}
}

// A worker knows a run whose kind and profile are in its sets, if it has such sets.
const known = `(@kinds = '' OR instr(@kinds, char(31) || kind || char(31)))
	AND (@profiles = '' OR instr(@profiles, char(31) || profile || char(31)))`

// set is a set of names as known takes it: each between unit separators.
func set[T ~string](names []T) string {
	all := ""
	for _, n := range names {
		all += "\x1f" + string(n)
	}
	if all != "" {
		all += "\x1f"
	}
	return all
}

// claimDue is the sweep: one conditional update. What is under way has a wake_at
// that has passed, so the runs of a worker that died are among those that are due
// as soon as their leases are past their time.
const claimDue = `
UPDATE runs SET lease_owner = @owner, lease_until = @until, fence = fence + 1, wake_at = @now, woken = 0
WHERE (tenant, run) IN (
	SELECT tenant, run FROM runs
	WHERE wake_at <= @now AND ` + known + ` AND ` + claimable + `
	ORDER BY wake_at, run LIMIT @limit)
RETURNING tenant, run, fence`

// ClaimDue implements [journal.Sweeper].
func (t *txn) ClaimDue(ctx context.Context, w journal.Worker, ttl time.Duration, limit int) ([]journal.Lease, error) {
	rows, err := t.tx.QueryContext(ctx, claimDue, named("owner", w.Owner), named("until", t.at.Add(ttl).UnixMicro()),
		named("now", t.at.UnixMicro()), named("host", w.Host), named("limit", limit), named("kinds", set(w.Kinds)), named("profiles", set(w.Profiles)))
	if err != nil {
		return nil, fmt.Errorf("claim what is due: %w", t.note(err))
	}
	leases, err := collect(rows, func(l *journal.Lease) []any { return []any{&l.Tenant, &l.Run, &l.Fence} })
	if err != nil {
		return nil, fmt.Errorf("claim what is due: %w", t.note(err))
	}
	for _, l := range leases {
		t.seen[l.Ref] = true
	}
	return leases, nil
}

// Renew implements [journal.RunWriter].
func (t *txn) Renew(ctx context.Context, w journal.Worker, ttl time.Duration) ([]journal.Held, error) {
	fail := func(err error) ([]journal.Held, error) {
		return nil, fmt.Errorf("renew the leases of %s: %w", w.Owner, err)
	}
	rows, err := t.tx.QueryContext(ctx, `SELECT tenant, run, fence, woken FROM runs WHERE lease_owner = ? AND lease_owner <> ''`, w.Owner)
	if err != nil {
		return fail(t.note(err))
	}
	held, err := collect(rows, func(h *journal.Held) []any { return []any{&h.Tenant, &h.Run, &h.Fence, &h.Woken} })
	if err != nil {
		return fail(t.note(err))
	}
	err = t.exec(ctx, `UPDATE runs SET lease_until = ?, woken = 0 WHERE lease_owner = ? AND lease_owner <> ''`,
		t.at.Add(ttl).UnixMicro(), w.Owner)
	if err != nil {
		return fail(err)
	}
	return held, nil
}

// updateStatus moves a run that the lease holds and that is open.
const updateStatus = `
UPDATE runs SET status = @status, reason = @reason, ended_at = @ended, purge_at = @purge,
	wake_at = CASE WHEN woken = 1 AND @ended IS NULL THEN @now ELSE @wake END,
	lease_owner = CASE WHEN @status = 'running' THEN lease_owner ELSE '' END
WHERE tenant = @tenant AND run = @run AND fence = @fence AND lease_owner <> '' AND ended_at IS NULL`

// SetStatus implements [journal.RunWriter].
func (t *txn) SetStatus(ctx context.Context, l journal.Lease, c journal.Change) error {
	fail := func(err error) error {
		return fmt.Errorf("make run %s %s (%s): %w", l.Ref, c.Status, c.Reason, err)
	}
	if !c.Status.Known() {
		return fail(errors.New("there is no such status"))
	}
	var ended, purge time.Time
	wake := c.WakeAt
	switch {
	case c.Status.Terminal():
		ended, wake = t.at, time.Time{}
		capture, err := t.capture(ctx, l.Ref)
		if err != nil {
			return fail(err)
		}
		if _, next := t.s.retention.Due(capture, -1); next > 0 {
			purge = ended.Add(next)
		}
	case c.Status == journal.Running, c.Status == journal.Queued && wake.IsZero():
		wake = t.at
	}
	n, err := t.changed(ctx, updateStatus, named("status", c.Status), named("reason", c.Reason), named("wake", micros(wake)), named("now", t.at.UnixMicro()),
		named("ended", micros(ended)), named("purge", micros(purge)), named("tenant", l.Tenant), named("run", l.Run), named("fence", l.Fence))
	if err == nil && n == 0 {
		_, err = t.held(ctx, l)
	}
	if err == nil && c.Status.Terminal() {
		err = t.exec(ctx, `DELETE FROM snapshots WHERE tenant = ? AND run = ?`, l.Tenant, l.Run)
	}
	if err != nil {
		return fail(err)
	}
	t.seen[l.Ref] = true
	return nil
}

func (t *txn) capture(ctx context.Context, ref journal.Ref) (c journal.Capture, err error) {
	err = t.row(ctx, `SELECT capture FROM runs WHERE tenant = ? AND run = ?`, []any{ref.Tenant, ref.Run}, &c)
	return c, err
}

// Wake implements [journal.RunWriter].
func (t *txn) Wake(ctx context.Context, ref journal.Ref, at time.Time) error {
	err := t.touch(ctx, ref, `UPDATE runs SET woken = 1, wake_at = min(coalesce(wake_at, @at), @at)
		WHERE tenant = @tenant AND run = @run AND ended_at IS NULL`, named("at", at.UnixMicro()))
	if err != nil {
		return fmt.Errorf("wake run %s: %w", ref, err)
	}
	return nil
}

// AskCancel implements [journal.RunWriter].
func (t *txn) AskCancel(ctx context.Context, ref journal.Ref, by string) error {
	err := t.touch(ctx, ref, `UPDATE runs SET woken = 1, wake_at = min(coalesce(wake_at, @now), @now),
			cancel_by = CASE WHEN cancel_by = '' THEN @by ELSE cancel_by END
		WHERE tenant = @tenant AND run = @run AND ended_at IS NULL`, named("now", t.at.UnixMicro()), named("by", by))
	if err != nil {
		return fmt.Errorf("ask to cancel run %s: %w", ref, err)
	}
	return nil
}

// touch changes an open run without a lease.
func (t *txn) touch(ctx context.Context, ref journal.Ref, query string, args ...any) error {
	n, err := t.changed(ctx, query, append(args, named("tenant", ref.Tenant), named("run", ref.Run))...)
	if err != nil {
		return err
	}
	if n == 0 {
		r, err := t.Run(ctx, ref)
		if err != nil {
			return err
		}
		return settled(r)
	}
	t.seen[ref] = true
	return nil
}
