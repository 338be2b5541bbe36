package e2e

import (
	"encoding/json"
	"slices"
	"testing"
)

// A question is what a client is told to ask, and how.
type question struct {
	SDK    string `json:"sdk"`
	Base   string `json:"base"`
	Key    string `json:"key"`
	Model  string `json:"model"`
	Text   string `json:"text"`
	Stream bool   `json:"stream"`

	Tool    *toolSpec         `json:"tool,omitempty"`    // what the model may call
	Schema  json.RawMessage   `json:"schema,omitempty"`  // what the answer's text is to be, in JSON Schema
	Headers map[string]string `json:"headers,omitempty"` // beside the client's own

	// MaxTokens is the most of an answer, for Anthropic, where clients must say it.
	// 0 is 1024.
	MaxTokens int64 `json:"max_tokens,omitempty"`
}

// toolSpec is a tool of the caller's.
type toolSpec struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// An answer is what a client gives its user, in words common to all clients.
// Where the client has an accumulator of its own for streams, text, finish and
// usage are that one's.
type answer struct {
	Text      string   `json:"text"`
	Deltas    int      `json:"deltas"`    // pieces of text that came one by one
	Reasoning string   `json:"reasoning"` // or thinking
	Tools     []string `json:"tools"`     // names of those called
	Args      string   `json:"args"`      // arguments of the calls, one behind the other
	Finish    string   `json:"finish"`    // finish_reason or stop_reason
	Input     int64    `json:"input"`     // tokens
	Output    int64    `json:"output"`
	Policy    *policy  `json:"stoplog"`
	Error     *failure `json:"error"`
}

// policy is the member `stoplog` of an answer, but for what is said to people.
type policy struct {
	Run    string `json:"run"`
	Status string `json:"status"`
	Guard  string `json:"guard"`
	Rule   string `json:"rule"`
}

// failure is an error that the gateway told the client, as the client tells it.
// An error of the client's own making, such as that it can't parse an answer,
// has no Code.
type failure struct {
	Status  int    `json:"status"` // of HTTP; 0 if the error came inside a stream
	Code    string `json:"code"`   // error.code of OpenAI, error.type of Anthropic
	Message string `json:"message"`
	Kind    string `json:"kind"` // the class of the error, if the client has one for each
}

// A client is one of the providers' official SDKs, or of the frameworks that many
// use in their place.
type client struct {
	name   string
	format string // openai, responses or anthropic
	ask    func(*testing.T, question) answer
	// own says that it hands out objects of its own, not the provider's: of the
	// member `stoplog` it tells nothing.
	own bool
	// unsure says that after a 429 it asks again only if it is told when.
	unsure bool
}

// official are the providers' own.
var official = []client{
	{name: "openai-go", format: "openai", ask: askOpenAI},
	{name: "openai-js", format: "openai", ask: askNode},
	{name: "openai-go-responses", format: "responses", ask: askResponses},
	{name: "openai-js-responses", format: "responses", ask: askNode},
	{name: "anthropic-go", format: "anthropic", ask: askAnthropic},
	{name: "anthropic-js", format: "anthropic", ask: askNode},
}

var clients = append(slices.Clip(official),
	client{name: "vercel-openai", format: "openai", ask: askedOf("vercel-openai"), own: true},
	client{name: "vercel-responses", format: "responses", ask: askedOf("vercel-responses"), own: true},
	client{name: "vercel-anthropic", format: "anthropic", ask: askedOf("vercel-anthropic"), own: true},
	client{name: "langchain-openai", format: "openai", ask: askedOf("langchain-openai"), own: true, unsure: true},
	client{name: "langchain-responses", format: "responses", ask: askedOf("langchain-responses"), own: true, unsure: true},
)

// retries is how often each client is told to ask again by itself where it
// thinks that worth while.
const retries = 1

// madeUpKey is what clients send as a provider's key.
const madeUpKey = "made-up-key-of-a-test"

// mountOf has each format's path under the gateway, as one gives it to an SDK.
var mountOf = map[string]string{"openai": "/openai/v1", "responses": "/openai/v1", "anthropic": "/anthropic"}

var modelOf = map[string]string{"openai": "gpt-4o-mini-2024-07-18", "responses": "gpt-4o-mini-2024-07-18", "anthropic": "claude-opus-5-5"}

// askThrough has a client ask a plain question through a tap of its own, and
// returns what the client saw and what passed.
func askThrough(t *testing.T, g *gateway, c client, text string, stream bool) (answer, []exchange) {
	t.Helper()
	return askWith(t, g, c, question{Text: text, Stream: stream})
}

// askWith is askThrough for a question that is more than a text.
func askWith(t *testing.T, g *gateway, c client, q question) (answer, []exchange) {
	t.Helper()
	p := newTap(t, g)
	q.SDK, q.Base, q.Model = c.format, p.server.URL+mountOf[c.format], modelOf[c.format]
	if q.Key == "" {
		q.Key = madeUpKey
	}
	a := c.ask(t, q)
	seen := p.exchanges()
	if len(seen) == 0 {
		t.Fatalf("the client asked nothing; it says %+v", a.Error)
	}
	return a, seen
}
