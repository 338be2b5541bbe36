package match_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
)

// literals is a guard of values, each called by its number.
// literalCases is how many texts TestLiterals makes up.
var literalCases = 800

func literals(t testing.TB, opt match.LiteralOptions, values ...string) *match.Literals {
	t.Helper()
	opt.Name = "test"
	l := match.NewLiterals(opt)
	for i, v := range values {
		if _, err := l.Add(fmt.Sprint("v", i), v); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

var values = []string{
	"s3cr3t-of-ann", "s3cr3t-of-bob/+x", "s3cr3t-o", "abcabcabcabd", "pässwörd-ü😀", "cr3t-of-annex", "a\"b\\c/d\ne%2Ff",
}

// overlapping are texts that have values which overlap.
var overlapping = []string{"s3cr3t-of-annex", "s3cr3t-of-annex"}

// encodings write a value.
var encodings = []func(rng *rand.Rand, v string) string{
	func(_ *rand.Rand, v string) string { return v },
	func(_ *rand.Rand, v string) string { return hex.EncodeToString([]byte(v)) },
	func(_ *rand.Rand, v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	func(rng *rand.Rand, v string) string {
		return base64.StdEncoding.EncodeToString([]byte("xyz"[:rng.IntN(4)] + v + "xyz"[:rng.IntN(4)]))
	},
	func(rng *rand.Rand, v string) string {
		return base64.RawURLEncoding.EncodeToString([]byte("???"[:rng.IntN(4)] + v + "???"[:rng.IntN(4)]))
	},
	func(rng *rand.Rand, v string) string {
		var b strings.Builder
		for i := range len(v) {
			if rng.IntN(3) == 0 {
				fmt.Fprintf(&b, []string{"%%%02x", "%%%02X"}[rng.IntN(2)], v[i])
			} else {
				b.WriteByte(v[i])
			}
		}
		return b.String()
	},
	func(rng *rand.Rand, v string) string {
		var b strings.Builder
		for _, r := range v {
			switch {
			case strings.ContainsRune("\"\\/\n", r) && rng.IntN(2) == 0:
				b.WriteString(map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\n': `\n`}[r])
			case r > 0xffff && rng.IntN(2) == 0:
				fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			case rng.IntN(3) == 0 && r <= 0xffff:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		return b.String()
	},
}

// encoded makes a text of values in all forms, whole and broken.
func encoded(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(5) {
		form := encodings[rng.IntN(len(encodings))](rng, slices.Concat(values, overlapping)[rng.IntN(len(values)+len(overlapping))])
		if rng.IntN(4) == 0 {
			form = encodings[5+rng.IntN(2)](rng, form)
		}
		switch rng.IntN(5) {
		case 0:
			form = form[:rng.IntN(len(form))]
		case 1:
			at := rng.IntN(len(form))
			form = form[:at] + []string{`\`, `\u`, `\ud83d`, `%`, `%2`, `\\`, "x", "abcabc", ""}[rng.IntN(9)] + form[at+rng.IntN(2):]
		}
		b.WriteString(form)
		b.WriteString([]string{"", "", " ", `\`, "%", "ab"}[rng.IntN(6)])
	}
	return b.String()
}

// TestLiterals compares what is said after every prefix of a text, byte by byte and
// at random cuts, with forms that are looked for everywhere in each reading of the
// whole text.
func TestLiterals(t *testing.T) {
	l := literals(t, match.LiteralOptions{}, values...)
	var forms []string
	for _, v := range values {
		forms = append(forms, formed(v)...)
	}
	rng := rand.New(rand.NewPCG(2, 7))
	found, overlaps, misses := 0, 0, 0
	for range literalCases {
		text := encoded(rng)
		want := occurs(text, forms)
		settled := make([]int, len(text)+1)
		for n := range settled {
			settled[n] = waits(text[:n], forms)
		}
		for k := range 3 {
			s := l.Open(t.Context(), guard.Channel{})
			var got []span
			take := func(p guard.Progress, err error) {
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range p.Findings {
					got = append(got, span{int(f.Start), int(f.End)})
				}
			}
			for at := 0; at < len(text); {
				n := min(len(text)-at, 1+k*rng.IntN(9))
				p, err := s.Write([]byte(text[at : at+n]))
				take(p, err)
				if at += n; p.Settled != int64(settled[at]) {
					t.Fatalf("%q: after %d bytes %d are settled, not %d", text, at, p.Settled, settled[at])
				}
			}
			if take(s.Close()); !slices.Equal(got, want) {
				t.Fatalf("%q: %v, not %v", text, got, want)
			}
		}
		found += min(1, len(want))
		misses += min(1, max(0, 1-len(want)))
		for i := range want {
			if i > 0 && want[i].from < want[i-1].to {
				overlaps++
				break
			}
		}
	}
	t.Logf("%d of %d texts have a value, %d some that overlap, %d none", found, literalCases, overlaps, misses)
	if found < literalCases/2 || overlaps < literalCases/50 || misses < literalCases/50 {
		t.Error("too few of a kind to say anything")
	}
}

// TestLiteralsKeepTheLaws at every cut, alone and in a chain.
func TestLiteralsKeepTheLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, evasions := range []match.Evasion{0, match.Evasions} {
		l := literals(t, match.LiteralOptions{Key: []byte("key"), Evasions: evasions}, values...)
		var texts []string
		for range 12 {
			texts = append(texts, encoded(rng))
		}
		guardtest.Test(t, guardtest.Config{Guard: l, Texts: texts, Bound: l.Bound()})
	}
}

// TestLiteralForms: each form is replaced, and nothing beside it.
func TestLiteralForms(t *testing.T) {
	const value = "s3cr3t-of-bob/+x"
	long := "-----BEGIN PRIVATE KEY-----\n"
	for i := range 40 {
		long += fmt.Sprintf("MIIEvQIBADAN%08x\n", i*2654435761)
	}
	long += "-----END PRIVATE KEY-----"
	l := literals(t, match.LiteralOptions{Evasions: match.Evasions}, value, long)
	enc := base64.StdEncoding.EncodeToString
	for text, want := range map[string]string{
		"it is " + value + ".":                                    "it is [redacted:v0].",
		"it is s3cr3t-of-\u200bbob/+x.":                           "it is [redacted:v0].",
		"Authorization: Basic " + enc([]byte(value)):              "Authorization: Basic [redacted:v0]",
		"Authorization: Basic " + enc([]byte("ann:"+value)):       "Authorization: Basic YW5uOn[redacted:v0]",
		hex.EncodeToString([]byte(value)) + "00":                  "[redacted:v0]00",
		"?key=s3cr3t%2Dof%2dbob%2F%2Bx&":                          "?key=[redacted:v0]&",
		`{"key": "\u00733cr3t-of-bob\/+x"}`:                       `{"key": "[redacted:v0]"}`,
		`"czNjcjN0LW9mLWJvYi8reA=\u003d"`:                         `"[redacted:v0]"`,
		"s3cr3t-of-bob/+":                                         "s3cr3t-of-bob/+",
		long:                                                      "[redacted:v1]",
		"cut off: " + long[:200]:                                  "cut off: [redacted:v1]" + long[128:200],
		`{"key": "` + strings.ReplaceAll(long, "\n", `\n`) + `"}`: `{"key": "[redacted:v1]"}`,
		"x" + enc([]byte("y"+long)):                               "xeS[redacted:v1]",
		hex.EncodeToString([]byte(long)) + "\n":                   "[redacted:v1]\n",
	} {
		f := guard.NewFilter(guard.NewChain(guard.Options{}, guard.Member{Guard: l}).Open(t.Context(), guard.Channel{}))
		var out []byte
		for i := range len(text) {
			out, _ = f.Write(out, []byte{text[i]})
		}
		if out, _ = f.Close(out); string(out) != want {
			t.Errorf("%q: %q leaves, not %q", text, out, want)
		}
	}
}

// TestLiteralsInOtherScripts are found, whose letters are read as others where text is
// read through tricks; and one that would not be there then is refused.
func TestLiteralsInOtherScripts(t *testing.T) {
	const value = "пароль-ουρανός-ｗｉｄｅ"
	l := literals(t, match.LiteralOptions{Evasions: match.Evasions}, value)
	for _, text := range []string{
		"it is " + value + ".", "it is пapoль-oυpavός-wide.", // as it is, and with Latin letters
		"it is " + base64.StdEncoding.EncodeToString([]byte(value)) + ".", "it is " + hex.EncodeToString([]byte(value)) + ".",
	} {
		if got := found(t, l.Open(t.Context(), guard.Channel{}), text); !slices.Equal(got, []string{"v0"}) {
			t.Errorf("%q: found %q", text, got)
		}
	}
	_, err := l.Add("hidden", "a\u200bb\u200bc\u200bd\u200be\u200bf")
	if !errors.Is(err, match.ErrLiteral) || !strings.Contains(err.Error(), "without what is read through") {
		t.Errorf("of six letters that show: %v", err)
	}
}

// TestLiteralsThatAreNone are refused, and what is said of them does not say them.
func TestLiteralsThatAreNone(t *testing.T) {
	l := literals(t, match.LiteralOptions{Least: 10})
	for value, want := range map[string]string{
		"":                            "it has 0 bytes, and may not have fewer than 10",
		"s3cr3t-of":                   "it has 9 bytes",
		"aaaaaaaabbbbccc":             "fewer than 4 different bytes",
		strings.Repeat("abcd", 20000): "may not have more than 65536",
	} {
		_, err := l.Add("name", value)
		if !errors.Is(err, match.ErrLiteral) || !strings.Contains(err.Error(), want) || value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("%.20q: %v", value, err)
		}
	}
	if _, err := l.Add("", "s3cr3t-of-ann"); !errors.Is(err, match.ErrLiteral) {
		t.Errorf("without a name: %v", err)
	}
	if l.Len() != 0 {
		t.Errorf("%d are registered", l.Len())
	}
}

// found are the rules of the findings in a text.
func found(t testing.TB, s guard.Screen, pieces ...string) (rules []string) {
	t.Helper()
	for _, p := range append(pieces, "") {
		said, err := s.Write([]byte(p))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range said.Findings {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

// TestLiteralsWhileTextFlows adds and removes values between the pieces of a text.
func TestLiteralsWhileTextFlows(t *testing.T) {
	l := literals(t, match.LiteralOptions{Key: []byte("key")})
	s := l.Open(t.Context(), guard.Channel{})
	add := func(rule, value string) *match.Literal {
		lit, err := l.Add(rule, value)
		if err != nil {
			t.Fatal(err)
		}
		return lit
	}
	expect := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", when, got, want)
		}
	}
	expect("before", found(t, s, "s3cr3t-of-ann", "s3cr3"))
	a := add("a", "s3cr3t-of-ann")
	expect("begun before", found(t, s, "t-of-ann "))
	expect("then", found(t, s, "s3cr3t-of-ann", "s3cr3"), "a")
	b := add("b", "s3cr3t-of-ann")
	c := add("c", "s3cr3t-of-anna")
	expect("the first of two", found(t, s, "t-of-ann."), "a")
	a.Remove()
	a.Remove()
	expect("the second of two", found(t, s, "s3cr3t-of-ann."), "b")
	expect("the longer", found(t, s, "s3cr3t-of-anna."), "c")
	b.Remove()
	expect("the longer alone", found(t, s, "s3cr3t-of-anna, s3cr3t-of-ann,"), "c")
	c.Remove()
	expect("after", found(t, s, "s3cr3t-of-anna"))
	if l.Len() != 0 {
		t.Errorf("%d are registered", l.Len())
	}
}

// TestManyLiterals registers thousands while streams are judged, on several
// goroutines, takes half back, and finds those that remain and no other.
func TestManyLiterals(t *testing.T) {
	const n = 4000
	l := literals(t, match.LiteralOptions{Key: []byte("key")}, "s3cr3t-of-ann")
	value := func(i int) string { return fmt.Sprintf("sk-%07d-%x", i*7919, i*104729) }
	stop := make(chan struct{})
	var streams, adding sync.WaitGroup
	for range 3 {
		streams.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s := l.Open(t.Context(), guard.Channel{})
					if got := found(t, s, "text with s3cr3t-", "of-ann in it. "+strings.Repeat("sk-0007919-", 40)); !slices.Equal(got, []string{"v0"}) {
						t.Errorf("found %q", got)
						return
					}
				}
			}
		})
	}
	lits := make([]*match.Literal, n)
	for k := range 4 {
		adding.Go(func() {
			for i := k; i < n; i += 4 {
				var err error
				if lits[i], err = l.Add(fmt.Sprint("n", i), value(i)); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					lits[i].Remove()
				}
			}
		})
	}
	adding.Wait()
	close(stop)
	streams.Wait()
	if l.Len() != 1+n/2 {
		t.Errorf("%d are registered", l.Len())
	}
	for i := range 200 {
		var want []string
		if i%2 == 1 {
			want = append(want, fmt.Sprint("n", i))
		}
		text := base64.StdEncoding.EncodeToString([]byte(" " + value(i)))
		if got := found(t, l.Open(t.Context(), guard.Channel{}), text[:9], text[9:], "......"); !slices.Equal(got, want) {
			t.Errorf("%d: found %q, not %q", i, got, want)
		}
	}
}

// TestLiteralDeltasDoNotAllocate once a stream is warm.
func TestLiteralDeltasDoNotAllocate(t *testing.T) {
	l := literals(t, match.LiteralOptions{Key: []byte("key"), Evasions: match.Evasions}, values...)
	text := []byte(strings.Repeat(`plain text, \u0073ome \/ escapes %41 and \u00733cr3t-of-ann, s3cr3t-x abcabcabcabcabd. `, 50))
	s := l.Open(t.Context(), guard.Channel{})
	feed(t, s, text, 4)
	at := 0
	if n := testing.AllocsPerRun(len(text)/4-1, func() {
		if _, err := s.Write(text[at : at+4]); err != nil {
			t.Fatal(err)
		}
		at = (at + 4) % (len(text) - 4)
	}); n > 0 {
		t.Errorf("%v allocations a delta", n)
	}
}

// BenchmarkLiterals is what a guard of some number of values costs.
func BenchmarkLiterals(b *testing.B) {
	const size = 1 << 20
	for _, n := range []int{0, 20, 1000, 5000} {
		l := literals(b, match.LiteralOptions{})
		rng := rand.New(rand.NewPCG(1, 1))
		began := cpu(b)
		for i := range n {
			if _, err := l.Add(fmt.Sprint(i), fmt.Sprintf("sk-%x%x", rng.Uint64(), rng.Uint64())); err != nil {
				b.Fatal(err)
			}
		}
		each := float64((cpu(b) - began).Nanoseconds()) / float64(max(n, 1))
		for _, text := range texts(b, size)[:3] {
			for _, piece := range []int{4096, 4} {
				b.Run(fmt.Sprintf("%d/%s/%dB", n, text.name, piece), func(b *testing.B) {
					b.ReportAllocs()
					began := cpu(b)
					for b.Loop() {
						feed(b, l.Open(b.Context(), guard.Channel{}), text.text, piece)
					}
					used := cpu(b) - began
					b.ReportMetric(float64(used.Nanoseconds())*float64(piece)/(float64(b.N)*size), "cpu-ns/piece")
					b.ReportMetric(float64(b.N)*size/used.Seconds()/1e6, "cpu-MB/s")
					b.ReportMetric(each, "cpu-ns/added")
				})
			}
		}
	}
}
