package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stoplog/stoplog/govern"
)

// Anthropic's messages: streams.

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string          `json:"model"`
		Usage *anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock map[string]json.RawMessage `json:"content_block"`
	Delta        anthropicDelta             `json:"delta"`
	Usage        *anthropicUsage            `json:"usage"`
	Error        *providerError             `json:"error"`
	Stoplog      *member                    `json:"stoplog"`
}

type anthropicUsage struct {
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
}

type anthropicDelta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	PartialJSON string          `json:"partial_json"`
	Citation    json.RawMessage `json:"citation"`
	StopReason  string          `json:"stop_reason"`
}

// anthropicReader reads a stream of a message's events. A stream may hold
// several messages in a row, whose blocks are numbered anew; it ends where the
// connection does, after a message's end.
type anthropicReader struct {
	blocks []*anthropicBlock       // of all messages, in order
	open   map[int]*anthropicBlock // of this message
	reason string
	done   bool
}

// anthropicBlock is a block of which some has come.
type anthropicBlock struct {
	kind        string
	start       map[string]json.RawMessage
	text, input strings.Builder // of text or thinking; of a call's input
	signature   string
	citations   []json.RawMessage
	strange     bool // it has parts that are not known here
}

func (r *anthropicReader) read(a *answer, payload []byte) error {
	var e anthropicEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return &Error{Message: "the answer has an event that cannot be read"}
	}
	a.note(e.Stoplog)
	switch e.Type {
	case "error":
		if e.Error == nil {
			e.Error = &providerError{Message: "the answer has an error that says nothing"}
		}
		return e.Error.in(0)
	case "message_start":
		r.open, r.reason, r.done = map[int]*anthropicBlock{}, "", false
		a.Model = e.Message.Model
		a.count(e.Message.Usage)
	case "content_block_start":
		r.start(a, e)
	case "content_block_delta":
		r.delta(a, e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			r.reason = e.Delta.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		r.done = true
	}
	return nil
}

func (r *anthropicReader) ended() bool { return r.done }

func (a *answer) count(u *anthropicUsage) {
	if u == nil {
		return
	}
	if u.Input != nil {
		a.Usage.Input = *u.Input
	}
	if u.Output != nil {
		a.Usage.Output, a.counted = *u.Output, true
	}
}

func (r *anthropicReader) start(a *answer, e anthropicEvent) {
	b := &anthropicBlock{kind: word(e.ContentBlock["type"]), start: e.ContentBlock}
	r.blocks = append(r.blocks, b)
	if r.open == nil {
		r.open = map[int]*anthropicBlock{}
	}
	r.open[e.Index] = b
	switch b.kind {
	case "text":
		b.say(a, Text, word(b.start["text"]))
	case "thinking":
		b.say(a, Reasoning, word(b.start["thinking"]))
		b.signature = word(b.start["signature"])
	}
}

func (r *anthropicReader) delta(a *answer, e anthropicEvent) {
	b := r.open[e.Index]
	if b == nil {
		return
	}
	d := e.Delta
	switch d.Type {
	case "text_delta":
		b.say(a, Text, d.Text)
	case "thinking_delta":
		b.say(a, Reasoning, d.Thinking)
	case "signature_delta":
		b.signature += d.Signature
	case "input_json_delta":
		b.input.WriteString(d.PartialJSON)
	case "citations_delta":
		b.citations = append(b.citations, d.Citation)
	default:
		b.strange = true
	}
}

func (b *anthropicBlock) say(a *answer, kind Kind, text string) {
	b.text.WriteString(text)
	a.say(kind, text)
}

// args are what the block wants its tool to be called with: what the deltas
// say, or, where there are none, what it began with.
func (b *anthropicBlock) args() string {
	if b.input.Len() > 0 {
		return b.input.String()
	}
	return string(b.start["input"])
}

func (r *anthropicReader) finish(a *answer) {
	switch r.reason {
	case "max_tokens", "model_context_window_exceeded":
		a.Finish = Length
	case "refusal":
		a.Finish = Refused
	case "":
		a.failure = "the answer ended without saying why"
	}
	for _, b := range r.blocks {
		if b.kind == "tool_use" {
			a.Calls = append(a.Calls, Call{ID: word(b.start["id"]), Tool: word(b.start["name"]), Args: b.args()})
		}
	}
	a.Kept = r.kept()
}

// kept is the answer's blocks, if there are any that text and calls do not say
// and if all of those are as the provider made them: a signature over a text
// that a guard has changed is worth nothing, and half of an exchange with a
// server's tool is refused.
func (r *anthropicReader) kept() json.RawMessage {
	k := kept{Protocol: govern.Anthropic}
	needed := false
	for _, b := range r.blocks {
		plain := b.kind == "text" || b.kind == "tool_use"
		needed = needed || !plain
		block, ok := b.block()
		if !ok || !plain && bytes.Contains(block, []byte("[redacted:")) {
			return nil
		}
		if block != nil {
			k.Content = append(k.Content, block)
		}
	}
	if !needed {
		return nil
	}
	doc, err := encode(k)
	if err != nil {
		return nil
	}
	return doc
}

// block is a block as it goes back: as it began, with what came since. nil is
// one that a provider does not take, and that says nothing.
func (b *anthropicBlock) block() (block json.RawMessage, ok bool) {
	doc := map[string]any{}
	for name, raw := range b.start {
		doc[name] = raw
	}
	switch b.kind {
	case "text":
		if blank(b.text.String()) {
			return nil, true
		}
		doc["text"] = b.text.String()
		if len(b.citations) > 0 {
			doc["citations"] = b.citations
		}
	case "thinking":
		if b.signature == "" {
			return nil, false
		}
		doc["thinking"], doc["signature"] = b.text.String(), b.signature
	default:
		if b.args() != "" {
			doc["input"] = object(b.args())
		}
	}
	block, err := encode(doc)
	return block, err == nil && !b.strange
}

// word is a member that is a string; others are empty.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
