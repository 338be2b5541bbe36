package match

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

var limitSets = flag.Int("limitsets", 300, "how many sets of random patterns to try with small limits")

// runes has a rune of each kind and class that random patterns tell apart.
var runes = []rune("abksSK1-x \n\u212a\u017féÿïÞ好\ufffd")

// TestLimitsAgainstSlow compares engines of random patterns and small limits
// with a slow machine: what is reported, in which order, and what is settled
// after each byte.
func TestLimitsAgainstSlow(t *testing.T) {
	p := &patternMaker{Rand: rand.New(rand.NewPCG(*seed, 21))}
	var texts, masks, ended, findings int
	for range *limitSets {
		var rules []Rule
		for id := range 1 + p.IntN(3) {
			r := p.longRule(id)
			r.Policy = Policy(p.IntN(4))
			if _, err := compile(r); err == nil {
				rules = append(rules, r)
			}
		}
		if len(rules) == 0 {
			continue
		}
		hold := LeastHoldLimit + p.IntN(20)
		e, err := Compile(rules, Options{Name: "limits", HoldLimit: hold, SwallowLimit: hold + p.IntN(60), Policy: Policy(p.IntN(4))})
		if err != nil {
			t.Fatal(err)
		}
		if p.IntN(3) == 0 {
			SetBudget(e, 2000)
		}
		s := &slow{Engine: e, alphabet: runes}
		for range 3 {
			text := p.text()
			text = text[:min(len(text), 400)]
			want, settled := s.events(text)
			for i := range want {
				want[i].at = 0
			}
			cuts := p.cuts()
			cuts["bytewise"] = func() int { return 1 }
			for _, name := range slices.Sorted(maps.Keys(cuts)) {
				size := cuts[name]
				got, points := run(t, e, text, size)
				if !slices.Equal(got, want) {
					t.Fatalf("limits %+v, policies %v, rules %s\ntext %q\ncut %s\n got %v\nwant %v", e.limits, policies(e), patterns(rules), text, name, got, want)
				}
				for at, point := range points {
					if at < len(text) && point.settled != settled[at] {
						t.Fatalf("limits %+v, rules %s\ntext %q\ncut %s: after %d bytes %d are settled, want %d", e.limits, patterns(rules), text, name, at, point.settled, settled[at])
					}
				}
			}
			texts++
			findings += len(want)
			for _, f := range want {
				if f.end == guard.Open {
					masks++
				} else if f.end-f.start >= int64(hold) && f.end < int64(len(text)) {
					ended++
				}
			}
		}
	}
	t.Logf("%d texts in 5 cuts, %d reports, %d masks, of which %d end before the text does", texts, findings, masks, ended)
	if masks*5 < texts || ended*20 < texts {
		t.Errorf("%d masks, %d of which end, in %d texts: they prove too little", masks, ended, texts)
	}
}

// longRule writes a pattern, mostly one whose matches, or searches that come to
// nothing, can go on.
func (p *patternMaker) longRule(id int) Rule {
	r := p.rule(id)
	if n := p.IntN(8); n > 0 {
		run := []string{"[ab]", `\w`, "[^k]", `[^\n]`, "(?s:.)", "[^1]", `(?:\w| )`}[p.IntN(7)]
		many := []string{"+", "*", "+?", "{20,}", "{3,30}"}[p.IntN(5)]
		tail := []string{"", "k", `\b`, "(?:1|-)", "$", "ab"}[p.IntN(6)]
		r.Pattern = r.Pattern + "(?:" + run + ")" + many + tail
		if n > 4 {
			r.Group, r.Pattern = "g", "(?P<g>"+p.expr(1)+"(?:"+run+")"+many+")"+tail
		}
	}
	return r
}

func policies(e *Engine) (out []Policy) {
	for _, r := range e.rules {
		out = append(out, r.policy)
	}
	return out
}
