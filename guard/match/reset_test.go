package match_test

import (
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// shorts are texts as the fields of a frame are.
var shorts = bytesOf(
	"chatcmpl-CAFEbabe0123", "chat.completion.chunk", "1700000000", "gpt-4o-2024-08-06", "default", "fp_44709d6fcb",
	"aB3dE5", "ann@example", "4111 1111 1111", "-----BEGIN PRIVATE KEY-----",
)

func bytesOf(texts ...string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(t))
	}
	return all
}

// TestResetDoesNotAllocate: a warm stream judges short texts one by one.
func TestResetDoesNotAllocate(t *testing.T) {
	s := guard.NewChain(guard.Options{}, guard.Member{Guard: packs(t)}).Open(t.Context(), guard.Channel{})
	pass := func() {
		for _, text := range shorts {
			s.Reset(t.Context(), guard.Channel{})
			s.Write(text)
			s.Close()
		}
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n > 0 {
		t.Errorf("%v allocations for %d texts", n, len(shorts))
	}
}

// TestResetKeepsLittle of what a channel before had waiting.
func TestResetKeepsLittle(t *testing.T) {
	s := packs(t).Open(t.Context(), guard.Channel{})
	feed(t, s, make([]byte, 1<<20), 1<<20)
	s.(guard.Resetter).Reset(t.Context(), guard.Channel{})
	if kept := match.Kept(s); kept > 64<<10 {
		t.Errorf("the screen has room for %d bytes", kept)
	}
}

// BenchmarkShort is what it takes to judge a field of a frame, with a stream of
// its own and with one that is used again.
func BenchmarkShort(b *testing.B) {
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: packs(b)})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s := chain.Open(b.Context(), guard.Channel{})
			s.Write(shorts[i%len(shorts)])
			s.Close()
		}
	})
	b.Run("reset", func(b *testing.B) {
		s := chain.Open(b.Context(), guard.Channel{})
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s.Reset(b.Context(), guard.Channel{})
			s.Write(shorts[i%len(shorts)])
			s.Close()
		}
	})
}
