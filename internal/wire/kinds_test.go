package wire

import (
	"context"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestKindsOfChat is what chat completions have beside content: the words of
// sound, input of custom tools, citations. Cut over two deltas or in one
// document, a secret in them does not pass, and the record is the same.
func TestKindsOfChat(t *testing.T) {
	escaped := strings.Replace(planted, "g", `\u0067`, 1)
	for name, c := range map[string]struct{ first, second, whole string }{
		"a transcript": {`{"audio":{"id":"a","data":"UklG","transcript":"it is ` + half + `"}}`, `{"audio":{"transcript":"` + rest + ` so"}}`,
			`{"audio":{"id":"a","data":"UklG","transcript":"it is ` + planted + ` so"}}`},
		"a custom tool's input": {`{"tool_calls":[{"index":0,"id":"c","type":"custom","custom":{"name":"sql","input":"select ` + half + `"}}]}`, `{"tool_calls":[{"index":0,"custom":{"input":"` + rest + ` from t"}}]}`,
			`{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"select ` + planted + ` from t"}}]}`},
		"a key, escaped and cut": {`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":` + jsonString(`{"`+escaped[:4]) + `}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":` + jsonString(escaped[4:]+`":1}`) + `}}]}`,
			`{"tool_calls":[{"id":"c","function":{"name":"f","arguments":` + jsonString(`{"`+escaped+`":1}`) + `}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
				chain := patterns(t, v, "secrets")
				upstream := serve(OpenAIChat, []string{deltaOf(c.first), deltaOf(c.second), finishOf("stop")})
				body := `{"id":"c1","model":"m","choices":[{"index":0,"message":` + c.whole + `,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`
				whole := OpenAIChat.Answer(Options{Context: context.Background(), Chain: chain, Run: "r"}, []byte(body))
				out, ds, o := stream(OpenAIChat, Options{Chain: chain, Run: "r"}, upstream, 1)
				for how, said := range map[string]string{"streamed": everything(out), "unstreamed": everything([]byte("data: " + string(whole.Doc) + "\n\n"))} {
					if strings.Contains(said, planted) || strings.Contains(said, escaped) {
						t.Errorf("%s, %s: passed\n%s", v, how, said)
					}
				}
				if record(ds) != record(whole.Decisions) || len(ds) != 1 || o.Status != whole.Outcome.Status {
					t.Errorf("%s: record\n%s\nunstreamed\n%s\n%+v", v, record(ds), record(whole.Decisions), o)
				}
			}
		})
	}
}

// TestKindsOfMessages is what Anthropic's messages have in blocks that come
// whole: results of code, of searches and of MCP servers, and who called a tool.
func TestKindsOfMessages(t *testing.T) {
	for name, block := range map[string]string{
		"what code printed":    `{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{"type":"bash_code_execution_result","stdout":"key SECRET","stderr":"","return_code":0,"content":[]}}`,
		"a file that was read": `{"type":"text_editor_code_execution_tool_result","tool_use_id":"s","content":{"type":"text_editor_code_execution_view_result","content":"key SECRET"}}`,
		"a search result":      `{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"SECRET","url":"https://example.com/","encrypted_content":"ZW5j","page_age":"1 day"}]}`,
		"a fetched page":       `{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"type":"web_fetch_result","url":"u","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"SECRET"}}}}`,
		"an MCP result":        `{"type":"mcp_tool_result","tool_use_id":"s","is_error":false,"content":[{"type":"text","text":"SECRET"}]}`,
		"an error of a tool":   `{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"SECRET"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
				chain := patterns(t, v, "secrets")
				block := strings.Replace(block, "SECRET", planted, 1)
				out, _, o := stream(AnthropicMessages, Options{Chain: chain, Run: "r"}, serve(AnthropicMessages, oneBlock(block)), 1)
				doc := `{"id":"m","type":"message","role":"assistant","model":"m","content":[` + block + `],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`
				whole := AnthropicMessages.Answer(Options{Context: context.Background(), Chain: chain, Run: "r"}, []byte(doc))
				if strings.Contains(string(out), planted) || strings.Contains(string(whole.Doc), planted) || o.Status == Allowed || whole.Outcome.Status != o.Status {
					t.Errorf("%s: %+v, unstreamed %+v\n%s", v, o, whole.Outcome, out)
				}
			}
		})
	}
}
