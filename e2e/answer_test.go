package e2e

import (
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
}

// An answer is what a client gives its user, in words common to all clients.
// Where the client has an accumulator of its own for streams, text, finish and
// usage are that one's.
type answer struct {
	Text   string   `json:"text"`
	Deltas int      `json:"deltas"` // pieces of text that came one by one
	Args   string   `json:"args"`   // arguments of the first tool call
	Finish string   `json:"finish"` // finish_reason or stop_reason
	Input  int64    `json:"input"`  // tokens
	Output int64    `json:"output"`
	Policy *policy  `json:"stoplog"`
	Error  *failure `json:"error"`
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
}

// A client is one of the providers' official SDKs.
type client struct {
	name   string
	format string // openai, responses or anthropic
	ask    func(*testing.T, question) answer
}

var clients = []client{
	{"openai-go", "openai", askOpenAI},
	{"openai-js", "openai", askNode},
	{"openai-go-responses", "responses", askResponses},
	{"openai-js-responses", "responses", askNode},
	{"anthropic-go", "anthropic", askAnthropic},
	{"anthropic-js", "anthropic", askNode},
}

// retries is how often each client is told to ask again by itself where it
// thinks that worth while.
const retries = 1

// madeUpKey is what clients send as a provider's key.
const madeUpKey = "made-up-key-of-a-test"

// mountOf has each format's path under the gateway, as one gives it to an SDK.
var mountOf = map[string]string{"openai": "/openai/v1", "responses": "/openai/v1", "anthropic": "/anthropic"}

var modelOf = map[string]string{"openai": "gpt-4o-mini-2024-07-18", "responses": "gpt-4o-mini-2024-07-18", "anthropic": "claude-opus-5-5"}

// askThrough has a client ask through a tap of its own, and returns what the
// client saw and what passed.
func askThrough(t *testing.T, g *gateway, c client, text string, stream bool) (answer, []exchange) {
	t.Helper()
	p := newTap(t, g)
	a := c.ask(t, question{
		SDK:    c.format,
		Base:   p.server.URL + mountOf[c.format],
		Key:    madeUpKey,
		Model:  modelOf[c.format],
		Text:   text,
		Stream: stream,
	})
	seen := p.exchanges()
	if len(seen) == 0 {
		t.Fatalf("the client asked nothing; it says %+v", a.Error)
	}
	return a, seen
}
