package match_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

var cases = flag.Int("cases", 6_000, "how many cases TestProof tries: a case is a text in one cut")

// A proof compares what leaves a chain of all packs and of values with what the
// oracle says.
type proof struct {
	*whole
	*ingredients
	chain *guard.Chain
	words [][]string // of each rule: one of these is in each of its matches
}

func newProof(t testing.TB) *proof {
	t.Helper()
	sharedProof.Do(func() { madeProof = makeProof(t) })
	if madeProof == nil {
		t.Fatal("it could not be made")
	}
	return madeProof
}

// The tests share one: it takes a while to compile.
var (
	sharedProof sync.Once
	madeProof   *proof
)

func makeProof(t testing.TB) *proof {
	t.Helper()
	rs, err := rules.Select(rules.Names()...)
	if err != nil {
		t.Fatal(err)
	}
	// What this one names is not read through, and the oracle reads through all.
	rs = slices.DeleteFunc(rs, func(r match.Rule) bool { return r.ID == "injection-invisible" })
	engine, err := match.Compile(rs, match.Options{Name: "rules", Verdict: guard.Redact, Evasions: match.Evasions})
	if err != nil {
		t.Fatal(err)
	}
	p := &proof{whole: &whole{rules: rs}, ingredients: newIngredients(t, rs)}
	for i, r := range rs {
		p.patterns = append(p.patterns, regexp.MustCompile(r.Pattern))
		p.words = append(p.words, engine.Certificate().Rules[i].Literals)
	}
	literals := match.NewLiterals(match.LiteralOptions{Name: "values", Evasions: match.Evasions})
	for i, v := range p.values {
		if _, err := literals.Add(fmt.Sprint("value-", i), v); err != nil {
			t.Fatal(err)
		}
		p.forms = append(p.forms, formed(v))
	}
	p.chain = guard.NewChain(guard.Options{}, guard.Member{Guard: engine}, guard.Member{Guard: literals})
	return p
}

// every asks each rule.
func every(int, string) bool { return true }

// likely asks the rules of which a word is in the text: the others are slow to ask.
func (p *proof) likely(rule int, text string) bool {
	text = strings.ReplaceAll(strings.ToLower(text), "ſ", "s")
	return len(p.words[rule]) == 0 || slices.ContainsFunc(p.words[rule], func(w string) bool { return strings.Contains(text, w) })
}

// expected is what leaves of a text, and the findings in their order.
func (p *proof) expected(text string, ask func(int, string) bool) (released string, said []string, found []place) {
	found = p.find(text, ask)
	at := 0
	for _, f := range found {
		name := fmt.Sprint("value-", f.number-len(p.rules))
		if f.number < len(p.rules) {
			name = p.rules[f.number].ID
		}
		said = append(said, fmt.Sprintf("%s [%d,%d)", name, f.start, f.end))
		if f.start >= at {
			released += text[at:f.start] + "[redacted:" + name + "]"
		}
		at = max(at, f.end)
	}
	return released + text[at:], said, found
}

// try filters a text in pieces. It gives what leaves and the findings.
func (p *proof) try(text string, size func() int) (released string, said []string) {
	f := guard.NewFilter(p.chain.Open(context.Background(), guard.Channel{}))
	var out []byte
	note := func(step guard.Step) {
		for _, d := range step.Decisions {
			said = append(said, fmt.Sprintf("%s [%d,%d)", d.Rule, d.Start, d.End))
		}
	}
	for at := 0; at < len(text); {
		n := min(size(), len(text)-at)
		piece := []byte(text[at : at+n])
		var step guard.Step
		out, step = f.Write(out, piece)
		note(step)
		clear(piece) // nobody may have kept it
		at += n
	}
	out, step := f.Close(out)
	note(step)
	return string(out), said
}

// check compares one text, cut by so many ways.
func (p *proof) check(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, ask func(int, string) bool, c chooser, cuts int) []place {
	t.Helper()
	want, said, found := p.expected(text, ask)
	for k := range cuts {
		size := func() int { return 1 }
		switch {
		case k == 1:
			size = func() int { return len(text) }
		case k > 1:
			most := []int{3, 9, 60, 300}[k%4]
			size = func() int { return 1 + c.IntN(most) }
		}
		got, order := p.try(text, size)
		if got != want {
			t.Fatalf("text %q, cut %d: %q leaves, want %q", text, k, got, want)
		}
		if !slices.Equal(order, said) {
			t.Fatalf("text %q, cut %d: found %q, want %q", text, k, order, said)
		}
	}
	return found
}

// TestProof tries texts made of all that the product looks for, and of what nearly
// is that, byte by byte, whole and in random cuts, against the oracle; and says what
// the texts were like.
//
//	go test ./guard/match -run TestProof -v -cases 1000000 -seed 2 -timeout 2h
func TestProof(t *testing.T) {
	const cuts = 10
	p := newProof(t)
	rng := rand.New(rand.NewPCG(2026, match.Seed()))
	texts, bytes, found, with, near, overlapping, values, disguised := 0, 0, 0, 0, 0, 0, 0, 0
	for ; texts*cuts < *cases; texts++ {
		pt := p.make(rng)
		ask := p.likely
		if texts%100 == 0 {
			ask = every
		}
		all := p.check(t, pt.text, ask, rng, cuts)
		bytes += len(pt.text)
		found += len(all)
		with += one(len(all) > 0)
		near += one(slices.ContainsFunc(pt.near, func(s span) bool {
			return !slices.ContainsFunc(all, func(f place) bool { return f.start < s.to && s.from < f.end })
		}))
		end, overlaps := 0, false
		for _, f := range all {
			overlaps = overlaps || f.start < end
			end = max(end, f.end)
		}
		overlapping += one(overlaps)
		values += one(slices.ContainsFunc(all, func(f place) bool { return f.number >= len(p.rules) }))
		disguised += one(inDisguise.MatchString(pt.text))
	}
	percent := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(texts)) }
	t.Logf("%d cases: %d texts, %d bytes each, %d ways to cut each; %d findings", texts*cuts, texts, bytes/texts, cuts, found)
	t.Logf("texts with a finding %s, with a near miss %s, with findings that overlap %s, with a value %s, with a disguise %s",
		percent(with), percent(near), percent(overlapping), percent(values), percent(disguised))
	if with*10 < texts*6 || near*10 < texts*2 || overlapping*10 < texts {
		t.Error("the texts prove too little")
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drawn lets rapid choose.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// TestProofRapid is the same with texts that rapid makes, and makes smaller where
// one fails.
func TestProofRapid(t *testing.T) {
	p := newProof(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawn{t}
		p.check(t, p.make(c).text, p.likely, c, 4)
	})
}

// FuzzProof is the same with texts that a fuzzer's bytes choose, or, if the first is
// odd, are.
func FuzzProof(f *testing.F) {
	p := newProof(f)
	for i := range 20 {
		seed := make([]byte, 64)
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		for k := range seed {
			seed[k] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	tooHidden := regexp.MustCompile(fmt.Sprintf("(?:%s){8,}", inDisguise))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := byBytes{bytes.NewReader(in)}
		text := string(in)
		if len(in) == 0 || in[0]%2 == 0 {
			text = p.make(c).text
		}
		if len(text) > maxProofText || tooHidden.MatchString(text) {
			return // the oracle knows neither limit
		}
		p.check(t, text, p.likely, c, 4)
	})
}
