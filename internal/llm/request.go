package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/govern"
)

// Request is what a model is asked.
type Request struct {
	Model    string
	System   string // may be empty
	Messages []Message
	Tools    []Tool
	// NoCalls offers the tools, for the history's sake, and lets none be called.
	NoCalls bool
	// MaxTokens is the most tokens of an answer; 0 leaves it to the provider, or
	// is DefaultMaxTokens where a provider wants a number.
	MaxTokens int
}

// DefaultMaxTokens is what Anthropic is told where a request says nothing.
const DefaultMaxTokens = 8192

// Message is a part of the history: [User] or [Assistant].
type Message interface{ message() }

// User is what somebody said to the model.
type User struct{ Text string }

// Assistant is what the model said, with what came of its calls. One that said
// nothing and called nothing is left out of what is sent.
type Assistant struct {
	Text  string
	Calls []Call
	Kept  json.RawMessage // of the answer
}

func (User) message()      {}
func (Assistant) message() {}

// Call is a tool call that a model asks for.
type Call struct {
	ID     string // the provider's; need not be unique
	Tool   string
	Args   string  // JSON, as the model wrote it
	Result *Result // nil until there is one; in a request there is
}

// Result is what a model is told of a call.
type Result struct {
	Text   string
	Failed bool
}

// Tool is a tool that a model is told of.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// ErrDangling says that a call in a history has no result.
var ErrDangling = errors.New("a tool call has no result")

// check holds a request against what every provider wants.
func (r Request) check() error {
	if r.Model == "" {
		return errors.New("the request names no model")
	}
	said := false
	for i, m := range r.Messages {
		switch m := m.(type) {
		case User:
			said = true
			if strings.TrimSpace(m.Text) == "" {
				return fmt.Errorf("message %d: a user says nothing", i)
			}
		case Assistant:
			for n, c := range m.Calls {
				if c.Result == nil {
					return fmt.Errorf("message %d, call %d of %s: %w", i, n+1, c.Tool, ErrDangling)
				}
			}
		}
	}
	if !said {
		return errors.New("the request has no message of a user")
	}
	return nil
}

// Render is messages in a provider's own form, in the order in which they are
// sent; one of ours may be several of its.
func Render(protocol string, messages []Message) ([]json.RawMessage, error) {
	var docs []any
	switch protocol {
	case govern.OpenAI:
		docs = openaiMessages(messages)
	case govern.Anthropic:
		docs = anthropicMessages(messages)
	default:
		return nil, fmt.Errorf("render messages: unknown protocol %q", protocol)
	}
	out := make([]json.RawMessage, len(docs))
	for i, d := range docs {
		var err error
		if out[i], err = encode(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encode is JSON as it is sent: <, > and & are themselves, for guards and models
// to read.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// ids gives the calls of one message ids that are there and differ, since only
// they tell which result is whose.
func ids(calls []Call) []string {
	out := make([]string, len(calls))
	taken := map[string]bool{}
	for _, c := range calls {
		taken[c.ID] = true
	}
	seen := map[string]bool{}
	for i, c := range calls {
		id := c.ID
		for n := i + 1; id == "" || seen[id] || id != c.ID && taken[id]; n++ {
			id = fmt.Sprintf("call_%d", n)
		}
		seen[id] = true
		out[i] = id
	}
	return out
}

// object is a call's arguments as a JSON object, which is what a history must
// have. What a model wrote that is none is shown to it in one.
func object(args string) json.RawMessage {
	b := bytes.TrimSpace([]byte(args))
	if len(b) > 0 && b[0] == '{' && json.Valid(b) {
		return b
	}
	doc, err := encode(map[string]string{"malformed": args})
	if err != nil {
		panic(err) // a string is always JSON
	}
	return doc
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
