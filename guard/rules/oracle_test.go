package rules_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/guard/rules/gitleaks"
)

// oracle answers by the definition: package regexp, on the patterns as they are
// written, over the whole text.
type oracle struct {
	rules    []match.Rule
	patterns []*regexp.Regexp
}

func newOracle(rs []match.Rule) *oracle {
	o := &oracle{rules: rs}
	for _, r := range rs {
		o.patterns = append(o.patterns, regexp.MustCompile(r.Pattern))
	}
	return o
}

// hit is a finding without what its rule says of it.
type hit struct {
	start, end int64
	rule       string
}

// asks reports whether a rule asks for more than to be recorded.
func (o *oracle) asks(id string) bool {
	return slices.ContainsFunc(o.rules, func(r match.Rule) bool { return r.ID == id && r.Verdict > guard.Allow })
}

func (o *oracle) find(text string) []hit {
	type ordered struct {
		hit
		rule int
	}
	var all []ordered
	for i, re := range o.patterns {
		r := o.rules[i]
		group := max(0, re.SubexpIndex(r.Group))
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			span := []byte(text[m[2*group]:m[2*group+1]])
			if !slices.ContainsFunc(r.Validators, func(v match.Validator) bool { return !v.Accept(span) }) {
				all = append(all, ordered{hit{int64(m[2*group]), int64(m[2*group+1]), r.ID}, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rule, b.rule), cmp.Compare(a.end, b.end))
	})
	var out []hit
	for _, f := range all {
		out = append(out, f.hit)
	}
	return out
}

// released is the text with the spans of the findings that overlap, united,
// replaced.
func (o *oracle) released(text string) string {
	var b strings.Builder
	at, end := int64(0), int64(0)
	for _, h := range o.find(text) {
		if !o.asks(h.rule) {
			continue
		}
		if h.start >= end {
			b.WriteString(text[max(at, end):h.start])
			b.WriteString("[redacted:" + h.rule + "]")
			at = h.start
		}
		end = max(end, h.end)
	}
	b.WriteString(text[max(at, end):])
	return b.String()
}

