package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// OpenAI's chat completions: requests.

type openaiMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openaiCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
}

type openaiFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type openaiTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func openaiBody(r Request) (any, error) {
	var messages []any
	if r.System != "" {
		messages = append(messages, openaiMessage{Role: "system", Content: &r.System})
	}
	body := struct {
		Model         string          `json:"model"`
		Stream        bool            `json:"stream"`
		StreamOptions map[string]bool `json:"stream_options"`
		Messages      []any           `json:"messages"`
		Tools         []openaiTool    `json:"tools,omitempty"`
		ToolChoice    string          `json:"tool_choice,omitempty"`
		MaxTokens     int             `json:"max_completion_tokens,omitempty"`
	}{r.Model, true, map[string]bool{"include_usage": true}, append(messages, openaiMessages(r.Messages)...), nil, "", r.MaxTokens}
	for _, t := range r.Tools {
		tool := openaiTool{Type: "function"}
		tool.Function.Name, tool.Function.Description, tool.Function.Parameters = t.Name, t.Description, t.Schema
		body.Tools = append(body.Tools, tool)
	}
	if r.NoCalls && len(r.Tools) > 0 {
		body.ToolChoice = "none"
	}
	return body, nil
}

func openaiMessages(messages []Message) []any {
	out := []any{}
	for _, m := range messages {
		switch m := m.(type) {
		case User:
			out = append(out, openaiMessage{Role: "user", Content: &m.Text})
		case Assistant:
			if blank(m.Text) && len(m.Calls) == 0 {
				continue
			}
			said := openaiMessage{Role: "assistant"}
			if !blank(m.Text) {
				said.Content = &m.Text
			}
			ids := ids(m.Calls)
			for i, c := range m.Calls {
				said.ToolCalls = append(said.ToolCalls, openaiCall{ids[i], "function", openaiFunction{c.Tool, string(object(c.Args))}})
			}
			out = append(out, said)
			for i, c := range m.Calls {
				out = append(out, openaiMessage{Role: "tool", ToolCallID: ids[i], Content: &c.Result.Text})
			}
		}
	}
	return out
}

// OpenAI's chat completions: streams.

type openaiChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int         `json:"index"`
		Delta        openaiDelta `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error   *providerError `json:"error"`
	Stoplog *member        `json:"stoplog"`
}

type openaiDelta struct {
	Content          openaiContent `json:"content"`
	Reasoning        string        `json:"reasoning"`
	ReasoningContent string        `json:"reasoning_content"`
	Refusal          string        `json:"refusal"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// openaiContent is content: a string, or with some a list of parts.
type openaiContent struct{ text, thinking string }

func (c *openaiContent) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		for _, t := range p.Thinking {
			c.thinking += t.Text
		}
	}
	return nil
}

// openaiReader reads a stream of chunks.
type openaiReader struct {
	calls   []*openaiPart
	reason  string
	refused bool
	done    bool
}

// openaiPart is a call of which some has come.
type openaiPart struct {
	index    int
	id, name string
	args     strings.Builder
}

var openaiDone = []byte("[DONE]")

func (r *openaiReader) read(a *answer, payload []byte) error {
	if bytes.Equal(payload, openaiDone) {
		r.done = true
		return nil
	}
	var c openaiChunk
	if err := json.Unmarshal(payload, &c); err != nil {
		return &Error{Message: "the answer has an event that cannot be read"}
	}
	a.note(c.Stoplog)
	if c.Error != nil {
		return c.Error.in(0)
	}
	if c.Model != "" {
		a.Model = c.Model
	}
	if u := c.Usage; u != nil {
		a.Usage, a.counted = Usage{Input: u.Prompt, Output: u.Completion}, true
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one was asked for
		}
		d := choice.Delta
		a.say(Reasoning, d.Reasoning)
		if d.Reasoning == "" {
			a.say(Reasoning, d.ReasoningContent)
		}
		a.say(Reasoning, d.Content.thinking)
		a.say(Text, d.Content.text)
		a.say(Refusal, d.Refusal)
		r.refused = r.refused || d.Refusal != ""
		for i, t := range d.ToolCalls {
			index := i
			if t.Index != nil {
				index = *t.Index
			}
			part := r.part(index, t.ID, t.Function.Name)
			part.args.WriteString(t.Function.Arguments)
		}
		if choice.FinishReason != "" {
			r.reason = choice.FinishReason
		}
	}
	return nil
}

func (r *openaiReader) ended() bool { return r.done }

// part finds the call that a fragment belongs to. A fragment with an id and a
// name of its own begins a call, for some give all their calls one index.
func (r *openaiReader) part(index int, id, name string) *openaiPart {
	for _, p := range slices.Backward(r.calls) {
		if p.index != index {
			continue
		}
		if id != "" && name != "" && p.id != "" && id != p.id {
			break
		}
		if p.id == "" {
			p.id = id
		}
		if p.name == "" {
			p.name = name
		}
		return p
	}
	p := &openaiPart{index: index, id: id, name: name}
	r.calls = append(r.calls, p)
	return p
}

func (r *openaiReader) finish(a *answer) {
	switch r.reason {
	case "length":
		a.Finish = Length
	case "content_filter":
		a.Finish = Refused
	case "":
		a.failure = "the answer ended without saying why"
	case "error", "abort", "insufficient_system_resource":
		a.failure = fmt.Sprintf("the provider broke the answer off (%s)", r.reason)
	}
	if r.refused {
		a.Finish = Refused
	}
	for _, p := range r.calls {
		a.Calls = append(a.Calls, Call{ID: p.id, Tool: p.name, Args: p.args.String()})
	}
}
