package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/seal"
)

// canary is in everything that a sealed journal is given.
const canary = "quokka-on-the-loose"

// filled makes a store in which every column that can hold words holds the canary.
func filled(t *testing.T, path string, ring *seal.Ring) journal.Lease {
	t.Helper()
	s := openSealed(t, path, ring)
	defer s.Close()
	l := leased(t, s)
	appendTo(t, s, l, text(t, "1 "+canary), text(t, words(3, 9000)+canary), text(t, "3 "+canary))
	q := journal.Question{ID: newID(t, journal.ApprovalPrefix), About: "reply", Shown: []byte(`{"q":"` + canary + `"}`)}
	update(t, s, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Save(ctx, l, journal.Snapshot{Seq: 3, Version: 1, State: []byte(canary)}); err != nil {
			return err
		}
		if err := tx.Ask(ctx, l, q); err != nil {
			return err
		}
		_, err := tx.Decide(ctx, l.Tenant, q.ID, journal.Decision{State: journal.QuestionAnswered, By: "bea", Text: canary})
		return err
	})
	if ring != nil {
		update(t, s, func(ctx context.Context, tx journal.Tx) error {
			return tx.Keep(ctx, l.Tenant, journal.Secret{Kind: "k", Owner: "o", Name: "n", Value: []byte(canary), Until: time.Now().Add(time.Hour)})
		})
	}
	return l
}

func openSealed(t *testing.T, path string, ring *seal.Ring) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Seal: ring})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// With a key nothing of what anybody said is in the file.
func TestSealedAtRest(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "stoplog.db")
		var ring *seal.Ring
		if sealed {
			ring = newRing(t, seal.NewKey())
		}
		filled(t, path, ring)
		shows := false
		files, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			shows = shows || bytes.Contains(b, []byte(canary[:9]))
		}
		if shows == sealed {
			t.Errorf("sealed %v: the file shows the words: %v", sealed, shows)
		}
	}
}

// The chain runs over digests of what was sealed, so that it holds under a new
// key, and with no key at all; what could not be opened is counted.
func TestVerifySealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	first, second := seal.NewKey(), seal.NewKey()
	l := filled(t, path, newRing(t, first))
	s := openSealed(t, path, newRing(t, first, second))
	appendTo(t, s, l, text(t, "4 under the new key"))
	s.Close()
	for _, c := range []struct {
		name   string
		ring   *seal.Ring
		sealed uint64
	}{
		{"both keys", newRing(t, first, second), 0},
		{"the new key alone", newRing(t, second), 3},
		{"the old key alone", newRing(t, first), 1},
		{"no key", nil, 4},
	} {
		s := openSealed(t, path, c.ring)
		rep, err := journal.Verify(t.Context(), s, l.Ref, journal.Link{})
		if err != nil || rep.Broken != nil || rep.Events != 4 || rep.Sealed != c.sealed {
			t.Errorf("%s: %+v (%v), want 4 events, %d of them sealed", c.name, rep, err, c.sealed)
		}
		for r, err := range s.Events(t.Context(), l.Ref, 0) {
			if err != nil {
				t.Fatal(err)
			}
			var p struct{ Text string }
			if err := r.Decode(&p); errors.Is(err, journal.ErrSealed) != (r.Unread != nil) || err == nil && p.Text == "" {
				t.Errorf("%s: event %d says %q, %v", c.name, r.Seq, p.Text, err)
			}
		}
		s.Close()
	}
	// Purging takes sealed payloads as it does plain ones.
	later := func() time.Time { return time.Now().Add(365 * 24 * time.Hour) }
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Seal: newRing(t, second), Now: later})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	update(t, s, func(ctx context.Context, tx journal.Tx) error {
		return tx.SetStatus(ctx, l, journal.Change{Status: journal.Completed})
	})
	late, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: func() time.Time { return later().Add(365 * 24 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	update(t, late, func(ctx context.Context, tx journal.Tx) error { _, err := tx.Purge(ctx, 10); return err })
	rep, err := journal.Verify(t.Context(), late, l.Ref, journal.Link{})
	if err != nil || rep.Broken != nil || rep.Purged != 4 {
		t.Errorf("after the purge: %+v (%v), want 4 purged", rep, err)
	}
}

// A sealed column that was altered, moved, or passed off as plain is found, and
// nothing of it is read.
func TestTamperedSeal(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		why       string
		broken    uint64
	}{
		{"a byte changed", `UPDATE events SET payload = CAST(substr(payload, 1, 30) || x'00' || substr(payload, 32) AS BLOB) WHERE seq = 1`, "payload was altered", 1},
		{"moved from another event", `UPDATE events SET payload = (SELECT payload FROM events WHERE seq = 3) WHERE seq = 1`, "payload was altered", 1},
		{"passed off as plain", `UPDATE events SET key_id = '', payload = CAST('{"text":"no","v":1}' AS BLOB) WHERE seq = 1`, "payload was altered", 1},
		{"a large one", `UPDATE blobs SET body = zeroblob(100)`, "payload was altered", 2},
		{"emptied", `UPDATE events SET payload = x'' WHERE seq = 3`, "payload is gone", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stoplog.db")
			ring := newRing(t, seal.NewKey())
			l := filled(t, path, ring)
			execSQL(t, raw(t, path), c.sql)
			s := openSealed(t, path, ring)
			defer s.Close()
			rep, err := journal.Verify(t.Context(), s, l.Ref, journal.Link{})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Broken == nil || rep.Broken.Seq != c.broken || !strings.Contains(rep.Broken.Why, c.why) {
				t.Errorf("found %v, want event %d: …%s…", rep.Broken, c.broken, c.why)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "stoplog.db")
	ring := newRing(t, seal.NewKey())
	l := filled(t, path, ring)
	execSQL(t, raw(t, path), `UPDATE secrets SET owner = 'another'`)
	execSQL(t, raw(t, path), `UPDATE questions SET said = 'AAAA'`)
	execSQL(t, raw(t, path), `UPDATE snapshots SET state = zeroblob(60)`)
	s := openSealed(t, path, ring)
	defer s.Close()
	if got, err := s.Secrets(t.Context(), l.Tenant, "k", "another"); !errors.Is(err, journal.ErrAltered) {
		t.Errorf("a secret of another owner: %v, %v, want ErrAltered", got, err)
	}
	if got, err := s.Snapshot(t.Context(), l.Ref); !errors.Is(err, journal.ErrAltered) || got.State != nil {
		t.Errorf("a snapshot: %q, %v, want ErrAltered", got.State, err)
	}
	list, err := s.Questions(t.Context(), journal.QuestionQuery{Tenant: l.Tenant})
	if err != nil || len(list) != 1 || list[0].Text != "" {
		t.Fatalf("questions: %+v, %v, want one, without its words", list, err)
	}
	if _, err := s.Question(t.Context(), l.Tenant, list[0].ID); !errors.Is(err, journal.ErrAltered) {
		t.Errorf("a question: %v, want ErrAltered", err)
	}
}

// What must be sealed is refused without a key, and it says how to make one.
func TestSecretsNeedAKey(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "stoplog.db"))
	err := s.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
		return tx.Keep(ctx, journal.DefaultTenant, journal.Secret{Kind: "k", Owner: "o", Name: "n", Value: []byte("v"), Until: time.Now().Add(time.Hour)})
	})
	if !errors.Is(err, seal.ErrNoKey) || !strings.Contains(err.Error(), "stoplog seal-key") {
		t.Errorf("kept without a key: %v", err)
	}
}
