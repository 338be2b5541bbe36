package dial

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// TestProxyOfItsOwn sends a call the way that the options say, with the proxy's own
// credentials, and only to places that are allowed.
func TestProxyOfItsOwn(t *testing.T) {
	var asked, credentials string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked, credentials = r.URL.String(), r.Header.Get("Proxy-Authorization")
		io.WriteString(w, "by the proxy")
	})
	way, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	way.User = url.UserPassword("me", "pass")
	rt := transportFor(t, Options{Allow: []string{"http://models.test"}, Proxy: way})
	resp, err := rt.RoundTrip(request(t, "http://models.test/v1/x"))
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, resp); got != "by the proxy" || asked != "http://models.test/v1/x" || credentials != "Basic bWU6cGFzcw==" {
		t.Errorf("got %q; the proxy was asked for %q with %q", got, asked, credentials)
	}
	var refused *RefusedError
	if _, err := rt.RoundTrip(request(t, "http://elsewhere.test/")); !errors.As(err, &refused) {
		t.Errorf("a call to a place that is not allowed: %v, want a RefusedError", err)
	}
}

// TestRootCAs trusts the authorities it was given, and no other.
func TestRootCAs(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	resp, err := transportFor(t, Options{Allow: []string{server.URL}, RootCAs: roots}).RoundTrip(request(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, resp); got != "hello" {
		t.Errorf("got %q", got)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := transportFor(t, Options{Allow: []string{server.URL}, RootCAs: x509.NewCertPool()}).RoundTrip(request(t, server.URL)); !errors.As(err, &unknown) {
		t.Errorf("got the error %v, want one about an unknown authority", err)
	}
}

// TestSilence gives up a body of which nothing comes, and not one whose reader
// takes its time.
func TestSilence(t *testing.T) {
	left := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	rt := transportFor(t, Options{Allow: []string{server.URL}, IdleTimeout: 30 * time.Millisecond})
	resp, err := rt.RoundTrip(request(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if string(got) != "begun" || !errors.Is(err, ErrSilent) {
		t.Errorf("read %q and the error %v, want what was sent and ErrSilent", got, err)
	}
	<-left // the server is told
}

// TestSlowReader counts only the time in which a read waits.
func TestSlowReader(t *testing.T) {
	b := &watchedBody{ReadCloser: io.NopCloser(neverEnding('x')), silence: time.Hour}
	var cancel context.CancelCauseFunc
	b.ctx, cancel = context.WithCancelCause(t.Context())
	b.cancel = cancel
	b.timer = time.AfterFunc(time.Hour, func() { cancel(ErrSilent) })
	b.timer.Stop()
	if n, err := b.Read(make([]byte, 8)); n != 8 || err != nil {
		t.Fatalf("read %d bytes, error %v", n, err)
	}
	if b.timer.Stop() {
		t.Error("time goes on counting after a read")
	}
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
