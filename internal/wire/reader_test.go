package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// heard is what a client has understood: the text of each channel, how each
// choice ended, and what it was told about it. It is read with nothing but
// encoding/json, as a client would.
type heard struct {
	text    map[string]string
	finish  map[string]string
	stoplog string
	usage   string
	failed  string // the error that ended a stream
}

func (h heard) String() string {
	var lines []string
	for _, m := range []map[string]string{h.text, h.finish} {
		for k, v := range m {
			lines = append(lines, fmt.Sprintf("%s: %q", k, v))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s\nstoplog: %s\nusage: %s\nfailed: %s", strings.Join(lines, "\n"), h.stoplog, h.usage, h.failed)
}

func newHeard() heard { return heard{text: map[string]string{}, finish: map[string]string{}} }

func (h heard) say(channel, text string) {
	if text != "" {
		h.text[channel] += text
	}
}

// events are the payloads of a stream; it checks how they are framed.
func events(t testing.TB, f *Format, out []byte) []string {
	t.Helper()
	var payloads []string
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n\n")) {
		t.Errorf("the last event is not terminated: %q", out[max(0, len(out)-80):])
	}
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
		var name, data string
		for line := range strings.SplitSeq(ev, "\n") {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				name = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				data += v
			}
		}
		if data == "" {
			continue
		}
		if data == "[DONE]" && f == OpenAIResponses {
			continue
		}
		if data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Errorf("not JSON: %s", data)
		}
		var e struct{ Type string }
		if f != OpenAIChat && json.Unmarshal([]byte(data), &e) == nil && e.Type != name {
			t.Errorf("event %q has type %q", name, e.Type)
		}
		payloads = append(payloads, data)
	}
	return payloads
}

type openaiSaid struct {
	Content           any
	Reasoning         string
	Reasoning_content string
	Refusal           string
	New_field         string
	Function_call     *struct{ Arguments string }
	Tool_calls        []struct {
		Index    *int
		Function struct{ Name, Arguments string }
	}
}

func (h heard) openai(choice int, s openaiSaid) {
	p := fmt.Sprintf("%d/", choice)
	switch c := s.Content.(type) {
	case string:
		h.say(p+"content", c)
	case []any:
		for _, part := range c {
			m := part.(map[string]any)
			if text, ok := m["text"].(string); ok {
				h.say(p+"content", text)
			}
			if th, ok := m["thinking"].([]any); ok {
				for _, x := range th {
					h.say(p+"reasoning", x.(map[string]any)["text"].(string))
				}
			}
		}
	}
	h.say(p+"reasoning", s.Reasoning)
	h.say(p+"reasoning_content", s.Reasoning_content)
	h.say(p+"refusal", s.Refusal)
	h.say(p+"new_field", s.New_field)
	if s.Function_call != nil {
		h.say(p+"function_call", s.Function_call.Arguments)
	}
	for i, c := range s.Tool_calls {
		if c.Index != nil {
			i = *c.Index
		}
		if c.Function.Name != "" {
			h.say(fmt.Sprintf("%stool/%d/name", p, i), c.Function.Name)
		}
		h.say(fmt.Sprintf("%stool/%d", p, i), c.Function.Arguments)
	}
}

func hearOpenAI(t testing.TB, out []byte, streamed bool) heard {
	t.Helper()
	h := newHeard()
	docs := []string{string(out)}
	if streamed {
		docs = events(t, OpenAIChat, out)
	}
	told := -1
	for i, doc := range docs {
		if doc == "[DONE]" {
			if i != len(docs)-1 {
				t.Errorf("events after the end: %s", docs[i:])
			}
			if told >= 0 && told != i-1 {
				t.Errorf("stoplog is not in the last chunk: %s", docs[told:])
			}
			return h
		}
		var e struct {
			Choices []struct {
				Index          int
				Delta, Message openaiSaid
				Finish_reason  string
			}
			Usage   json.RawMessage
			Stoplog json.RawMessage
			Error   struct{ Message, Code string }
		}
		if err := json.Unmarshal([]byte(doc), &e); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		for _, c := range e.Choices {
			k := fmt.Sprintf("%d/finish", c.Index)
			if streamed && h.finish[k] == "content_filter" {
				t.Errorf("choice %d goes on after its stop: %s", c.Index, doc)
			}
			h.openai(c.Index, c.Delta)
			h.openai(c.Index, c.Message)
			h.finish[k] += c.Finish_reason
		}
		if e.Usage != nil && string(e.Usage) != "null" {
			h.usage = string(e.Usage)
		}
		if e.Stoplog != nil {
			if told >= 0 {
				t.Errorf("told twice: %s", doc)
			}
			told, h.stoplog = i, string(e.Stoplog)
		}
		if e.Error.Message != "" {
			h.failed = e.Error.Message
		}
	}
	if streamed && h.failed == "" {
		t.Errorf("the stream has no end: %s", clip(out, len(out)))
	}
	return h
}

