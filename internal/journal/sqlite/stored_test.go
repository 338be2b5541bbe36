package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/journaltest"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// leased makes a run that a worker holds.
func leased(t *testing.T, s journal.Store, change ...func(*journal.Run)) (l journal.Lease) {
	t.Helper()
	r := journal.Run{Ref: journal.Ref{Tenant: journal.DefaultTenant, Run: newRunID(t)}, Kind: journal.TurnRun}
	for _, c := range change {
		c(&r)
	}
	update(t, s, func(ctx context.Context, tx journal.Tx) (err error) {
		if err := tx.Create(ctx, r); err != nil {
			return err
		}
		l, err = tx.Claim(ctx, r.Ref, journal.Worker{Owner: "test"}, time.Hour)
		return err
	})
	return l
}

func appendTo(t *testing.T, s journal.Store, l journal.Lease, entries ...journal.Entry) (tail journal.Tail) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx journal.Tx) (err error) {
		tail, err = tx.Append(ctx, l, entries...)
		return err
	})
	return tail
}

func text(t *testing.T, s string) journal.Entry {
	return entry(t, "text", journal.Text, map[string]string{"text": s})
}

// Every way to alter a log is found, and the first event that does not fit is named.
func TestTampering(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	db := raw(t, path)
	for _, c := range []struct {
		name, sql string
		broken    uint64
		why       string
	}{
		{"a payload", `UPDATE events SET payload = CAST('{"text":"no","v":1}' AS BLOB) WHERE run = ? AND seq = 3`, 3, "payload was altered"},
		{"a payload and its digest", `UPDATE events SET payload = NULL, purged_at = 1, digest = zeroblob(32) WHERE run = ? AND seq = 3`, 3, "link does not follow"},
		{"a payload taken away", `UPDATE events SET payload = NULL WHERE run = ? AND seq = 3`, 3, "payload is gone"},
		{"a large payload", `UPDATE blobs SET body = CAST('{"text":"no","v":1}' AS BLOB) WHERE digest = (SELECT digest FROM events WHERE run = ? AND seq = 4)`, 4, "payload was altered"},
		{"a large payload taken away", `DELETE FROM blobs WHERE digest = (SELECT digest FROM events WHERE run = ? AND seq = 4)`, 4, "payload is gone"},
		{"a time", `UPDATE events SET at = at + 1 WHERE run = ? AND seq = 2`, 2, "link does not follow"},
		{"a kind", `UPDATE events SET kind = 'other' WHERE run = ? AND seq = 2`, 2, "link does not follow"},
		{"a link", `UPDATE events SET chain = zeroblob(32) WHERE run = ? AND seq = 2`, 2, "link does not follow"},
		{"an event left out", `DELETE FROM events WHERE run = ? AND seq = 2`, 2, "missing"},
		{"the first left out", `DELETE FROM events WHERE run = ? AND seq = 1`, 1, "missing"},
		{"the end cut off", `DELETE FROM events WHERE run = ? AND seq >= 5`, 5, "missing: the run's row says that there are 6"},
		{"two exchanged", `UPDATE events SET seq = CASE seq WHEN 1002 THEN 3 WHEN 1003 THEN 2 END
			WHERE run = (SELECT run FROM events WHERE run = ? AND seq = 1002) AND seq > 1000`, 2, "link does not follow"},
		{"the end cut off with its row", `DELETE FROM events WHERE run = ? AND seq >= 5`, 5, "does not come by the expected link"},
		{"one put in at the end", `INSERT INTO events SELECT tenant, run, 7, at, kind, version, content, key_id, payload, purged_at, digest, chain
			FROM events WHERE run = ? AND seq = 6`, 7, "link does not follow"},
		{"the row's link", `UPDATE runs SET chain = zeroblob(32) WHERE run = ?`, 6, "not the last one on the run's row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := leased(t, s)
			// The large text differs by case: an equal one would share its blob.
			tail := appendTo(t, s, l, text(t, "1"), text(t, "2"), text(t, "3"), text(t, words(int(c.broken)*7, 9000)+c.name), text(t, "5"), text(t, "6"))
			update(t, s, func(ctx context.Context, tx journal.Tx) error {
				return tx.SetStatus(ctx, l, journal.Change{Status: journal.Completed})
			})
			switch c.name {
			case "two exchanged":
				execSQL(t, db, `UPDATE events SET seq = seq + 1000 WHERE run = ? AND seq IN (2, 3)`, l.Run)
			case "the end cut off with its row":
				execSQL(t, db, `UPDATE runs SET seq = 4, chain = (SELECT chain FROM events WHERE run = ?1 AND seq = 4) WHERE run = ?1`, l.Run)
			}
			execSQL(t, db, c.sql, l.Run)
			rep, err := journal.Verify(t.Context(), s, l.Ref, tail.Link)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Broken == nil || rep.Broken.Seq != c.broken || !strings.Contains(rep.Broken.Why, c.why) {
				t.Errorf("found %v, want event %d: …%s…", rep.Broken, c.broken, c.why)
			}
		})
	}
}

