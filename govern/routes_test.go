package govern_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// TestRoutes asks for all that is served beside the main paths: what is asked is
// judged, and the answer passes.
func TestRoutes(t *testing.T) {
	const vector = `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":"AAAAQA=="}],"usage":{"prompt_tokens":5,"total_tokens":5}}`
	const model = `{"id":"org/m","object":"model","created":1,"owned_by":"us"}`
	for _, tt := range []struct {
		protocol, method, path, body string
		asked, sent, answer          string
	}{
		{govern.OpenAI, "POST", "/embeddings", `{"model":"m","input":["my ` + secret + `"]}`, "http://openai.invalid/v1/embeddings", `{"model":"m","input":["my [redacted:github-pat]"]}`, vector},
		{govern.OpenAI, "POST", "/embeddings", `{"model":"m","input":"hi","stream":true}`, "http://openai.invalid/v1/embeddings", `{"model":"m","input":"hi","stream":true}`, vector},
		{govern.OpenAI, "POST", "/responses", `{"model":"m","input":"my ` + secret + `"}`, "http://openai.invalid/v1/responses", `{"model":"m","input":"my [redacted:github-pat]"}`, `{"id":"r","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`},
		{govern.OpenAI, "GET", "/models/org/m", "", "http://openai.invalid/v1/models/org/m", "", model},
		{govern.Anthropic, "POST", "/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"my ` + secret + `"}]}`, "http://anthropic.invalid/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"my [redacted:github-pat]"}]}`, `{"input_tokens":14}`},
		{govern.Anthropic, "GET", "/models/m", "", "http://anthropic.invalid/v1/models/m", "", `{"type":"model","id":"m","display_name":"M","created_at":"2026-01-01T00:00:00Z"}`},
	} {
		var asked, sent string
		records := &records{}
		door := open(t, guard.Redact, upstream(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			b, err := io.ReadAll(r.Body)
			sent = string(b)
			return response(200, "application/json", strings.NewReader(tt.answer)), err
		}), records.add)
		ctx := govern.WithProtocol(t.Context(), tt.protocol)
		req, err := http.NewRequestWithContext(ctx, tt.method, "http://x.invalid/v1"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		// Behind it may stand what became of the request.
		if resp.StatusCode != 200 || !strings.HasPrefix(string(got), strings.TrimSuffix(tt.answer, "}")) {
			t.Errorf("%s: %d %s", tt.path, resp.StatusCode, got)
		}
		if asked != tt.asked || sent != tt.sent {
			t.Errorf("%s: the upstream is asked %s for %s", tt.path, asked, sent)
		}
		if n := len(records.settled()); n != 1 {
			t.Errorf("%s: settled %d times", tt.path, n)
		}
		if !govern.Serves(tt.protocol, tt.method, tt.path) || govern.Serves(tt.protocol, "PUT", tt.path) || govern.Serves(tt.protocol, tt.method, "/x"+tt.path) {
			t.Errorf("%s: what is served is told wrongly", tt.path)
		}
	}
	for _, path := range []string{"/models/../files", "/models/a//b", "/models/", "/models/a/", "/models/a?b", "/responses/resp_1", "/responses/compact", "/batches", "/messages/batches"} {
		for _, protocol := range []string{govern.OpenAI, govern.Anthropic} {
			if govern.Serves(protocol, "GET", path) || govern.Serves(protocol, "POST", path) {
				t.Errorf("%s %s is served", protocol, path)
			}
		}
	}
	for _, want := range []string{"POST …/responses (OpenAI)", "POST …/embeddings (OpenAI)", "POST …/messages/count_tokens (Anthropic)", "GET …/models/{model} (Anthropic)"} {
		if !strings.Contains(govern.Served(), want) {
			t.Errorf("%s is not in %s", want, govern.Served())
		}
	}
}

// TestMediaPolicy: a profile's media reaches the judging of requests, and what
// passes is on record.
func TestMediaPolicy(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`
	for _, denied := range []bool{false, true} {
		records := &records{}
		door, err := govern.Open(govern.Config{
			Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: says(200, "application/json", chatBody("ok"))}},
			Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{"m"}, Media: govern.Media{NoImages: denied}}},
			Record:    records.add,
		})
		if err != nil {
			t.Fatal(err)
		}
		req := ask(t.Context(), t, chat, "", false)
		req.Body = io.NopCloser(strings.NewReader(body))
		resp, err := door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 200, true: 400}[denied]; resp.StatusCode != want {
			t.Errorf("denied %v: %d", denied, resp.StatusCode)
		}
		found := false
		for _, r := range records.all {
			v, ok := r.Fact.(govern.Verdict)
			found = found || ok && v.Guard == "media" && v.Rule == "image" && v.Channel == "messages/0/content/0/type" && (v.Verdict == guard.Deny) == denied
		}
		if !found {
			t.Errorf("denied %v: recorded %+v", denied, records.all)
		}
	}
}
