package dial

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closer is what both kinds of client have.
type closer interface{ CloseIdleConnections() }

func transportFor(t *testing.T, o Options) http.RoundTripper {
	t.Helper()
	rt := Transport(o)
	t.Cleanup(rt.(closer).CloseIdleConnections)
	return rt
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAllow says what one entry of the list lets through.
func TestAllow(t *testing.T) {
	rt := Transport(Options{Allow: []string{
		"https://API.openai.com/v1", "http://127.0.0.1:11434", "http://[::1]:80/x", "api.anthropic.com", "ftp://a.example", "http://%zz", "",
	}}).(*transport)
	if want := []string{"https://api.openai.com:443", "http://127.0.0.1:11434", "http://[::1]:80"}; !slices.Equal(rt.allowed, want) {
		t.Fatalf("allowed is %q, want %q", rt.allowed, want)
	}
	for target, want := range map[string]bool{
		"https://api.openai.com/v1/chat/completions": true,
		"https://api.openai.com:443/":                true,
		"https://Api.OpenAI.com":                     true,
		"http://127.0.0.1:11434/v1/models":           true,
		"http://[::1]/":                              true,
		"http://api.openai.com/v1":                   false, // in clear text
		"https://api.openai.com:8443/":               false,
		"https://api.openai.com.evil.example/":       false,
		"https://api.openai.com./":                   false,
		"https://evil.example/api.openai.com":        false,
		"https://api.openai.com@evil.example/":       false,
		"https://api.anthropic.com/":                 false, // its entry has no scheme
		"ftp://a.example/":                           false,
		"http://localhost:11434/":                    false, // another name is another place
		"http://127.0.0.1/":                          false,
		"http:///v1":                                 false,
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		origin, ok := origin(u.Scheme, u.Host)
		if got := ok && rt.allows(origin, ""); got != want {
			t.Errorf("%s: allowed %v, want %v", target, got, want)
		}
	}
}

// TestRefused says what the caller of a place that is not allowed gets: a typed
// error that names both, and no call.
func TestRefused(t *testing.T) {
	called := false
	other := serve(t, func(http.ResponseWriter, *http.Request) { called = true })
	rt := transportFor(t, Options{Allow: []string{"https://api.openai.com/v1"}})

	r := request(t, strings.Replace(other.URL, "http://", "http://user:secret@", 1)+"/path?key=secret")
	sent := &closing{Reader: strings.NewReader("{}")}
	r.Body = sent
	_, err := rt.RoundTrip(r)
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a RefusedError", err)
	}
	if refused.Target != other.URL || !slices.Equal(refused.Allowed, []string{"https://api.openai.com:443"}) {
		t.Errorf("got %+v", refused)
	}
	if want := "call to " + other.URL + " is refused: allowed is https://api.openai.com:443"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !sent.closed {
		t.Error("the request's body is not closed")
	}
	if called {
		t.Error("the place was called")
	}
	_, err = transportFor(t, Options{}).RoundTrip(request(t, other.URL))
	if !errors.As(err, &refused) || !strings.HasSuffix(err.Error(), "allowed is nothing") {
		t.Errorf("the zero Options: got %v, want a refusal", err)
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// TestHostHeader: a server that is allowed may serve others beside it.
func TestHostHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	rt := transportFor(t, Options{Allow: []string{s.URL}})
	r := request(t, s.URL)
	r.Host = "tenant.example"
	var refused *RefusedError
	if _, err := rt.RoundTrip(r); !errors.As(err, &refused) || refused.Target != "http://tenant.example:80" {
		t.Errorf("got %v, want a refusal of the header's host", err)
	}
	r = request(t, s.URL)
	r.Host = strings.TrimPrefix(s.URL, "http://")
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, resp); got != r.Host {
		t.Errorf("the server saw host %q, want %q", got, r.Host)
	}
}

// TestAsItCame: neither is gzip undone or asked for, nor a redirect followed.
func TestAsItCame(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := io.WriteString(zip, "text"); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	var asked []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Accept-Encoding"))
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	loopback := Loopback()
	t.Cleanup(loopback.CloseIdleConnections)
	for name, call := range map[string]func(*http.Request) (*http.Response, error){
		"transport": transportFor(t, Options{Allow: []string{s.URL}}).RoundTrip,
		"loopback":  loopback.Do,
	} {
		asked = nil
		resp, err := call(request(t, s.URL))
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, resp); got != packed.String() || resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: the body is not as it came: %q", name, got)
		}
		resp, err = call(request(t, s.URL+"/old"))
		if err != nil {
			t.Fatal(err)
		}
		body(t, resp)
		if resp.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%s: status %d, want the redirect itself", name, resp.StatusCode)
		}
		if !slices.Equal(asked, []string{"", ""}) {
			t.Errorf("%s: asked for the encodings %q in %d calls, want none in 2", name, asked, len(asked))
		}
	}
}

// TestProxy: the environment chooses the way only if it was asked.
func TestProxy(t *testing.T) {
	with := Transport(Options{EnvironmentProxy: true}).(*transport)
	without := Transport(Options{}).(*transport)
	if with.pool.Proxy == nil || without.pool.Proxy != nil {
		t.Errorf("proxy from the environment: with %v, without %v", with.pool.Proxy != nil, without.pool.Proxy != nil)
	}
	if Loopback().Transport.(*transport).pool.Proxy != nil {
		t.Error("a loopback client would ask a proxy")
	}
}

func TestHeaderTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server waits for its handlers
	_, err := transportFor(t, Options{Allow: []string{s.URL}, HeaderTimeout: time.Millisecond}).RoundTrip(request(t, s.URL))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
	if got := Transport(Options{}).(*transport).pool.ResponseHeaderTimeout; got != 10*time.Minute {
		t.Errorf("by default it is %v, want 10m", got)
	}
}

// TestHTTP2 speaks it to a server that does.
func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	rt := transportFor(t, Options{Allow: []string{s.URL}})
	rt.(*transport).pool.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	resp, err := rt.RoundTrip(request(t, s.URL))
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, resp); got != "HTTP/2.0" {
		t.Errorf("spoke %s, want HTTP/2.0", got)
	}
}

func TestLoopback(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "here") })
	c := Loopback()
	t.Cleanup(c.CloseIdleConnections)
	for _, target := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
		resp, err := c.Do(request(t, target))
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, resp); got != "here" {
			t.Errorf("%s: got %q", target, got)
		}
	}
	for _, target := range []string{"http://192.0.2.1/", "http://models.example/", "http://localhost.example/", "http://0.0.0.0/", "http://[::]/"} {
		_, err := c.Do(request(t, target))
		var refused *RefusedError
		if !errors.As(err, &refused) || !slices.Equal(refused.Allowed, []string{"loopback"}) {
			t.Errorf("%s: got %v, want a refusal", target, err)
		}
	}
}

// TestLoopbackLooksAtTheAddress: what localhost resolves to is not taken on trust.
func TestLoopbackLooksAtTheAddress(t *testing.T) {
	for address, ok := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "192.0.2.1:80": false, "[2001:db8::1]:80": false, "x": false} {
		if err := onlyLoopback(t.Context(), "tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v, want ok %v", address, err, ok)
		}
	}
}
