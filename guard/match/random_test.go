package match

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// patternMaker writes random patterns over a small alphabet, heavy in what has
// gone wrong in such engines before: assertions, lazy runs in front, empty loops,
// folds that leave ASCII, bytes that are no UTF-8.
type patternMaker struct {
	*rand.Rand
}

var atoms = []string{
	"a", "b", "k", "ab", "kk", "é", " ", ".", "[^a]", "[ab]", `\w`, `\W`, `(?s:.)`, "(?i:k)", "(?i:S)", `\n`, "ÿ", `\x{FFFD}`, "[é-ÿ]",
}

var assertions = []string{`\b`, `\B`, "^", "$", "(?m:^)", "(?m:$)", `\A`, `\z`}

var repeats = []string{"?", "*", "+", "??", "*?", "+?", "{2}", "{0,3}", "{0,3}?", "{1,2}", "{2,}", "{2,}?"}

func (p *patternMaker) expr(depth int) string {
	switch n := p.IntN(10); {
	case depth == 0 || n < 3:
		return atoms[p.IntN(len(atoms))]
	case n == 3:
		return assertions[p.IntN(len(assertions))]
	case n < 6:
		return "(?:" + p.expr(depth-1) + "|" + p.expr(depth-1) + ")"
	case n < 8:
		return "(?:" + p.expr(depth-1) + ")" + repeats[p.IntN(len(repeats))]
	default:
		return p.expr(depth-1) + p.expr(depth-1)
	}
}

// rule writes a pattern, half of the time with a group in it.
func (p *patternMaker) rule(id int) Rule {
	r := Rule{ID: fmt.Sprint(id), Pattern: p.expr(3)}
	if p.IntN(2) == 0 {
		r.Group = "g"
		r.Pattern = p.expr(2) + "(?P<g>" + p.expr(2) + ")" + p.expr(2)
		if p.IntN(3) == 0 {
			r.Pattern = "[ab]{0,3}?" + r.Pattern
		}
		if p.IntN(3) == 0 {
			r.Pattern = "[abé ]{1,9}" + []string{"k", "1", "-", "s"}[p.IntN(4)] + r.Pattern
		}
		if p.IntN(3) == 0 {
			r.Pattern = "(?:" + r.Pattern + ")" + p.expr(1)
		}
	}
	if p.IntN(5) == 0 { // a tail that mostly comes to nothing, long behind the match
		r.Pattern += "(?:[^" + []string{"1", `\n`, "k", "-"}[p.IntN(4)] + "]*" + []string{"1", "1", "k", "$"}[p.IntN(4)] + ")?"
	}
	if p.IntN(4) == 0 {
		r.Validators = []Validator{{Name: "even", Accept: func(b []byte) bool { return len(b)%2 == 0 }}}
	}
	return r
}

var pieces = []string{"a", "a", "b", "k", "ab", "kk", "é", " ", "\n", "K", "ſ", "s", "S", "K", "ÿ", "\xff", "\xc3", "\xe2\x82", "\ufffd", "1", "-"}

func (p *patternMaker) text() []byte {
	n := p.IntN(40)
	if p.IntN(5) == 0 {
		n *= 20 // long enough to be cut
	}
	of := pieces
	if p.IntN(3) == 0 {
		of = pieces[:1+p.IntN(len(pieces))] // some never, or seldom
	}
	var b strings.Builder
	for range n {
		b.WriteString(of[p.IntN(len(of))])
	}
	return []byte(b.String())
}

func (p *patternMaker) cuts() map[string]func() int {
	return map[string]func() int{
		"whole":  func() int { return 1 << 20 },
		"small":  func() int { return p.IntN(6) },
		"larger": func() int { return 1 + p.IntN(30) },
		"large":  func() int { return 1 + p.IntN(300) },
	}
}

var seed = flag.Uint64("seed", 1, "what the random patterns and texts start from")

var sets = flag.Int("sets", 400, "how many sets of random patterns to try")

// TestRandomPatterns compares sets of random patterns with package regexp, in
// many cuts; with the budget for states as it is, and so small that states are
// forgotten all the time.
func TestRandomPatterns(t *testing.T) {
	for _, budget := range []int{stateBudget, 2000} {
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			p := &patternMaker{Rand: rand.New(rand.NewPCG(*seed, uint64(budget)))}
			var texts, withFindings, findings, refused int
			for range *sets {
				var rules []Rule
				for id := range 1 + p.IntN(3) {
					r := p.rule(id)
					if _, err := compile(r); err != nil {
						refused++
						continue
					}
					rules = append(rules, r)
				}
				if len(rules) == 0 {
					continue
				}
				e, err := Compile(rules, Options{Name: "random", HoldLimit: 1 << 30})
				if err != nil {
					t.Fatal(err)
				}
				SetBudget(e, budget)
				o := newOracle(t, rules)
				for range 5 {
					n := compare(t, e, o, p.text(), p.cuts())
					texts++
					findings += n
					if n > 0 {
						withFindings++
					}
				}
			}
			t.Logf("%d rule sets, %d patterns refused; %d texts in 5 cuts, %d%% with findings, %d findings",
				*sets, refused, texts, 100*withFindings/texts, findings)
			if withFindings*4 < texts {
				t.Errorf("only %d of %d texts have findings: they prove too little", withFindings, texts)
			}
		})
	}
}
