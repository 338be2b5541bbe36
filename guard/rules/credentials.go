package rules

import (
	"bytes"
	"encoding/base64"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// credentials are secrets known by the place where they stand: behind the name of
// a header, in an address, in a connection string, in a program's settings.
func credentials() []match.Rule {
	return slices.Concat(headers(), connections(), settings())
}

// headers are what HTTP carries a secret in.
func headers() []match.Rule {
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
			// A server sets one cookie a line. What it is for is seen by its value:
			// long, and made by a machine.
			ID:       "set-cookie",
			Pattern:  `(?i:\bset-cookie)["'\\]{0,4}\s{0,3}[:=]\s{0,3}["'\\]{0,4}[\w.%-]{1,64}=(?P<secret>[^\s;,"'\\]{16,})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{mixed, match.Entropy(3), filledIn},
			Match: []string{
				"Set-Cookie: JSESSIONID=" + sessionID + "; Path=/; HttpOnly",
				`{"set-cookie":"__Host-id=` + sessionID + `; Secure"}`,
			},
			NoMatch: []string{
				"Set-Cookie: theme=dark; Path=/",
				"Set-Cookie: consent=necessary-and-statistics; Max-Age=31536000",
				"the Set-Cookie header is described in RFC 6265",
			},
		},
		{
			// A client sends all of its cookies in a line, so the line goes as a
			// whole if one of them is a session.
			ID:       "cookie",
			Pattern:  `(?i:\bcookie)["'\\]{0,4}\s{0,3}[:=]\s{0,3}["'\\]{0,4}(?P<secret>[\w.%-]{1,64}=[^\r\n"'\\]+)`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{session},
			Match: []string{
				"Cookie: theme=dark; sessionid=" + sessionID + "; lang=de",
				`curl -H 'cookie: PHPSESSID=` + sessionID[:26] + `' https://example.com`,
				`{"Cookie":"auth_token=` + sessionID + `"}`,
			},
			NoMatch: []string{
				"Cookie: theme=dark; lang=de",
				"Cookie: session=<value>",
				"cookie = makeCookie(name)",
				"a cookie: sid=1",
			},
		},
	}
}

// settings are secrets in what programs are set up with.
func settings() []match.Rule {
	return []match.Rule{
		{
			ID: "password-variable",
			Pattern: `\b(?:PGPASSWORD|MYSQL_PWD|MYSQL_ROOT_PASSWORD|POSTGRES_PASSWORD|REDISCLI_AUTH|SSHPASS|MSSQL_SA_PASSWORD)\s{0,2}[:=]\s{0,2}["']?` +
				`(?P<secret>[^\s"',;)]{3,100})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"PGPASSWORD=" + "hunter2" + " psql -h db",
				"  POSTGRES_PASSWORD: '" + "s3cr3t-p4ss" + "'",
			},
			NoMatch: []string{
				"PGPASSWORD=$DB_PASSWORD psql",
				"POSTGRES_PASSWORD: ${DB_PASSWORD}",
				"set PGPASSWORD in the environment",
			},
		},
		{
			ID:       "netrc-password",
			Pattern:  `\blogin\s{1,4}[^\s"']{1,64}\s{1,4}password\s{1,4}(?P<secret>[^\s"']{3,100})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"machine example.com login ann password " + "hunter2",
				"machine example.com\n  login ann\n  password " + "s3cr3t-p4ss" + "\n",
			},
			NoMatch: []string{
				"login with password or token",
				"machine example.com login ann password <password>",
				"\tlogin    string\n\tpassword string\n",
			},
		},
		{
			ID:       "npmrc-auth",
			Pattern:  `:_(?:authToken|auth|password)\s{0,2}=\s{0,2}["']?(?P<secret>[\w+/=.~-]{8,})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"//registry.example.com/:_authToken=" + "q9Zr4Tn7Lw2Xk8Vb5Mc1",
				"//registry.example.com/:_password=" + "aHVudGVyMg==",
			},
			NoMatch: []string{
				"//registry.example.com/:_authToken=${NPM_TOKEN}",
				"//registry.example.com/:_authToken=xxxxxxxxxxxx",
			},
		},
		{
			ID:       "docker-auth",
			Pattern:  `"auth\\?"\s{0,4}:\s{0,4}\\?"(?P<secret>[A-Za-z0-9+/]{8,256}={0,2})\\?"`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{basic},
			Match: []string{
				`{"auths":{"registry.example.com":{"auth":"` + basicAuth + `"}}}`,
				`"auth": "` + basicAuth + `"`,
			},
			NoMatch: []string{
				`{"auth":"required"}`,
				`{"auth":"bearerToken1"}`,
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
// printf, a word in angle brackets, a row of stars, a call.
var filledIn = match.Validator{Name: "filled-in", Accept: func(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '$', '{', '<', '%', '[':
		return false
	}
	if bytes.HasSuffix(text, []byte("()")) || bytes.HasSuffix(text, []byte("}")) || isPlace(text) {
		return false
	}
	return len(text) == 1 || len(bytes.Trim(text, string(text[:1]))) > 0
}}

// isPlace reports whether a text is a word that people write where a password is
// to be.
func isPlace(text []byte) bool {
	for _, word := range []string{
		"password", "passwd", "pass", "pwd", "secret", "token", "changeme", "redacted", "placeholder", "example",
		"yourpassword", "your_password", "your-password", "mypassword", "my_password", "null", "none", "undefined", "false", "true", "string",
	} {
		if len(text) == len(word) && bytes.EqualFold(text, []byte(word)) {
			return true
		}
	}
	return false
}

// basic accepts what decodes to a name and a password.
var basic = match.Validator{Name: "basic", Accept: func(text []byte) bool {
	var out [256]byte
	n, err := base64.StdEncoding.Decode(out[:], text)
	if err != nil || base64.StdEncoding.DecodedLen(len(text)) > len(out) {
		return false
	}
	return bytes.IndexByte(out[:n], ':') > 0 && printable(out[:n])
}}

func printable(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

// session accepts the cookies of a request if one of them is what a session is
// known by: by its name, and a value that nobody has made up.
var session = match.Validator{Name: "session", Accept: func(text []byte) bool {
	for pair := range bytes.SplitSeq(text, []byte(";")) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(pair), []byte("="))
		if len(value) >= 12 && mixed.Accept(value) && filledIn.Accept(value) && sessionName(name) {
			return true
		}
	}
	return false
}}

// sessionName reports whether a cookie of that name is a session's.
func sessionName(name []byte) bool {
	low := bytes.ToLower(name)
	for _, word := range []string{"sess", "sid", "auth", "token", "jwt", "login", "remember", "csrf", "xsrf", "ticket", "credential"} {
		if bytes.Contains(low, []byte(word)) {
			return true
		}
	}
	return false
}

const (
	basicAuth = "dXNlcjpw" + "YXNzd29yZDEyMzQ1Ng=="
	sessionID = "8f3Kq2Zr" + "7Lw5Xk9Vb4Mc1Td6Rf0Hs"
)
