package govern_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// outcome is how a program sees that a call ended.
type outcome struct {
	trip, read any // the type of the error of RoundTrip, of reading the body
	govern.Outcome
}

// TestWatch is every way out of a call: what RoundTrip and the body return, what
// the program is told, and that the record says the same, once.
func TestWatch(t *testing.T) {
	const eventStream, jsonType = "text/event-stream", "application/json"
	unread := func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }
	cut := func(body string) upstream {
		return func(*http.Request) (*http.Response, error) {
			return response(200, eventStream, io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
		}
	}
	type leave int
	const (
		stay      leave = iota
		closed          // reads a little and closes
		cancelled       // reads a little and cancels
		before          // cancels before the call
	)
	upstreamError := new(govern.UpstreamError)
	for _, tt := range []struct {
		name    string
		verdict guard.Verdict
		url     string
		content string
		stream  bool
		up      upstream
		leaves  leave
		want    outcome
	}{
		{"completed", guard.Redact, chat, "hi", false, says(200, jsonType, chatBody("hi")), stay,
			outcome{Outcome: govern.Outcome{Status: "completed", InputTokens: 7, OutputTokens: 9}}},
		{"completed stream", guard.Redact, chat, "hi", true, says(200, eventStream, chatStream("hi")), stay,
			outcome{Outcome: govern.Outcome{Status: "completed", InputTokens: 7, OutputTokens: 9}}},
		{"redacted", guard.Redact, chat, "hi", false, says(200, jsonType, chatBody(secret)), stay,
			outcome{Outcome: govern.Outcome{Status: "redacted", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9}}},
		{"redacted stream", guard.Redact, chat, "hi", true, says(200, eventStream, chatStream(secret)), stay,
			outcome{Outcome: govern.Outcome{Status: "redacted", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9}}},
		{"redacted request", guard.Redact, messages, secret, true, says(200, eventStream, messageStart()+textDelta("hi")+messageEnd()), stay,
			outcome{Outcome: govern.Outcome{Status: "redacted", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9}}},
		{"denied request", guard.Deny, chat, secret, true, unread, stay,
			outcome{Outcome: govern.Outcome{Status: "guardrail_blocked", Guard: "secrets", Rule: "github-pat"}}},
		{"denied answer", guard.Deny, chat, "hi", false, says(200, jsonType, chatBody(secret)), stay,
			outcome{Outcome: govern.Outcome{Status: "guardrail_blocked", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9}}},
		{"denied stream", guard.Deny, messages, "hi", true, says(200, eventStream, messageStart()+textDelta(secret)+textDelta(" x")+messageEnd()), stay,
			outcome{Outcome: govern.Outcome{Status: "guardrail_blocked", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9}}},
		{"denied stream that breaks", guard.Deny, chat, "hi", true, cut(chunk(secret + " and more")), stay,
			outcome{Outcome: govern.Outcome{Status: "guardrail_blocked", Guard: "secrets", Rule: "github-pat", Estimated: true}}},
		{"denied stream that nobody reads on", guard.Deny, chat, "hi", true, cut(chunk("so: ") + chunk(secret+" and more")), closed,
			outcome{read: cmpopts.AnyError, Outcome: govern.Outcome{Status: "guardrail_blocked", Guard: "secrets", Rule: "github-pat", Estimated: true}}},
		{"approval", guard.RequireApproval, chat, "hi", true, says(200, eventStream, chatStream(secret)), stay,
			outcome{Outcome: govern.Outcome{Status: "guardrail_approval_required", Guard: "secrets", Rule: "github-pat", InputTokens: 7, OutputTokens: 9, Reason: "the rest was withheld, and nobody can approve it: answers are not kept here"}}},
		{"unreachable", guard.Redact, chat, "hi", true, unread, stay,
			outcome{trip: upstreamError, Outcome: govern.Outcome{Status: "upstream_failed", Reason: "no upstream could be reached"}}},
		{"an error", guard.Redact, chat, "hi", true, says(429, jsonType, `{"error":{"message":"slow down"}}`), stay,
			outcome{Outcome: govern.Outcome{Status: "upstream_failed", Reason: "the upstream answered 429", Estimated: true}}},
		{"a cut stream", guard.Redact, chat, "hi", true, cut(chunk("hi")), stay,
			outcome{read: upstreamError, Outcome: govern.Outcome{Status: "upstream_failed", Reason: "the upstream's answer broke off", Estimated: true}}},
		{"left before the call", guard.Redact, chat, "hi", true, unread, before,
			outcome{trip: context.Canceled, Outcome: govern.Outcome{Status: "cancelled", Estimated: true}}},
		{"closed mid-stream", guard.Redact, messages, "hi", true, cut(messageStart() + textDelta("hi")), closed,
			outcome{read: cmpopts.AnyError, Outcome: govern.Outcome{Status: "cancelled", Reason: "the caller left before the end", InputTokens: 7, Estimated: true}}},
		{"left mid-stream", guard.Redact, messages, "hi", true, cut(messageStart() + textDelta("hi")), cancelled,
			outcome{read: context.Canceled, Outcome: govern.Outcome{Status: "cancelled", Reason: "the caller left before the end", InputTokens: 7, Estimated: true}}},
		{"closed after the end mark", guard.Redact, messages, "hi", true, func(*http.Request) (*http.Response, error) {
			silence, _ := io.Pipe()
			return response(200, eventStream, struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(messageStart()+messageEnd()), silence), silence}), nil
		}, closed, outcome{read: cmpopts.AnyError, Outcome: govern.Outcome{Status: "completed", InputTokens: 7, OutputTokens: 9}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			records := &records{}
			door := open(t, tt.verdict, tt.up, records.add)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx, exchange := govern.Watch(ctx)
			if tt.leaves == before {
				cancel()
			}
			resp, err := door.RoundTrip(ask(ctx, t, tt.url, tt.content, tt.stream))
			checkError(t, "RoundTrip", err, tt.want.trip)
			if err == nil {
				if _, ended := exchange.Outcome(); ended && tt.stream && resp.StatusCode == 200 {
					t.Error("the outcome is known before the answer is read")
				}
				if tt.leaves != stay {
					io.ReadFull(resp.Body, make([]byte, 10))
				}
				switch tt.leaves {
				case closed:
					resp.Body.Close()
				case cancelled:
					cancel()
				}
				_, err := io.Copy(io.Discard, resp.Body)
				checkError(t, "reading", err, tt.want.read)
				resp.Body.Close()
			}
			got, ok := exchange.Outcome()
			if !ok || !strings.HasPrefix(got.Run, "run_") {
				t.Fatalf("the outcome is %+v, %v", got, ok)
			}
			ignore := cmpopts.IgnoreFields(govern.Outcome{}, "Run")
			if got.Estimated { // how much is the estimate's business
				ignore = cmpopts.IgnoreFields(govern.Outcome{}, "Run", "OutputTokens", "InputTokens")
			}
			if diff := cmp.Diff(tt.want.Outcome, got, ignore); diff != "" {
				t.Errorf("the outcome (-want +got):\n%s", diff)
			}
			settled := records.settled()
			if len(settled) != 1 {
				t.Fatalf("settled %d times: %+v", len(settled), settled)
			}
			s := settled[0]
			ends := map[string][2]string{ // the record's words for what a caller is told
				"completed": {"completed", "completed"}, "redacted": {"completed", "completed"},
				"guardrail_blocked": {"blocked", "guard_denied"}, "guardrail_approval_required": {"blocked", "guard_denied"},
				"upstream_failed": {"failed", "model_failed"}, "cancelled": {"cancelled", "cancelled"},
			}
			if [2]string{s.Status, s.Reason} != ends[got.Status] || s.Detail != got.Reason || s.Usage.Input != got.InputTokens || s.Usage.Output != got.OutputTokens || s.Usage.Estimated != got.Estimated {
				t.Errorf("the record says %+v, the program is told %+v", s, got)
			}
		})
	}
}

