package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

// answers makes the upstream answer whatever it is asked.
func (w *world) answers(protocol string, deltas ...string) {
	s, whole := said(protocol, deltas...)
	w.upstream.mu.Lock()
	defer w.upstream.mu.Unlock()
	w.upstream.answer = func(a asked) (reply, error) {
		if strings.Contains(a.body, `"stream":true`) {
			return streams(s, 1<<20), nil
		}
		return says(200, "application/json", whole), nil
	}
}

// TestBadRequests are refused in the protocol of their path, with a status that
// says why, and no upstream hears of them.
func TestBadRequests(t *testing.T) {
	const most = 1 << 16
	w := open(t, guard.Redact, func(c *govern.Config) { c.MaxBody = most })
	long := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", most) + `"}]}`
	for _, p := range protocols {
		mount := "/" + p + "/v1"
		good := question(p, false)
		for _, tt := range []struct {
			name, method, path, body string
			header                   []string
			status                   int
			says                     string
		}{
			{"not JSON", "POST", path(p), "hello", nil, 400, "the request is not valid JSON"},
			{"empty", "POST", path(p), "", nil, 400, "the request is not valid JSON"},
			{"half", "POST", path(p), good[:30], nil, 400, "the request is not valid JSON"},
			{"too large", "POST", path(p), long, nil, 413, "the request is larger than 65536 bytes (max_body_bytes)"},
			{"gzip that grows too large", "POST", path(p), string(gzipped([]byte(long))), []string{"Content-Encoding", "gzip"}, 413, "the request is larger than"},
			{"gzip that is none", "POST", path(p), good, []string{"Content-Encoding", "gzip"}, 400, "the request says it is gzip and is not"},
			{"half a gzip", "POST", path(p), string(gzipped([]byte(good))[:40]), []string{"Content-Encoding", "gzip"}, 400, "the request ended too early"},
			{"brotli that is none", "POST", path(p), good, []string{"Content-Encoding", "br"}, 400, "the request is not in its Content-Encoding"},
			{"an encoding that is not known", "POST", path(p), good, []string{"Content-Encoding", "compress"}, 415, "a request in Content-Encoding compress cannot be judged"},
			{"twice gzip", "POST", path(p), good, []string{"Content-Encoding", "gzip, gzip"}, 415, "cannot be judged"},
			{"another path", "POST", mount + "/batches", good, nil, 404, "POST " + path(p)},
			{"a longer path", "POST", path(p) + "/batches", good, nil, 404, "POST " + path(p)},
			{"the mount alone", "GET", mount + "/", "", nil, 404, "GET " + mount + "/models"},
			{"another method", "GET", path(p), "", nil, 404, "POST " + path(p)},
			{"models by POST", "POST", mount + "/models", good, nil, 404, "GET " + mount + "/models"},
			{"an unknown profile", "POST", path(p), good, []string{"Stoplog-Profile", "nobody"}, 400, "the header Stoplog-Profile names none of the profiles of this mount: default, input"},
			{"a profile of no mount", "POST", path(p), good, []string{"Stoplog-Profile", "hidden"}, 400, "names none of the profiles"},
			{"a model that is not allowed", "POST", path(p), strings.Replace(good, `"m"`, `"other"`, 1), nil, 400, "the profile does not allow this model"},
			{"no model", "POST", path(p), `{"messages":[]}`, nil, 400, "the profile does not allow this model"},
			{"WebSocket", "GET", mount + "/responses", "", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"}, 426, "WebSocket is not served"},
			{"a model by a path that leaves", "GET", mount + "/models/../files", "", nil, 404, "GET " + mount + "/models"},
			{"what belongs to a model", "DELETE", mount + "/models/m", "", nil, 404, "GET " + mount + "/models/{model}"},
		} {
			t.Run(p+"/"+tt.name, func(t *testing.T) {
				a := w.ask(tt.method, tt.path, tt.body, tt.header...)
				if m := understand(t, p, a); a.status != tt.status || !strings.Contains(m.Error, tt.says) {
					t.Errorf("%d %q, want %d %q", a.status, m.Error, tt.status, tt.says)
				}
				inProtocol(t, p, a)
				if a.header.Get("X-Should-Retry") != "false" {
					t.Errorf("the header is %v", a.header)
				}
			})
		}
	}
	a := w.ask("POST", path(govern.Anthropic), question(govern.Anthropic, false), "Anthropic-Version", "2029-01-01\u00e9")
	if m := understand(t, govern.Anthropic, a); a.status != 400 || !strings.HasPrefix(m.Error, `anthropic-version "2029-01-01`) {
		t.Errorf("another version: %d %+v", a.status, m)
	}
	for _, where := range []string{"/", "/v1/chat/completions", "/openai/v2/chat/completions", "/healthz/x"} {
		if a := w.ask("POST", where, "{}"); a.status != 404 || !bytes.Contains(a.body, []byte("GET /healthz")) {
			t.Errorf("%s: %d %s", where, a.status, a.body)
		}
	}
	if a := w.ask("GET", "/healthz", ""); a.status != 200 || string(a.body) != "ok\n" {
		t.Errorf("healthz: %d %q", a.status, a.body)
	}
	if n := len(w.upstream.requests()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// inProtocol checks that a body is an error as the protocol has it.
func inProtocol(t *testing.T, protocol string, a answer) {
	t.Helper()
	var e struct {
		Type  string
		Error struct {
			Type, Message string
			Code          *string
		}
	}
	if err := json.Unmarshal(a.body, &e); err != nil || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %s", err, a.body)
	}
	anthropic := e.Type == "error" && e.Error.Code == nil
	openai := e.Type == "" && e.Error.Code != nil
	if protocol != govern.Anthropic && !openai || protocol == govern.Anthropic && !anthropic || e.Error.Type == "" || e.Error.Message == "" {
		t.Errorf("not an error of %s: %s", protocol, a.body)
	}
}

