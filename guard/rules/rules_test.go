package rules_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/guard/rules/gitleaks"
)

// all returns the rules of every pack.
func all(t testing.TB) []match.Rule {
	rs, err := rules.Select(rules.Names()...)
	if err != nil {
		t.Fatal(err)
	}
	return withExamples(rs)
}

// withExamples gives the rules of gitleaks examples, as the others have.
func withExamples(rs []match.Rule) []match.Rule {
	for i, r := range rs {
		if len(r.Match) == 0 {
			rs[i].Match, rs[i].NoMatch = gitleaks.Examples(r)
		}
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

// long are the rules whose matches are as long as they are.
var long = []string{
	"authorization-header", "connection-string", "cookie", "npmrc-auth", "set-cookie", "bare-key", "generic-api-key", "jwt", "private-key", "slack-bot-token", "stripe-access-token",

	"1password-service-account-token", "authress-service-client-access-key", "curl-auth-header", "curl-auth-user",
	"facebook-page-access-token", "flyio-access-token", "grafana-api-key", "grafana-cloud-api-token",
	"hashicorp-tf-api-token", "jwt-base64", "kubernetes-secret-yaml", "kubernetes-secret-yaml-data-first",
	"microsoft-teams-webhook", "nuget-config-password", "pypi-upload-token", "slack-app-token",
	"slack-config-access-token", "slack-legacy-token", "yandex-access-token",
}

// TestBound pins how much text a rule can hold.
func TestBound(t *testing.T) {
	for _, r := range all(t) {
		e, err := match.Compile([]match.Rule{r}, match.Options{Name: "one"})
		if err != nil {
			t.Fatal(err)
		}
		bytes, cut := e.Bound()
		t.Logf("%-22s %4d %v", r.ID, bytes, cut)
		if grows := slices.Contains(long, r.ID); grows != (len(cut) > 0) {
			t.Errorf("%s: cut is %v", r.ID, cut)
		}
		if bytes > match.DefaultHoldLimit+3 {
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
	if got, want := strings.Join(ids, " "), "email phone credit-card iban ipv4 ipv6 us-ssn us-ssn-labelled uk-nhs es-nif pl-pesel in-aadhaar au-tfn jwt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"secret":     `unknown rule or pack "secret": did you mean "secrets"?`,
		"credit-crd": `unknown rule or pack "credit-crd": did you mean "credit-card"?`,
		"zzz":        `unknown rule or pack "zzz": packs are ["secrets" "credentials" "pii" "injection"]`,
	} {
		if _, err := rules.Select("pii", name); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestWholeTokenGoes shows that nothing of a token is left that is longer than
// the hold limit, however the text is cut, nor of one that the text cuts off.
func TestWholeTokenGoes(t *testing.T) {
	e := engine(t, match.DefaultHoldLimit, rules.Names()...)
	filler := strings.Repeat("q9Zr4Tn7Lw2Xk8Vb5Mc1", 60)
	body := strings.Repeat("MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJDr1Yt8KXl2bVQ7mN4c9R6eHs\n", 40)
	header := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
	for _, c := range []struct{ before, secret, after, rule string }{
		{"api_key=", filler, " tail", "generic-api-key"},
		{"Authorization: Bearer ", filler, "\nHost: x", "authorization-header"},
		{"token ", header + ".ey" + filler + "." + filler, " end", "jwt"},
		{"token ", header + ".ey" + filler, "", "jwt"},
		{"key:\n", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + body + "-----END RSA " + "PRIVATE KEY-----", "\nbye", "private-key"},
		{"key:\n", "-----BEGIN RSA " + "PRIVATE KEY-----\n" + body[:1000], "", "private-key"},
		{"k ", "sk_" + "live_" + filler, ".", "stripe-access-token"},
	} {
		text := c.before + c.secret + c.after
		for _, n := range []int{1, 4, 100, 511, 600, len(text)} {
			if got, want := redact(e, text, fixed(n)), c.before+"[redacted:"+c.rule+"]"+c.after; got != want {
				t.Errorf("in pieces of %d: %q leaves, want %q", n, got, want)
			}
		}
	}
}

// TestLibrary has rules of somebody's own before those of gitleaks, and refuses
// names that are taken.
func TestLibrary(t *testing.T) {
	own := func(name string, ids ...string) rules.Own {
		o := rules.Own{Name: name}
		for _, id := range ids {
			o.Rules = append(o.Rules, match.Rule{ID: id, Pattern: id})
		}
		return o
	}
	l := rules.Library{own("acme", "one", "two")}
	rs, err := l.Select("twitch-api-token", "acme", "email")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); got != "one two email twitch-api-token" {
		t.Errorf("got %s", got)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	for want, l := range map[string]rules.Library{
		`pack "secrets" has the name of another pack`:                   {own("secrets")},
		`rule "email" of pack "pii" has the name of one of pack "acme"`: {own("acme", "email")},
		`rule "one" of pack "b" has the name of one of pack "a"`:        {own("a", "one"), own("b", "one")},
		`rule "a" of pack "b" has the name of another pack`:             {own("a", "one"), own("b", "a")},
	} {
		if err := l.Check(); err == nil || !strings.HasSuffix(err.Error(), want) && !strings.HasPrefix(err.Error(), `pack "secrets"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
