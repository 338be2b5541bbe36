// Package budgettest is the suite that every ledger of budgets passes.
package budgettest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/budget"
)

// Day is the day on which the suite happens.
const Day = budget.Day(20_000)

var start = Day.Ends().Add(-12 * time.Hour)

// Exercise puts ledgers through the suite. open returns an empty one with a clock.
func Exercise(t *testing.T, open func(t *testing.T, now func() time.Time) budget.Ledger) {
	for name, test := range map[string]func(*testing.T, *world){
		"a block never passes the limit":          blockWithinLimit,
		"what is spent is of all owners":          spentByAll,
		"a block that is kept stays":              keptStays,
		"a block is given up":                     givenUp,
		"a lease ends":                            leaseEnds,
		"without a limit there is no block":       noLimit,
		"a limit of nothing allows nothing":       limitOfNothing,
		"money and tokens are limited each alone": eachAlone,
		"accounts of a day":                       accountsOfADay,
		"an ended context writes nothing":         endedContext,
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, at: start}
			w.ledger = open(t, func() time.Time { return w.at })
			test(t, w)
		})
	}
}

type world struct {
	t      *testing.T
	at     time.Time
	ledger budget.Ledger
}

func (w *world) write(owner string, e budget.Entry) budget.Standing {
	w.t.Helper()
	out, err := w.ledger.Write(w.t.Context(), owner, true, []budget.Entry{e})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(out) != 1 {
		w.t.Fatalf("%d standings of one entry", len(out))
	}
	return out[0]
}

func (w *world) wants(got, want any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("-want +got:\n%s", diff)
	}
}

func profile(name string) budget.ID {
	return budget.ID{Scope: budget.Scope{Kind: budget.Profile, Name: name}, Day: Day}
}

func tokens(n int64) budget.Amount { return budget.Amount{Tokens: n} }

func atMost(n int64) budget.Limit { return budget.Limit{Tokens: budget.AtMost(n)} }

func blockWithinLimit(t *testing.T, w *world) {
	a := w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(60)})
	w.wants(a, budget.Standing{Block: tokens(60)})
	b := w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(60)})
	w.wants(b, budget.Standing{Block: tokens(40), Others: tokens(60)})
	c := w.write("c", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(1)})
	w.wants(c, budget.Standing{Others: tokens(100)})
	other := w.write("c", budget.Entry{ID: profile("q"), Limit: atMost(100), Want: tokens(1)})
	w.wants(other, budget.Standing{Block: tokens(1)})
}

func spentByAll(t *testing.T, w *world) {
	spend := func(n int64) budget.Debit {
		return budget.Debit{Amount: budget.Amount{Tokens: n, USD: budget.USD(n)}, Estimated: tokens(1), Unpriced: 2}
	}
	w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Debit: spend(30)})
	got := w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100), Debit: spend(20), Want: tokens(100)})
	w.wants(got, budget.Standing{Spent: spend(30).Plus(spend(20)), Block: tokens(50)})
}

func keptStays(t *testing.T, w *world) {
	w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(100)})
	got := w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(50), Keep: tokens(100), Want: tokens(100)})
	w.wants(got, budget.Standing{Block: tokens(100)})
	over := w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Debit: budget.Debit{Amount: tokens(140)}, Keep: tokens(10), Want: tokens(80)})
	w.wants(over, budget.Standing{Spent: budget.Debit{Amount: tokens(140)}, Block: tokens(10)})
}

func givenUp(t *testing.T, w *world) {
	w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(100)})
	w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100)})
	got := w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(100)})
	w.wants(got, budget.Standing{Block: tokens(100)})
}

func leaseEnds(t *testing.T, w *world) {
	w.write("a", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(80), Held: tokens(30)})
	w.at = w.at.Add(budget.Lease)
	w.wants(w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100)}), budget.Standing{Others: tokens(80)})
	w.at = w.at.Add(time.Second)
	held := budget.Debit{Amount: tokens(30), Estimated: tokens(30)}
	got := w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100), Want: tokens(100)})
	w.wants(got, budget.Standing{Spent: held, Block: tokens(70)})
	again := w.write("b", budget.Entry{ID: profile("p"), Limit: atMost(100)})
	w.wants(again, budget.Standing{Spent: held})
}

func noLimit(t *testing.T, w *world) {
	got := w.write("a", budget.Entry{ID: profile("p"), Debit: budget.Debit{Amount: tokens(7)}, Want: tokens(5)})
	w.wants(got, budget.Standing{Spent: budget.Debit{Amount: tokens(7)}})
}

func limitOfNothing(t *testing.T, w *world) {
	got := w.write("a", budget.Entry{ID: profile("p"), Limit: budget.Limit{USD: budget.AtMost(budget.USD(0))}, Want: budget.Amount{Tokens: 5, USD: 5}})
	w.wants(got, budget.Standing{})
}

func eachAlone(t *testing.T, w *world) {
	both := budget.Limit{Tokens: budget.AtMost(int64(100)), USD: budget.AtMost(budget.USD(10))}
	got := w.write("a", budget.Entry{ID: profile("p"), Limit: both, Want: budget.Amount{Tokens: 50, USD: 50}})
	w.wants(got, budget.Standing{Block: budget.Amount{Tokens: 50, USD: 10}})
	money := budget.Limit{USD: budget.AtMost(budget.USD(10))}
	got = w.write("b", budget.Entry{ID: profile("q"), Limit: money, Want: budget.Amount{Tokens: 50, USD: 5}})
	w.wants(got, budget.Standing{Block: budget.Amount{USD: 5}})
}

func accountsOfADay(t *testing.T, w *world) {
	tomorrow := profile("p")
	tomorrow.Day++
	run := budget.ID{Scope: budget.Scope{Kind: budget.Run, Name: "run_1"}}
	w.write("a", budget.Entry{ID: profile("p"), Debit: budget.Debit{Amount: budget.Amount{Tokens: 7, USD: 3}, Unpriced: 1}})
	w.write("a", budget.Entry{ID: profile("only"), Limit: atMost(9), Want: tokens(5), Held: tokens(2)})
	w.write("b", budget.Entry{ID: profile("only"), Limit: atMost(9), Want: tokens(5), Held: tokens(1)})
	w.write("a", budget.Entry{ID: tomorrow, Debit: budget.Debit{Amount: tokens(1)}})
	w.write("a", budget.Entry{ID: run, Limit: atMost(5), Want: tokens(5)})
	got, err := w.ledger.Accounts(t.Context(), Day)
	if err != nil {
		t.Fatal(err)
	}
	w.wants(got, []budget.Account{
		{ID: profile("only"), Blocked: tokens(9), Held: tokens(3)},
		{ID: profile("p"), Spent: budget.Debit{Amount: budget.Amount{Tokens: 7, USD: 3}, Unpriced: 1}},
		{ID: run, Blocked: tokens(5)},
	})
}

func endedContext(t *testing.T, w *world) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := budget.Entry{ID: profile("p"), Debit: budget.Debit{Amount: tokens(7)}}
	if _, err := w.ledger.Write(ctx, "a", true, []budget.Entry{e}); err == nil {
		t.Error("written")
	}
	if got, err := w.ledger.Accounts(t.Context(), Day); err != nil || len(got) != 0 {
		t.Errorf("accounts %v, %v: want none", got, err)
	}
}
