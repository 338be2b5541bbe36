package wire

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// toolRules are rules for a test: by name, or by what the arguments hold.
type toolRules struct {
	named map[string]guard.Verdict
	holds string // a call whose arguments hold this is denied; empty: none is
}

func (r toolRules) MayStop(tool string) bool { return r.holds != "" || r.named[tool] > guard.Allow }

func (r toolRules) Judge(tool string, args []byte) guard.Verdict {
	if r.holds != "" && bytes.Contains(args, []byte(r.holds)) {
		return guard.Deny
	}
	return r.named[tool]
}

func openaiCall1(index int, name, args string) string {
	return deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, index, index, name, args))
}

func openaiArgs(index int, args string) string {
	return deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, index, args))
}

func anthropicCall(index int, name string, args ...string) []string {
	events := []string{blockStart(index, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":%q,"input":{}}`, index, name))}
	for _, a := range args {
		events = append(events, blockDelta(index, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, a)))
	}
	return append(events, blockStop(index))
}

// TestToolRules: a call that a rule may stop shows nothing of itself before it is
// complete, and then all of itself or nothing; what stands before it stays, and
// nothing follows one that was stopped.
func TestToolRules(t *testing.T) {
	none := guard.NewChain(guard.Options{})
	for _, f := range []*Format{OpenAIChat, AnthropicMessages} {
		calls := func(name string, args ...string) []string {
			if f == AnthropicMessages {
				return slices.Concat([]string{messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("I will."), blockStop(0)}, anthropicCall(1, name, args...))
			}
			events := []string{deltaOf(`{"content":"I will."}`), openaiCall1(0, name, "")}
			for _, a := range args {
				events = append(events, openaiArgs(0, a))
			}
			return events
		}
		end := []string{finishOf("tool_calls"), "[DONE]"}
		if f == AnthropicMessages {
			end = []string{messageDelta, messageStop}
		}
		for name, c := range map[string]struct {
			rules  toolRules
			tool   string
			args   []string
			passes bool
			early  bool // something of it shows before its end
			status Status
		}{
			"no rule":                   {toolRules{}, "ls", []string{`{"a":`, `1}`}, true, true, Allowed},
			"a rule that lets it be":    {toolRules{holds: "rm"}, "ls", []string{`{"a":`, `1}`}, true, false, Allowed},
			"a rule about arguments":    {toolRules{holds: "rm -rf"}, "sh", []string{`{"c":"r`, `m -r`, `f /"}`}, false, false, Blocked},
			"a rule about the name":     {toolRules{named: map[string]guard.Verdict{"rm": guard.Deny}}, "rm", []string{`{"c":`, `1}`}, false, false, Blocked},
			"a call without arguments":  {toolRules{named: map[string]guard.Verdict{"rm": guard.Deny}}, "rm", nil, false, false, Blocked},
			"one that a person decides": {toolRules{named: map[string]guard.Verdict{"rm": guard.RequireApproval}}, "rm", []string{`{"c":1}`}, false, false, ApprovalRequired},
			"arguments cut off":         {toolRules{holds: "rm"}, "sh", []string{`{"c":"x`}, true, false, Allowed},
		} {
			t.Run(f.Name()+"/"+name, func(t *testing.T) {
				p := newTape(t, f, none, Options{Run: "r", Calls: c.rules})
				shown := p.say(calls(c.tool, c.args...)...)
				if got := strings.Contains(shown, `"`+c.tool+`"`); got != c.early && f == OpenAIChat {
					t.Errorf("before its end: %q shows: %v", c.tool, got)
				}
				p.say(end...)
				h := p.end(nil)
				if got := strings.Contains(string(p.out), `"`+c.tool+`"`); got != c.passes {
					t.Errorf("the call passes: %v\n%s", got, p.out)
				}
				if !c.passes && len(c.args) > 0 && strings.Contains(string(p.out), strings.Trim(c.args[len(c.args)-1], `"{}`)+`"}`) {
					t.Errorf("arguments of a call that was stopped:\n%s", p.out)
				}
				if text := h.text["0/content"] + h.text["0/text"]; !strings.Contains(joined(h), "I will.") {
					t.Errorf("what stood before is %q", text)
				}
				o := p.s.Outcome()
				if o.Status != c.status || !c.passes && (o.Guard != GuardPolicy || o.Rule != RuleTools) {
					t.Errorf("outcome %+v", o)
				}
				ds := p.s.Decisions()
				if c.passes != (len(ds) == 0) {
					t.Errorf("decisions %+v", ds)
				}
			})
		}
	}
}

// TestToolRulesStreamedIsUnstreamed: the same of made-up answers, whose calls hold
// what a rule forbids now and then, under guards that find something too.
func TestToolRulesStreamedIsUnstreamed(t *testing.T) {
	w := &writer{secrets: secrets(t)}
	chain := patterns(t, guard.Redact, "secrets", "credentials", "pii")
	for _, f := range []*Format{OpenAIChat, OpenAIResponses, AnthropicMessages} {
		stopped, passed := 0, 0
		for seed := range uint64(60) {
			w.Rand, w.odds = rand.New(rand.NewPCG(seed, 3)), int(seed%3)*8
			m := makeUp(w, f)
			opt := m.options(chain)
			opt.Calls = toolRules{holds: []string{"e", "7", "[", ":{", "\\u"}[seed%5]}
			switch v := m.format.Answer(opt, []byte(m.body)); {
			case v.Outcome.Rule == RuleTools:
				stopped++
			case len(m.args) > 0:
				passed++
			}
			t.Run(fmt.Sprintf("%s/%d", f.Name(), seed), func(t *testing.T) { checkLaws(t, w, m, opt, guard.Allow) })
		}
		if stopped < 5 || passed < 5 {
			t.Errorf("%s: %d answers were stopped by a rule, %d with calls passed", f.Name(), stopped, passed)
		}
	}
}

// TestToolRulesOfAChain: where a guard may deny a call is held whole as well.
func TestToolRulesOfAChain(t *testing.T) {
	opt := Options{Context: context.Background(), Chain: patterns(t, guard.Deny, "secrets"), Calls: toolRules{holds: "rm"}}
	body := `{"choices":[{"index":0,"message":{"content":"ok","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"k\":\"` + planted + ` rm\"}"}}]},"finish_reason":"tool_calls"}]}`
	v := OpenAIChat.Answer(opt, []byte(body))
	if v.Outcome.Rule != "github-pat" || len(v.Decisions) != 1 || strings.Contains(string(v.Doc), "rm") {
		t.Errorf("the guard does not decide first: %+v\n%s", v.Outcome, v.Doc)
	}
}

// TestToolRulesOfResponses: a call without arguments, and one of the provider's own
// tools, which goes by its kind.
func TestToolRulesOfResponses(t *testing.T) {
	rules := toolRules{named: map[string]guard.Verdict{"rm": guard.Deny, "shell_call": guard.RequireApproval}}
	for item, want := range map[string]Status{
		`{"id":"i","type":"function_call","call_id":"c","name":"rm","arguments":"","status":"completed"}`:                                     Blocked,
		`{"id":"i","type":"function_call","call_id":"c","name":"ls","arguments":"{}","status":"completed"}`:                                   Allowed,
		`{"id":"i","type":"shell_call","call_id":"c","action":{"commands":["ls"],"timeout_ms":1,"max_output_length":1},"status":"completed"}`: ApprovalRequired,
		`{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":"rm","annotations":[]}],"status":"completed"}`: Allowed,
	} {
		body := `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"model":"m","output":[` + item + `],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}`
		added := strings.Replace(item, `"completed"`, `"in_progress"`, 1)
		frames := ""
		for i, e := range []string{
			`{"type":"response.created","response":` + strings.Replace(strings.Replace(body, item, "", 1), `"completed"`, `"in_progress"`, 1),
			`{"type":"response.output_item.added","output_index":0,"item":` + added,
			`{"type":"response.output_item.done","output_index":0,"item":` + item,
			`{"type":"response.completed","response":` + body,
		} {
			frames += fmt.Sprintf("event: %s\ndata: %s,\"sequence_number\":%d}\n\n", strings.Split(e, `"`)[3], e, i)
		}
		opt := Options{Context: context.Background(), Chain: guard.NewChain(guard.Options{}), Calls: rules, Run: "r"}
		v := OpenAIResponses.Answer(opt, []byte(body))
		out, ds, o := stream(OpenAIResponses, opt, []byte(frames), 1<<20)
		if v.Outcome.Status != want || o.Status != want || len(ds) != len(v.Decisions) {
			t.Errorf("%s: unstreamed %+v, streamed %+v, want %s", item, v.Outcome, o, want)
		}
		if got := strings.Contains(string(v.Doc), `"i"`); got != (want == Allowed) || strings.Contains(string(out), `"i"`) != got {
			t.Errorf("%s passes: %v\n%s\n%s", item, got, v.Doc, out)
		}
	}
}
