package match_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// large is the size of the largest texts.
var large = 8 << 20

// TestHold measures how much is held after each 4-byte delta of 1 MB of prose,
// and of other texts, under all packs.
func TestHold(t *testing.T) {
	e := packs(t)
	for _, text := range append(texts(t, large/8), noSpace(large/32)...) {
		s := e.Open(t.Context(), guard.Channel{})
		var held []int
		sum := 0
		for at := 0; at < len(text.text); at += 4 {
			end := min(at+4, len(text.text))
			p, err := s.Write(text.text[at:end])
			if err != nil {
				t.Fatal(err)
			}
			h := end - int(p.Settled)
			held = append(held, h)
			sum += h
		}
		slices.Sort(held)
		mean := float64(sum) / float64(len(held))
		most := held[len(held)-1]
		t.Logf("%-8s held after a delta: mean %.2f, p50 %d, p99 %d, most %d bytes; %s",
			text.name, mean, held[len(held)/2], held[len(held)*99/100], most, histogram(held))
		if text.name == "prose" && mean > 16 {
			t.Errorf("%s: %.2f bytes are held on average", text.name, mean)
		}
		if most > 512 {
			t.Errorf("%s: up to %d bytes are held", text.name, most)
		}
	}
}

// histogram counts by powers of two.
func histogram(sorted []int) string {
	var b strings.Builder
	for lo, hi := 0, 1; lo <= sorted[len(sorted)-1]; lo, hi = hi, 2*hi {
		from, _ := slices.BinarySearch(sorted, lo)
		to, _ := slices.BinarySearch(sorted, hi)
		fmt.Fprintf(&b, "%d–%d: %.1f%%, ", lo, hi-1, 100*float64(to-from)/float64(len(sorted)))
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// noSpace are texts without a space in them.
func noSpace(size int) []named {
	rng := rand.New(rand.NewPCG(3, 3))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	random := make([]byte, size)
	digits := make([]byte, size)
	for i := range random {
		random[i] = alphabet[rng.IntN(len(alphabet))]
		digits[i] = byte('0' + rng.IntN(10))
	}
	repeat := func(s string) []byte { return []byte(strings.Repeat(s, size/len(s)+1)[:size]) }
	return []named{
		{"base64", random},
		{"digits", digits},
		{"letters", repeat("a")},
		{"sk-ant-", repeat("sk-ant-")},
		{"api_key=", repeat("api_key=")},
		{"BEGIN", repeat("-----BEGIN PRIVATE KEY-----")},
		{"addresses", repeat("1.2.3.4.")},
		{"mail", repeat("a@b.")},
		{"bad", repeat("\xff\xc3é")},
	}
}

// TestLinear counts the bytes that all rules read and the screen moves: twice
// the text is at most two and a half times the work, however hostile.
func TestLinear(t *testing.T) {
	e := packs(t)
	rng := rand.New(rand.NewPCG(5, 5))
	for _, text := range append(noSpace(large), named{"prose", prose(rng, large)}) {
		half, piece := large/2, 64<<10
		switch text.name {
		case "prose", "base64", "digits", "sk-ant-":
		default:
			half, piece = large/32, 4 // for the time it takes, no more
		}
		work := func(size int) int64 {
			s := e.Open(t.Context(), guard.Channel{})
			feed(t, s, text.text[:size], piece)
			if _, err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return match.Steps(s)
		}
		one, two := work(half), work(2*half)
		t.Logf("%-9s %.2f steps a byte for %d KB, %.2f for %d KB",
			text.name, float64(one)/float64(half), half>>10, float64(two)/float64(2*half), 2*half>>10)
		if float64(two) > 2.5*float64(one) {
			t.Errorf("%s: twice the text takes %.2f times the steps", text.name, float64(two)/float64(one))
		}
		if text.name == "prose" && two > int64(6*half) {
			t.Errorf("prose: %d steps for %d bytes; rules at rest should cost nothing", two, 2*half)
		}
	}
}
