package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// broken gives its bytes and then an error, as a connection that was cut does.
func broken(b []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(io.ErrUnexpectedEOF))
}

// TestBadUpstream has upstreams do what they should not. Whatever it is, the
// client is told in its own protocol, the record says why, and held text is
// decided and never leaks.
func TestBadUpstream(t *testing.T) {
	w := open(t, guard.Redact)
	const eventStream, jsonType, html = "text/event-stream", "application/json", "<html><body>" + secret + "</body></html>"
	for _, tt := range []struct {
		name   string
		stream bool
		reply  func(protocol string, stream []byte, whole string) reply
		status int    // of HTTP
		reason string // as recorded and as told
		text   string // what of the answer the client gets
	}{
		{"HTML with 200", false, func(string, []byte, string) reply { return says(200, "text/html", html) }, 502, "the upstream answered 200 with something that is not application/json", ""},
		{"HTML with 200 for a stream", true, func(string, []byte, string) reply { return says(200, "text/html", html) }, 502, "the upstream answered 200 with something that is not text/event-stream", ""},
		{"HTML with 500", false, func(string, []byte, string) reply { return says(500, "text/html", html) }, 500, "the upstream answered 500 with something that is not application/json", ""},
		{"HTML with 429 for a stream", true, func(string, []byte, string) reply { return says(429, "text/html", html) }, 429, "the upstream answered 429 with something that is not application/json", ""},
		{"a redirect", false, func(string, []byte, string) reply { return says(302, jsonType, "{}") }, 502, "the upstream answered 302 with something that is not application/json", ""},
		{"nothing", false, func(string, []byte, string) reply { return reply{204, nil, strings.NewReader("")} }, 502, "the upstream answered 204 with something that is not application/json", ""},
		{"JSON for a stream", true, func(_ string, _ []byte, whole string) reply { return says(200, jsonType, whole) }, 502, "the upstream answered 200 with something that is not text/event-stream", ""},
		{"a stream for JSON", false, func(_ string, s []byte, _ string) reply { return says(200, eventStream, string(s)) }, 502, "the upstream answered 200 with something that is not application/json", ""},
		{"no content type", false, func(_ string, _ []byte, whole string) reply { return reply{200, nil, strings.NewReader(whole)} }, 502, "the upstream answered 200 with something that is not application/json", ""},
		{"half of a document", false, func(_ string, _ []byte, whole string) reply { return says(200, jsonType, whole[:len(whole)/2]) }, 502, "the answer is not valid JSON: ", ""},
		{"a cut document", false, func(_ string, _ []byte, whole string) reply {
			return reply{200, http.Header{"Content-Type": {jsonType}}, broken([]byte(whole[:len(whole)/2]))}
		}, 502, "the upstream's answer ended too early", ""},
		{"a cut stream, with text held", true, func(_ string, s []byte, _ string) reply {
			return reply{200, http.Header{"Content-Type": {eventStream}}, broken(s[:bytes.Index(s, []byte(` done`))])}
		}, 200, "the upstream's answer broke off", "Your key is [redacted:github-pat]"},
		{"a stream that ends too early", true, func(_ string, s []byte, _ string) reply {
			return reply{200, http.Header{"Content-Type": {eventStream}}, bytes.NewReader(s[:bytes.Index(s, []byte(` done`))])}
		}, 200, "", "Your key is [redacted:github-pat]"},
		{"a frame that is not JSON", true, func(_ string, s []byte, _ string) reply {
			s = bytes.Replace(s, []byte(`stop","index":0`), []byte(`stop",!index":0`), 1)
			return streams(bytes.Replace(s, []byte(`"finish_reason":"stop`), []byte(`!finish_reason":"stop`), 1), 1<<20)
		}, 200, "a frame of the answer is not valid JSON: ", "Your key is [redacted:github-pat] done"},
		{"an endless line", true, func(_ string, s []byte, _ string) reply {
			return reply{200, http.Header{"Content-Type": {eventStream}}, io.MultiReader(bytes.NewReader(s[:bytes.Index(s, []byte("data:"))]), strings.NewReader("data: "), endless('x'))}
		}, 200, "a frame of the answer is too long: ", ""},
		{"an encoding that was not asked for", false, func(string, []byte, string) reply {
			return reply{200, http.Header{"Content-Type": {jsonType}, "Content-Encoding": {"compress"}}, strings.NewReader("\x0b")}
		}, 502, "the upstream's answer is in a Content-Encoding that was not asked for", ""},
		{"gzip that is none", true, func(_ string, s []byte, _ string) reply {
			return reply{200, http.Header{"Content-Type": {eventStream}, "Content-Encoding": {"gzip"}}, bytes.NewReader(s)}
		}, 502, "the upstream's answer says it is gzip and is not", ""},
		{"gzip that breaks off", true, func(_ string, s []byte, _ string) reply {
			z := gzipped(s)
			return reply{200, http.Header{"Content-Type": {eventStream}, "Content-Encoding": {"gzip"}}, bytes.NewReader(z[:len(z)-20])}
		}, 200, "the upstream's answer broke off", "*"},
	} {
		for _, p := range protocols {
			t.Run(tt.name+"/"+p, func(t *testing.T) {
				s, whole := said(p, "Your key is "+secret[:20], secret[20:], " done")
				w.upstream.says(func() reply { return tt.reply(p, s, whole) })
				a := w.ask("POST", path(p), question(p, tt.stream))
				if a.status != tt.status || a.err != nil {
					t.Errorf("status %d, %v; want %d", a.status, a.err, tt.status)
				}
				if tt.text == "*" { // the end was sent, and then it broke
					if !bytes.Contains(a.body, []byte(tt.reason)) {
						t.Errorf("the client is not told: %s", a.body)
					}
					return
				}
				m := understand(t, p, a)
				if !strings.HasPrefix(m.Error, tt.reason) || m.Error == "" {
					t.Errorf("the client is told %q, want %q", m.Error, tt.reason)
				}
				if m.Text != tt.text || m.Done || m.Finish != "" {
					t.Errorf("the client understood %+v", m)
				}
				if m.Stoplog["status"] != "upstream_failed" || m.Stoplog["reason"] != m.Error {
					t.Errorf("the member stoplog is %v", m.Stoplog)
				}
				if got := w.records.settled(t, a.run()); got.Status != "failed" || got.Reason != "model_failed" || got.Detail != m.Error || !got.Usage.Estimated {
					t.Errorf("settled as %+v", got)
				}
				if bytes.Contains(a.body, []byte(secret[:12])) {
					t.Errorf("the secret leaks: %s", a.body)
				}
				if a.header.Get("X-Should-Retry") != "" {
					t.Error("the answer says not to ask again, though no policy made it")
				}
			})
		}
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// TestUpstreamErrors passes on what a provider says in place of an answer,
// judged: its status and its waiting time are the client's.
func TestUpstreamErrors(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		for _, stream := range []bool{false, true} {
			for _, status := range []int{400, 401, 429, 500, 529} {
				t.Run(fmt.Sprint(p, "/", stream, "/", status), func(t *testing.T) {
					w.upstream.says(func() reply {
						r := says(status, "application/json; charset=utf-8", `{"type":"error","error":{"type":"some_error","message":"the key `+secret+` is wrong"}}`)
						r.header.Set("Retry-After", "7")
						return r
					})
					a := w.ask("POST", path(p), question(p, stream))
					m := understand(t, p, a)
					if a.status != status || m.Error != "the key [redacted:github-pat] is wrong" || a.header.Get("Retry-After") != "7" {
						t.Errorf("%d, %+v, %v", a.status, m, a.header)
					}
					want := fmt.Sprintf("the upstream answered %d", status)
					if m.Stoplog["status"] != "upstream_failed" || m.Stoplog["reason"] != want {
						t.Errorf("the member stoplog is %v", m.Stoplog)
					}
					if s := w.records.settled(t, a.run()); s.Status != "failed" || s.Detail != want {
						t.Errorf("settled as %+v", s)
					}
					if a.header.Get("Stoplog-Verdict") != "redact" || a.header.Get("X-Should-Retry") != "" {
						t.Errorf("header %v", a.header)
					}
				})
			}
		}
	}
}

// TestGzipAnswers reads answers that are compressed though that was not asked.
func TestGzipAnswers(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range protocols {
		for _, stream := range []bool{false, true} {
			s, whole := said(p, "the key ", secret, " ends")
			body, kind := []byte(whole), "application/json"
			if stream {
				body, kind = s, "text/event-stream"
			}
			w.upstream.says(func() reply {
				return reply{200, http.Header{"Content-Type": {kind}, "Content-Encoding": {"gzip"}}, bytes.NewReader(gzipped(body))}
			})
			a := w.ask("POST", path(p), question(p, stream))
			if m := understand(t, p, a); m.Text != "the key [redacted:github-pat] ends" || a.header.Get("Content-Encoding") != "" {
				t.Errorf("%s, %v: %+v %v", p, stream, m, a.header)
			}
		}
	}
}

// TestAfterTheEnd has upstreams go on after their end mark: no client gets that,
// and none waits for it.
func TestAfterTheEnd(t *testing.T) {
	w := open(t, guard.Redact)
	s, _ := said(govern.OpenAI, "all there is")
	more := []byte(`data: {"choices":[{"index":0,"delta":{"content":"more"},"finish_reason":null}]}` + "\n\n")
	silence, _ := io.Pipe()
	for name, body := range map[string]io.Reader{
		"more at once": bytes.NewReader(bytes.Join([][]byte{s, more, more}, nil)),
		"more later":   io.MultiReader(bytes.NewReader(s), bytes.NewReader(more)),
		"no end": struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(s), silence), silence},
	} {
		w.upstream.says(func() reply { return reply{200, http.Header{"Content-Type": {"text/event-stream"}}, body} })
		a := w.ask("POST", path(govern.OpenAI), question(govern.OpenAI, true))
		if !bytes.Equal(a.body, s) || a.err != nil {
			t.Errorf("%s: the client gets %q, %v", name, a.body, a.err)
		}
		if got := w.records.settled(t, a.run()); got.Status != "completed" || got.Usage != (wire.Usage{Input: 7, Output: 9}) {
			t.Errorf("%s: settled as %+v", name, got)
		}
	}
}

