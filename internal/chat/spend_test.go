package chat_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// What a run took is what its requests took, and those of its children; a cost of
// which a part is unknown is unknown.
func TestSpend(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "stoplog.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ref := func(id string) journal.Ref {
		return journal.Ref{Tenant: journal.DefaultTenant, Run: journal.ID("run_01kc000000000000000000000" + id)}
	}
	make := func(id string, parent journal.ID) journal.Ref {
		r := ref(id)
		if err := store.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
			return tx.Create(ctx, journal.Run{Ref: r, Kind: journal.TurnRun, Parent: parent})
		}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	log := journal.Requests{Store: store, Tenant: journal.DefaultTenant, Worker: journal.Worker{Owner: "w"}, Lease: time.Minute}
	ask := func(id string, parent journal.Ref, settled *journal.Settled) {
		facts := []journal.RequestFact{{Run: ref(id).Run, At: time.Now(), Kind: journal.RequestStarted, Payload: journal.Started{Parent: parent.Run}}}
		if settled != nil {
			facts = append(facts, journal.RequestFact{Run: ref(id).Run, At: time.Now(), Kind: journal.RequestSettled, Payload: *settled})
		}
		if _, err := log.Append(t.Context(), true, facts...); err != nil {
			t.Fatal(err)
		}
	}
	took := func(in, out int64, usd budget.USD, known bool) *journal.Settled {
		return &journal.Settled{Status: journal.Completed, Reason: "completed", Usage: budget.Usage{Input: in, Output: out}, Cost: budget.Cost{USD: usd, Known: known}}
	}
	turn := make("1", "")
	child := make("2", turn.Run)
	ask("3", turn, took(7, 9, 97_000, true))
	ask("4", child, took(1, 2, 21_000, true))
	ask("5", turn, nil)
	check := func(of journal.Ref, want chat.Spend, said string) {
		t.Helper()
		got, err := chat.SpendOf(t.Context(), store, of)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || got.String() != said {
			t.Errorf("%s (-want +got):\n%s", got, diff)
		}
	}
	check(turn, chat.Spend{Requests: 2, Open: 1, Usage: budget.Usage{Input: 8, Output: 11}, Cost: budget.Cost{USD: 118_000, Known: true}},
		"19 tokens (8 in, 11 out), cost $0.000118, and 1 requests under way")
	check(ref("3"), chat.Spend{Requests: 1, Usage: budget.Usage{Input: 7, Output: 9}, Cost: budget.Cost{USD: 97_000, Known: true}},
		"16 tokens (7 in, 9 out), cost $0.000097")
	ask("6", child, took(100, 0, 0, false))
	check(child, chat.Spend{Requests: 2, Usage: budget.Usage{Input: 101, Output: 2}}, "103 tokens (101 in, 2 out), cost unknown")
}
