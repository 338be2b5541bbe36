package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// strict is a gateway whose answers lose their secrets and end before a
// person's number, and that takes no such number in a question.
const strict = `version: 1
upstreams:
  openai:    {protocol: openai, cassettes: ["CASSETTES/openai-*.cassette", "CASSETTES/responses-*.cassette"], pace: none, zone: local}
  anthropic: {protocol: anthropic, cassettes: ["CASSETTES/anthropic-*.cassette"], pace: none, zone: local}
guards:
  secrets: {rules: [secrets, credentials], verdict: redact}
  pii:     {rules: [pii], verdict: deny}
profiles:
  default:
    extends: builtin
    upstream: [openai, anthropic]
    models: ["*"]
    input:  {pii: enforce}
    output: {secrets: enforce, pii: enforce}
gateway: {openai: default, anthropic: default}
`

// scenarios are what the cassettes hold, and what must become of it. Texts are
// written out here, not computed: they are the measure.
var scenarios = []scenario{{
	name: "clean",
	asks: "What does a stoplog do?",
	text: "A stoplog is a beam that is dropped into a slot to hold back water.\n\n" +
		"Stack a few — say five — and you have a dam. 🪵 Pull them and the river runs again.",
	finish: map[string]string{"openai": "stop", "responses": "completed", "anthropic": "end_turn"},
	deltas: 19, // as many as the model gave: clean frames leave as they came
	input:  14, output: 41,
	verdict: "allow",
}, {
	name: "redacted",
	asks: "How do I clone the repository and charge a card?",
	text: "Clone it with the token [redacted:github-pat] over https.\n" +
		"For the card use [redacted:stripe-access-token]; it works at once. Both go into the keychain.",
	finish: map[string]string{"openai": "stop", "responses": "completed", "anthropic": "end_turn"},
	deltas: 10,
	input:  17, output: 88,
	policy:  &policy{Status: "redacted", Guard: "secrets", Rule: "github-pat"},
	verdict: "redact",
	never:   []string{githubToken[4:12], githubToken[32:], stripeKey[8:16], stripeKey[24:]},
}, {
	name:   "denied",
	asks:   "What is on file for the tenant?",
	text:   "The tenant moved in last spring and pays on time. Number on file: ",
	finish: map[string]string{"openai": "content_filter", "responses": "content_filter", "anthropic": "refusal"},
	deltas: 6,
	input:  15, output: 46,
	policy:  &policy{Status: "guardrail_blocked", Guard: "pii", Rule: "us-ssn"},
	verdict: "deny",
	never:   []string{socialSecurity, socialSecurity[:6], socialSecurity[4:], "Please", "yourself"},
}, {
	name: "cutoff",
	asks: "Tell me about the lock at Foxton.",
	text: "The lock at Foxton replaced an inclined plane. The gauge reports with [redacted:github-pat] every hour, and the",
	failure: map[string]failure{
		"openai":    {Status: 502, Code: "upstream_failed"},
		"responses": {Status: 502, Code: "upstream_failed"},
		"anthropic": {Status: 502, Code: "api_error"},
	},
	deltas:  6,
	policy:  &policy{Status: "upstream_failed"},
	verdict: "allow",
	never:   []string{githubToken[4:12], githubToken[32:], "keeper"},
}, {
	name: "busy",
	asks: "How many locks are there at Caen Hill?",
	failure: map[string]failure{
		"openai":    {Status: 429, Code: "rate_limit_exceeded"},
		"responses": {Status: 429, Code: "rate_limit_exceeded"},
		"anthropic": {Status: 429, Code: "rate_limit_error"},
	},
	policy:  &policy{Status: "upstream_failed"},
	verdict: "allow",
}, {
	name: "refused",
	asks: "My number is " + socialSecurity + ". What may I deduct?",
	failure: map[string]failure{
		"openai":    {Status: 400, Code: "content_filter"},
		"responses": {Status: 400, Code: "content_filter"},
		"anthropic": {Status: 400, Code: "invalid_request_error"},
	},
	policy:  &policy{Status: "guardrail_blocked", Guard: "pii", Rule: "us-ssn"},
	verdict: "deny",
	final:   true,
	never:   []string{socialSecurity},
}}