func hearAnthropic(t testing.TB, out []byte, streamed bool) heard {
	t.Helper()
	h := newHeard()
	if !streamed {
		var m struct {
			Content     []anthropicSaid
			Stop_reason string
			Usage       json.RawMessage
			Stoplog     json.RawMessage
		}
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for i, b := range m.Content {
			h.anthropic(0, i, b)
		}
		h.finish["0"], h.stoplog, h.usage = m.Stop_reason, string(m.Stoplog), string(m.Usage)
		return h
	}
	message, open := -1, -1
	var delta bool
	for _, doc := range events(t, AnthropicMessages, out) {
		var e struct {
			Type          string
			Index         int
			Content_block anthropicSaid
			Delta         struct {
				anthropicSaid
				Stop_reason string
			}
			Usage   json.RawMessage
			Stoplog json.RawMessage
			Error   struct{ Message string }
			Note    string
		}
		if err := json.Unmarshal([]byte(doc), &e); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		switch e.Type {
		case "message_start":
			message++
			delta = false
		case "content_block_start":
			if open >= 0 {
				t.Errorf("block %d begins inside block %d", e.Index, open)
			}
			open = e.Index
			h.anthropic(message, e.Index, e.Content_block)
		case "content_block_delta":
			if open != e.Index {
				t.Errorf("a delta of block %d inside block %d", e.Index, open)
			}
			h.anthropic(message, e.Index, e.Delta.anthropicSaid)
		case "content_block_stop":
			if open != e.Index {
				t.Errorf("block %d ends inside block %d", e.Index, open)
			}
			open = -1
		case "message_delta":
			if open >= 0 || delta {
				t.Errorf("message_delta in block %d, or twice: %s", open, doc)
			}
			delta = true
			h.finish[fmt.Sprint(message)] = e.Delta.Stop_reason
			h.usage, h.stoplog = string(e.Usage), string(e.Stoplog)
		case "message_stop":
			if !delta {
				t.Errorf("message_stop without message_delta")
			}
		case "error":
			h.failed, h.stoplog = e.Error.Message, string(e.Stoplog)
			return h
		case "note":
			h.say("note", e.Note)
		}
	}
	if !delta {
		t.Errorf("the stream has no end: %s", clip(out, len(out)))
	}
	return h
}

type anthropicSaid struct {
	Type, Text, Thinking, Signature, Name string
	Partial_json                          string
	Input                                 json.RawMessage
	Citation                              map[string]any
	Citations                             []map[string]any
	Content                               json.RawMessage
}

func (h heard) anthropic(message, index int, s anthropicSaid) {
	p := fmt.Sprintf("%d/%d/", message, index)
	h.say(p+"text", s.Text)
	h.say(p+"thinking", s.Thinking)
	h.say(p+"signature", s.Signature)
	h.say(p+"name", s.Name)
	h.say(p+"input", s.Partial_json)
	if in := string(s.Input); in != "{}" {
		h.say(p+"input", in)
	}
	if s.Citation != nil {
		s.Citations = append(s.Citations, s.Citation)
	}
	for _, c := range s.Citations {
		h.say(p+"citations", jsonOf(c))
	}
	h.say(p+"content", string(s.Content))
}

func hear(t testing.TB, f *Format, out []byte, streamed bool) heard {
	t.Helper()
	switch f {
	case OpenAIChat:
		return hearOpenAI(t, out, streamed)
	case OpenAIResponses:
		return hearResponses(t, out, streamed)
	}
	h := hearAnthropic(t, out, streamed)
	maps.DeleteFunc(h.text, func(channel, text string) bool { // no arguments: {} and nothing are the same
		return strings.HasSuffix(channel, "/input") && text == "{}"
	})
	return h
}
