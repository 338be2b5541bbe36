package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/llm"
)

// The provider gets what Body says, at the path of its protocol.
func TestAskSends(t *testing.T) {
	for protocol, path := range map[string]string{govern.OpenAI: "/chat/completions", govern.Anthropic: "/v1/messages"} {
		var got []byte
		c := &llm.Client{Protocol: protocol, Transport: door(t, protocol, provider(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != path || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s, %v", protocol, r.URL, r.Header)
			}
			if version := r.Header.Get("Anthropic-Version"); (version == "2023-06-01") != (protocol == govern.Anthropic) {
				t.Errorf("%s: version %q", protocol, version)
			}
			var err error
			if got, err = io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			return nil, io.ErrUnexpectedEOF
		}))}
		told(t.Context(), c, hello)
		want, err := c.Body(hello)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: sent %s, want %s, %v", protocol, got, want, err)
		}
	}
}

func TestAskFails(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ends := func(err error, pieces ...string) provider {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: kind("text/event-stream"), Body: io.NopCloser(&chopped{pieces, err}), Request: r}, nil
		}
	}
	const some = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}` + "\n\n"
	lost := errors.New("connection reset")
	for _, c := range []struct {
		what string
		ctx  context.Context
		up   provider
		want string
	}{
		{"nothing there", t.Context(), func(*http.Request) (*http.Response, error) { return nil, lost },
			"error passing: ask a model: upstream up: upstream up: connection reset\n"},
		{"reset before the first byte", t.Context(), ends(lost), "error passing: ask a model: api_error: the upstream's answer broke off\n"},
		{"reset behind it", t.Context(), ends(lost, some), "text \"Hel\"\nerror lasting, some was told: ask a model: api_error: the upstream's answer broke off\n"},
		{"the caller left", gone, func(*http.Request) (*http.Response, error) { return nil, lost }, "error ask a model: context canceled\n"},
		{"not a stream", t.Context(), answers(200, kind("application/json"), `{"choices":[]}`),
			"error passing: ask a model: status 502: api_error: the upstream answered 200 with something that is not text/event-stream\n"},
		{"an event that is no JSON", t.Context(), ends(nil, "data: {\n\n"), "error passing: ask a model: api_error: a frame of the answer is not valid JSON: the document ends too early\n"},
	} {
		got := told(c.ctx, &llm.Client{Protocol: govern.OpenAI, Transport: door(t, govern.OpenAI, c.up)}, hello)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	c := &llm.Client{Protocol: govern.OpenAI, Transport: door(t, govern.OpenAI, ends(nil))}
	if got := told(govern.WithProfile(t.Context(), "q"), c, hello); got != "error lasting: ask a model: govern: there is no profile \"q\"\n" {
		t.Errorf("no such profile: %q", got)
	}
	c = &llm.Client{Protocol: govern.OpenAI, Transport: door(t, govern.OpenAI, ends(nil))}
	other := hello
	other.Model = "x"
	if got := told(t.Context(), c, other); got != "withheld: request denied by policy models, text \"\", usage 0+0\n" {
		t.Errorf("a model that is not allowed: %q", got)
	}
}

// A budget that is spent is no failure of the model: before the call, and in the
// middle of an answer, whichever process has the door.
func TestAskSpent(t *testing.T) {
	most := int64(50)
	up := govern.Upstream{Name: "up", Protocol: govern.OpenAI, BaseURL: "http://up.invalid/v1", Transport: answers(200, kind("text/event-stream"), "")}
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{up}, Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"up"}, Models: []string{"*"}}},
		Record: func(...govern.Record) error { return nil }, Budgets: []govern.Budget{{Kind: "profile", Name: "p", Tokens: &most}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	const want = "spent: profile p, the budget of profile p does not allow it: "
	if got := told(t.Context(), &llm.Client{Protocol: govern.OpenAI, Transport: door}, hello); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "text \"\", usage 0+0\n") {
		t.Errorf("before the call: %s", got)
	}
	const member = `"stoplog":{"run":"r","status":"budget_exceeded","guard":"budget","rule":"day","reason":"3 are left"}`
	for body, want := range map[string]string{
		`{"error":{"message":"no","type":"rate_limit_error","code":"budget_exceeded"},` + member + `}`: "spent: day, 3 are left, text \"\", usage 0+0 estimated\n",
	} {
		if got := told(t.Context(), &llm.Client{Protocol: govern.OpenAI, Transport: answers(429, kind("application/json"), body)}, hello); got != want {
			t.Errorf("another process's door: %s", got)
		}
	}
}

// A door in another process says when asking again is of no use.
func TestAskToldNotToRetry(t *testing.T) {
	const busy = `{"error":{"message":"the day is spent","type":"rate_limit_error","code":null}}`
	for said, want := range map[string]string{
		"":      "error passing: ask a model: status 429: rate_limit_error: the day is spent\n",
		"false": "error lasting: ask a model: status 429: rate_limit_error: the day is spent\n",
	} {
		header := kind("application/json")
		header.Set("X-Should-Retry", said)
		if got := told(t.Context(), &llm.Client{Protocol: govern.OpenAI, Transport: answers(429, header, busy)}, hello); got != want {
			t.Errorf("%q: %s", said, got)
		}
	}
}

// Whoever stops listening ends the call.
func TestAskLeftEarly(t *testing.T) {
	stopped := make(chan struct{})
	c := &llm.Client{Protocol: govern.OpenAI, Transport: door(t, govern.OpenAI, provider(func(r *http.Request) (*http.Response, error) {
		out, in := io.Pipe()
		go func() {
			defer close(stopped)
			for {
				if _, err := io.WriteString(in, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}`+"\n\n"); err != nil {
					return
				}
			}
		}()
		return &http.Response{StatusCode: 200, Header: kind("text/event-stream"), Body: out, Request: r}, nil
	}))}
	for ev, err := range c.Ask(t.Context(), hello) {
		if err != nil || ev != (llm.Delta{Kind: llm.Text, Text: "x"}) {
			t.Errorf("%v, %v", ev, err)
		}
		break
	}
	<-stopped
}

