package match_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// TestCleanDeltasDoNotAllocate writes warm text in 4-byte deltas, with findings in it
// too.
func TestCleanDeltasDoNotAllocate(t *testing.T) {
	e := packs(t)
	rng := rand.New(rand.NewPCG(9, 9))
	for _, text := range []named{{"prose", prose(rng, 1<<16)}, {"go", goSource(t, 1<<16)}, {"json", jsonLogs(rng, 1<<16)}} {
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

// TestKeepsLittle feeds text in deltas and looks at what a screen keeps of it.
func TestKeepsLittle(t *testing.T) {
	e := packs(t)
	rng := rand.New(rand.NewPCG(9, 10))
	for _, text := range append(noSpace(large/16), named{"prose", prose(rng, large/16)}) {
		s := e.Open(t.Context(), guard.Channel{})
		feed(t, s, text.text, 5)
		if kept := match.Kept(s); kept > 2048 {
			t.Errorf("%s: the screen has room for %d bytes", text.name, kept)
		}
	}
	s := e.Open(t.Context(), guard.Channel{})
	feed(t, s, []byte("ey"+strings.Repeat("x", 1<<20)), 4) // a token that may yet be, masked
	if kept := match.Kept(s); kept > 2048 {
		t.Errorf("a megabyte is masked, and the screen has room for %d bytes", kept)
	}
}
