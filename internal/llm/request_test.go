package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/llm"
)

var readFile = llm.Tool{Name: "read_file", Description: "reads", Schema: json.RawMessage(`{"type":"object"}`)}

func result(text string) *llm.Result { return &llm.Result{Text: text} }

// TestBody is what each provider is sent, word for word.
func TestBody(t *testing.T) {
	signed := json.RawMessage(`{"protocol":"anthropic","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Look."},{"type":"tool_use","id":"a","name":"read_file","input":{"path":"x"}}]}`)
	for _, c := range []struct {
		what              string
		request           llm.Request
		openai, anthropic string
	}{
		{"a question", llm.Request{Model: "m", System: "Be <brief>.", Messages: []llm.Message{llm.User{Text: "a & b"}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be <brief>."},{"role":"user","content":"a & b"}]}`,
			`{"model":"m","max_tokens":8192,"stream":true,"system":"Be <brief>.","messages":[{"role":"user","content":[{"type":"text","text":"a & b"}]}]}`},
		{"tools", llm.Request{Model: "m", MaxTokens: 9, Tools: []llm.Tool{readFile}, Messages: []llm.Message{llm.User{Text: "q"}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"read_file","description":"reads","parameters":{"type":"object"}}}],"max_completion_tokens":9}`,
			`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"tools":[{"name":"read_file","description":"reads","input_schema":{"type":"object"}}]}`},
		{"an answer without calls is wanted", llm.Request{Model: "m", Tools: []llm.Tool{readFile}, NoCalls: true, Messages: []llm.Message{
			llm.User{Text: "q"}, llm.Assistant{Text: "Look.", Calls: []llm.Call{
				{ID: "a", Tool: "read_file", Args: `{"path":"x"}`, Result: result("X")},
				{ID: "b", Tool: "read_file", Args: `{"path":"y"}`, Result: &llm.Result{Text: "no", Failed: true}}}}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Look.","tool_calls":[{"id":"a","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"x\"}"}},{"id":"b","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"y\"}"}}]},{"role":"tool","content":"X","tool_call_id":"a"},{"role":"tool","content":"no","tool_call_id":"b"}],"tools":[{"type":"function","function":{"name":"read_file","description":"reads","parameters":{"type":"object"}}}],"tool_choice":"none"}`,
			`{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"Look."},{"type":"tool_use","id":"a","name":"read_file","input":{"path":"x"}},{"type":"tool_use","id":"b","name":"read_file","input":{"path":"y"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"X"},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true}]}],"tools":[{"name":"read_file","description":"reads","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`},
		{"ids that say nothing, arguments that are none, an answer that was nothing", llm.Request{Model: "m", Messages: []llm.Message{
			llm.User{Text: "q"}, llm.Assistant{Text: " "}, llm.User{Text: "go on"}, llm.Assistant{Calls: []llm.Call{
				{ID: "", Tool: "t", Args: `{`, Result: result("1")}, {ID: "call_1", Tool: "t", Args: ``, Result: result("2")},
				{ID: "call_1", Tool: "t", Args: `[]`, Result: result("3")}, {ID: "", Tool: "t", Args: ` {} `, Result: result("")}}}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"},{"role":"user","content":"go on"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_2","type":"function","function":{"name":"t","arguments":"{\"malformed\":\"{\"}"}},{"id":"call_1","type":"function","function":{"name":"t","arguments":"{\"malformed\":\"\"}"}},{"id":"call_3","type":"function","function":{"name":"t","arguments":"{\"malformed\":\"[]\"}"}},{"id":"call_4","type":"function","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"call_2"},{"role":"tool","content":"2","tool_call_id":"call_1"},{"role":"tool","content":"3","tool_call_id":"call_3"},{"role":"tool","content":"","tool_call_id":"call_4"}]}`,
			`{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"user","content":[{"type":"text","text":"go on"}]},{"role":"assistant","content":[{"type":"tool_use","id":"call_2","name":"t","input":{"malformed":"{"}},{"type":"tool_use","id":"call_1","name":"t","input":{"malformed":""}},{"type":"tool_use","id":"call_3","name":"t","input":{"malformed":"[]"}},{"type":"tool_use","id":"call_4","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_2","content":"1"},{"type":"tool_result","tool_use_id":"call_1","content":"2"},{"type":"tool_result","tool_use_id":"call_3","content":"3"},{"type":"tool_result","tool_use_id":"call_4","content":""}]}]}`},
		{"what was kept", llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: "q"}, llm.Assistant{Text: "Look.", Kept: signed,
			Calls: []llm.Call{{ID: "a", Tool: "read_file", Args: `{"path":"x"}`, Result: result("X")}}}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Look.","tool_calls":[{"id":"a","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"x\"}"}}]},{"role":"tool","content":"X","tool_call_id":"a"}]}`,
			`{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Look."},{"type":"tool_use","id":"a","name":"read_file","input":{"path":"x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"X"}]}]}`},
		{"what was kept, of other calls", llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: "q"}, llm.Assistant{Text: "Look.", Kept: signed}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Look."}]}`,
			`{"model":"m","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"Look."}]}]}`},
	} {
		for protocol, want := range map[string]string{govern.OpenAI: c.openai, govern.Anthropic: c.anthropic} {
			got, err := (&llm.Client{Protocol: protocol}).Body(c.request)
			if err != nil || string(got) != want {
				t.Errorf("%s, %s, %v:\n got %s\nwant %s", c.what, protocol, err, got, want)
			}
			parts, err := llm.Render(protocol, c.request.Messages)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range parts {
				if !strings.Contains(want, string(part)) {
					t.Errorf("%s, %s: rendered is %s, and it is not in what is sent", c.what, protocol, part)
				}
			}
		}
	}
}

// keurcien/auxilia#97: at the cap, calls were left without results, and no later
// turn of the conversation was taken by the provider.
func TestDanglingCall(t *testing.T) {
	r := llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: "q"}, llm.Assistant{Calls: []llm.Call{
		{ID: "a", Tool: "t", Args: "{}", Result: result("")}, {ID: "b", Tool: "t", Args: "{}"}}}, llm.User{Text: "and now?"}}}
	for _, protocol := range []string{govern.OpenAI, govern.Anthropic} {
		sent := false
		c := &llm.Client{Protocol: protocol, Transport: provider(nil)}
		_, err := c.Body(r)
		if !errors.Is(err, llm.ErrDangling) || err.Error() != "ask model m: message 1, call 2 of t: a tool call has no result" {
			t.Errorf("%s: %v", protocol, err)
		}
		for _, err := range c.Ask(t.Context(), r) {
			sent = sent || !errors.Is(err, llm.ErrDangling)
		}
		if sent {
			t.Errorf("%s: it was sent", protocol)
		}
	}
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct {
		protocol string
		request  llm.Request
		want     string
	}{
		{"gopher", hello, `ask a model: unknown protocol "gopher"`},
		{govern.OpenAI, llm.Request{Messages: hello.Messages}, "ask model : the request names no model"},
		{govern.OpenAI, llm.Request{Model: "m"}, "ask model m: the request has no message of a user"},
		{govern.Anthropic, llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: "\n"}}}, "ask model m: message 0: a user says nothing"},
		{govern.Anthropic, llm.Request{Model: "m", Messages: hello.Messages, Tools: []llm.Tool{{Name: "t", Schema: json.RawMessage(`{`)}}}, "ask model m: encode a request: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input"},
	} {
		if _, err := (&llm.Client{Protocol: c.protocol}).Body(c.request); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := llm.Render("gopher", nil); err == nil {
		t.Error("rendered for a protocol that is not known")
	}
}
