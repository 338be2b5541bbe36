package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
)

// limited is an engine with small limits and a rule whose matches can go on.
func limited(t *testing.T, p match.Policy, rules ...match.Rule) *match.Engine {
	t.Helper()
	rules = append(rules, match.Rule{ID: "key", Pattern: `key=(?P<v>[a-z]+);`, Group: "v", Verdict: guard.Redact})
	return compile(t, match.Options{HoldLimit: 16, SwallowLimit: 40, Policy: p, Key: []byte("k")}, rules...)
}

// through is what a chain lets out of a text in pieces of n bytes, and what is
// out after each.
func through(t *testing.T, g guard.Guard, text string, n int) (out string, after []string, stop *guard.Stop) {
	t.Helper()
	f := guard.NewFilter(guard.NewChain(guard.Options{}, guard.Member{Guard: g}).Open(t.Context(), guard.Channel{}))
	var b []byte
	for at := 0; at < len(text); at += n {
		b, _ = f.Write(b, []byte(text[at:min(at+n, len(text))]))
		after = append(after, string(b))
	}
	b, step := f.Close(b)
	return string(b), after, step.Stop
}

// TestMask tells what leaves of a match that is longer than the hold limit, by
// where it ends and by the policy.
func TestMask(t *testing.T) {
	long := strings.Repeat("x", 30)
	for _, c := range []struct {
		name   string
		policy match.Policy
		text   string
		want   string
	}{
		{"short of the limit", match.Release, "a key=abc; b", "a key=[redacted:key]; b"},
		{"its end is decided by the match", match.Release, "a key=" + long + "; b", "a key=[redacted:key] b"},
		{"its last way dies", match.Release, "a key=" + long + "! b", "a key=[redacted:key]! b"},
		{"the text ends", match.Release, "a key=" + long, "a key=[redacted:key]"},
		{"a short one comes to nothing", match.Release, "a key=abcdef", "a key=abcdef"},
		{"the search goes on behind it", match.Release, "key=" + long + ";key=ab;", "key=[redacted:key]key=[redacted:key];"},
		{"release at the swallow limit", match.Release, "key=" + strings.Repeat("x", 45) + ";key=ab;", "key=[redacted:key]xxxxx;key=[redacted:key];"},
		{"mask to the end", match.MaskOpen, "key=" + strings.Repeat("x", 45) + ";key=ab; b", "key=[redacted:key]"},
		{"deny", match.DenyText, "a key=" + strings.Repeat("x", 45) + "; b", "a key=[redacted:key]"},
		{"deny, not reached", match.DenyText, "a key=" + long + "; b", "a key=[redacted:key] b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := 1; n <= len(c.text); n++ {
				out, _, stop := through(t, limited(t, c.policy), c.text, n)
				if out != c.want {
					t.Fatalf("in pieces of %d: %q leaves, want %q", n, out, c.want)
				}
				if denied := c.name == "deny"; denied != (stop != nil) {
					t.Fatalf("in pieces of %d: the stop is %+v", n, stop)
				}
			}
		})
	}
}

// TestPlaceholderLeavesAtOnce shows that the placeholder leaves where the search
// is cut, and what follows it where the mask ends: after the same prefixes in
// pieces of any size.
func TestPlaceholderLeavesAtOnce(t *testing.T) {
	text := "key=" + strings.Repeat("x", 30) + "; and on"
	_, bytewise, _ := through(t, limited(t, match.Release), text, 1)
	for _, c := range []struct {
		read int
		want string
	}{
		{4 + 15, "key="},
		{4 + 16, "key=[redacted:key]"},
		{4 + 31, "key=[redacted:key]"},
		{4 + 32, "key=[redacted:key] "},
	} {
		if got := bytewise[c.read-1]; got != c.want {
			t.Errorf("after %d bytes %q is out, want %q", c.read, got, c.want)
		}
	}
	for n := 2; n <= len(text); n++ {
		_, after, _ := through(t, limited(t, match.Release), text, n)
		for i, out := range after {
			if want := bytewise[min((i+1)*n, len(text))-1]; out != want {
				t.Errorf("in pieces of %d, after %d bytes: %q is out, want %q", n, (i+1)*n, out, want)
			}
		}
	}
}

