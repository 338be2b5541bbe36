package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

func ask(t *testing.T, f *Format, v guard.Verdict, doc string) *Request {
	t.Helper()
	r, err := f.Request(Options{Context: context.Background(), Chain: patterns(t, v, "secrets", "credentials", "pii")}, []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return r
}

// TestUsageOption: the usage is asked for upstream, and what the caller asked
// for is known.
func TestUsageOption(t *testing.T) {
	cases := []struct {
		doc, sent string
		asked     bool
	}{
		{`{"model":"m"}`, `{"model":"m"}`, false},
		{`{"model":"m","stream":false}`, `{"model":"m","stream":false}`, false},
		{`{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, false},
		{"{ \"stream\" : true }\n", "{ \"stream\" : true ,\"stream_options\":{\"include_usage\":true}}\n", false},
		{`{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{"include_usage":true}}`, false},
		{`{"stream":true,"stream_options":{}}`, `{"stream":true,"stream_options":{"include_usage":true}}`, false},
		{`{"stream":true,"stream_options":{ "x": 1 }}`, `{"stream":true,"stream_options":{ "x": 1 ,"include_usage":true}}`, false},
		{`{"stream":true,"stream_options":{"include_usage":false}}`, `{"stream":true,"stream_options":{"include_usage":true}}`, false},
		{`{"stream":true,"stream_options":{"include_usage":null}}`, `{"stream":true,"stream_options":{"include_usage":true}}`, false},
		{`{"stream":true,"stream_options":{"include_usage":true,"x":"y"}}`, `{"stream":true,"stream_options":{"include_usage":true,"x":"y"}}`, true},
		{`{"stream_options":{"include_usage":true},"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`, true},
		{`{"stream":true,"stream_options":"yes"}`, `{"stream":true,"stream_options":"yes"}`, false},
		{`{"stream":true,"stream_options":{"x":"` + planted + `"}}`, `{"stream":true,"stream_options":{"x":"[redacted:github-pat]","include_usage":true}}`, false},
	}
	for _, c := range cases {
		r := ask(t, OpenAIChat, guard.Redact, c.doc)
		if string(r.Doc) != c.sent || r.Usage != c.asked {
			t.Errorf("%s\nsent %s, asked %v", c.doc, r.Doc, r.Usage)
		}
	}
	r := ask(t, AnthropicMessages, guard.Redact, `{"stream":true,"model":"m"}`)
	if string(r.Doc) != `{"stream":true,"model":"m"}` || !r.Stream || r.Model != "m" {
		t.Errorf("anthropic: %+v", r)
	}
}

// requests have every field that a table names, and a few that none does.
var requests = map[*Format]string{
	OpenAIChat: `{"model":"m","messages":[
	{"role":"system","content":"s","name":"n"},
	{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"new","new":"x"}]},
	{"role":"assistant","content":null,"refusal":"r","reasoning":"a","reasoning_content":"b","reasoning_details":[{"type":"reasoning.encrypted","data":"Z0FB","signature":"c2ln","text":"x"}],"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": [\"b\", 1.50]}"}}],"function_call":{"name":"g","arguments":"{}"}},
	{"role":"tool","tool_call_id":"call_1","content":"result"}],
	"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}}}],
	"tool_choice":"auto","n":2,"temperature":0.70,"stop":["end"],"user":"u","metadata":{"k":"v"},"response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`,
	AnthropicMessages: `{"model":"m","max_tokens":100,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
	{"role":"user","content":"plain"},
	{"role":"user","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0="}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"},"title":"x"},{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}]},
	{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"c2ln"},{"type":"redacted_thinking","data":"ZW5j"},{"type":"text","text":"a","citations":[{"type":"web","cited_text":"c","encrypted_index":"ZW5j"}]},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a": ["b", 1.50]}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0="}}]},{"type":"tool_result","tool_use_id":"toolu_2","content":"s"}]}],
	"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"},"stop_sequences":["x"],"metadata":{"user_id":"u"}}`,
}

// TestPlantedInARequest puts a secret into each string of a request in turn:
// it is replaced, or the request refused, where the provider acts on the field.
func TestPlantedInARequest(t *testing.T) {
	for f, doc := range requests {
		if r := ask(t, f, guard.Redact, doc); string(r.Doc) != doc || r.Outcome.Status != Allowed {
			t.Errorf("%s: clean, became %s\n%+v", f.Name(), r.Doc, r.Outcome)
		}
		refused, replaced := 0, 0
		places, with := plants(doc)
		for k, place := range places {
			for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
				r := ask(t, f, v, with[k])
				if bytes.Contains(r.Doc, []byte(planted)) || r.Outcome.Status == Allowed {
					t.Errorf("%s: a secret in %s went to the provider: %+v\n%s", f.Name(), place, r.Outcome, r.Doc)
				}
				switch {
				case r.Doc == nil:
					refused++
				case !json.Valid(r.Doc) || v != guard.Redact:
					t.Errorf("%s: a secret in %s: %s: %s", f.Name(), place, v, r.Doc)
				default:
					replaced++
					if bytes.Count(r.Doc, []byte("[redacted:github-pat]")) != 1 {
						t.Errorf("%s: a secret in %s: %s", f.Name(), place, r.Doc)
					}
				}
			}
		}
		t.Logf("%s: %d places, %d refused, %d replaced", f.Name(), len(places), refused, replaced)
		if len(places) < 40 || replaced < 20 {
			t.Errorf("%s: %d places, %d replaced", f.Name(), len(places), replaced)
		}
	}
}

// TestRequestsAsTheyCame: what is replaced is spliced in, and the rest stays.
func TestRequestsAsTheyCame(t *testing.T) {
	cases := []struct {
		name      string
		f         *Format
		doc, want string // "" if it is refused
	}{
		{"arguments of a call", OpenAIChat,
			`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{ \"k\": \"g\\u0068` + planted[2:] + `\", \"n\": 1.50 }"}}]}]}`,
			`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{ \"k\": \"[redacted:github-pat]\", \"n\": 1.50 }"}}]}]}`},
		{"a number in arguments", OpenAIChat,
			`{"messages":[{"tool_calls":[{"function":{"arguments":"{\"k\": 4111111111111111}"}}]}]}`,
			`{"messages":[{"tool_calls":[{"function":{"arguments":"{\"k\": \"[redacted:credit-card]\"}"}}]}]}`},
		{"a number in input", AnthropicMessages,
			`{"messages":[{"content":[{"type":"tool_use","input":{"k":4111111111111111 , "j":[1e2]}}]}]}`,
			`{"messages":[{"content":[{"type":"tool_use","input":{"k":"[redacted:credit-card]" , "j":[1e2]}}]}]}`},
		{"a number that is nobody's", OpenAIChat, `{"user_id": 4111111111111111}`, `{"user_id": "[redacted:credit-card]"}`},
		{"a number that is somebody's", OpenAIChat, `{"max_tokens":4111111111111111}`, ``},
		{"a member name", OpenAIChat, `{"metadata":{"` + planted + `":1}}`, `{"metadata":{"[redacted:github-pat]":1}}`},
		{"a document of text", AnthropicMessages,
			`{"messages":[{"content":[{"type":"document","source":{"type":"text","data":"` + planted + `"}}]}]}`,
			`{"messages":[{"content":[{"type":"document","source":{"type":"text","data":"[redacted:github-pat]"}}]}]}`},
		{"an image by address", OpenAIChat,
			`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://ann:hunter2@localhost/"}}]}]}`,
			`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://ann:[redacted:url-credentials]@localhost/"}}]}]}`},
		{"an image as data", OpenAIChat,
			`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AKIAQ3EGRIA7TX5WZ2LM4111111111111111"}}]}]}`,
			`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AKIAQ3EGRIA7TX5WZ2LM4111111111111111"}}]}]}`},
		{"the role of another's", OpenAIChat, `{"messages":[{"role":"` + planted + `"}]}`, ``},
	}
	for _, c := range cases {
		r := ask(t, c.f, guard.Redact, c.doc)
		if string(r.Doc) != c.want {
			t.Errorf("%s:\n%s\nbecame\n%s\nwant\n%s\n%+v", c.name, c.doc, r.Doc, c.want, r.Outcome)
		}
	}
	for _, bad := range []string{``, `{`, `[]`, `"x"`, `{"model":"a","model":"b"}`, `{"model":"a","Model":"b"}`, `{"x":1,"x":2}`, `{"messages":[{"content":"a","\u0063ontent":"b"}]}`, "{\"a\":\"\n\"}", strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600)} {
		if r, err := OpenAIChat.Request(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets")}, []byte(bad)); err == nil {
			t.Errorf("%.40s was accepted: %s", bad, r.Doc)
		}
	}
}

// TestManyChoices: how many answers were asked for.
func TestManyChoices(t *testing.T) {
	for n, want := range map[string]int{"1": 1, "3": 3, "128": 128, "0": 1, "-1": 1, "1e1": 1, "9999999999999999999999": 1, `"2"`: 1, "null": 1} {
		r := ask(t, OpenAIChat, guard.Redact, fmt.Sprintf(`{"n":%s}`, n))
		if r.Choices != want {
			t.Errorf("n %s: %d choices", n, r.Choices)
		}
	}
}
