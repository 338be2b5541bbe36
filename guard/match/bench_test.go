package match_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// packs is an engine of the packs named, or of all.
func packs(t testing.TB, names ...string) *match.Engine {
	t.Helper()
	if len(names) == 0 {
		names = rules.Default()
	}
	rs, err := rules.Select(names...)
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, match.Options{Key: []byte("key of the tests")}, rs...)
}

// cpu is the time that this process has used: unlike a clock's, it is not that of
// others on the machine.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// feed writes a text to a screen in pieces of n bytes.
func feed(t testing.TB, s guard.Screen, text []byte, n int) {
	for at := 0; at < len(text); at += n {
		if _, err := s.Write(text[at:min(at+n, len(text))]); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkScreen measures all packs: in 4 KB pieces, and per 4-byte delta.
// The row "walk" is the floor: one dependent table lookup a byte, nothing else.
func BenchmarkScreen(b *testing.B) {
	const size = 1 << 20
	e := packs(b)
	for _, text := range texts(b, size) {
		for _, piece := range []int{4096, 4} {
			b.Run(fmt.Sprintf("%s/%dB", text.name, piece), func(b *testing.B) {
				feed(b, e.Open(b.Context(), guard.Channel{}), text.text, piece)
				b.ReportAllocs()
				began := cpu(b)
				for b.Loop() {
					s := e.Open(b.Context(), guard.Channel{})
					feed(b, s, text.text, piece)
				}
				used := cpu(b) - began
				b.ReportMetric(float64(used.Nanoseconds())/(float64(b.N)*float64(size/piece)), "cpu-ns/delta")
				b.ReportMetric(float64(b.N)*size/used.Seconds()/1e6, "cpu-MB/s")
			})
		}
	}
	prose := texts(b, size)[0].text
	b.Run("prose/walk", func(b *testing.B) {
		table := make([]uint16, 64*256)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range table {
			table[i] = uint16(rng.IntN(64)) << 8
		}
		state := uint16(0)
		began := cpu(b)
		for b.Loop() {
			for _, c := range prose {
				state = table[state|uint16(c)]
			}
		}
		b.ReportMetric(float64(b.N)*size/(cpu(b)-began).Seconds()/1e6, "cpu-MB/s")
		if state == 1 {
			b.Log(state)
		}
	})
}

// BenchmarkWorst measures texts made to be slow, with all packs, and is to be
// compared for two sizes: what is linear takes twice the time for twice the text.
func BenchmarkWorst(b *testing.B) {
	e := packs(b)
	for _, size := range []int{64 << 10, 128 << 10} {
		for _, text := range hostile(e, size) {
			b.Run(fmt.Sprintf("%s/%dKB", text.name, size>>10), func(b *testing.B) {
				began := cpu(b)
				for b.Loop() {
					s := e.Open(b.Context(), guard.Channel{})
					feed(b, s, text.text, 4096)
				}
				b.ReportMetric(float64(b.N)*float64(size)/(cpu(b)-began).Seconds()/1e6, "cpu-MB/s")
			})
		}
	}
}

// hostile are texts in which many searches go on and come to nothing.
func hostile(e *match.Engine, size int) []named {
	rng := rand.New(rand.NewPCG(6, 6))
	var words []string
	for _, r := range e.Certificate().Rules {
		words = append(words, r.Literals...)
	}
	mix := func(between ...string) []byte {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteString(between[rng.IntN(len(between))])
		}
		return []byte(b.String()[:size])
	}
	repeat := func(s string) []byte { return []byte(strings.Repeat(s, size/len(s)+1)[:size]) }
	return []named{
		{"keywords", mix("", " ", "=", "_", "-", ".", ": ", "'", "a1b2")},
		{"assigned", mix("=", ":", " = ", "='")},
		{"key=", repeat("key=")},
		{"api_key=", repeat("api_key=")},
		{"curl-u", repeat("curl -u a:b")},
		{"kind-data", repeat("kind: secret data: ")},
		{"data", repeat("data: a1b2c3d4e5: ")},
		{"bearer", repeat("Authorization: Bearer ")},
		{"jwt", repeat("eyJhbGciOiJIUzI1NiJ9.")},
		{"begin", repeat("-----BEGIN PRIVATE KEY-----")},
		{"addresses", repeat("1.2.3.4.")},
		{"numbers", repeat("4111 1111 ")},
		{"letters", repeat("a")},
	}
}

// BenchmarkCompile measures the start of an engine of all packs.
func BenchmarkCompile(b *testing.B) {
	rs, err := rules.Select(rules.Default()...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	began := cpu(b)
	for b.Loop() {
		compile(b, match.Options{}, rs...)
	}
	b.ReportMetric((cpu(b)-began).Seconds()*1e3/float64(b.N), "cpu-ms")
}

// BenchmarkRule measures each rule alone, on prose and on JSON.
func BenchmarkRule(b *testing.B) {
	const size = 1 << 20
	rs, err := rules.Select(rules.Default()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, text := range texts(b, size) {
		if text.name != "prose" && text.name != "json" {
			continue
		}
		for _, r := range rs {
			b.Run(text.name+"/"+r.ID, func(b *testing.B) {
				e := compile(b, match.Options{}, r)
				b.SetBytes(size)
				for b.Loop() {
					feed(b, e.Open(b.Context(), guard.Channel{}), text.text, 4096)
				}
			})
		}
	}
}

type named struct {
	name string
	text []byte
}

// texts are the kinds of text that the numbers are given for.
func texts(tb testing.TB, size int) []named {
	rng := rand.New(rand.NewPCG(7, 7))
	plain := prose(rng, size)
	secret := []string{"key " + "gh" + "p_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt ", "mail bob@acme.com now ", "card 4111-1111-1111-1111 "}
	var planted strings.Builder
	for at := 0; at < size; at += 2048 {
		planted.Write(plain[at:min(at+2048, size)])
		planted.WriteString(secret[rng.IntN(len(secret))])
	}
	return []named{
		{"prose", plain},
		{"go", goSource(tb, size)},
		{"json", jsonLogs(rng, size)},
		{"planted", []byte(planted.String()[:size])},
	}
}
