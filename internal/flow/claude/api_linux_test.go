package claude

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
)

// key is a made-up key of the rule aws-access-token.
const key = "AK" + "IA" + "2Q7XN4RZ6LTVWB3K"

// secrets denies what the built-in pack of secrets finds.
func secrets(t *testing.T) guard.Member {
	t.Helper()
	pack, err := rules.Select("secrets")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(pack, match.Options{Name: "secrets", Verdict: guard.Deny})
	if err != nil {
		t.Fatal(err)
	}
	return guard.Member{Guard: g, Mode: guard.Enforce}
}

// silent is a provider that says nothing until its caller has left.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAskAPI(t *testing.T) {
	for name, c := range map[string]struct {
		turns  []turn
		guards []guard.Member
		change func(*flow.Inquiry)
		state  steps.Standing
		reason string
		output string
		asked  int
	}{
		"an answer":            {turns: []turn{{text: goAnswer}}, state: steps.Passed, output: goAnswer},
		"with space around it": {turns: []turn{{text: "\n" + goAnswer + "\n"}}, state: steps.Passed, output: goAnswer},
		"fits the second time": {turns: []turn{{text: "I think go."}, {text: goAnswer}}, state: steps.Passed, output: goAnswer, asked: 2},
		"never fits": {
			turns: []turn{{text: `{"verdict":"maybe","why":"x"}`}}, state: steps.FailedSchema, asked: 2,
			reason: "/verdict must be one of [go no-go] (asked twice; the first time its answer",
		},
		"in markdown":      {turns: []turn{{text: "```json\n" + goAnswer + "\n```"}}, state: steps.FailedSchema, asked: 2, reason: "not one JSON document"},
		"two documents":    {turns: []turn{{text: goAnswer + goAnswer}}, state: steps.FailedSchema, asked: 2, reason: "not one JSON document"},
		"a list":           {turns: []turn{{text: "[" + goAnswer + "]"}}, state: steps.FailedSchema, asked: 2, reason: "not an object"},
		"another model":    {turns: []turn{{text: goAnswer, model: "claude-other-20250101"}}, state: steps.Failed, reason: "model claude-other-20250101 served"},
		"too many tokens":  {turns: []turn{{text: goAnswer, in: 20_000}}, state: steps.FailedBudget, reason: "it took 20010 tokens of 10000"},
		"without end":      {turns: []turn{{endless: true}}, state: steps.FailedBudget, reason: "tokens of 10000"},
		"repair too dear":  {turns: []turn{{text: "no", in: 9_990}}, state: steps.FailedBudget, reason: "it took 10000 tokens of 10000"},
		"a provider fails": {turns: []turn{{status: 500}}, state: steps.Failed, reason: "status 500"},
		"a secret":         {turns: []turn{{text: `{"verdict":"go","why":"` + key + `"}`}}, guards: []guard.Member{secrets(t)}, state: steps.Blocked, reason: "guard secrets"},
		"a secret asked": {
			turns: []turn{{text: goAnswer}}, guards: []guard.Member{secrets(t)}, state: steps.Blocked, reason: "guard secrets", asked: -1,
			change: func(i *flow.Inquiry) { i.Prompt = "What is " + key + "?" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := inquiry(t)
			i.Via = flow.ViaAPI
			if c.change != nil {
				c.change(&i)
			}
			up := &provider{turns: c.turns}
			j := (&Driver{Door: door(t, up, c.guards...)}).Judge(t.Context(), i)
			if j.State != c.state || !strings.Contains(j.Reason, c.reason) || string(j.Output) != c.output {
				t.Errorf("%s (%s) %s, want %s (…%s…) %s", j.State, j.Reason, j.Output, c.state, c.reason, c.output)
			}
			if n, want := len(up.questions()), max(c.asked, 0); c.asked == 0 && n != 1 || c.asked != 0 && n != want {
				t.Errorf("the provider was asked %d times", n)
			}
			for _, q := range up.questions() {
				if len(q.Tools) > 0 {
					t.Errorf("it was offered tools: %+v", q.Tools)
				}
			}
			if c.state == steps.Passed && (j.Served != pin || j.Usage.Input+j.Usage.Output != int64(max(c.asked, 1))*20 || j.Usage.Estimated) {
				t.Errorf("served by %s for %+v", j.Served, j.Usage)
			}
		})
	}
}

func TestAskAPITooLate(t *testing.T) {
	i := inquiry(t)
	i.Via, i.MaxLatency = flow.ViaAPI, 50*time.Millisecond
	if j := (&Driver{Door: door(t, silent{})}).Judge(t.Context(), i); j.State != steps.FailedTimeout {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if j := (&Driver{Door: door(t, silent{})}).Judge(ctx, i); j.State != steps.Cancelled {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
}

// What the model says is shown as the door lets it out.
func TestAskAPIShows(t *testing.T) {
	i := inquiry(t)
	i.Via = flow.ViaAPI
	var shown strings.Builder
	i.Show = func(channel, text string) { shown.WriteString(channel + " " + text) }
	(&Driver{Door: door(t, &provider{turns: []turn{{text: goAnswer}}})}).Judge(t.Context(), i)
	if shown.String() != "text "+goAnswer {
		t.Errorf("shown %q", shown.String())
	}
}

func TestSchemaIsClosed(t *testing.T) {
	for _, schema := range []string{``, `{"type":7}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1/schema"}`} {
		i := inquiry(t)
		i.Schema = json.RawMessage(schema)
		if j := (&Driver{}).Judge(t.Context(), i); j.State != steps.Failed || !strings.Contains(j.Reason, "read the schema of the answer") {
			t.Errorf("%s: %s (%s)", schema, j.State, j.Reason)
		}
	}
}
