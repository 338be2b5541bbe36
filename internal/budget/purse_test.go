package budget_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	. "github.com/stoplog/stoplog/internal/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests' prices: a dollar for a million tokens of input, ten of output.
var prices = Prices{"m": {Model: "m", Rates: Rates{Input: 1e6, CacheRead: 1e5, CacheWrite: 125e4, CacheWrite1h: 2e6, Output: 1e7}}}

func profileScope(name string) Scope { return Scope{Kind: Profile, Name: name} }

func limitedTo(tokens int64) []Envelope {
	return []Envelope{{Scope: profileScope("p"), Limit: Limit{Tokens: AtMost(tokens)}}}
}

func openPurse(t *testing.T, l Ledger, o Options) *Purse {
	t.Helper()
	if o.Prices == nil {
		o.Prices = prices
	}
	p, err := Open(t.Context(), l, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closePurse(t *testing.T, p *Purse) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func claim(input, output int64) Claim {
	return Claim{Scopes: []Scope{profileScope("p")}, Model: "m", Input: input, Output: output}
}

func reserve(t *testing.T, p *Purse, c Claim) *Reservation {
	t.Helper()
	r, refusal := p.Reserve(t.Context(), c)
	if refusal != nil {
		t.Fatalf("refused: %s", refusal)
	}
	return r
}

func refused(t *testing.T, p *Purse, c Claim) *Refusal {
	t.Helper()
	r, refusal := p.Reserve(t.Context(), c)
	if refusal == nil {
		r.Settle(Usage{})
		t.Fatal("reserved, want a refusal")
	}
	return refusal
}

// spent is what the ledger has of a scope today.
func spent(t *testing.T, l Ledger, day Day, s Scope) Debit {
	t.Helper()
	all, err := l.Accounts(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Scope == s {
			return a.Spent
		}
	}
	return Debit{}
}

// A call is reserved, refused with figures where there is not enough, and settled
// once: what it took stands in every account it is part of.
func TestReserveAndSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := NewMemory(nil)
		p := openPurse(t, ledger, Options{Envelopes: limitedTo(1000)})
		a := reserve(t, p, claim(100, 500))
		b := reserve(t, p, claim(100, 200))
		r := refused(t, p, claim(100, 1))
		if r.Reason != Exceeded || r.Need != (Amount{Tokens: 101}) || r.Reserved != (Amount{Tokens: 900}) {
			t.Errorf("refusal %+v", r)
		}
		want := "the budget of profile p does not allow it: 101 tokens are needed and 100 of 1,000 are left (0 spent, 900 reserved); a new day begins at 2000-01-02T00:00:00Z"
		if r.String() != want {
			t.Errorf("said %q\nwant %q", r, want)
		}
		if cost := a.Settle(Usage{Input: 90, Output: 10}); cost != (Cost{USD: 190_000, Known: true}) {
			t.Errorf("cost %v", cost)
		}
		a.Settle(Usage{Input: 900, Output: 900}) // changes nothing
		reserve(t, p, claim(100, 499)).Settle(Usage{})
		b.Settle(Usage{Input: 100, Output: 50, Estimated: true})
		closePurse(t, p)
		both := Debit{Amount: Amount{Tokens: 250, USD: 790_000}, Estimated: Amount{Tokens: 150, USD: 600_000}}
		for _, s := range []Scope{{Kind: Host}, profileScope("p"), {Kind: Model, Name: "m"}} {
			if diff := cmp.Diff(both, spent(t, ledger, DayOf(time.Now()), s)); diff != "" {
				t.Errorf("spent of %s (-want +got):\n%s", s, diff)
			}
		}
	})
}

