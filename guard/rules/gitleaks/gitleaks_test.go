package gitleaks

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// TestComplete counts: 222 rules, of which one is left out, and two are two.
func TestComplete(t *testing.T) {
	if n := len(source); n != 222 {
		t.Errorf("the data have %d rules", n)
	}
	if n, want := len(Rules()), len(source)-len(LeftOut)+2; n != want {
		t.Errorf("there are %d rules, want %d", n, want)
	}
	known := make(map[string]bool)
	for _, e := range source {
		known[e.id] = true
		if e.regex == "" && LeftOut[e.id] == "" {
			t.Errorf("%s has no pattern, and is not left out by name", e.id)
		}
	}
	for id := range mends {
		if !known[id] {
			t.Errorf("%s is mended, and is no rule of gitleaks", id)
		}
	}
	for id := range LeftOut {
		if !known[id] {
			t.Errorf("%s is left out, and is no rule of gitleaks", id)
		}
	}
}

// TestMends tries what the mends say of texts, and that redacting leaves nothing
// of a secret.
func TestMends(t *testing.T) {
	for id, m := range mends {
		t.Run(id, func(t *testing.T) {
			if m.why == "" || len(m.finds) == 0 {
				t.Error("a mend says why, and has a text that it finds")
			}
			var rules []match.Rule
			for _, r := range Rules() {
				if _, mine := m.patterns[r.ID]; mine {
					rules = append(rules, r)
				}
			}
			e, err := match.Compile(rules, match.Options{Name: "gitleaks"})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range m.finds {
				if out := redact(t, e, text); out == text {
					t.Errorf("nothing is found in %q", text)
				} else {
					t.Logf("%q", out)
				}
			}
			for _, text := range m.spares {
				if out := redact(t, e, text); out != text {
					t.Errorf("%q becomes %q", text, out)
				}
			}
		})
	}
}

func redact(t *testing.T, e *match.Engine, text string) string {
	t.Helper()
	f := guard.NewFilter(guard.NewChain(guard.Options{}, guard.Member{Guard: e}).Open(t.Context(), guard.Channel{}))
	out, _ := f.Write(nil, []byte(text))
	out, _ = f.Close(out)
	return string(out)
}

// TestRedactsWhole pins what becomes of the texts that the rules as they are
// would leave.
func TestRedactsWhole(t *testing.T) {
	e, err := match.Compile(Rules(), match.Options{Name: "gitleaks"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"commit " + hex40 + "\nAuthor: x", "commit " + hex40 + "\nAuthor: x"},
		{"curl -u ann:firstpass x; curl -u bob:secondpw y", "curl -u [redacted:curl-auth-user]x; curl -u [redacted:curl-auth-user]y"},
		{"post to " + teamsWebhook + ".", "post to [redacted:microsoft-teams-webhook]."},
		{"t " + mends["jwt-base64"].finds[0] + " x", "t [redacted:jwt-base64] x"},
	} {
		if got := redact(t, e, c.text); strings.ReplaceAll(got, "] ", "]") != strings.ReplaceAll(c.want, "] ", "]") {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
}

// TestName names groups, and passes by what only looks like one.
func TestName(t *testing.T) {
	for _, c := range []struct {
		pattern string
		n       int
		want    string
	}{
		{`a(b)`, 1, `a(?P<secret>b)`},
		{`(?:a)\((b)(c)`, 2, `(?:a)\((b)(?P<secret>c)`},
		{`[(](b)`, 1, `[(](?P<secret>b)`},
		{`[^](](b)`, 1, `[^](](?P<secret>b)`},
		{`[[:alnum:](](b)`, 1, `[[:alnum:](](?P<secret>b)`},
		{`(?i)a`, 1, ``},
	} {
		got, ok := name(c.pattern, c.n)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: got %s, %t", c.pattern, got, ok)
		}
		if ok {
			regexp.MustCompile(got)
		}
	}
}

// TestExamples tries each rule on the examples that are made for it.
func TestExamples(t *testing.T) {
	for _, r := range Rules() {
		yes, no := Examples(r)
		if len(yes) < 2 || len(no) < 2 {
			t.Errorf("%s: %d examples to match, %d not to", r.ID, len(yes), len(no))
		}
		r.Match, r.NoMatch = yes, no
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		for _, text := range yes {
			if !utf8.ValidString(text) {
				t.Errorf("%s: %q", r.ID, text)
			}
		}
	}
}
