package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/journaltest"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

func TestJournal(t *testing.T) {
	journaltest.Exercise(t, func(t *testing.T, dir string, o journaltest.Options) journal.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "stoplog.db"), sqlite.Options{Now: o.Now, Retention: o.Retention})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
