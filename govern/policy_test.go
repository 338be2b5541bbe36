package govern_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/tool"
)

// labels is a guard that finds people's data and changes nothing.
func labels(t *testing.T) guard.Guard {
	t.Helper()
	rs, err := rules.Select("pii")
	if err != nil {
		t.Fatal(err)
	}
	for i := range rs {
		rs[i].Verdict = guard.Allow
	}
	g, err := match.Compile(rs, match.Options{Name: "labels", Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEgress holds requests to what the worst of the upstreams that they could
// reach may see.
func TestEgress(t *testing.T) {
	const person = "write to ann@acme-mail.io"
	classOf := func(g, _ string) govern.DataClass {
		return map[string]govern.DataClass{"labels": tool.Personal, "secrets": tool.Secret}[g]
	}
	for name, c := range map[string]struct {
		zones    []string
		profile  govern.Profile
		mode     guard.Mode
		text     string
		sent     bool
		recorded string // of the policy: its mode
	}{
		"internal data, to a provider":      {zones: []string{""}, text: "hello", sent: true},
		"people's data, to a provider":      {zones: []string{"external"}, text: person, recorded: "enforce"},
		"people's data, within":             {zones: []string{"private"}, text: person, sent: true},
		"the worst that it could reach":     {zones: []string{"local", "external"}, text: person, recorded: "enforce"},
		"a guard that only watches":         {zones: []string{"external"}, mode: guard.Shadow, text: person, sent: true, recorded: "shadow"},
		"the profile's own class":           {zones: []string{"private"}, profile: govern.Profile{DataClass: tool.Secret}, text: "hello", recorded: "enforce"},
		"a class that is as low as it gets": {zones: []string{"external"}, profile: govern.Profile{DataClass: tool.Public}, text: "hello", sent: true},
		"a ceiling that was lowered":        {zones: []string{"private"}, profile: govern.Profile{Ceilings: map[string]govern.DataClass{"private": tool.Internal}}, text: person, recorded: "enforce"},
		"what was redacted is not there":    {zones: []string{"external"}, text: "the key " + secret, sent: true},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, stream), func(t *testing.T) {
				kept, asked := &records{}, 0
				cfg := govern.Config{Record: kept.add}
				p := c.profile
				p.Name, p.Models, p.ClassOf = "p", []string{"*"}, classOf
				p.Input = []guard.Member{{Guard: labels(t), Mode: c.mode}, member(t, guard.Redact)}
				for i, zone := range c.zones {
					name := fmt.Sprint("u", i)
					p.Upstreams = append(p.Upstreams, name)
					cfg.Upstreams = append(cfg.Upstreams, govern.Upstream{Name: name, Protocol: govern.OpenAI, BaseURL: "http://u.invalid", Zone: zone,
						Transport: upstream(func(*http.Request) (*http.Response, error) {
							asked++
							return response(200, "application/json", strings.NewReader(chatBody("ok"))), nil
						})})
				}
				cfg.Profiles = []govern.Profile{p}
				door, err := govern.Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := door.RoundTrip(ask(t.Context(), t, chat, c.text, stream))
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if (asked == 1) != c.sent || !c.sent && (resp.StatusCode != 400 || !strings.Contains(string(body), `"code":"content_filter"`) || !strings.Contains(string(body), "which may see")) {
					t.Errorf("asked %d times, answered %d %s", asked, resp.StatusCode, body)
				}
				recorded := ""
				for _, r := range kept.all {
					if v, ok := r.Fact.(govern.Verdict); ok && v.Rule == govern.RuleDataClass {
						recorded += v.Mode.String()
					}
				}
				if recorded != c.recorded {
					t.Errorf("recorded of the policy is %q, want %q", recorded, c.recorded)
				}
			})
		}
	}
	for want, change := range map[string]func(*govern.Config){
		`not a zone`: func(c *govern.Config) { c.Upstreams[0].Zone = "moon" },
		`may only lower it`: func(c *govern.Config) {
			c.Profiles[0].Ceilings = map[string]govern.DataClass{"external": tool.Personal}
		},
		`"elsewhere"`: func(c *govern.Config) { c.Profiles[0].Ceilings = map[string]govern.DataClass{"elsewhere": tool.Public} },
	} {
		cfg := govern.Config{RecordFile: t.TempDir() + "/r", Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid"}}, Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"u"}}}}
		change(&cfg)
		if _, err := govern.Open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
}

// TestCallRules holds the calls that a model asks for to rules, streamed and not,
// whoever's tools they are.
func TestCallRules(t *testing.T) {
	rules := []govern.CallRule{
		{Tool: "exec", Clauses: []govern.CallClause{{Rule: govern.ToolDeny, When: `args.argv[0] == "rm"`}, {Rule: govern.ToolAllow}}},
		{Tool: "mcp__*", Clauses: []govern.CallClause{{Rule: govern.ToolRequireApproval}}},
	}
	for _, c := range []struct{ tool, args, status string }{
		{"read", `{}`, "completed"},
		{"exec", `{"argv":["ls"]}`, "completed"},
		{"exec", `{"argv":["rm","-r"]}`, "guardrail_blocked"},
		{"exec", `{"argv":[`, "guardrail_blocked"},
		{"mcp__mail", `{}`, "guardrail_approval_required"},
	} {
		for _, stream := range []bool{false, true} {
			call := fmt.Sprintf(`{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":%q}}`, c.tool, c.args)
			kind, body := "application/json", fmt.Sprintf(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[%s]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`, call)
			if stream {
				kind, body = "text/event-stream", fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":null}]}`+"\n\n", call)+chatEnd
			}
			door, err := govern.Open(govern.Config{
				Record:    (&records{}).add,
				Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid", Transport: says(200, kind, body)}},
				Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"u"}, Models: []string{"*"}, Calls: rules}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, exchange := govern.Watch(t.Context())
			resp, err := door.RoundTrip(ask(ctx, t, chat, "hi", stream))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			o, ended := exchange.Outcome()
			if !ended || o.Status != c.status || strings.Contains(string(got), `"`+c.tool+`"`) != (c.status == "completed") {
				t.Errorf("%s %s, streamed %v: %+v\n%s", c.tool, c.args, stream, o, got)
			}
		}
	}
	_, err := govern.Open(govern.Config{RecordFile: t.TempDir() + "/r", Profiles: []govern.Profile{{Name: "p", Calls: []govern.CallRule{{Tool: "x", Clauses: []govern.CallClause{{Rule: govern.ToolDeny, When: "1 +"}}}}}}})
	if err == nil || !strings.Contains(err.Error(), `tool "x"`) {
		t.Errorf("a condition that is none: %v", err)
	}
}

// TestToolClauses: a condition decides about a session's call once there are
// arguments, and says what a rule without one would have said.
func TestToolClauses(t *testing.T) {
	p := govern.Profile{
		Tools: map[string]govern.ToolRule{"write": govern.ToolDeny},
		ToolClauses: []govern.CallRule{{Tool: "write", Clauses: []govern.CallClause{
			{Rule: govern.ToolAllow, When: `args.n < 3`}, {Rule: govern.ToolRequireApproval, When: `args.n < 9`},
		}}},
	}
	s := session(t, &diary{}, p, govern.SessionConfig{Fence: &diary{}, Tools: []govern.Tool{saying("write", govern.Write, ""), saying("read", govern.Read, "")}})
	for args, want := range map[string]string{
		`{"n":2}`:   "allowed",
		`{"n":3}`:   "not run: a person has to approve it",
		`{"n":9}`:   "denied by the tool rule for write",
		`{}`:        "denied by the tool rule for write", // it cannot be evaluated
		`{"n":"2"}`: "malformed arguments: /n must be integer, and is string",
	} {
		if got := s.Judge(govern.Call{Step: 1, Number: 1, Tool: "write", Args: args}).String(); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if _, err := openSession(&diary{}, p, govern.SessionConfig{Tools: []govern.Tool{saying("write", govern.Write, "")}}); err == nil || !strings.Contains(err.Error(), "needs a Fence") {
		t.Errorf("a session without a fence: %v", err)
	}
}
