package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/sandbox"
)

// checks counts the ends of the real program that were looked at and found right.
var checks atomic.Int64

func TestMain(m *testing.M) {
	sandbox.Main()
	if misbehave := os.Getenv(standInVariable); misbehave != "" {
		os.Exit(standIn(misbehave))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		fmt.Printf("claude checks: %d\n", checks.Load())
		os.Exit(code)
	}))
}

// needsSandbox skips a test where the kernel has no sandbox to give, which is a
// failure in CI.
func needsSandbox(t *testing.T) {
	t.Helper()
	switch {
	case checked().Holds:
	case os.Getenv("CI") == "true":
		t.Fatalf("this machine has no sandbox to give: %+v", checked())
	default:
		t.Skip("this machine has no sandbox to give")
	}
}

// checked is what this machine can enforce.
var checked = sync.OnceValue(func() sandbox.Report { return sandbox.Check(context.Background()) })

// pin is the model that the tests ask for.
const pin = "claude-sonnet-4-5-20250929"

// verdictSchema is the schema of the tests' answers.
const verdictSchema = `{"type":"object","required":["verdict","why"],"additionalProperties":false,` +
	`"properties":{"verdict":{"enum":["go","no-go"]},"why":{"type":"string"}}}`

// asked is what a model is asked, as far as these tests look.
type asked struct {
	Model string `json:"model"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	System   json.RawMessage   `json:"system"`
	Messages []json.RawMessage `json:"messages"`
}

// turn is what a model says to one question.
type turn struct {
	text  string
	calls []toolCall
	model string // pin if empty
	// usage, in tokens; 10 and 10 if 0.
	in, out int64
	// endless: the answer goes on until nobody reads it.
	endless bool
	status  int // an error in place of an answer
}

type toolCall struct {
	name string
	args string
}

// answers gives a structured output.
func answers(args string) turn { return turn{calls: []toolCall{{answerTool, args}}} }

// provider is an upstream that says its turns, one a question, the last for ever.
type provider struct {
	mu     sync.Mutex
	turns  []turn
	asked  []asked
	header []http.Header
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var q asked
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.asked, p.header = append(p.asked, q), append(p.header, r.Header.Clone())
	t := p.turns[0]
	if len(p.turns) > 1 {
		p.turns = p.turns[1:]
	}
	n := len(p.asked)
	p.mu.Unlock()
	if t.status != 0 {
		return response(r, t.status, "application/json", `{"type":"error","error":{"type":"api_error","message":"made up"}}`), nil
	}
	resp := response(r, http.StatusOK, "text/event-stream", t.stream(n))
	if t.endless {
		from, to := io.Pipe()
		go func() {
			_, err := io.WriteString(to, t.stream(n))
			for err == nil {
				_, err = io.WriteString(to, event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"and so on and on and on "}}`))
			}
		}()
		resp.Body = from
	}
	return resp, nil
}

func (p *provider) questions() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func response(r *http.Request, status int, kind, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// stream is a turn as Anthropic streams it.
func (t turn) stream(n int) string {
	var b strings.Builder
	model, in, out := t.model, t.in, t.out
	if model == "" {
		model = pin
	}
	if in == 0 {
		in = 10
	}
	if out == 0 {
		out = 10
	}
	b.WriteString(event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, n, quoted(model), in)))
	index, stop := 0, "end_turn"
	if t.text != "" || t.endless || len(t.calls) == 0 {
		b.WriteString(event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`))
		b.WriteString(event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quoted(t.text))))
		if t.endless {
			return b.String()
		}
		b.WriteString(event("content_block_stop", `{"type":"content_block_stop","index":0}`))
		index++
	}
	for i, c := range t.calls {
		stop = "tool_use"
		b.WriteString(event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d_%d","name":%s,"input":{}}}`, index, n, i, quoted(c.name))))
		b.WriteString(event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index, quoted(c.args))))
		b.WriteString(event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
		index++
	}
	b.WriteString(event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, out)))
	b.WriteString(event("message_stop", `{"type":"message_stop"}`))
	return b.String()
}

// door is a governed way to a provider.
func door(t *testing.T, up http.RoundTripper, guards ...guard.Member) *govern.Transport {
	t.Helper()
	return doorWith(t, up, nil, guards...)
}

func doorWith(t *testing.T, up http.RoundTripper, budgets []govern.Budget, guards ...guard.Member) *govern.Transport {
	t.Helper()
	d, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "up", Protocol: govern.Anthropic, BaseURL: "http://up.invalid", Transport: up, Key: "the real key"}},
		Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"up"}, Models: []string{"*"}, Input: guards, Output: guards}},
		Record:    func(...govern.Record) error { return nil },
		Budgets:   budgets,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// inquiry asks for a verdict in a directory.
func inquiry(t *testing.T) flow.Inquiry {
	t.Helper()
	return flow.Inquiry{
		Playbook: "gate", Step: "verdict", Attempt: 1, Via: flow.ViaCLI, Profile: "p", Model: pin,
		Prompt: "Say go or no-go.", Schema: json.RawMessage(verdictSchema), Workdir: t.TempDir(),
		MaxLatency: time.Minute, MaxTokens: 10_000,
	}
}