// TestGzipBomb sends 100 MB of zeros in 100 KB: no more of it is unpacked than
// a request may be large.
func TestGzipBomb(t *testing.T) {
	w := open(t, guard.Redact, func(c *govern.Config) { c.MaxBody = 1 << 20 })
	bomb := string(gzipped(make([]byte, 100<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := w.ask("POST", path(govern.OpenAI), bomb, "Content-Encoding", "gzip")
	runtime.ReadMemStats(&after)
	if a.status != 413 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 12<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// TestGzipRequest is unpacked, and goes on plain.
func TestGzipRequest(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		w.answers(p, "hi")
		a := w.ask("POST", path(p), string(gzipped([]byte(question(p, false)))), "Content-Encoding", "gzip")
		if m := understand(t, p, a); m.Text != "hi" {
			t.Errorf("%s: %+v", p, m)
		}
		seen := w.upstream.requests()
		if last := seen[len(seen)-1]; last.body != question(p, false) || last.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: the upstream is asked %q %v", p, last.body, last.Header)
		}
	}
}

// TestDeniedInput is refused before anything is sent, streamed or not.
func TestDeniedInput(t *testing.T) {
	w := open(t, guard.Deny)
	for _, p := range protocols {
		for _, stream := range []bool{false, true} {
			body := strings.Replace(question(p, stream), "hello", "my key is "+secret, 1)
			a := w.ask("POST", path(p), body, "Stoplog-Profile", "input")
			inProtocol(t, p, a)
			m := understand(t, p, a)
			want := map[string]any{"status": "guardrail_blocked", "guard": "test", "rule": "github-pat"}
			if a.status != 400 || m.Error != "the request was not sent: guard test, rule github-pat" || fmt.Sprint(m.Stoplog) != fmt.Sprint(want) {
				t.Errorf("%s: %d %+v", p, a.status, m)
			}
			h := a.header
			if h.Get("Stoplog-Verdict") != "deny" || !strings.HasPrefix(h.Get("Stoplog-Run"), "run_") || h.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: header %v", p, h)
			}
			if s := w.records.settled(t, a.run()); s.Status != "blocked" || s.Reason != "guard_denied" || s.Usage != (wire.Usage{}) {
				t.Errorf("%s: settled as %+v", p, s)
			}
			if record := strings.Join(w.records.of(t, a.run()), "\n"); !strings.Contains(record, `"upstream":""`) || strings.Contains(record, secret) {
				t.Errorf("%s: the record is\n%s", p, record)
			}
		}
	}
	if n := len(w.upstream.requests()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// TestRedactedInput is sent without what was found, and says so.
func TestRedactedInput(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		w.answers(p, "clean")
		for _, stream := range []bool{false, true} {
			body := strings.Replace(question(p, stream), "hello", "my key is "+secret, 1)
			a := w.ask("POST", path(p), body, "Stoplog-Profile", "input")
			m := understand(t, p, a)
			if m.Text != "clean" || m.Stoplog["status"] != "redacted" || m.Stoplog["rule"] != "github-pat" || a.header.Get("Stoplog-Verdict") != "redact" {
				t.Errorf("%s: %+v %v", p, m, a.header)
			}
			seen := w.upstream.requests()
			if last := seen[len(seen)-1].body; !strings.Contains(last, "my key is [redacted:github-pat]") {
				t.Errorf("%s: the upstream is asked %s", p, last)
			}
		}
		// What was found does not open the list of models.
		body := strings.Replace(strings.Replace(question(p, false), "hello", secret, 1), `"m"`, `"x"`, 1)
		w2 := open(t, guard.Redact, func(c *govern.Config) { c.Profiles[1].Models = []string{"m"} })
		if a := w2.ask("POST", path(p), body, "Stoplog-Profile", "input"); a.status != 400 || len(w2.upstream.requests()) > 0 {
			t.Errorf("%s: a model that is not allowed, in a request with a finding: %d", p, a.status)
		}
	}
}

// TestHeaders says what of a request's header an upstream is sent, and what of
// its answer's a client.
func TestHeaders(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		for _, stream := range []bool{false, true} {
			s, whole := said(p, "hi")
			w.upstream.says(func() reply {
				r := says(200, "application/json", whole)
				if stream {
					r = streams(s, 1<<20)
				}
				for k, v := range map[string]string{
					"Request-Id": "req_1", "Retry-After": "3", "X-Request-Id": secret, "X-Ratelimit-Reset-Tokens": "6m0s", "Set-Cookie": "a=b",
					"Server": "x", "Openai-Organization": "someone", "Stoplog-Verdict": "allow", "X-Should-Retry": "true", "Alt-Svc": "h3", "Connection": "close",
				} {
					r.header.Set(k, v)
				}
				return r
			})
			a := w.ask("POST", path(p), question(p, stream), "Authorization", "Bearer own", "X-Api-Key", "own", "Stoplog-Profile", "default", "Stoplog-Key", "sl_1",
				"Connection", "X-Hop", "X-Hop", "1", "Te", "trailers", "Cookie", "c=d", "Proxy-Authorization", "Basic x", "X-Forwarded-For", "10.1.2.3",
				"Accept-Encoding", "gzip, br", "Anthropic-Beta", "b1", "Anthropic-Version", "2023-06-01", "User-Agent", "sdk/1", "Idempotency-Key", "k")
			var got []string
			seen := w.upstream.requests()
			for name, v := range seen[len(seen)-1].Header {
				got = append(got, name+": "+strings.Join(v, ","))
			}
			want := []string{"Accept-Encoding: identity", "Anthropic-Beta: b1", "Anthropic-Version: 2023-06-01", "Authorization: Bearer own", "Idempotency-Key: k", "User-Agent: sdk/1", "X-Api-Key: own"}
			same(t, p+": the upstream is sent", got, want)

			got = nil
			for name := range a.header {
				got = append(got, name)
			}
			want = []string{"Content-Type", "Date", "Request-Id", "Retry-After", "Stoplog-Run", "Stoplog-Verdict", "X-Ratelimit-Reset-Tokens"}
			if !stream {
				want = append(want, "Content-Length")
			}
			same(t, p+": the client is sent", got, want)
			if !strings.Contains(strings.Join(w.records.of(t, a.run()), "\n"), "header/x-request-id") {
				t.Errorf("%s: that a header was withheld is not recorded", p)
			}
		}
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	in := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	if g, w := fmt.Sprint(in(got)), fmt.Sprint(in(want)); g != w {
		t.Errorf("%s\n%s\nwant\n%s", what, g, w)
	}
}

// TestKeys: an upstream's own key replaces the caller's; without one the
// caller's passes, as it was given.
func TestKeys(t *testing.T) {
	for _, own := range []string{"", "upstream-key"} {
		w := open(t, guard.Redact, func(c *govern.Config) {
			for i := range c.Upstreams {
				c.Upstreams[i].Key = own
			}
		})
		for _, p := range protocols {
			w.answers(p, "hi")
			for _, callers := range [][2]string{{"Authorization", "Bearer mine"}, {"X-Api-Key", "mine"}} {
				w.ask("POST", path(p), question(p, false), callers[0], callers[1])
				seen := w.upstream.requests()
				h := seen[len(seen)-1].Header
				want := callers
				switch {
				case own != "" && p == govern.OpenAI:
					want = [2]string{"Authorization", "Bearer upstream-key"}
				case own != "":
					want = [2]string{"X-Api-Key", "upstream-key"}
				}
				got := http.Header{}
				for _, name := range []string{"Authorization", "X-Api-Key"} {
					if h.Get(name) != "" {
						got.Set(name, h.Get(name))
					}
				}
				if len(got) != 1 || got.Get(want[0]) != want[1] {
					t.Errorf("%s, upstream's key %q, caller's %v: %v is sent", p, own, callers, got)
				}
			}
		}
	}
}

// TestUsage: a stream's usage is asked for and read, and its chunk is the
// caller's only if the caller asked.
func TestUsage(t *testing.T) {
	w := open(t, guard.Redact)
	w.answers(govern.OpenAI, "hi")
	for body, shown := range map[string]bool{
		`{"model":"m","stream":true}`:                                                false,
		`{"model":"m","stream":true,"stream_options":{"include_usage":false}}`:       false,
		`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`:        true,
		`{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}`: false,
	} {
		a := w.ask("POST", path(govern.OpenAI), body)
		if got := bytes.Contains(a.body, []byte(`"prompt_tokens":7`)); got != shown {
			t.Errorf("%s: the usage shows: %v", body, got)
		}
		seen := w.upstream.requests()
		var asked struct {
			Stream_options struct{ Include_usage bool }
		}
		if err := json.Unmarshal([]byte(seen[len(seen)-1].body), &asked); err != nil || !asked.Stream_options.Include_usage {
			t.Errorf("%s: the upstream is asked %s", body, seen[len(seen)-1].body)
		}
		if s := w.records.settled(t, a.run()); s.Usage != (wire.Usage{Input: 7, Output: 9}) {
			t.Errorf("%s: settled as %+v", body, s)
		}
	}
	s, _ := said(govern.OpenAI, "eight by")
	w.upstream.says(func() reply {
		return streams(bytes.Replace(s, []byte(`"usage"`), []byte(`"usual"`), 1), 1<<20)
	})
	a := w.ask("POST", path(govern.OpenAI), question(govern.OpenAI, true))
	if s := w.records.settled(t, a.run()); !s.Usage.Estimated || s.Usage.Output != 2 || s.Usage.Input == 0 {
		t.Errorf("without a usage it is settled as %+v", s)
	}
}

// TestModels lists the upstream's models, judged, of the mount's protocol.
func TestModels(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		w.upstream.says(func() reply {
			return says(200, "application/json", `{"object":"list","data":[{"id":"m","note":"`+secret+`"}],"has_more":false}`)
		})
		a := w.ask("GET", "/"+p+"/v1/models?limit=3&after_id=m&key="+secret, "")
		if a.status != 200 || bytes.Contains(a.body, []byte(secret)) || !bytes.Contains(a.body, []byte(`"id":"m"`)) {
			t.Errorf("%s: %d %s", p, a.status, a.body)
		}
		seen := w.upstream.requests()
		if last := seen[len(seen)-1]; last.URL.Path != "/v1/models" || last.URL.RawQuery != "after_id=m&limit=3" || last.Method != "GET" || last.body != "" {
			t.Errorf("%s: the upstream is asked %s %s %q", p, last.Method, last.URL, last.body)
		}
	}
}

// TestFallback asks the second upstream when the first is not there, or says
// that it is not able to.
func TestFallback(t *testing.T) {
	for name, first := range map[string]func(asked) (reply, error){
		"unreachable": func(asked) (reply, error) { return reply{}, io.ErrUnexpectedEOF },
		"unavailable": func(asked) (reply, error) { return says(503, "application/json", `{}`), nil },
		"overloaded":  func(asked) (reply, error) { return says(529, "text/html", `<p>`), nil },
	} {
		second := &upstream{}
		w := open(t, guard.Redact, func(c *govern.Config) {
			for _, p := range protocols {
				c.Upstreams = append(c.Upstreams, govern.Upstream{Name: p + "-2", Protocol: p, BaseURL: base(p), Key: "second", Transport: second})
				c.Profiles[0].Upstreams = append(c.Profiles[0].Upstreams, p+"-2")
			}
		})
		w.upstream.answer = first
		for _, p := range protocols {
			s, _ := said(p, "from the second")
			second.says(func() reply { return streams(s, 1<<20) })
			if m := understand(t, p, w.ask("POST", path(p), question(p, true))); m.Text != "from the second" || m.Stoplog != nil {
				t.Errorf("%s, %s: %+v", name, p, m)
			}
			if got := second.requests(); !strings.Contains(fmt.Sprint(got[len(got)-1].Header), "second") {
				t.Errorf("%s, %s: the second upstream is sent %v", name, p, got[len(got)-1].Header)
			}
		}
	}
}
