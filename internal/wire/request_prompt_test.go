package wire

import (
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestPrompt reads the system prompt, wherever a format has it and in whatever
// order its members come.
func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		name   string
		format *Format
		doc    string
		want   string
	}{
		{"openai", OpenAIChat, `{"model":"m","messages":[{"role":"system","content":"a \"b\""},{"role":"user","content":"u"},{"content":[{"type":"text","text":"c"}],"role":"developer"}]}`, "a \"b\"\nc"},
		{"openai without", OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"u"}]}`, ""},
		{"anthropic", AnthropicMessages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"u"}],"system":"a"}`, "a"},
		{"anthropic blocks", AnthropicMessages, `{"model":"m","max_tokens":1,"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"messages":[]}`, "a\nb"},
		{"responses", OpenAIResponses, `{"model":"m","instructions":"a","input":[{"role":"developer","content":"b"},{"role":"user","content":"u"}]}`, "a\nb"},
	} {
		r, err := c.format.Request(Options{Context: t.Context(), Chain: guard.NewChain(guard.Options{})}, []byte(c.doc))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if r.Prompt != c.want {
			t.Errorf("%s: the prompt is %q, want %q", c.name, r.Prompt, c.want)
		}
	}
}
