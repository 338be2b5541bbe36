package llm

import (
	"encoding/json"

	"github.com/stoplog/stoplog/govern"
)

// Anthropic's messages: requests.

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type anthropicText struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

type anthropicToolUse struct {
	Type  string          `json:"type"` // tool_use
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type anthropicToolResult struct {
	Type      string `json:"type"` // tool_result
	ToolUseID string `json:"tool_use_id"`
	Content   string `json:"content"`
	IsError   bool   `json:"is_error,omitempty"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func anthropicBody(r Request) (any, error) {
	body := struct {
		Model      string            `json:"model"`
		MaxTokens  int               `json:"max_tokens"`
		Stream     bool              `json:"stream"`
		System     string            `json:"system,omitempty"`
		Messages   []any             `json:"messages"`
		Tools      []anthropicTool   `json:"tools,omitempty"`
		ToolChoice map[string]string `json:"tool_choice,omitempty"`
	}{Model: r.Model, MaxTokens: r.MaxTokens, Stream: true, System: r.System, Messages: anthropicMessages(r.Messages)}
	if body.MaxTokens == 0 {
		body.MaxTokens = DefaultMaxTokens
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, anthropicTool{t.Name, t.Description, t.Schema})
	}
	if r.NoCalls && len(r.Tools) > 0 {
		body.ToolChoice = map[string]string{"type": "none"}
	}
	return body, nil
}

func anthropicMessages(messages []Message) []any {
	out := []any{}
	for _, m := range messages {
		switch m := m.(type) {
		case User:
			out = append(out, anthropicMessage{"user", []any{anthropicText{"text", m.Text}}})
		case Assistant:
			content, ids := anthropicSaid(m)
			if len(content) == 0 {
				continue
			}
			out = append(out, anthropicMessage{"assistant", content})
			var results []any
			for i, c := range m.Calls {
				results = append(results, anthropicToolResult{"tool_result", ids[i], c.Result.Text, c.Result.Failed})
			}
			if len(results) > 0 {
				out = append(out, anthropicMessage{"user", results})
			}
		}
	}
	return out
}

// anthropicSaid is what a model said, in blocks, and the ids of its calls.
func anthropicSaid(m Assistant) (content []any, names []string) {
	if content, names, ok := anthropicKept(m); ok {
		return content, names
	}
	if !blank(m.Text) {
		content = append(content, anthropicText{"text", m.Text})
	}
	names = ids(m.Calls)
	for i, c := range m.Calls {
		content = append(content, anthropicToolUse{"tool_use", names[i], c.Tool, object(c.Args)})
	}
	return content, names
}

// kept is an answer as its provider wants it back.
type kept struct {
	Protocol string            `json:"protocol"`
	Content  []json.RawMessage `json:"content"`
}

// anthropicKept is the blocks of an answer that were kept, if they are
// Anthropic's and their calls are those of the message, each by an id of its
// own.
func anthropicKept(m Assistant) (content []any, names []string, ok bool) {
	var k kept
	if len(m.Kept) == 0 || json.Unmarshal(m.Kept, &k) != nil || k.Protocol != govern.Anthropic {
		return nil, nil, false
	}
	seen := map[string]bool{}
	for _, block := range k.Content {
		content = append(content, block)
		var b struct{ Type, ID, Name string }
		if json.Unmarshal(block, &b) != nil {
			return nil, nil, false
		}
		if b.Type != "tool_use" {
			continue
		}
		if b.ID == "" || seen[b.ID] || len(names) == len(m.Calls) || m.Calls[len(names)].Tool != b.Name {
			return nil, nil, false
		}
		seen[b.ID] = true
		names = append(names, b.ID)
	}
	return content, names, len(names) == len(m.Calls)
}
