package rules_test

import (
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// fault is a fault of the kind "split across deltas" that another system shipped:
// what came in which pieces, and what may leave.
type fault struct {
	report string
	pieces []string
	want   string
}

// split cuts a text into pieces of n bytes.
func split(text string, n int) (all []string) {
	for ; len(text) > n; text = text[n:] {
		all = append(all, text[:n])
	}
	return append(all, text)
}

// registered are values that somebody has told of, as in the environment.
var registered = map[string]string{
	"first": "abcdefgX", "second": "Xvery-sensitive-value", "stream-key": "sk-live-STREAM7", "marker": "redacted-by-us", "env": "correct-horse-battery-staple",
}

var (
	fernet = "gAAAAABl" + "abcDEF123=ghi-jkl_MNO456pqrSTUvwx789yzABCdef012GHIjkl345MNOpqr678STU="
	secret = "wJalrXUtnFEMI" + "/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
)

var faults = []fault{
	{"BerriAI/litellm#41611", []string{"user@exa", "mple.com"}, "[redacted:email]"},
	{"BerriAI/litellm#40674", []string{"the key: ", "sk", "-live", "-", "STREAM", "7", " ok"}, "the key: [redacted:stream-key] ok"},
	{"mastra-ai/mastra#23783, offset", []string{"SSN 123-45-", "6789 ok"}, "SSN [redacted:us-ssn] ok"},
	{"mastra-ai/mastra#23783, neighbour", []string{"Contact bob@", "acme.com now"}, "Contact [redacted:email] now"},
	{"mastra-ai/mastra#23783, overlap", []string{"Contact http://bob:", "hunter2@acme.com", " now"}, "Contact http://bob:[redacted:url-credentials] now"},
	{"mastra-ai/mastra#21050", append([]string{"api_key="}, split(strings.Repeat("q9Zr4Tn7Lw", 80)+" more", 10)...), "api_key=[redacted:generic-api-key] more"},
	{"elizaOS/eliza#15348", []string{"x ", "Authorization: ", "Basic dXNlcjpwYXNzd29yZDEyMw== "}, "x Authorization: Basic [redacted:authorization-header] "},
	{"apache/maka#2990, bytes", split("api_key="+secret+" tail", 1), "api_key=[redacted:generic-api-key] tail"},
	{"apache/maka#2990, fours", split("api_key="+secret+" tail", 4), "api_key=[redacted:generic-api-key] tail"},
	{"apache/maka#2975, token", split("token "+jwt+" end", 4), "token [redacted:jwt] end"},
	{"NousResearch/hermes-agent#56039", append([]string{strings.Repeat("x", 498) + " sk-"}, strings.TrimPrefix(anthropic, "sk-"), "."), strings.Repeat("x", 498) + " [redacted:anthropic-api-key]."},
	{"NousResearch/hermes-agent#56040", []string{"secret=" + fernet[:18], fernet[18:], " end"}, "secret=[redacted:generic-api-key] end"},
	{"kirodotdev/KiroCrew#4762, escape", []string{"key AKIA\x1b[0m", "IOSFODNN7EXAMPLE ok"}, "key [redacted:aws-access-token] ok"},
	{"kirodotdev/KiroCrew#4762, end", []string{"key AKIA", "IOSFODNN7EXAMPLE"}, "key [redacted:aws-access-token]"},
	{"managoat/fountain#2359", []string{"pass: correct-ho", "rse-battery-staple."}, "pass: [redacted:env]."},
	{"NVIDIA/OpenShell#2763", []string{"123-", "45-6789"}, "[redacted:us-ssn]"},
	{"pocketpaw/pocketpaw#433", split("k "+anthropic+" end", 1), "k [redacted:anthropic-api-key] end"},
	{"umbraco/Umbraco.AI#393", []string{"4111 1111", " 1111 1111", " ok"}, "[redacted:credit-card] ok"},
	{"buildkite/agent#2062", []string{"key:\n", pem[:40], pem[40:90], pem[90:], "\nbye"}, "key:\n[redacted:private-key]\nbye"},
	{"buildkite/agent#1109", split("pw correct-horse-battery-staple!", 1), "pw [redacted:env]!"},
	{"vm0-ai/vm0#24639", []string{"abcdefgX", "very-sensitive-value"}, "[redacted:first]"},
	{"concourse/concourse#9379, inside", []string{"the pass", "word field"}, "the password field"},
	{"concourse/concourse#9379, marker", []string{"redacted-by-", "us and [redacted:", "email]"}, "[redacted:marker] and [redacted:email]"},
	{"BerriAI/litellm#31503", []string{"Contact jane.", "doe@example.com"}, "Contact [redacted:email]"},
}

// Texts of the faults; secrets stand in parts, as in the rules' own examples.
var (
	anthropic = "sk-ant-" + "api03-" + "q7Vw2Lk9Zx4Bn8Tc1Rm6Yh3Pd5Gs0Jf_Ua-We7Io2Xk9Vb4Nq8Mz1Lt6Cy3Hr5Dp0Sg7Fj2Ka9Ew4Io8Uq1Bv6Tx3Zn5R" + "AA"
	jwt       = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + "." + "eyJzdWIiOiI4MjM3NDY1MTAiLCJpYXQiOjE3MDAwMDAwMDB9" + "." + "9vXk2Lq7Wm4Zt8Rb1Nc6Yp3Hd5Gs0Jf2Ua7We9Io4Xk"
	pem       = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJDr1Yt8KXl2bVQ7mN4c9R6eHs\n" +
		"u1oTgP5WzLk8YxJvB3nDf2QaRi7EwGtCh6MZsKpO0lUyXqVd9jFe4rNbAI5mPk3T\n" + "-----END RSA " + "PRIVATE KEY-----"
)

// TestSplitFaults plays each fault at its own cuts, byte by byte and whole, with all
// packs, their evasions, and values that were registered: what leaves is the same,
// and no moment shows more of it than its end does.
func TestSplitFaults(t *testing.T) {
	rs, err := rules.Select(rules.Default()...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := match.Compile(rs, match.Options{Name: "rules", Key: []byte("key of the tests"), Evasions: match.Evasions})
	if err != nil {
		t.Fatal(err)
	}
	literals := match.NewLiterals(match.LiteralOptions{Name: "values", Key: []byte("key of the tests"), Verdict: guard.Redact})
	for name, value := range registered {
		if _, err := literals.Add(name, value); err != nil {
			t.Fatal(err)
		}
	}
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: e}, guard.Member{Guard: literals})
	for _, f := range faults {
		t.Run(f.report, func(t *testing.T) {
			text := strings.Join(f.pieces, "")
			for name, pieces := range map[string][]string{"own": f.pieces, "bytewise": split(text, 1), "whole": {text}} {
				filter := guard.NewFilter(chain.Open(t.Context(), guard.Channel{}))
				var out []byte
				for _, p := range pieces {
					out, _ = filter.Write(out, []byte(p))
					if !strings.HasPrefix(f.want, string(out)) {
						t.Fatalf("cut %s: %q has left, want the beginning of %q", name, out, f.want)
					}
				}
				if out, _ = filter.Close(out); string(out) != f.want {
					t.Errorf("cut %s: %q leaves, want %q", name, out, f.want)
				}
			}
		})
	}
}