// serveUpstream is an upstream on loopback, for what needs a connection.
func serveUpstream(t testing.TB, h http.HandlerFunc) func(*govern.Config) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return func(c *govern.Config) {
		for i, u := range c.Upstreams {
			c.Upstreams[i].Transport = nil
			c.Upstreams[i].BaseURL = server.URL
			if u.Protocol == govern.OpenAI {
				c.Upstreams[i].BaseURL += "/v1"
			}
		}
	}
}

// TestUnreachable asks an upstream that is not there.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	w := open(t, guard.Redact, func(c *govern.Config) {
		for i := range c.Upstreams {
			c.Upstreams[i].Transport, c.Upstreams[i].BaseURL = nil, "http://"+l.Addr().String()
		}
	})
	for _, p := range protocols {
		for _, stream := range []bool{false, true} {
			a := w.ask("POST", path(p), question(p, stream))
			m := understand(t, p, a)
			if a.status != 502 || m.Error != "the upstream "+p+" could not be reached" || m.Stoplog["status"] != "upstream_failed" {
				t.Errorf("%s: %d %+v", p, a.status, m)
			}
			if s := w.records.settled(t, a.run()); s.Status != "failed" || s.Detail != "no upstream could be reached" {
				t.Errorf("%s: settled as %+v", p, s)
			}
		}
	}
}

