package rules

import (
	"bytes"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// credentials are secrets known by the place where they stand.
func credentials() []match.Rule {
	return []match.Rule{
		{
			ID: "authorization-header",
			Pattern: `(?i:authorization)["'\\]{0,4}\s{0,3}[:=]\s{0,3}["'\\]{0,4}(?i:basic|bearer|token|apikey|digest)\s{1,3}` +
				`(?P<secret>[A-Za-z0-9._~+/-]{8,}={0,2})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{mixed},
			Match: []string{
				`curl -H "Authorization: Basic ` + basicAuth + `" https://api.example.com`,
				"authorization: bearer " + "q9Zr4Tn7Lw2Xk8Vb5Mc1",
				`{"Authorization":"Bearer ` + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + `"}`,
				`Proxy-Authorization: Basic ` + basicAuth,
			},
			NoMatch: []string{
				"Authorization: Bearer <token>",
				"Authorization: Bearer YOUR_API_KEY",
				"Authorization: Bearer authentication is described in RFC 6750",
				"authorization: required",
			},
		},
		{
			// Only the password: who logged in where is worth keeping in a log.
			ID:       "url-credentials",
			Pattern:  `://[^\s/:@"'\x60<>]{0,64}:(?P<secret>[^\s/@"'\x60<>]{1,100})@`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"postgres://app:" + "s3cr3t-p4ss" + "@db.internal:5432/app",
				"https://ann:" + "hunter2" + "@example.com/",
				"redis://:" + "q9Zr4Tn7" + "@localhost",
			},
			NoMatch: []string{
				"http://localhost:8080/@scope/package",
				"https://ann@example.com/",
				"see https://example.com: mail me@example.com",
				"http://[::1]:8080/",
				"https://ann:***@example.com/",
				"postgres://${USER}:${PASSWORD}@${HOST}/app",
				"https://%s:%s@%s/",
			},
		},
	}
}

// mixed accepts text with a digit, or with a capital behind a small letter: not
// a word, and not the name of a variable.
var mixed = match.Validator{Name: "mixed", Accept: func(text []byte) bool {
	small := false
	for _, b := range text {
		switch {
		case '0' <= b && b <= '9', small && 'A' <= b && b <= 'Z':
			return true
		case 'a' <= b && b <= 'z':
			small = true
		}
	}
	return false
}}

// filledIn accepts a password, not the place for one: a variable, a verb of
// printf, a row of stars.
var filledIn = match.Validator{Name: "filled-in", Accept: func(text []byte) bool {
	switch {
	case bytes.HasPrefix(text, []byte("${")), bytes.HasPrefix(text, []byte("{")), string(text) == "%s", string(text) == "%v":
		return false
	}
	return len(text) == 1 || len(bytes.Trim(text, string(text[:1]))) > 0
}}

const basicAuth = "dXNlcjpw" + "YXNzd29yZDEyMzQ1Ng=="