// A full disk is an error that says so; nothing of the write is there, what was
// there can be read, and the store goes on once there is room.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{MaxBytes: 100 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := leased(t, s)
	appendTo(t, s, l, text(t, "fits"))
	var tail journal.Tail
	for n := range 1000 {
		err = s.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
			at, err := tx.Append(ctx, l, text(t, words(n, 900)))
			if err == nil {
				tail = at
			}
			return err
		})
		if err != nil {
			break
		}
	}
	if !errors.Is(err, journal.ErrFull) {
		t.Fatalf("got error %v, want journal.ErrFull", err)
	}

	// In a group, one that asks for too much does not take the others along.
	big := s.Later(func(ctx context.Context, tx journal.Tx) error {
		_, err := tx.Append(ctx, l, text(t, words(1, 200_000)))
		return err
	})
	small := s.Later(func(ctx context.Context, tx journal.Tx) error { return tx.Wake(ctx, l.Ref, time.Now()) })
	if err := big.Wait(t.Context()); !errors.Is(err, journal.ErrFull) {
		t.Errorf("the big one: %v", err)
	}
	if err := small.Wait(t.Context()); err != nil {
		t.Errorf("the small one: %v", err)
	}

	whole := func(s journal.Store, want journal.Tail) {
		t.Helper()
		rep, err := journal.Verify(t.Context(), s, l.Ref, journal.Link{})
		if err != nil || rep.Broken != nil || rep.Tail != want {
			t.Errorf("%+v, %v; want the end %+v", rep, err, want)
		}
	}
	whole(s, tail)
	roomy := open(t, path)
	whole(roomy, appendTo(t, roomy, l, text(t, words(2, 100_000))))
}

// A payload that many runs have lies in the file once a tenant, and what was
// purged is in no file of the store any more.
func TestLargePayloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	clock := journaltest.NewClock()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	count := func(query string) (n int) {
		t.Helper()
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const secret = "the weir keeper's secret"
	big := text(t, strings.Repeat("\x00", 9000)+secret)
	big.Payload = []byte(fmt.Sprintf(`{"text":"%s%s","v":1}`, randomHex(9000), secret))
	var leases []journal.Lease
	for i := range 4 {
		l := leased(t, s, func(r *journal.Run) {
			r.Capture = journal.CaptureMetadata
			if i == 3 {
				r.Tenant = "other"
			}
		})
		appendTo(t, s, l, big, text(t, "small: "+secret), big)
		leases = append(leases, l)
	}
	if n := count(`SELECT count(*) FROM blobs`); n != 2 {
		t.Errorf("%d large payloads stored, want one a tenant: 2", n)
	}
	for i, l := range leases {
		update(t, s, func(ctx context.Context, tx journal.Tx) error {
			return tx.SetStatus(ctx, l, journal.Change{Status: journal.Completed})
		})
		clock.Advance(time.Hour)
		update(t, s, func(ctx context.Context, tx journal.Tx) error { _, err := tx.Purge(ctx, 9); return err })
		want := []int{2, 2, 1, 0}[i]
		if n := count(`SELECT count(*) FROM blobs`); n != want {
			t.Errorf("with %d runs purged, %d large payloads, want %d", i+1, n, want)
		}
	}
	if n := count(`SELECT count(*) FROM holds`); n != 0 {
		t.Errorf("%d holds are left", n)
	}
	db.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s still has what was purged", filepath.Base(file))
		}
	}
}

// randomHex is text that no packing makes smaller than its half.
func randomHex(n int) string {
	var b strings.Builder
	for i := uint64(1); b.Len() < n; i++ {
		fmt.Fprintf(&b, "%016x", i*0x9e3779b97f4a7c15^i<<31)
	}
	return b.String()[:n]
}

// Writes that come together share commits.
func TestGroupCommit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "stoplog.db"))
	l := leased(t, s)
	before := s.Stats()
	var last *journal.Pending
	const n = 200
	for i := range n {
		last = s.Later(func(ctx context.Context, tx journal.Tx) error {
			_, err := tx.Append(ctx, l, text(t, fmt.Sprint(i)))
			return err
		})
	}
	if err := last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := s.Stats()
	if writes, commits := after.Writes-before.Writes, after.Commits-before.Commits; writes != n || commits > n/10 {
		t.Errorf("%d writes in %d commits", writes, commits)
	}
}

// A snapshot that was altered, or is another's, is not read.
func TestSnapshotAltered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	db := raw(t, path)
	for _, change := range []string{
		`state = CAST('other' AS BLOB)`, `seq = 2`, `version = 2`, `digest = zeroblob(32)`,
		`state = (SELECT state FROM snapshots ORDER BY run LIMIT 1), digest = (SELECT digest FROM snapshots ORDER BY run LIMIT 1)`,
	} {
		l := leased(t, s)
		at := appendTo(t, s, l, text(t, "1"))
		update(t, s, func(ctx context.Context, tx journal.Tx) error {
			return tx.Save(ctx, l, journal.Snapshot{Seq: at.Seq, Version: 1, State: []byte("state of " + l.Run)})
		})
		if _, err := s.Snapshot(t.Context(), l.Ref); err != nil {
			t.Error(err)
		}
		execSQL(t, db, `UPDATE snapshots SET `+change+` WHERE run = ?`, l.Run)
		if _, err := s.Snapshot(t.Context(), l.Ref); !errors.Is(err, journal.ErrAltered) {
			t.Errorf("%s: got error %v", change, err)
		}
	}
}

// Text in any bytes goes through the file unharmed, packed or not.
func TestSnapshotBytes(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "stoplog.db"))
	l := leased(t, s)
	for _, state := range [][]byte{{}, {0x01}, {0x00}, []byte("\x01{}"), bytes.Repeat([]byte{0x01}, 5000), []byte(words(1, 5000)), []byte(randomHex(5000))} {
		want := journal.Snapshot{Seq: appendTo(t, s, l, text(t, "1")).Seq, Version: 1, State: state}
		update(t, s, func(ctx context.Context, tx journal.Tx) error { return tx.Save(ctx, l, want) })
		got, err := s.Snapshot(t.Context(), l.Ref)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%.20q: %v (-want +got):\n%s", state, err, d)
		}
	}
}