// Where the door is in another process, what it tells its clients is enough.
func TestAskThroughAnotherDoor(t *testing.T) {
	for _, name := range []string{"openai-denied", "openai-denied-call", "openai-approval", "openai-request-denied", "anthropic-denied"} {
		ar, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, strings.ReplaceAll(string(ar.Comment), "@KEY@", key))
		near := door(t, s.protocol, answers(s.status, s.header, strings.ReplaceAll(string(ar.Files[0].Data), "@KEY@", key)), secrets(t, s.guard)...)
		far := provider(func(r *http.Request) (*http.Response, error) {
			return near.RoundTrip(r.WithContext(context.WithoutCancel(t.Context()))) // nobody watches there
		})
		got := told(t.Context(), &llm.Client{Protocol: s.protocol, Transport: far}, llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: s.ask}}})
		if want := strings.ReplaceAll(string(ar.Files[1].Data), "0+0", "0+0 estimated"); got != want {
			t.Errorf("%s: told\n%s\nwant\n%s", name, got, want)
		}
	}
}

// An answer that never ends is not heard out, even if it says nothing.
func TestAskEndless(t *testing.T) {
	piece := ": " + strings.Repeat("x", 16<<10-3) + "\n"
	endless := provider(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: kind("text/event-stream"), Body: io.NopCloser(forever(piece)), Request: r}, nil
	})
	var last error
	for _, err := range (&llm.Client{Protocol: govern.OpenAI, Transport: endless}).Ask(t.Context(), hello) {
		last = err
	}
	if last == nil || last.Error() != "ask a model: the answer is larger than 67108864 bytes" {
		t.Errorf("%v", last)
	}
}

type forever string

func (f forever) Read(p []byte) (int, error) { return copy(p, f), nil }

// Whatever comes, an answer ends once, and what it says can go back.
func FuzzAsk(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		ar := txtar.Parse(src)
		f.Add(bytes.Contains(ar.Comment, []byte("protocol: anthropic")), string(ar.Files[0].Data))
	}
	f.Fuzz(func(t *testing.T, anthropic bool, stream string) {
		protocol := govern.OpenAI
		if anthropic {
			protocol = govern.Anthropic
		}
		c := &llm.Client{Protocol: protocol, Transport: answers(200, kind("text/event-stream"), stream)}
		ends, text := 0, ""
		for ev, err := range c.Ask(t.Context(), hello) {
			if ends > 0 {
				t.Fatalf("%v, %v behind the end", ev, err)
			}
			switch ev := ev.(type) {
			case llm.Delta:
				if ev.Kind != llm.Reasoning {
					text += ev.Text
				}
			case llm.Finished:
				ends++
				if ev.Answer.Text != text {
					t.Errorf("told %q, and %q in the end", text, ev.Answer.Text)
				}
				sendBack(t, protocol, ev.Answer)
			case llm.Withheld:
				ends++
			}
			if err != nil {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("it ended %d times", ends)
		}
	})
}

// sendBack makes a history of an answer and checks that a provider would take
// it: JSON, and a result for each call, by an id of its own, right behind it.
func sendBack(t *testing.T, protocol string, a llm.Answer) {
	t.Helper()
	for i := range a.Calls {
		a.Calls[i].Result = result("done")
	}
	docs, err := llm.Render(protocol, []llm.Message{llm.User{Text: "q"}, llm.Assistant{Text: a.Text, Calls: a.Calls, Kept: a.Kept}})
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, doc := range docs {
		var m struct {
			Content    json.RawMessage
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
		if err := json.Unmarshal(doc, &m); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		var blocks []struct {
			Type, ID  string
			ToolUseID string `json:"tool_use_id"`
		}
		json.Unmarshal(m.Content, &blocks) // OpenAI's content is a string
		closes := m.ToolCallID != ""
		for _, b := range blocks {
			closes = closes || b.Type == "tool_result"
		}
		if len(open) > 0 && !closes {
			t.Errorf("%s comes before the results of %q", doc, open)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
		shut := func(id string) {
			if len(open) == 0 || open[0] != id {
				t.Fatalf("a result for %q, with %q open", id, open)
			}
			open = open[1:]
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				open = append(open, b.ID)
			case "tool_result":
				shut(b.ToolUseID)
			}
		}
		if m.ToolCallID != "" {
			shut(m.ToolCallID)
		}
	}
	if len(open) > 0 {
		t.Errorf("no results for %q", open)
	}
}
