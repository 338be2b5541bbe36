package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// asking is a request that says something.
func asking(stream bool, text string) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"messages":[{"role":"user","content":%s}]}`, stream, quoted(text))
}

// told is what a client reads of an answer in deltas to a request that says text.
func (w *world) told(protocol string, stream bool, text string, deltas []string, headers ...string) string {
	w.t.Helper()
	streamed, whole := said(protocol, deltas...)
	w.upstream.says(func() reply {
		if stream {
			return streams(streamed, 50)
		}
		return says(200, "application/json", whole)
	})
	return understand(w.t, protocol, w.ask("POST", path(protocol), asking(stream, text), headers...)).Text
}

// What a placeholder becomes, and what is none.
func TestRestored(t *testing.T) {
	name := "[GITHUB_PAT_1]"
	for _, c := range []struct {
		name, asked string
		deltas      []string
		want        string
	}{
		{"as it is", secret, []string{"it is " + name + "."}, "it is " + secret + "."},
		{"cut", secret, []string{"it is [", "GIT", "HUB_PA", "T_", "1", "]."}, "it is " + secret + "."},
		{"in another case", secret, []string{"it is [github_", "Pat_1]."}, "it is " + secret + "."},
		{"twice, side by side", secret, []string{name, name}, secret + secret},
		{"brackets around it", secret, []string{"[[", name[1:], "]"}, "[" + secret + "]"},
		{"what only begins so", secret, []string{"[GITHUB_PA", "RTY_1] [GITHUB_PAT_1"}, "[GITHUB_PARTY_1] [GITHUB_PAT_1"},
		{"another number", secret, []string{"[GITHUB_PAT_2] [GITHUB_PAT_11] [GITHUB_PAT_0]"}, "[GITHUB_PAT_2] [GITHUB_PAT_11] [GITHUB_PAT_0]"},
		{"one that nobody gave", "hello", []string{"it is " + name}, "it is " + name},
		{"where a rule looks for a password", secret, []string{`password = "`, name, `" # mine`}, `password = "` + secret + `" # mine`},
		{"beside a secret of the model's own", secret, []string{name + " ghp_" + "Aa3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"}, secret + " [redacted:github-pat]"},
		{"in an answer that is a document", `say "` + pem + `"`, []string{`{"key": "[PRIVATE_KEY_1]"}`}, `{"key": ` + quoted(pem) + `}`},
		{"a name that the caller wrote is the caller's", "what is [github_pat_1] in " + secret, []string{"[GITHUB_PAT_1] is no [GITHUB_PAT_2]"}, "[GITHUB_PAT_1] is no " + secret},
		{"two values", secret + " and ann.lee@corp-mail.example", []string{"[EMAIL_1]", " ", name}, "ann.lee@corp-mail.example " + secret},
		{"the same value twice is one", secret + " " + secret, []string{name + " [GITHUB_PAT_2]"}, secret + " [GITHUB_PAT_2]"},
	} {
		for _, protocol := range protocols {
			for _, stream := range []bool{false, true} {
				w := open(t, guard.Redact, reversible)
				if got := w.told(protocol, stream, c.asked, c.deltas); got != c.want {
					t.Errorf("%s (%s, stream %v): %q, want %q", c.name, protocol, stream, got, c.want)
				}
				if sent := w.upstream.requests()[0].body; strings.Contains(sent, secret[4:20]) {
					t.Errorf("%s: the provider was sent %s", c.name, sent)
				}
			}
		}
	}
}

// A value comes back to who had it in the request, or in a conversation that the
// same caller names: never to another, whatever they write.
func TestRestoredToTheSameCaller(t *testing.T) {
	name := []string{"it is [GITHUB_PAT_1]"}
	for _, protocol := range protocols {
		w := open(t, guard.Redact, reversible)
		ann := []string{"Authorization", "Bearer ann", "Stoplog-Session", "s1"}
		w.told(protocol, false, "mine is "+secret, name, ann...)
		for _, c := range []struct {
			who     string
			headers []string
			want    string
		}{
			{"the same caller in the same session", ann, "it is " + secret},
			{"the same caller in another session", []string{"Authorization", "Bearer ann", "Stoplog-Session", "s2"}, name[0]},
			{"the same caller without a session", []string{"Authorization", "Bearer ann"}, name[0]},
			{"another caller in a session of that name", []string{"Authorization", "Bearer bob", "Stoplog-Session", "s1"}, name[0]},
			{"nobody", []string{"Stoplog-Session", "s1"}, name[0]},
			{"another profile", append([]string{"Stoplog-Profile", "input"}, ann...), name[0]},
		} {
			if got := w.told(protocol, true, "what was it?", name, c.headers...); got != c.want {
				t.Errorf("%s, %s: %q, want %q", protocol, c.who, got, c.want)
			}
		}
		// Two who begin alike and share a key do not share values.
		w.told(protocol, false, "hi", name)
		other := strings.ReplaceAll(secret, "Zk3v", "Yk3v")
		if got := w.told(protocol, false, "hi", name); got != name[0] {
			t.Errorf("%s: who begins alike gets %q", protocol, got)
		}
		if got := w.told(protocol, false, "mine is "+other, name, ann...); got != "it is "+secret {
			t.Errorf("%s: a second value of the session took the place of the first: %q", protocol, got)
		}
	}
}

// A conversation's values keep their placeholders as it grows, also where a
// request of it came in between.
func TestPlaceholdersAreStable(t *testing.T) {
	w := open(t, guard.Redact, reversible)
	other := strings.ReplaceAll(secret, "Zk3v", "Yk3v")
	streamed, whole := said(govern.OpenAI, "ok")
	_ = streamed
	w.upstream.says(func() reply { return says(200, "application/json", whole) })
	for _, texts := range [][]string{{"first", secret}, {"first", other, secret}, {"first", secret, other}} {
		var messages []string
		for _, text := range texts {
			messages = append(messages, `{"role":"user","content":`+quoted(text)+`}`)
		}
		w.ask("POST", path(govern.OpenAI), `{"model":"m","messages":[`+strings.Join(messages, ",")+`]}`)
	}
	for i, want := range []string{
		`"first"},{"role":"user","content":"[GITHUB_PAT_1]"}`,
		`"first"},{"role":"user","content":"[GITHUB_PAT_2]"},{"role":"user","content":"[GITHUB_PAT_1]"}`,
		`"first"},{"role":"user","content":"[GITHUB_PAT_1]"},{"role":"user","content":"[GITHUB_PAT_2]"}`,
	} {
		if got := w.upstream.requests()[i].body; !strings.Contains(got, want) {
			t.Errorf("request %d is %s, want …%s…", i, got, want)
		}
	}
}
