package govern_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret has the shape of a GitHub token and is none.
const secret = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

// upstream is a provider that a test speaks for.
type upstream func(*http.Request) (*http.Response, error)

func (u upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return u(req)
}

func response(status int, kind string, body io.Reader) *http.Response {
	rc, ok := body.(io.ReadCloser)
	if !ok {
		rc = io.NopCloser(body)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: rc}
}

// says is an upstream with one answer.
func says(status int, kind, body string) upstream {
	return func(*http.Request) (*http.Response, error) {
		return response(status, kind, strings.NewReader(body)), nil
	}
}

// live is an upstream whose answer a test says as it goes.
func live() (upstream, *io.PipeWriter) {
	r, w := io.Pipe()
	return func(*http.Request) (*http.Response, error) { return response(200, "text/event-stream", r), nil }, w
}

// records keeps what was recorded.
type records struct {
	mu  sync.Mutex
	all []govern.Record
}

func (r *records) add(rs ...govern.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rs...)
	return nil
}

func (r *records) settled() (out []govern.Settled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.all {
		if s, ok := rec.Fact.(govern.Settled); ok {
			out = append(out, s)
		}
	}
	return out
}

func member(t testing.TB, v guard.Verdict) guard.Member {
	t.Helper()
	if m, ok := compiled.Load(v); ok {
		return m.(guard.Member)
	}
	rs, err := rules.Select("secrets")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(rs, match.Options{Name: "secrets", Key: []byte("key"), Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	m := guard.Member{Guard: g}
	compiled.Store(v, m)
	return m
}

// compiled are the guards that tests have asked for, by their verdict.
var compiled sync.Map

// open makes a door whose guard judges requests and answers with one verdict.
func open(t testing.TB, v guard.Verdict, up http.RoundTripper, record func(...govern.Record) error) *govern.Transport {
	t.Helper()
	m := member(t, v)
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{
			{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: up},
			{Name: "a", Protocol: govern.Anthropic, BaseURL: "http://anthropic.invalid", Transport: up},
		},
		Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"o", "a"}, Models: []string{"m"}, Input: []guard.Member{m}, Output: []guard.Member{m}}},
		Record:   record,
	})
	if err != nil {
		t.Fatal(err)
	}
	return door
}

const (
	chat     = "http://x.invalid/v1/chat/completions"
	messages = "http://x.invalid/v1/messages"
)

func ask(ctx context.Context, t testing.TB, url, content string, stream bool) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, content)
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// chunk is a frame of OpenAI's that says a text.
func chunk(text string) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", text)
}

const chatEnd = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}` + "\n\ndata: [DONE]\n\n"

func chatStream(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(chunk(d))
	}
	return b.String() + chatEnd
}

func chatBody(text string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`, text)
}

// event is a frame of Anthropic's.
func event(name, members string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + members + "}\n\n"
}

func messageStart() string {
	return event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
}

func textDelta(text string) string {
	return event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, text))
}

func messageEnd() string {
	return event("content_block_stop", `,"index":0`) +
		event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}`) + event("message_stop", "")
}

// tap collects what a body says, as it comes.
type tap struct {
	mu   sync.Mutex
	said []byte
	err  error
	done chan struct{}
}

// listen reads a body to its end on a goroutine.
func listen(body io.Reader) *tap {
	p := &tap{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		buf := make([]byte, 512)
		for {
			n, err := body.Read(buf)
			p.mu.Lock()
			p.said = append(p.said, buf[:n]...)
			p.err = err
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *tap) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(slices.Clone(p.said))
}

// hang is an upstream that does not answer.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// echo says the question's number, and a secret of its own.
func echo(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(b), "call-")
	number, _, _ := strings.Cut(rest, `"`)
	own := strings.Replace(secret, "Zk3v", fmt.Sprintf("Zk%02s", number), 1)
	return response(200, "text/event-stream", strings.NewReader(chatStream("call-"+number+" "+own[:20], own[20:]+" end"))), nil
}
