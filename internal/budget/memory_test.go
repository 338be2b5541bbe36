package budget_test

import (
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/budget/budgettest"
)

func TestMemory(t *testing.T) {
	budgettest.Exercise(t, func(_ *testing.T, now func() time.Time) budget.Ledger { return budget.NewMemory(now) })
}