// Unknown is not zero: a model without a price is refused where money is limited,
// and elsewhere its tokens are counted as unpriced. A price of zero is a price.
func TestUnpriced(t *testing.T) {
	ledger := NewMemory(nil)
	free := prices.With(Prices{"local": {Model: "local"}})
	p := openPurse(t, ledger, Options{Prices: free, Envelopes: []Envelope{{Scope: profileScope("p"), Limit: Limit{USD: AtMost(Dollar)}}}})
	c := claim(10, 10)
	c.Model = "unheard-of"
	if r := refused(t, p, c); r.Reason != Unpriced || !strings.Contains(r.String(), `the price of model "unheard-of" is not known`) {
		t.Errorf("refusal %+v: %s", r, r)
	}
	c.Scopes = []Scope{profileScope("other")}
	if cost := reserve(t, p, c).Settle(Usage{Input: 5, Output: 5}); cost.Known {
		t.Errorf("cost %v, want unknown", cost)
	}
	c.Model, c.Scopes = "local", []Scope{profileScope("p")}
	if cost := reserve(t, p, c).Settle(Usage{Input: 5, Output: 5}); cost != (Cost{Known: true}) {
		t.Errorf("cost of what is free: %v", cost)
	}
	closePurse(t, p)
	if d := spent(t, ledger, DayOf(time.Now()), profileScope("other")); d != (Debit{Amount: Amount{Tokens: 10}, Unpriced: 10}) {
		t.Errorf("spent %+v", d)
	}
}

// An answer that goes on takes more, and hears where there is no more.
func TestReach(t *testing.T) {
	ledger := NewMemory(nil)
	p := openPurse(t, ledger, Options{Envelopes: limitedTo(10_000)})
	c := claim(1000, 1000)
	c.Step = 2000
	r := reserve(t, p, c)
	for _, output := range []int64{1, 900, 1001, 5000, 9000} {
		if refusal := r.Reach(t.Context(), output); refusal != nil {
			t.Fatalf("at %d: %s", output, refusal)
		}
	}
	refusal := r.Reach(t.Context(), 9001)
	if refusal == nil || refusal.Reason != Exceeded || refusal.Limit.Tokens != AtMost[int64](10_000) {
		t.Fatalf("at 9001: %v, want a refusal", refusal)
	}
	r.Settle(Usage{Input: 1000, Output: 9001})
	closePurse(t, p)
}

// A limit of zero is a limit.
func TestLimitOfZero(t *testing.T) {
	p := openPurse(t, NewMemory(nil), Options{Envelopes: []Envelope{{Scope: Scope{Kind: Host}, Limit: Limit{USD: AtMost(USD(0))}}}})
	if r := refused(t, p, claim(1, 1)); r.Reason != Exceeded || r.ID.Kind != Host {
		t.Errorf("refusal %+v", r)
	}
	closePurse(t, p)
}

// The day is UTC's. A call belongs to the day on which it was reserved.
func TestDayBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - time.Second) // the bubble's clock begins at midnight
		ledger := NewMemory(nil)
		p := openPurse(t, ledger, Options{Envelopes: limitedTo(1000)})
		today := DayOf(time.Now())
		late := reserve(t, p, claim(0, 1000))
		refused(t, p, claim(0, 1))
		time.Sleep(2 * time.Second)
		early := reserve(t, p, claim(0, 1000))
		late.Settle(Usage{Output: 700})
		early.Settle(Usage{Output: 300})
		time.Sleep(time.Hour)
		closePurse(t, p)
		if a, b := spent(t, ledger, today, profileScope("p")), spent(t, ledger, today+1, profileScope("p")); a.Tokens != 700 || b.Tokens != 300 {
			t.Errorf("spent %d and %d, want 700 and 300", a.Tokens, b.Tokens)
		}
	})
}

// gate is a ledger that can be held, and can fail.
type gate struct {
	Ledger
	mu    sync.Mutex
	fails error
	held  chan struct{} // not nil: writes wait until it is closed
}

func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fails = err
}

func (g *gate) Write(ctx context.Context, owner string, wait bool, entries []Entry) ([]Standing, error) {
	g.mu.Lock()
	err, held := g.fails, g.held
	g.mu.Unlock()
	if held != nil {
		<-held
	}
	if err != nil {
		return nil, err
	}
	return g.Ledger.Write(ctx, owner, wait, entries)
}