// kinds are answers that are more than a text, and what must become of them.
var kinds = []scenario{{
	name:   "tools",
	asks:   "What does the gauge at Foxton say?",
	tool:   &gauge,
	tools:  []string{"read_gauge"},
	args:   `{"gauge":"Foxton","token":"[redacted:github-pat]"}`,
	finish: map[string]string{"openai": "tool_calls", "responses": "completed", "anthropic": "tool_use"},
	input:  21, output: 37,
	policy:  &policy{Status: "redacted", Guard: "secrets", Rule: "github-pat"},
	verdict: "redact",
	never:   []string{githubToken[4:12], githubToken[32:]},
}, {
	name:   "parallel",
	asks:   "Which is higher, Foxton or Caen Hill?",
	tool:   &gauge,
	tools:  []string{"read_gauge", "read_gauge"},
	args:   `{"gauge":"Foxton"}{"gauge":"Caen Hill","token":"[redacted:github-pat]"}`,
	finish: map[string]string{"openai": "tool_calls", "responses": "completed", "anthropic": "tool_use"},
	input:  24, output: 52,
	policy:  &policy{Status: "redacted", Guard: "secrets", Rule: "github-pat"},
	verdict: "redact",
	never:   []string{githubToken[4:12], githubToken[32:]},
}, {
	name:      "reasoning",
	asks:      "How many gates has a lock?",
	reasoning: "A lock has gates above and below. The token [redacted:github-pat] is not needed for that.",
	text:      "A lock has two pairs of gates.",
	finish:    map[string]string{"responses": "completed", "anthropic": "end_turn"}, // chat completions have none
	deltas:    3,
	input:     13, output: 61,
	policy:  &policy{Status: "redacted", Guard: "secrets", Rule: "github-pat"},
	verdict: "redact",
	never:   []string{githubToken[4:12], githubToken[32:]},
}, {
	name:   "structured",
	asks:   "Read the gauge at Foxton, in JSON.",
	schema: json.RawMessage(`{"type":"object","title":"reading","properties":{"gauge":{"type":"string"},"metres":{"type":"number"},"token":{"type":"string"}},"required":["gauge","metres","token"],"additionalProperties":false}`),
	text:   `{"gauge":"Foxton","metres":3,"token":"[redacted:github-pat]"}`,
	finish: map[string]string{"openai": "stop", "responses": "completed", "anthropic": "end_turn"},
	deltas: 3,
	input:  33, output: 29,
	policy:  &policy{Status: "redacted", Guard: "secrets", Rule: "github-pat"},
	verdict: "redact",
	never:   []string{githubToken[4:12], githubToken[32:]},
}}

// gauge is a tool of the caller's.
var gauge = toolSpec{
	Name:   "read_gauge",
	Schema: json.RawMessage(`{"type":"object","properties":{"gauge":{"type":"string"},"token":{"type":"string"}},"required":["gauge","token"],"additionalProperties":false}`),
}

// What the cassettes have planted, out of the examples of the rules.
const (
	githubToken    = "gh" + "p_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"
	stripeKey      = "sk_" + "live_" + "8Hq2Lw5Zx9Vb3Nm7Kc1Td4Rf"
	socialSecurity = "536-22-8714"
)

type scenario struct {
	name, asks    string
	text          string            // what the client's user sees
	finish        map[string]string // per format
	deltas        int               // pieces of text there are at least in the stream
	input, output int64             // usage, as the provider told it

	failure map[string]failure // per format; the status is that of the unstreamed answer
	policy  *policy            // the member `stoplog`, without its run; nil for plain allow
	verdict string             // the header of the unstreamed answer
	final   bool               // the client is told not to ask again

	tool            *toolSpec // what the client offers the model
	tools           []string  // what the model calls
	args, reasoning string
	schema          json.RawMessage

	never []string // what never reaches the client or a file
}

// TestClients has each client ask for each scenario, streamed and not.
func TestClients(t *testing.T) {
	g := serve(t, withCassettes(t, strict, "cassettes"))
	settled := map[string]scenario{} // by run
	for _, c := range clients {
		for _, s := range slices.Concat(scenarios, kinds) {
			if s.failure == nil && s.finish[c.format] == "" {
				continue
			}
			for _, stream := range []bool{false, true} {
				t.Run(strings.Join([]string{c.name, s.name, mode(stream)}, "/"), func(t *testing.T) {
					a, seen := askWith(t, g, c, question{Text: s.asks, Stream: stream, Tool: s.tool, Schema: s.schema})
					s.checkAnswer(t, c, a, stream)
					for _, e := range seen {
						s.checkExchange(t, e, stream)
						settled[e.AnswerHeader.Get("Stoplog-Run")] = s
					}
					if want := s.requests(c, stream); len(seen) != want {
						t.Errorf("the client asked %d times, want %d", len(seen), want)
					}
					if !t.Failed() {
						checks.Add(1)
					}
				})
			}
		}
	}
	g.stop(t)
	checkRecords(t, g, settled)
}

// withCassettes puts a folder's path where a configuration says CASSETTES.
func withCassettes(t *testing.T, config, dir string) string {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(config, "CASSETTES", dir)
}

func mode(stream bool) string {
	if stream {
		return "streamed"
	}
	return "whole"
}

