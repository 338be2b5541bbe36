package match_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestCleanDeltasDoNotAllocate writes warm text in 4-byte deltas.
func TestCleanDeltasDoNotAllocate(t *testing.T) {
	e := packs(t)
	rng := rand.New(rand.NewPCG(9, 9))
	for _, text := range []named{{"prose", prose(rng, 1<<16)}, {"go", goSource(t, 1<<16)}} {
		feed(t, e.Open(t.Context(), guard.Channel{}), text.text, 4)
		s := e.Open(t.Context(), guard.Channel{})
		feed(t, s, text.text, 4) // the screen has its buffers now
		at := 0
		var findings int
		n := testing.AllocsPerRun(len(text.text)/4-1, func() {
			p, err := s.Write(text.text[at : at+4])
			if err != nil {
				t.Fatal(err)
			}
			findings += len(p.Findings)
			at = (at + 4) % (len(text.text) - 4)
		})
		t.Logf("%s: %v allocations a delta, %d findings in %d", text.name, n, findings, len(text.text)/4)
		if n > 0 {
			t.Errorf("%s: %v allocations a delta", text.name, n)
		}
	}
}
