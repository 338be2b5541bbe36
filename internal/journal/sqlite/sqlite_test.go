package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/journaltest"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/seal"
)

func TestJournal(t *testing.T) {
	exercise(t, false)
}

// A journal that seals what it holds passes the same suite.
func TestSealedJournal(t *testing.T) {
	exercise(t, true)
}

func exercise(t *testing.T, sealed bool) {
	ring := newRing(t, seal.NewKey())
	journaltest.Exercise(t, func(t *testing.T, dir string, o journaltest.Options) journal.Store {
		t.Helper()
		options := sqlite.Options{Now: o.Now, Retention: o.Retention}
		if sealed || o.Seal {
			options.Seal = ring
		}
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "stoplog.db"), options)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func newRing(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k
	}
	ring, err := seal.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}
