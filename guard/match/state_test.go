package match_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// mostState is how many bytes a stream may take in mid-text, with what it holds.
const mostState = 1024

// TestStateIsSmall opens many screens of all packs, has each read some text in
// deltas, and looks at what they take together.
func TestStateIsSmall(t *testing.T) {
	e := packs(t)
	rng := rand.New(rand.NewPCG(3, 9))
	for _, text := range []named{{"prose", prose(rng, 1<<14)}, {"go", goSource(t, 1<<14)}, {"json", jsonLogs(rng, 1<<14)}} {
		screens := make([]guard.Screen, 500)
		open := func() {
			for i := range screens {
				screens[i] = e.Open(t.Context(), guard.Channel{})
				at := i * (len(text.text) - 2048) / len(screens)
				feed(t, screens[i], text.text[at:at+2048], 4)
			}
		}
		open() // what they share is there
		clear(screens)
		before := heap()
		open()
		each := int(heap()-before) / len(screens)
		runtime.KeepAlive(screens)
		t.Logf("%s: %d bytes a stream", text.name, each)
		if each > mostState {
			t.Errorf("%s: a stream takes %d bytes, more than %d", text.name, each, mostState)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
