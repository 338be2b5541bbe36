package glob

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMatch holds it to the regular expression that a pattern means.
func TestMatch(t *testing.T) {
	letters := rapid.StringOf(rapid.RuneFrom([]rune("ab*.é")))
	rapid.Check(t, func(t *rapid.T) {
		pattern, s := letters.Draw(t, "pattern"), letters.Draw(t, "s")
		meant := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		if got, want := Match(pattern, s), meant.MatchString(s); got != want {
			t.Fatalf("%q and %q: %v, want %v", pattern, s, got, want)
		}
	})
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{{"gpt-*", "gpt-5", true}, {"gpt-*", "o3", false}, {"*", "", true}, {"a*a", "a", false}, {"", "", true}} {
		if got := Match(c.pattern, c.s); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.s, got)
		}
	}
}