// engine has a hold limit of so many bytes; regexp, with which it is compared,
// knows none.
func engine(t testing.TB, limit int, names ...string) *match.Engine {
	t.Helper()
	rs, err := rules.Select(names...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := match.Compile(rs, match.Options{Name: "all", Key: []byte("key of the tests"), HoldLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hits runs a screen over a text cut into pieces.
func hits(t testing.TB, g guard.Guard, text string, size func() int) []hit {
	t.Helper()
	var out []hit
	take := func(p guard.Progress, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Findings {
			out = append(out, hit{f.Start, f.End, f.Rule})
		}
	}
	s := g.Open(context.Background(), guard.Channel{})
	for at := 0; at < len(text); {
		n := min(size(), len(text)-at)
		take(s.Write([]byte(text[at : at+n])))
		at += n
	}
	take(s.Close())
	return out
}

// redact runs a chain over a text cut into pieces.
func redact(g guard.Guard, text string, size func() int) string {
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: g})
	f := guard.NewFilter(chain.Open(context.Background(), guard.Channel{}))
	var out []byte
	for at := 0; at < len(text); {
		n := min(size(), len(text)-at)
		out, _ = f.Write(out, []byte(text[at:at+n]))
		at += n
	}
	out, _ = f.Close(out)
	return string(out)
}

func fixed(n int) func() int { return func() int { return n } }

// mixer makes texts of the rules' own examples, whole, broken and run together,
// between prose and bytes that are no text.
type mixer struct {
	*rand.Rand
	examples []string
}

func newMixer(rs []match.Rule, seed uint64) *mixer {
	m := &mixer{Rand: rand.New(rand.NewPCG(seed, 1))}
	for _, r := range rs {
		m.examples = append(m.examples, r.Match...)
		m.examples = append(m.examples, r.NoMatch...)
	}
	return m
}

// filler is text that comes close to nothing.
var filler = []string{
	"The quick brown fox jumps over the lazy dog.", "and then, at last, ", "See section 4 of the guide.\n",
	"func main() { fmt.Println(\"hello\") }", "größer als 好的 und naïve", `{"level":"info","n":12}`,
}

func (m *mixer) text() string {
	var b strings.Builder
	for range 1 + m.IntN(6) {
		switch m.IntN(8) {
		case 0:
			b.WriteString(filler[m.IntN(len(filler))])
		case 1:
			b.WriteString([]string{"\xff", "é", "好", "\xe2\x82", "K", "ſ", "\n", `\n`, "\"", "@", "://", "=", "-", ".", "\u00a0"}[m.IntN(15)])
		default:
			b.WriteString(m.bend(m.examples[m.IntN(len(m.examples))]))
		}
		if m.IntN(2) == 0 {
			b.WriteByte(" \n,;"[m.IntN(4)])
		}
	}
	return b.String()
}

// bend leaves half of the examples as they are and does something to the
// others.
func (m *mixer) bend(s string) string {
	at := m.IntN(len(s))
	switch m.IntN(10) {
	case 0:
		return s[:at]
	case 1:
		return s[at:]
	case 2:
		return s[:at] + s[at+1:]
	case 3:
		return s[:at] + string(rune(m.IntN(0x500))) + s[at:]
	case 4:
		return s[:at] + s[max(0, at-m.IntN(40)):]
	}
	return s
}

// seedStep is which of the rules' examples the fuzzer starts from: each n-th's.
var seedStep = 1

var texts = flag.Int("texts", 250, "how many texts to compare with package regexp")

// TestAgainstRegexp compares each pack, and all of them, with package regexp, on
// texts made of the examples, in several cuts: the findings and their order,
// and what a chain lets out.
func TestAgainstRegexp(t *testing.T) {
	packs := append([][]string{rules.Names()}, []string{"secrets"}, []string{"credentials"}, []string{"pii"}, []string{"injection"})
	for _, names := range packs {
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			rs, err := rules.Select(names...)
			if err != nil {
				t.Fatal(err)
			}
			rs = withExamples(rs)
			e, o, m := engine(t, 1<<20, names...), newOracle(rs), newMixer(rs, uint64(len(rs)))
			var with, findings, size int
			for range *texts {
				text := m.text()
				want := o.find(text)
				size += len(text)
				findings += len(want)
				if len(want) > 0 {
					with++
				}
				for name, cut := range map[string]func() int{
					"bytewise": fixed(1), "whole": fixed(len(text)), "small": func() int { return 1 + m.IntN(5) }, "large": func() int { return 1 + m.IntN(60) },
				} {
					if got := hits(t, e, text, cut); !slices.Equal(got, want) {
						t.Fatalf("text %q\ncut %s\n got %v\nwant %v", text, name, got, want)
					}
					if got, want := redact(e, text, cut), o.released(text); got != want {
						t.Fatalf("text %q\ncut %s\nreleased %q\n    want %q", text, name, got, want)
					}
				}
			}
			t.Logf("%d texts, %d KB, in 4 cuts; %d%% have findings, %d in all", *texts, size>>10, 100*with / *texts, findings)
			if with*3 < *texts {
				t.Errorf("%d of %d texts have findings: too few to tell", with, *texts)
			}
		})
	}
}

// TestConformance runs the suite of guards over each rule's own examples: ours
// with all of their pack, those of gitleaks alone.
func TestConformance(t *testing.T) {
	for _, name := range rules.Names() {
		whole := engine(t, match.DefaultHoldLimit, name)
		rs, _ := rules.Pack(name)
		for _, r := range rs {
			t.Run(r.ID, func(t *testing.T) {
				e := whole
				if len(r.Match) == 0 {
					r.Match, r.NoMatch = gitleaks.Examples(r)
					e = engine(t, match.DefaultHoldLimit, r.ID)
				}
				guardtest.Test(t, guardtest.Config{Guard: e, Texts: append(r.Match, r.NoMatch...), Bound: match.DefaultHoldLimit + 3})
			})
		}
	}
}

// FuzzAgainstRegexp is TestAgainstRegexp on texts of the fuzzer's, which start
// from the examples.
func FuzzAgainstRegexp(f *testing.F) {
	rs := all(f)
	for i, r := range rs {
		if i%seedStep > 0 {
			continue
		}
		for _, text := range append(r.Match, r.NoMatch...) {
			f.Add(text, uint64(len(text)))
		}
	}
	e, o := engine(f, 1<<20, rules.Names()...), newOracle(rs)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		want := o.find(text)
		for _, cut := range []func() int{fixed(1), fixed(max(1, len(text))), func() int { return 1 + rng.IntN(9) }} {
			if got := hits(t, e, text, cut); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if got, want := redact(e, text, cut), o.released(text); got != want {
				t.Fatalf("released %q, want %q", got, want)
			}
		}
	})
}

func (h hit) String() string { return fmt.Sprintf("%s[%d,%d)", h.rule, h.start, h.end) }