// A call waits for no disk: with a ledger that does not come back, calls are
// reserved, grow and are settled from the block at hand, and what the block has
// not is refused in time.
func TestNoDiskOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Ledger: NewMemory(nil)}
		p := openPurse(t, g, Options{Envelopes: limitedTo(32_000)})
		release := make(chan struct{})
		g.mu.Lock()
		g.held = release
		g.mu.Unlock()
		began := time.Now()
		for range 20 {
			r := reserve(t, p, claim(10, 20))
			if refusal := r.Reach(t.Context(), 20); refusal != nil {
				t.Fatal(refusal)
			}
			r.Settle(Usage{Input: 10, Output: 20})
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("20 calls waited %v", waited)
		}
		r := refused(t, p, claim(10, 20_000))
		if r.Reason != Unreachable || !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("refusal %+v", r)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("the refusal came after %v", waited)
		}
		close(release)
		time.Sleep(2 * time.Second) // what failed is tried again each second
		reserve(t, p, claim(10, 20_000)).Settle(Usage{})
		closePurse(t, p)
	})
}

// A ledger that cannot be reached refuses: at once where a block has not enough,
// and for everything once the leases have run out. What was spent meanwhile is
// written when it is back.
func TestUnreachableDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Ledger: NewMemory(nil)}
		p := openPurse(t, g, Options{Envelopes: limitedTo(32_000)})
		broken := errors.New("the disk is gone")
		g.fail(broken)
		if r := refused(t, p, claim(10, 20_000)); r.Reason != Unreachable || !errors.Is(r.Err, broken) {
			t.Errorf("refusal %+v", r)
		}
		reserve(t, p, claim(10, 10)).Settle(Usage{Input: 10, Output: 10})
		time.Sleep(Lease)
		if r := refused(t, p, claim(1, 1)); r.Reason != Unreachable || !errors.Is(r.Err, broken) {
			t.Errorf("refusal after the lease %+v", r)
		}
		if _, err := p.Levels(claim(1, 1)); !errors.Is(err, broken) {
			t.Errorf("levels: %v, want that they are not known", err)
		}
		g.fail(nil)
		time.Sleep(2 * time.Second)
		reserve(t, p, claim(1, 1)).Settle(Usage{Input: 1, Output: 1})
		closePurse(t, p)
		if d := spent(t, g, DayOf(time.Now()), profileScope("p")); d.Tokens != 22 {
			t.Errorf("spent %d, want 22", d.Tokens)
		}
	})
}

// No opening without a ledger.
func TestOpenFails(t *testing.T) {
	g := &gate{Ledger: NewMemory(nil), fails: errors.New("no")}
	if _, err := Open(t.Context(), g, Options{Envelopes: limitedTo(1)}); !errors.Is(err, g.fails) {
		t.Errorf("open: %v", err)
	}
}

// Many purses on one ledger never spend more than the limit, and all of it can be
// spent but for what the others keep.
func TestNoOverspend(t *testing.T) {
	const limit, purses, callers = 100_000, 4, 8
	ledger := NewMemory(nil)
	var granted atomic.Int64
	var open []*Purse
	var wg sync.WaitGroup
	for range purses {
		p := openPurse(t, ledger, Options{Envelopes: limitedTo(limit)})
		open = append(open, p)
		for c := range callers {
			wg.Go(func() {
				for n := int64(1); ; n++ {
					r, refusal := p.Reserve(t.Context(), claim(n%50, 100+int64(c)))
					if refusal != nil {
						return
					}
					u := Usage{Input: n % 50, Output: n % 100}
					granted.Add(u.Tokens())
					r.Settle(u)
				}
			})
		}
	}
	wg.Wait()
	for _, p := range open {
		closePurse(t, p)
	}
	d := spent(t, ledger, DayOf(time.Now()), profileScope("p"))
	if d.Tokens != granted.Load() || d.Tokens > limit || d.Tokens < limit*3/4 {
		t.Errorf("spent %d, by the callers' count %d, of %d", d.Tokens, granted.Load(), limit)
	}
}