// checkError checks an error against nil, an error, or a type of error.
func checkError(t *testing.T, what string, got error, want any) {
	t.Helper()
	ok := false
	switch want := want.(type) {
	case nil:
		ok = got == nil
	case *govern.UpstreamError:
		ok = errors.As(got, &want)
	case error:
		ok = got != nil && (want == cmpopts.AnyError || errors.Is(got, want))
	}
	if !ok {
		t.Errorf("%s: the error is %v, want %v", what, got, want)
	}
}

// TestNothingAsked: where nothing was asked of a model there is no outcome, and
// no upstream hears of it.
func TestNothingAsked(t *testing.T) {
	door := open(t, guard.Redact, upstream(func(r *http.Request) (*http.Response, error) {
		t.Errorf("the upstream is asked %s", r.URL)
		return nil, errors.New("never")
	}), (&records{}).add)
	for url, status := range map[string]int{"http://x.invalid/v1/batches": 404, "http://x.invalid/v1/chat/completions/": 404} {
		ctx, exchange := govern.Watch(t.Context())
		resp, err := door.RoundTrip(ask(ctx, t, url, "hi", false))
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s: %v %v", url, resp, err)
		}
		if o, ok := exchange.Outcome(); ok {
			t.Errorf("%s: outcome %+v", url, o)
		}
	}
}

// TestModelsAllowed: a profile's patterns, and what a caller may ask for.
func TestModelsAllowed(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, tt := range []struct {
		pattern, model string
		allowed        bool
	}{
		{"m", "m", true}, {"m", "M", false}, {"m", "mm", false}, {"m", "", false},
		{"*", "anything", true}, {"*", "", true},
		{"gpt-*", "gpt-4o", true}, {"gpt-*", "xgpt-4o", false}, {"*-mini", "gpt-4o-mini", true}, {"*-mini", "gpt-mini-x", false},
		{"a*b*c", "a1b2c", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"ab*ba", "aba", false},
		{"*a*a*a*a*a*a*a*a*b", long, false}, // in linear time
	} {
		door, err := govern.Open(govern.Config{
			Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: says(200, "application/json", chatBody("hi"))}},
			Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{tt.pattern}}},
			Record:    (&records{}).add,
		})
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", chat, strings.NewReader(`{"model":"`+tt.model+`","messages":[]}`))
		resp, err := door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.StatusCode == 200; got != tt.allowed {
			t.Errorf("%q for %.20q: %d", tt.pattern, tt.model, resp.StatusCode)
		}
	}
}
