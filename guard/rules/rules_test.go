package rules_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// all returns the rules of every pack.
func all(t testing.TB) []match.Rule {
	rs, err := rules.Select(rules.Names()...)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// TestExamples tries every rule on its own examples, of both kinds.
func TestExamples(t *testing.T) {
	for _, r := range all(t) {
		t.Run(r.ID, func(t *testing.T) {
			if len(r.Match) < 2 || len(r.NoMatch) < 2 {
				t.Errorf("%d examples to match and %d not to", len(r.Match), len(r.NoMatch))
			}
			if err := r.Check(); err != nil {
				t.Error(err)
			}
			if re := regexp.MustCompile(r.Pattern); r.Group != "" && re.SubexpIndex(r.Group) < 0 {
				t.Errorf("no group %q", r.Group)
			}
		})
	}
}

// TestBound pins how much text a rule can hold.
func TestBound(t *testing.T) {
	for _, r := range all(t) {
		e, err := match.Compile([]match.Rule{r}, match.Options{Name: "one"})
		if err != nil {
			t.Fatal(err)
		}
		bytes, unbounded := e.Bound()
		t.Logf("%-22s %4d %v", r.ID, bytes, unbounded)
		if grows := r.ID == "jwt" || r.ID == "private-key"; grows != (len(unbounded) > 0) {
			t.Errorf("%s: unbounded is %v", r.ID, unbounded)
		}
		if bytes > 512 {
			t.Errorf("%s holds up to %d bytes", r.ID, bytes)
		}
	}
}

func TestSelect(t *testing.T) {
	rs, err := rules.Select("email", "pii", "jwt")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	if got, want := strings.Join(ids, " "), "email credit-card us-ssn iban phone ipv4 jwt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"secret":     `unknown rule or pack "secret": did you mean "secrets"?`,
		"credit-crd": `unknown rule or pack "credit-crd": did you mean "credit-card"?`,
		"zzz":        `unknown rule or pack "zzz": packs are ["secrets" "credentials" "pii"]`,
	} {
		if _, err := rules.Select("pii", name); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