// What a process that died had reserved counts as spent, by estimate, when its
// lease has ended; the rest of its block returns.
func TestDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := NewMemory(nil)
		dead := openPurse(t, ledger, Options{Envelopes: limitedTo(1000), Owner: "dead"})
		r := reserve(t, dead, claim(100, 700))
		synctest.Wait() // written down
		heir := openPurse(t, ledger, Options{Envelopes: limitedTo(1000)})
		refused(t, heir, claim(0, 200))
		closePurse(t, dead) // gives back what is free; the call is still under way
		time.Sleep(Lease + time.Minute)
		refused(t, heir, claim(0, 201))
		reserve(t, heir, claim(0, 200)).Settle(Usage{Output: 200})
		closePurse(t, heir)
		want := Debit{Amount: Amount{Tokens: 1000, USD: 2_000_000}, Estimated: Amount{Tokens: 800}}
		if d := spent(t, ledger, DayOf(time.Now()), profileScope("p")); d != want {
			t.Errorf("spent %+v, want %+v", d, want)
		}
		r.Settle(Usage{})
	})
}

// A run has an envelope of its own, of all days, that its claims bring.
func TestRunEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPurse(t, NewMemory(nil), Options{})
		run := Scope{Kind: Run, Name: "run_1"}
		c := Claim{Scopes: []Scope{run}, Envelopes: []Envelope{{Scope: run, Limit: Limit{Tokens: AtMost(int64(100))}}}, Model: "m", Output: 60}
		reserve(t, p, c).Settle(Usage{Output: 60})
		time.Sleep(25 * time.Hour)
		if r := refused(t, p, c); r.ID != (ID{Scope: run}) || r.Spent.Tokens != 60 {
			t.Errorf("refusal %+v", r)
		}
		closePurse(t, p)
	})
}

// Levels says how full the limited envelopes of a claim are.
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPurse(t, NewMemory(nil), Options{Envelopes: append(limitedTo(1000), Envelope{Scope: profileScope("q"), Limit: Limit{Tokens: AtMost(int64(1))}})})
		reserve(t, p, claim(100, 500)).Settle(Usage{Input: 100, Output: 300})
		got, err := p.Levels(claim(0, 0))
		want := []Level{{ID: ID{Scope: profileScope("p"), Day: DayOf(time.Now())}, Limit: limitedTo(1000)[0].Limit, Spent: Amount{Tokens: 400, USD: 3_100_000}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		closePurse(t, p)
	})
}

// Envelopes of one scope are united by the tighter limit; a model's name is taken
// as it is sent, and a `*` makes one envelope of many names.
func TestEnvelopes(t *testing.T) {
	got := Unite(
		[]Envelope{{Scope{Model, "big@20250101"}, Limit{Tokens: AtMost(int64(10))}}, {Scope{Host, ""}, Limit{USD: AtMost(Dollar)}}},
		[]Envelope{{Scope{Model, "big-20250101"}, Limit{Tokens: AtMost(int64(20)), USD: AtMost(Dollar)}}},
	)
	want := []Envelope{{Scope{Model, "big-20250101"}, Limit{Tokens: AtMost(int64(10)), USD: AtMost(Dollar)}}, {Scope{Host, ""}, Limit{USD: AtMost(Dollar)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("united (-want +got):\n%s", diff)
	}
	p := openPurse(t, NewMemory(nil), Options{Envelopes: []Envelope{{Scope{Model, "big-*"}, Limit{Tokens: AtMost(int64(100))}}}})
	defer closePurse(t, p)
	reserve(t, p, Claim{Model: "big-1", Output: 60}).Settle(Usage{Output: 60})
	reserve(t, p, Claim{Model: "small-1", Output: 600}).Settle(Usage{Output: 600})
	if r := refused(t, p, Claim{Model: "big@20250101", Output: 60}); r.ID.Name != "big-*" || r.Spent.Tokens != 60 {
		t.Errorf("refusal %+v", r)
	}
}
