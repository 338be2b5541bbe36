package match_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// large is the size of the largest texts.
var large = 8 << 20

// TestHold measures how much is held after each byte, for the pack secrets, with
// credentials, and for all packs. docs/performance.md has the numbers.
func TestHold(t *testing.T) {
	for _, names := range [][]string{{"secrets"}, {"secrets", "credentials"}, rules.Default()} {
		e := packs(t, names...)
		for _, text := range append(texts(t, large/8), noSpace(large/32)...) {
			s := e.Open(t.Context(), guard.Channel{})
			held := make([]int, 0, len(text.text))
			sum := 0
			for at := range text.text {
				p, err := s.Write(text.text[at : at+1])
				if err != nil {
					t.Fatal(err)
				}
				h := at + 1 - int(p.Settled)
				held = append(held, h)
				sum += h
			}
			slices.Sort(held)
			mean, p99, most := float64(sum)/float64(len(held)), held[len(held)*99/100], held[len(held)-1]
			t.Logf("%-23s %-9s mean %.2f, p50 %d, p99 %d, max %d; %s",
				strings.Join(names, "+"), text.name, mean, held[len(held)/2], p99, most, histogram(held))
			if text.name == "prose" && (mean > 2.6 || p99 > 14 || most > 64) {
				t.Errorf("prose: mean %.2f, p99 %d, most %d bytes are held", mean, p99, most)
			}
			if most > match.DefaultHoldLimit+3 {
				t.Errorf("%s: up to %d bytes are held", text.name, most)
			}
		}
	}
}

var least = flag.Int("least", 2<<10, "how many bytes of each text TestHoldIsLeast looks at")

// TestHoldIsLeast compares what is settled with a slow machine that has no fronts,
// no tables and no registers; and shows what both hold after each byte.
//
//	go test ./guard/match -run TestHoldIsLeast -v -least 65536
func TestHoldIsLeast(t *testing.T) {
	for _, names := range [][]string{{"secrets"}, {"secrets", "credentials", "pii"}} {
		e := packs(t, names...)
		for _, text := range append(texts(t, *least), named{"logs", logs(rand.New(rand.NewPCG(4, 4)), *least)}) {
			want := match.SlowSettled(e, text.text)
			s := e.Open(t.Context(), guard.Channel{})
			var held, lowest []int
			for at := range text.text[:len(text.text)-1] {
				p, err := s.Write(text.text[at : at+1])
				if err != nil {
					t.Fatal(err)
				}
				if p.Settled != want[at+1] {
					t.Fatalf("%s: after %q %d are settled, want %d", text.name, text.text[max(0, at-40):at+1], p.Settled, want[at+1])
				}
				held, lowest = append(held, at+1-int(p.Settled)), append(lowest, at+1-int(want[at+1]))
			}
			for _, h := range []struct {
				who  string
				held []int
			}{{"engine", held}, {"least", lowest}} {
				slices.Sort(h.held)
				t.Logf("%-23s %-8s %-6s mean %.2f; %s", strings.Join(names, "+"), text.name, h.who, mean(h.held), histogram(h.held))
			}
		}
	}
}

func mean(all []int) float64 {
	sum := 0
	for _, n := range all {
		sum += n
	}
	return float64(sum) / float64(len(all))
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
		if text.name == "prose" && two > int64(3*half) {
			t.Errorf("prose: %d steps for %d bytes; rules at rest should cost nothing", two, 2*half)
		}
	}
}