// checkAnswer compares what the client tells its user. The streamed answer and
// the whole one are measured by the same words, so they are equal.
func (s scenario) checkAnswer(t *testing.T, c client, got answer, stream bool) {
	t.Helper()
	want := answer{Text: s.text, Reasoning: s.reasoning, Tools: s.tools, Args: s.args, Finish: s.finish[c.format], Input: s.input, Output: s.output, Policy: s.policy}
	if s.failure != nil {
		f := s.failure[c.format]
		want = answer{Error: &f}
		if stream && s.text != "" { // the error comes after text, inside the stream
			want.Text, f.Status = s.text, 0
		}
		if got.Error != nil && got.Error.Message == "" {
			t.Error("the error says nothing")
		}
		// Clients differ in what they tell of an answer that broke off, and drop
		// what stands beside the error; checkExchange looks for that.
		got = answer{Text: got.Text, Deltas: got.Deltas, Error: got.Error}
	}
	if c.own {
		want.Policy = nil
	}
	if got.Deltas < s.deltas && stream {
		t.Errorf("the text came in %d pieces, want at least %d", got.Deltas, s.deltas)
	}
	got.Deltas = 0
	if got.Policy != nil {
		got.Policy.Run = ""
	}
	if got.Error != nil {
		got.Error.Message, got.Error.Kind = "", ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client sees (-want +got):\n%s", diff)
	}
}

// requests is how often a client asks: again only where that may help. A stream
// that has begun can't be asked for again.
func (s scenario) requests(c client, stream bool) int {
	begun := stream && s.text != ""
	if c.unsure && s.failure[c.format].Status == http.StatusTooManyRequests {
		return 1
	}
	if s.failure != nil && !s.final && !begun {
		return 1 + retries
	}
	return 1
}

var runID = regexp.MustCompile(`^run_[0-9a-hjkmnp-tv-z]{26}$`)

// checkExchange looks at what passed on the wire.
func (s scenario) checkExchange(t *testing.T, e exchange, stream bool) {
	t.Helper()
	if run := e.AnswerHeader.Get("Stoplog-Run"); !runID.MatchString(run) {
		t.Errorf("header Stoplog-Run: %q", run)
	}
	verdict := s.verdict
	if stream && (s.text != "" || s.tool != nil) { // known when the answer began: the question's
		verdict = "allow"
	}
	if got := e.AnswerHeader.Get("Stoplog-Verdict"); got != verdict {
		t.Errorf("header Stoplog-Verdict: %q, want %q", got, verdict)
	}
	if got := e.AnswerHeader.Get("X-Should-Retry") == "false"; got != s.final {
		t.Errorf("header X-Should-Retry: %q, want false: %v", e.AnswerHeader.Get("X-Should-Retry"), s.final)
	}
	if e.Cut {
		t.Error("the answer broke off on the wire")
	}
	for _, never := range s.never {
		if bytes.Contains(e.Answer, []byte(never)) {
			t.Errorf("%q is on the wire", never)
		}
	}
	told := bytes.Contains(e.Answer, []byte(`"stoplog":{`))
	if told != (s.policy != nil) {
		t.Errorf("a member stoplog is on the wire: %v, want %v", told, s.policy != nil)
	}
	if s.policy != nil && !bytes.Contains(e.Answer, []byte(`"status":"`+s.policy.Status+`"`)) {
		t.Errorf("no status %s on the wire", s.policy.Status)
	}
	if t.Failed() {
		t.Logf("status %d, on the wire:\n%s", e.Status, e.Answer)
	}
}

// checkRecords looks at what the gateway wrote down: each run that a client saw
// was settled once, as what the client was told ends a run, and nothing that
// was withheld is in a file or was said.
func checkRecords(t *testing.T, g *gateway, settled map[string]scenario) {
	t.Helper()
	runs := g.records(t)
	for run, s := range settled {
		var ends []record
		for _, r := range runs[run] {
			if r.Kind == "settled" {
				ends = append(ends, r)
			}
		}
		if len(ends) != 1 {
			t.Errorf("%s: run %s has %d records and is settled %d times", s.name, run, len(runs[run]), len(ends))
			continue
		}
		status := "completed"
		if s.policy != nil {
			status = map[string]string{"redacted": "completed", "guardrail_blocked": "blocked", "upstream_failed": "failed"}[s.policy.Status]
		}
		if ends[0].Status != status {
			t.Errorf("%s: run %s is settled as %s, want %s", s.name, run, ends[0].Status, status)
		}
		usage := ends[0].Usage
		if s.output > 0 && (usage.Input != s.input || usage.Output != s.output || usage.Estimated) {
			t.Errorf("%s: run %s has usage %+v, want %d and %d, as the provider told", s.name, run, usage, s.input, s.output)
		}
		if s.output == 0 && s.text != "" && !usage.Estimated {
			t.Errorf("%s: run %s has usage %+v, want an estimate", s.name, run, usage)
		}
	}
	if len(runs) != len(settled) {
		t.Errorf("%d runs are recorded, clients saw %d", len(runs), len(settled))
	}
	files := map[string]string{"what stoplog said": g.said.String()}
	for _, name := range stateFiles(t, g) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(text)
	}
	for _, s := range slices.Concat(scenarios, kinds) {
		for _, never := range append(s.never, madeUpKey) {
			for name, text := range files {
				if strings.Contains(text, never) {
					t.Errorf("%s: %q is in %s", s.name, never, name)
				}
			}
		}
	}
}

// stateFiles lists all files that the gateway keeps.
func stateFiles(t *testing.T, g *gateway) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(g.state, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
