package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// TestAuthKeys keeps keys over a restart, gives a name to one live key at a time,
// and revokes once.
func TestAuthKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	open := func() *sqlite.Store {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	first := auth.Key{ID: "aaaa0000", Name: "ci", Role: auth.App, Labels: auth.Labels{Team: "a", App: "b", User: "c"},
		Limits: auth.Limits{RequestsPerMinute: 3, TokensPerMinute: 4}, Profiles: []string{"p", "q"},
		Digest: [32]byte{1, 2, 3}, Created: at, CreatedBy: "ann", Expires: at.Add(time.Hour)}
	second := auth.Key{ID: "bbbb0000", Name: "ann", Role: auth.Admin, Digest: [32]byte{4}, Created: at.Add(time.Second)}
	for _, k := range []auth.Key{first, second} {
		if err := s.AddAuthKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	again := first
	again.ID = "cccc0000"
	if err := s.AddAuthKey(t.Context(), again); !errors.Is(err, auth.ErrName) {
		t.Errorf("a second live key of one name: %v", err)
	}
	for i, want := range []bool{true, false} {
		if got, err := s.RevokeAuthKey(t.Context(), first.ID, at.Add(time.Minute), "bob"); got != want || err != nil {
			t.Errorf("revoked for the time %d: %v, %v", i+1, got, err)
		}
	}
	if got, err := s.RevokeAuthKey(t.Context(), "nobody", at, "bob"); got || err != nil {
		t.Errorf("revoked a key that is not there: %v, %v", got, err)
	}
	again.Created = at.Add(2 * time.Second)
	if err := s.AddAuthKey(t.Context(), again); err != nil {
		t.Errorf("the name of a revoked key is not free: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	first.Revoked, first.RevokedBy = at.Add(time.Minute), "bob"
	got, err := s.AuthKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]auth.Key{first, second, again}, got); diff != "" {
		t.Error(diff)
	}
}
