package budget_test

import (
	"testing"

	. "github.com/stoplog/stoplog/internal/budget"
)

func benchPurse(b *testing.B) *Purse {
	p, err := Open(b.Context(), NewMemory(nil), Options{Prices: prices, Envelopes: []Envelope{
		{Scope: Scope{Kind: Host}, Limit: Limit{USD: AtMost(1e6 * Dollar)}},
		{Scope: profileScope("p"), Limit: Limit{Tokens: AtMost[int64](1e15), USD: AtMost(1e6 * Dollar)}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}

// What a request costs: reserved and settled, of the host, a profile and a model.
func BenchmarkReserveAndSettle(b *testing.B) {
	p := benchPurse(b)
	b.ReportAllocs()
	for b.Loop() {
		r, refusal := p.Reserve(b.Context(), claim(100, 500))
		if refusal != nil {
			b.Fatal(refusal)
		}
		r.Settle(Usage{Input: 100, Output: 20})
	}
}

// What a delta costs: a token more, with a growth of the reservation now and then.
func BenchmarkReach(b *testing.B) {
	p := benchPurse(b)
	r, refusal := p.Reserve(b.Context(), claim(100, 500))
	if refusal != nil {
		b.Fatal(refusal)
	}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		if n++; n > 1e6 {
			b.StopTimer()
			r.Settle(Usage{})
			if r, refusal = p.Reserve(b.Context(), claim(100, 500)); refusal != nil {
				b.Fatal(refusal)
			}
			n = 1
			b.StartTimer()
		}
		if refusal := r.Reach(b.Context(), n); refusal != nil {
			b.Fatal(refusal)
		}
	}
	r.Settle(Usage{})
}

// A delta takes no memory.
func TestReachAllocatesNothing(t *testing.T) {
	p := openPurse(t, NewMemory(nil), Options{Envelopes: limitedTo(1e12)})
	r := reserve(t, p, claim(100, 1_000_000))
	n := int64(0)
	if got := testing.AllocsPerRun(1000, func() {
		n++
		if refusal := r.Reach(t.Context(), n); refusal != nil {
			t.Fatal(refusal)
		}
	}); got != 0 {
		t.Errorf("%v allocations a delta", got)
	}
	r.Settle(Usage{})
	closePurse(t, p)
}
