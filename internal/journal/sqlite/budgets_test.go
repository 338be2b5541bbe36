package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/budget/budgettest"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

func TestBudgets(t *testing.T) {
	budgettest.Exercise(t, func(t *testing.T, now func() time.Time) budget.Ledger {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "stoplog.db"), sqlite.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s.Budgets()
	})
}
