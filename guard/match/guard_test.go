package match_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
)

func compile(t testing.TB, opt match.Options, rules ...match.Rule) *match.Engine {
	t.Helper()
	if opt.Name == "" {
		opt.Name = "test"
	}
	e, err := match.Compile(rules, opt)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestConformance runs the suite of guards over patterns that are awkward to
// stream.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		bound int
		rules []match.Rule
		texts []string
	}{
		{"end of text", 5 + 4, []match.Rule{
			{ID: "end", Pattern: `ab(?:c|$)`}, {ID: "line", Pattern: `(?m)^x+$`},
		}, []string{"ab", "abab", "abc abd ab", "x\nxx\nxy", "xx"}},
		{"word boundaries", 8, []match.Rule{
			{ID: "word", Pattern: `\bkey\b`}, {ID: "inner", Pattern: `\Bk\B`},
		}, []string{"key keys key", "monkey key", "éké key"}},
		{"group in context", 8, []match.Rule{
			{ID: "value", Pattern: `key=(?P<v>\d{1,4});?`, Group: "v"},
		}, []string{"key=12;key=3 key=45678", "key=", "keykey=1"}},
		{"greedy and lazy", 0, []match.Rule{
			{ID: "lazy", Pattern: `<.+?>`}, {ID: "greedy", Pattern: `a+b?`},
		}, []string{"<<a>> aaab", "<a\n> aab <b>", "<aaa"}},
		{"bytes that are no UTF-8", 12, []match.Rule{
			{ID: "bad", Pattern: `\x{FFFD}{2}`}, {ID: "e", Pattern: `é+k?`},
		}, []string{"\xff\xfe\xfd é", "é\xc3ék\xe2\x82", "\xf0\x9f\x98\x80\xf0\x9f\x98", "\ufffd\ufffd"}},
		{"overlapping rules", 12, []match.Rule{
			{ID: "one", Pattern: `abc`}, {ID: "two", Pattern: `bcd`}, {ID: "all", Pattern: `[a-e]{1,6}`},
		}, []string{"abcd xabcde abcabcd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			guardtest.Test(t, guardtest.Config{Guard: compile(t, match.Options{}, c.rules...), Texts: c.texts, Bound: c.bound})
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, c := range []struct {
		rules []match.Rule
		want  string
	}{
		{nil, `compile guard "g": it has no rules`},
		{[]match.Rule{{Pattern: "a"}}, `compile rule "": it has no id`},
		{[]match.Rule{{ID: "r", Pattern: "a("}}, "compile rule \"r\": parse pattern: error parsing regexp: missing closing ): `a(`"},
		{[]match.Rule{{ID: "r", Pattern: "a*"}}, `compile rule "r": pattern matches the empty string`},
		{[]match.Rule{{ID: "r", Pattern: `\b$|a`}}, `compile rule "r": pattern matches the empty string`},
		{[]match.Rule{{ID: "r", Pattern: "a", Group: "g"}}, `compile rule "r": pattern has no group "g"`},
		{[]match.Rule{{ID: "r", Pattern: "a(?P<g>b*)", Group: "g"}}, `compile rule "r": group "g" can be empty`},
		{[]match.Rule{{ID: "r", Pattern: "a(?P<g>b)?", Group: "g"}}, `compile rule "r": a match can pass by group "g"`},
		{[]match.Rule{{ID: "r", Pattern: "a|(?P<g>b)", Group: "g"}}, `compile rule "r": a match can pass by group "g"`},
		{[]match.Rule{{ID: "r", Pattern: "(?:a(?P<g>b))+", Group: "g"}}, `compile rule "r": a match can pass more than once through group "g"`},
		{[]match.Rule{{ID: "r", Pattern: strings.Repeat("(?:abc){1,1000}", 4)}}, `compile rule "r": pattern is too large: 16000 instructions, at most 10000`},
		{[]match.Rule{{ID: "r", Pattern: "a"}, {ID: "r", Pattern: "b"}}, `compile guard "g": two rules are named "r"`},
	} {
		_, err := match.Compile(c.rules, match.Options{Name: "g"})
		if err == nil || err.Error() != c.want {
			t.Errorf("%.60v: got %v, want %s", c.rules, err, c.want)
		}
	}
	compile(t, match.Options{}, match.Rule{ID: "r", Pattern: long})
}

// all writes a text at once and returns what is found.
func all(t testing.TB, g guard.Guard, text string) []guard.Finding {
	t.Helper()
	s := g.Open(context.Background(), guard.Channel{})
	var out []guard.Finding
	p, err := s.Write([]byte(text))
	out = append(out, p.Findings...)
	if err == nil {
		p, err = s.Close()
		out = append(out, p.Findings...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOptions(t *testing.T) {
	r := match.Rule{ID: "r", Pattern: `k\d`, Severity: guard.High, Verdict: guard.Redact}
	text := "k1 k1 k2"

	plain := all(t, compile(t, match.Options{Name: "n"}, r), text)
	want := guard.Finding{Guard: "n", Rule: "r", Start: 0, End: 2, Severity: guard.High, Verdict: guard.Redact}
	if len(plain) != 3 || plain[0] != want {
		t.Errorf("got %+v, want first %+v", plain, want)
	}

	keyed := all(t, compile(t, match.Options{Name: "n", Key: []byte("key")}, r), text)
	other := all(t, compile(t, match.Options{Name: "n", Key: []byte("another")}, r), text)
	// The first 16 digits of HMAC-SHA-256("k1") under "key", from openssl.
	if got, want := keyed[0].Fingerprint, "656728bf424da789"; got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
	if keyed[0].Fingerprint != keyed[1].Fingerprint || keyed[0].Fingerprint == keyed[2].Fingerprint {
		t.Errorf("fingerprints %+v", keyed)
	}
	if keyed[0].Fingerprint == other[0].Fingerprint {
		t.Error("two keys give one fingerprint")
	}

	denies := compile(t, match.Options{Name: "n", Verdict: guard.Deny}, r)
	if got := all(t, denies, text)[0].Verdict; got != guard.Deny {
		t.Errorf("verdict is %s", got)
	}
	if got := denies.Strictest(); got != guard.Deny {
		t.Errorf("strictest is %s", got)
	}
	mixed := compile(t, match.Options{}, r, match.Rule{ID: "q", Pattern: "q", Verdict: guard.RequireApproval})
	if got := mixed.Strictest(); got != guard.RequireApproval {
		t.Errorf("strictest is %s", got)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		pattern, group string
		bytes          int // without the rune that may have to be seen
	}{
		{"abc", "", 3},
		{"(?i)abk", "", 12},
		{"é{2,3}", "", 6},
		{"[a-é]", "", 2},
		{".", "", 4},
		{"a{2,5}b?", "", 6},
		{"(?:ab|c)d", "", 3},
		{"x*(?P<g>ab)(?:c|dd)", "g", 4},
		{"a(?:x*(?P<g>ab)y|(?P<h>k))", "", -1},
		{"a+", "", -1},
		{"(?P<g>a)b*", "g", -1},
	} {
		e := compile(t, match.Options{}, match.Rule{ID: "r", Pattern: c.pattern, Group: c.group})
		bytes, unbounded := e.Bound()
		if c.bytes < 0 {
			if len(unbounded) != 1 || unbounded[0] != "r" {
				t.Errorf("%s: bound is %d, %v", c.pattern, bytes, unbounded)
			}
		} else if len(unbounded) > 0 || bytes != c.bytes+4 {
			t.Errorf("%s: bound is %d, %v, want %d", c.pattern, bytes, unbounded, c.bytes+4)
		}
	}
}

// TestManyRules has many rules that begin alike.
func TestManyRules(t *testing.T) {
	var rules []match.Rule
	for i := range 150 {
		rules = append(rules, match.Rule{ID: fmt.Sprint(i), Pattern: fmt.Sprintf(`\bk%d\b`, i)})
	}
	e := compile(t, match.Options{}, rules...)
	got := all(t, e, "k149 k63 k64 k0 k150 k1")
	var ids []string
	for _, f := range got {
		ids = append(ids, f.Rule)
	}
	if s := strings.Join(ids, " "); s != "149 63 64 0 1" {
		t.Errorf("got rules %s", s)
	}
	guardtest.Run(t, e, "k149 k63 k64 k0 k150 k1")
}

// TestHoldsFromGroup shows that what stands before a group is let go.
func TestHoldsFromGroup(t *testing.T) {
	e := compile(t, match.Options{}, match.Rule{ID: "r", Pattern: `secret \w* is (?P<s>\d+)!`, Group: "s"})
	s := e.Open(t.Context(), guard.Channel{})
	for _, c := range []struct {
		piece   string
		settled int64
	}{
		{"secret number is ", 17}, {"12", 17}, {"34", 17}, {"?", 22}, {" secret x is 7", 35},
	} {
		p, err := s.Write([]byte(c.piece))
		if err != nil || p.Settled != c.settled || len(p.Findings) > 0 {
			t.Errorf("after %q: %+v, %v, want %d settled", c.piece, p, err, c.settled)
		}
	}
	p, err := s.Write([]byte("!"))
	if err != nil || p.Settled != 37 || len(p.Findings) != 1 || p.Findings[0].Start != 35 || p.Findings[0].End != 36 {
		t.Errorf("at the end of the match: %+v, %v", p, err)
	}
}

// TestHoldsNothingInVain shows that a way through a pattern that no rune leads
// on does not hold what it has read.
func TestHoldsNothingInVain(t *testing.T) {
	e := compile(t, match.Options{}, match.Rule{ID: "r", Pattern: `k\bk|ab`})
	s := e.Open(t.Context(), guard.Channel{})
	for _, c := range []struct {
		piece   string
		settled int64
	}{
		{"k", 1}, {"k", 2}, {"a", 2}, {"x", 4},
	} {
		p, err := s.Write([]byte(c.piece))
		if err != nil || p.Settled != c.settled {
			t.Errorf("after %q: %+v, %v, want %d settled", c.piece, p, err, c.settled)
		}
	}
}

// TestConcurrentScreens walks one automaton from many goroutines, from cold,
// and with a budget so small that states are forgotten under way.
func TestConcurrentScreens(t *testing.T) {
	rules := []match.Rule{
		{ID: "mail", Pattern: `[a-z.]{1,20}@[a-z]{1,9}\.(?:com|org)`},
		{ID: "value", Pattern: `key=(?P<v>[a-z0-9]{3,12})\b`, Group: "v"},
	}
	text := strings.Repeat("a.b@cd.com key=x1y2z3 some.one@else.org, key=ab; ", 40)
	for _, budget := range []int{0, 6_000} {
		e := compile(t, match.Options{Key: []byte("k")}, rules...)
		if budget > 0 {
			match.SetBudget(e, budget)
		}
		want := fmt.Sprint(all(t, compile(t, match.Options{Key: []byte("k")}, rules...), text))
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				s := e.Open(context.Background(), guard.Channel{})
				var got []guard.Finding
				for at := 0; at < len(text); at += n + 1 {
					p, err := s.Write([]byte(text[at:min(at+n+1, len(text))]))
					if err != nil {
						t.Error(err)
					}
					got = append(got, p.Findings...)
				}
				p, _ := s.Close()
				if got = append(got, p.Findings...); fmt.Sprint(got) != want {
					t.Errorf("pieces of %d, budget %d: got %v", n+1, budget, got)
				}
			})
		}
		wg.Wait()
		if forgot := match.Generation(e) > 0; forgot != (budget > 0) {
			t.Errorf("budget %d: generation %d", budget, match.Generation(e))
		}
	}
}
