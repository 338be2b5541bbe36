package rules

import (
	"bytes"
	"sync"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules/gitleaks"
)

// start is where a token may begin: at a word, or behind the escape of a
// control character in text that is still quoted (`"\nghp_…"`).
const start = `(?:\b|\\[nrt])`

// secrets are our own rules, and those of gitleaks that are not among them.
func secrets() []match.Rule {
	out := own()
	for _, r := range gitleaks.Rules() {
		if imported()[r.ID] {
			out = append(out, r)
		}
	}
	return out
}

// imported are the ids of the rules of gitleaks that are not among ours.
var imported = sync.OnceValue(func() map[string]bool {
	ids := make(map[string]bool)
	for _, r := range gitleaks.Rules() {
		ids[r.ID] = true
	}
	for _, r := range own() {
		delete(ids, r.ID)
	}
	return ids
})

// own are keys and tokens known by their shape, and what a keyword gives away.
// Most are found by gitleaks too. Ours also find what is quoted and escaped, what
// is cut off and what is longer than usual, and take any rune for an end that is
// not part of a token.
func own() []match.Rule {
	return []match.Rule{
		{
			ID:       "anthropic-api-key",
			Pattern:  start + `(?P<secret>sk-ant-(?:api|admin|oat|ort|sid)\d\d-[\w-]{93}AA)(?:[^\w-]|$)`,
			Group:    "secret",
			Severity: guard.Critical, Verdict: guard.Redact,
			Match: []string{
				"my key is " + anthropicKey,
				`{"key":"` + anthropicKey + `"}`,
				`{"text":"the key:\n` + anthropicKey + `\n"}`,
				"ANTHROPIC_API_KEY=" + anthropicKey + ";",
			},
			NoMatch: []string{
				anthropicKey + "b is not a key",
				"keys start with sk-ant-api03-",
				"sk-ant-sk-ant-sk-ant-sk-ant-",
				"sk-ant-api03-" + "tooShortToBeAKeyAA",
			},
		},
		{
			ID: "openai-api-key",
			Pattern: start + `(?:sk-(?:proj|svcacct|admin)-(?:[\w-]{74}|[\w-]{58}|[\w-]{20})T3BlbkFJ(?:[\w-]{74}|[\w-]{58}|[\w-]{20})\b` +
				`|sk-[a-zA-Z0-9]{20}T3BlbkFJ[a-zA-Z0-9]{20}\b)`,
			Severity: guard.Critical, Verdict: guard.Redact,
			Match: []string{
				"OPENAI_API_KEY=" + openaiKey,
				"use sk-" + "4fGh7JkL9mNpQrStVwXz" + "T3BlbkFJ" + "a1B2c3D4e5F6g7H8i9J0" + ".",
			},
			NoMatch: []string{
				"sk-proj-" + "abc",
				"sk-" + "4fGh7JkL9mNpQrStVwXz" + "T3BlbkFJ" + "a1B2c3D4e5F6g7H8i9J0AndMore",
				"the risk-averse task-master",
			},
		},
		{
			ID:       "github-pat",
			Pattern:  `gh[pousr]_[0-9A-Za-z]{36}|github_pat_\w{82}`,
			Severity: guard.Critical, Verdict: guard.Redact,
			Validators: []match.Validator{match.Entropy(3)},
			Match: []string{
				"git clone https://" + githubToken + "@github.com/acme/app.git",
				"export GH_TOKEN=" + githubToken,
				"a fine-grained one: " + "github_pat_" + "11AB2CD3E04fGhIjKlMnOp_" + "q9RsTuVwXyZ0a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ0a1B2c3D4e5",
			},
			NoMatch: []string{
				"ghp_" + "short",
				"ghp_" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
				"tokens begin with ghp_ or github_pat_",
			},
		},
		{
			ID:       "aws-access-token",
			Pattern:  start + `(?P<secret>(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b`,
			Group:    "secret",
			Severity: guard.Critical, Verdict: guard.Redact,
			Validators: []match.Validator{match.Entropy(3)},
			Match: []string{
				"aws_access_key_id = " + awsKey,
				"(" + awsKey + ")",
				`"\n` + awsKey + `"`,
			},
			NoMatch: []string{
				awsKey + "4",
				"X" + awsKey,
				"AKIA" + "AAAAAAAAAAAAAAAA",
				"AKIAK IS A NAME",
			},
		},
		{
			ID:       "slack-bot-token",
			Pattern:  `xox[bp]-[0-9]{10,13}-[0-9]{10,13}[0-9A-Za-z-]*`,
			Severity: guard.High, Verdict: guard.Redact,
			Match: []string{
				"SLACK_BOT_TOKEN=" + slackToken,
				"the bot (" + slackToken + ") posts",
			},
			NoMatch: []string{
				"xoxb-" + "123-456",
				"xoxb- is the prefix",
			},
		},
		{
			ID:       "stripe-access-token",
			Pattern:  start + `(?P<secret>[sr]k_(?:test|live|prod)_[0-9A-Za-z]{10,})`,
			Group:    "secret",
			Severity: guard.Critical, Verdict: guard.Redact,
			Validators: []match.Validator{match.Entropy(2)},
			Match: []string{
				"stripe.api_key = '" + stripeKey + "'",
				"rk_" + "test_" + "8Hq2Lw5Zx9Vb3Nm",
			},
			NoMatch: []string{
				"sk_" + "live_" + "short",
				"risk_" + "live_" + "8Hq2Lw5Zx9Vb3Nm",
				"sk_" + "test_" + "xxxxxxxxxxxxxxxx",
			},
		},
		{
			// A token may end anywhere behind its first dot: it was cut off, or
			// has no signature ("alg": "none"), and then ends in a dot.
			ID:       "jwt",
			Pattern:  `\bey[A-Za-z0-9_-]{15,}\.ey[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?`,
			Severity: guard.High, Verdict: guard.Redact,
			Match: []string{
				"token " + jwt + " end",
				"Cookie: session=" + jwt + "; Path=/",
				"unsigned: " + "eyJhbGciOiJub25lIn0" + "." + "eyJzdWIiOiI4MjM3NDY1MTAifQ" + ".",
				"cut off: " + jwt[:60],
			},
			NoMatch: []string{
				"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + " alone is a header",
				"their eyes.eyelids.eyebrows",
			},
		},
		{
			// A key is its BEGIN line and what looks like its body: lines of
			// base64, or headers of an encrypted one, whatever a program puts
			// between them (quotes, escapes, indentation). The END line belongs to
			// it, but is not waited for: a key that is cut off is a key. A body line
			// has at least 16 letters, so that prose is none.
			ID: "private-key",
			Pattern: `-----BEGIN (?:[0-9A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----` +
				`(?:` + pemGap + `{1,48}[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,120}){0,6}` +
				`(?:` + pemGap + `{1,48}[A-Za-z0-9+/]{16,}={0,2})+` +
				`(?:(?:` + pemGap + `{1,48}=?[A-Za-z0-9+/]{1,15}={0,2})?` + pemGap + `{0,48}` +
				`-----END (?:[0-9A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?`,
			Severity: guard.Critical, Verdict: guard.Redact,
			Match: []string{
				"key:\n" + pem + "\nbye",
				"cut off: " + pem[:150],
				`{"private_key":"` + pemEscaped + `"}`,
				"-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQVYBGU1x0kBDADBq3J8m1Zr5nTt0vYxK2cWf7hD\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
				"-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\nMIIEowIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----",
			},
			NoMatch: []string{
				"The header is -----BEGIN " + "PRIVATE KEY----- and the footer is -----END PRIVATE KEY-----.",
				"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQsw\n-----END CERTIFICATE-----",
				"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
			},
		},
		{
			// A name that says secret, a sign that gives it a value, and a value
			// that looks made by a machine: enough entropy, and a digit. Of keys, those
			// whose name says that they are secret: a primary key is not, nor is a
			// public one.
			ID: "generic-api-key",
			Pattern: `(?:(?i:token|secret|passw(?:or)?d|passphrase|pwd|credentials?|creds|[_-]auth` +
				`|(?:` + secretKeys + `)[_.-]?key)` +
				`(?i:s|[_.-]?\d{1,3})?(?:[_.-]?(?i:` + nameEnds + `)){0,2}` +
				`["'\x60\\]{0,4}(?:\s(?i:string|str))?(?:\s{0,3}(?:=>|->|:=|\?=|\.=|={1,3}|:{1,3}=?|\|\|)\s{0,3}|>\s{0,8}|["'],\s{0,3}["'])["'\x60\\]{0,4})` +
				`(?P<secret>[\w.=+/~-]{10,})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{
				digit, noSelector, noName, match.Entropy(3.5),
				match.Without("redacted", "placeholder", "changeme", "your-", "your_", "xxxxxx"),
			},
			Match: []string{
				"api_key=" + genericValue + " tail",
				"AWS_SECRET_ACCESS_KEY = " + genericValue,
				`"clientSecret": "` + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + `",`,
				`{\"accessToken\":\"` + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + `\"}`,
				"<apiKey>" + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + "</apiKey>",
				"db_password: " + "Tr0ub4dor-3xkcd-9q",
				`var genericToken string = "` + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + `"`,
				`setProperty("CLIENT_TOKEN", "` + "q9Zr4Tn7Lw2Xk8Vb5Mc1" + `")`,
				"SECRET_KEY_BASE=" + "q9Zr4Tn7Lw2Xk8Vb5Mc1",
			},
			NoMatch: []string{
				"password: hunter2; the password field is redacted",
				"the password field is redacted",
				"Two keys: self-discipline and perseverance.",
				"total_tokens: 1234567890123",
				`"completion_tokens": 4096, "prompt_tokens":1720000000`,
				"keyboard: Logitech-MX-Keys-2023",
				"api_key=api_key=api_key=api_key=api_key=",
				"key := byteorder.BEUint64(b)",
				"PrivateKey: testRSA2048PrivateKey}",
				"secret = ed25519.NewKeyFromSeed(seed)",
				"api_key: ${API_KEY_FROM_ENV_2}",
				"token: your-token-9a8b7c6d5e4f",
				"key = value, and so on for the rest of the page",
				`public_key = "9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit"`,
				"primaryKey=ot34wvteZ9TmMN5VXyXaRrr1pn64",
				"credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
				`"secret_name": "prod5zyxlmy-cmk-12"`,
				"monkeys-audio:mx64-uwp=fail12",
			},
		},
		{
			// A key that no name says anything of is one if its value could be
			// nothing else.
			ID: "bare-key",
			Pattern: `\b(?i:key)["'\x60\\]{0,4}\s{0,3}(?:=|:|:=|=>)\s{0,3}["'\x60\\]{0,4}` +
				`(?P<secret>[A-Za-z0-9_+/-]{20,}={0,2})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{digit, bothCases, match.Entropy(4)},
			Match: []string{
				"key: " + "q9Zr4Tn7Lw2Xk8Vb5Mc1",
				`{"key":"` + genericValue + `"}`,
			},
			NoMatch: []string{
				"key: linux-node-3fa9c1d2e8b7a6f5",
				"key := byteorder.BEUint64(b)",
				"key: " + "AAAAAAAAAAAAAAAAaaaaaaaaaaaaa1",
			},
		},
	}
}

// secretKeys are the names of keys that are secret.
const secretKeys = `api|access|secret|private|auth|encryption|signing|client|account|licen[cs]e|service|master|session|storage|consumer|subscription`

// nameEnds may stand behind a name that says secret, and leave it one.
const nameEnds = `base|value|val|prod|production|dev|test|live|staging|main|default|old|new|v\d{1,2}|enc|secret|key|token|raw|string|str|env|api|text|b64|base64|plain|current|primary|secondary`

// pemGap is a byte that may stand between the lines of a key: space, and what
// source code and quoting put there.
const pemGap = `[\s"'\x60+,.>|#;\\]`

// digit accepts text with an ASCII digit in it.
var digit = match.Validator{Name: "digit", Accept: func(text []byte) bool {
	for _, b := range text {
		if '0' <= b && b <= '9' {
			return true
		}
	}
	return false
}}

// bothCases accepts text with a small letter and a capital.
var bothCases = match.Validator{Name: "both-cases", Accept: func(text []byte) bool {
	small, capital := false, false
	for _, b := range text {
		small = small || 'a' <= b && b <= 'z'
		capital = capital || 'A' <= b && b <= 'Z'
	}
	return small && capital
}}

// noName rejects the name of something that holds a secret, such as
// testRSA2048PrivateKey: letters and digits that end with what it holds.
var noName = match.Validator{Name: "no-name", Accept: func(text []byte) bool {
	for _, b := range text {
		if !('0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_' || b == '.') {
			return true
		}
	}
	low := bytes.ToLower(text)
	for _, word := range []string{"key", "token", "secret", "password", "credentials", "credential"} {
		if bytes.HasSuffix(low, []byte(word)) {
			return false
		}
	}
	return true
}}

// noSelector rejects a name of source code, such as binary.BigEndian.Uint32: it
// has a point, and its digits stand in one place.
var noSelector = match.Validator{Name: "no-selector", Accept: func(text []byte) bool {
	runs, in := 0, false
	for _, b := range text {
		is := '0' <= b && b <= '9'
		if is && !in {
			runs++
		}
		in = is
	}
	return runs > 1 || !bytes.Contains(text, []byte("."))
}}

// Made-up secrets for the examples.
const (
	anthropicKey = "sk-ant-" + "api03-" + "q7Vw2Lk9Zx4Bn8Tc1Rm6Yh3Pd5Gs0Jf_Ua-We7Io2Xk9Vb4Nq8Mz1Lt6Cy3Hr5Dp0Sg7Fj2Ka9Ew4Io8Uq1Bv6Tx3Zn5R" + "AA"
	openaiKey    = "sk-" + "proj-" + "aB1cD2eF3gH4iJ5kL6mN" + "T3Blbk" + "FJ" + "oP7qR8sT9uV0wX1yZ2aB"
	githubToken  = "gh" + "p_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"
	awsKey       = "AK" + "IA" + "2Q7XN4RZ6LTVWB3K"
	slackToken   = "xo" + "xb-" + "263594206564-2343594206574-" + "fG7hJ2kL9mN4pQ6rS8tV1wX3"
	stripeKey    = "sk_" + "live_" + "8Hq2Lw5Zx9Vb3Nm7Kc1Td4Rf"
	jwt          = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + "." + "eyJzdWIiOiI4MjM3NDY1MTAiLCJpYXQiOjE3MDAwMDAwMDB9" + "." + "9vXk2Lq7Wm4Zt8Rb1Nc6Yp3Hd5Gs0Jf2Ua7We9Io4Xk"
	genericValue = "wJalrXUtnFEMI" + "/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
	pem          = "-----BEGIN RSA " + "PRIVATE KEY-----\n" +
		"MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJDr1Yt8KXl2bVQ7mN4c9R6eHs\n" +
		"u1oTgP5WzLk8YxJvB3nDf2QaRi7EwGtCh6MZsKpO0lUyXqVd9jFe4rNbAI5mPk3T\n" +
		"bQ==\n" +
		"-----END RSA " + "PRIVATE KEY-----"
	pemEscaped = "-----BEGIN " + `PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v31C4bqkXk7tVqY9mYb3c2jWc5v0T` + `\n-----END ` + `PRIVATE KEY-----\n`
)