// TestClientLeaves hangs up at different points: the upstream's own request ends
// with that, and what it took is settled as an estimate.
func TestClientLeaves(t *testing.T) {
	for _, p := range protocols {
		s, _ := said(p, "one", "two")
		first := s[:bytes.Index(s, []byte("two"))-1]
		for name, say := range map[string]func(http.ResponseWriter){
			"before the header": func(http.ResponseWriter) {},
			"mid-stream": func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Write(first)
				http.NewResponseController(w).Flush()
			},
			"mid-document": func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"id":`)
				http.NewResponseController(w).Flush()
			},
		} {
			t.Run(p+"/"+name, func(t *testing.T) {
				there, gone := make(chan struct{}), make(chan struct{})
				settled := make(chan govern.Settled, 1)
				w := open(t, guard.Redact, serveUpstream(t, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body) // else the server does not look for the end of the connection
					say(w)
					close(there)
					<-r.Context().Done()
					close(gone)
				}), func(c *govern.Config) {
					c.Record = func(rs ...govern.Record) error {
						if s, ok := rs[0].Fact.(govern.Settled); ok {
							settled <- s
						}
						return nil
					}
				})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				req, _ := http.NewRequestWithContext(ctx, "POST", w.url+path(p), strings.NewReader(question(p, name == "mid-stream")))
				ended := make(chan error, 1)
				go func() {
					resp, err := w.client.Do(req)
					if err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					ended <- err
				}()
				<-there
				leave()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("the client got %v", err)
				}
				<-gone
				if s := <-settled; s.Status != "cancelled" || !s.Usage.Estimated || s.Usage.Input == 0 {
					t.Errorf("settled as %+v", s)
				}
			})
		}
	}
}

// TestConnectionsAreKept asks an upstream again and again: a stream that was
// read to its end leaves its connection for the next, also where the upstream
// ends the answer only after its end mark was passed on.
func TestConnectionsAreKept(t *testing.T) {
	for _, p := range protocols {
		s, whole := said(p, "some words")
		passed := make(chan struct{})
		var mu sync.Mutex
		from := map[string]bool{}
		w := open(t, guard.Redact, serveUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			from[r.RemoteAddr] = true
			mu.Unlock()
			body, _ := io.ReadAll(r.Body)
			if !bytes.Contains(body, []byte(`"stream":true`)) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, whole)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write(s)
			http.NewResponseController(w).Flush()
			<-passed
		}))
		for range 5 {
			if m := understand(t, p, w.ask("POST", path(p), question(p, false))); m.Text != "some words" {
				t.Fatalf("%+v", m)
			}
			resp, err := w.client.Post(w.url+path(p), "application/json", strings.NewReader(question(p, true)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, len(s))); err != nil {
				t.Fatal(err)
			}
			passed <- struct{}{}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("after the end mark: %q, %v", rest, err)
			}
			resp.Body.Close()
		}
		if len(from) != 1 {
			t.Errorf("%s: 10 requests took %d connections", p, len(from))
		}
	}
}
