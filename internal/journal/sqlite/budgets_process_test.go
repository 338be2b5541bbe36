package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

const spendLimit = 200_000

func init() {
	// spend STORE takes of one envelope, call by call, until it is refused, and
	// prints what it has spent so far.
	children["spend"] = func(args []string) error {
		return withStore(args[0], func(ctx context.Context, s *sqlite.Store) error {
			p, err := budget.Open(ctx, s.Budgets(), spendOptions)
			if err != nil {
				return err
			}
			total := int64(0)
			for n := int64(0); ; n++ {
				r, refusal := p.Reserve(ctx, spendClaim)
				if refusal != nil {
					if refusal.Reason != budget.Exceeded {
						return errors.Join(errors.New(refusal.String()), p.Close())
					}
					return p.Close()
				}
				u := budget.Usage{Input: n % 50, Output: n % 70}
				r.Settle(u)
				total += u.Tokens()
				fmt.Println(total)
			}
		})
	}
}

var (
	spendScope   = budget.Scope{Kind: budget.Run, Name: "run_1"} // of no day: the test may last past midnight
	spendOptions = budget.Options{Envelopes: []budget.Envelope{{Scope: spendScope, Limit: budget.Limit{Tokens: budget.AtMost[int64](spendLimit)}}}}
	spendClaim   = budget.Claim{Scopes: []budget.Scope{spendScope}, Input: 50, Output: 70}
)

// Processes that share an envelope never spend more than it has, also where one of
// them is killed while it spends; and what the dead one had reserved counts.
func TestProcessesShareAnEnvelope(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	var last [3]int64
	var all []child
	for range last {
		all = append(all, start(t, "spend", path))
	}
	read := func(i int) bool {
		if !all[i].lines.Scan() {
			return false
		}
		n, err := strconv.ParseInt(all[i].lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		last[i] = n
		return true
	}
	for range 300 {
		if !read(0) {
			t.Fatal("the first process ended before it was killed")
		}
	}
	if err := all[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		for read(i) {
		}
		if err := all[i].Wait(); (err == nil) != (i > 0) {
			t.Errorf("process %d: %v: %s", i, err, all[i].said)
		}
	}
	sum := last[0] + last[1] + last[2]
	account := func(s *sqlite.Store) budget.Account {
		accounts, err := s.Budgets().Accounts(t.Context(), 0)
		if err != nil || len(accounts) != 1 {
			t.Fatalf("accounts %v, %v", accounts, err)
		}
		return accounts[0]
	}
	before := account(s)
	if taken := before.Spent.Tokens + before.Blocked.Tokens; sum > spendLimit || taken > spendLimit {
		t.Errorf("spent %d, by the ledger %d, of %d", sum, taken, spendLimit)
	}
	later, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: func() time.Time { return time.Now().Add(2 * budget.Lease) }})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	p, err := budget.Open(t.Context(), later.Budgets(), spendOptions)
	if err != nil {
		t.Fatal(err)
	}
	r, refusal := p.Reserve(t.Context(), spendClaim) // there is room again
	if refusal != nil {
		t.Fatal(refusal)
	}
	spent := account(later).Spent
	// Of the dead one no more is lost than its block, and its last calls count.
	if spent.Tokens > spendLimit || spent.Tokens < last[1]+last[2] || sum-spent.Tokens > spendLimit/16 {
		t.Errorf("spent %+v in the end, of which the survivors %d and the dead one %d", spent, last[1]+last[2], last[0])
	}
	r.Settle(budget.Usage{})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