// TestReportsMask pins what is said of a mask, and when.
func TestReportsMask(t *testing.T) {
	s := limited(t, match.Release).Open(t.Context(), guard.Channel{})
	text := "key=" + strings.Repeat("x", 30) + ";!"
	var got []string
	for i := range text {
		p, err := s.Write([]byte(text[i : i+1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Findings {
			got = append(got, fmt.Sprintf("%d: %s [%d,%d) %s %s", i+1, f.Rule, f.Start, f.End, f.Verdict, f.Fingerprint))
		}
	}
	// The digits are of HMAC-SHA-256 of 30 x and a semicolon under "k", from
	// openssl.
	want := []string{"20: key [4,-1) redact ", "36: key [4,35) redact 8795b182b76db534"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMaskConformance runs the suite of guards over texts that are cut, under
// each policy, beside rules that hold across the cut and find inside the mask.
func TestMaskConformance(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	texts := []string{
		"key=" + x(15) + ";", "key=" + x(16) + ";", "key=" + x(39) + "; key=ab;", "key=" + x(41) + "; b", "key=" + x(20) + "é" + x(3) + ";",
		"key=" + x(20) + "xyz" + x(12) + ";xyz", "key=key=" + x(19) + "key=key=" + x(60), "xy key=" + x(17), "key=" + x(15) + "é;", "nothing",
		"key=" + x(30) + "; key=" + x(30) + "; key=a;",
	}
	beside := []match.Rule{
		{ID: "inside", Pattern: `xyz`, Verdict: guard.Redact},
		{ID: "across", Pattern: `xx[a-z]{1,9};`, Verdict: guard.Redact},
	}
	for _, p := range []match.Policy{match.Release, match.MaskOpen} {
		t.Run(p.String(), func(t *testing.T) {
			guardtest.Test(t, guardtest.Config{Guard: limited(t, p, beside...), Texts: texts, Bound: 16 + 3})
		})
	}
}

func TestLimitsRefused(t *testing.T) {
	for _, c := range []struct {
		opt  match.Options
		want string
	}{
		{match.Options{HoldLimit: 15}, `compile guard "": hold limit is 15 bytes: the least is 16`},
		{match.Options{HoldLimit: -1}, `compile guard "": hold limit is -1 bytes: the least is 16`},
		{match.Options{SwallowLimit: 511}, `compile guard "": swallow limit is 511 bytes, less than the hold limit of 512`},
	} {
		_, err := match.Compile([]match.Rule{{ID: "r", Pattern: "a"}}, c.opt)
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	for _, p := range []match.Policy{match.Inherit, match.Release, match.MaskOpen, match.DenyText} {
		if got, err := match.ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%s is read as %s, %v", p, got, err)
		}
	}
	if _, err := match.ParsePolicy("hope"); err == nil || !strings.Contains(err.Error(), `unknown policy "hope": want one of`) {
		t.Errorf("got %v", err)
	}
}

// TestFindsBehindLongTail has a match whose tail comes to nothing long after it,
// in another piece, and a second match in that tail.
func TestFindsBehindLongTail(t *testing.T) {
	e := compile(t, match.Options{}, match.Rule{ID: "r", Pattern: `key[ab](?:[a-z ]*!)?`})
	text := "keya " + strings.Repeat("x", 60) + " keyb " + strings.Repeat("y", 60) + "."
	for _, n := range []int{1, 7, 100, len(text)} {
		s := e.Open(t.Context(), guard.Channel{})
		var got []int64
		for at := 0; at < len(text); at += n {
			p, err := s.Write([]byte(text[at:min(at+n, len(text))]))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Findings {
				got = append(got, f.Start)
			}
		}
		if fmt.Sprint(got) != "[0 66]" {
			t.Errorf("in pieces of %d: found at %v", n, got)
		}
	}
}
