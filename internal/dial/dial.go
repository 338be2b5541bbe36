// Package dial makes the clients by which this program calls out. There is no
// other: the architecture test fails where a package makes its own.
//
//	govern ─► Transport ─ is the target allowed? ─► pool of connections ─► provider
//	demo, tests ─► Loopback ─ is it this machine? ─► this machine
//
// # Laws
//
// A transport calls the places it was made for, by scheme, host and port, and no
// other; what asks for another gets a [*RefusedError] before anything is looked
// up or sent. The Host header is held to the same list, since servers that share
// an address tell their customers apart by it.
//
// What came over the wire is what the caller gets: no redirect is followed and
// no body is decompressed.
//
// A call waits for a connection, for TLS, for the answer's header and for each
// next piece of its body only so long; how long the whole takes is the request's
// context's business: a stream may last.
//
//	what                     default    where it is set
//	a connection, and TLS    10s        Options.ConnectTimeout
//	the answer's header      10m        Options.HeaderTimeout
//	the body's next bytes    5m         Options.IdleTimeout
//	an idle connection       90s        kept no longer
//	a silent HTTP/2 peer     30s + 15s  a ping, and its answer
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Options of a transport. The zero value allows no call at all.
type Options struct {
	// Allow has the places that may be called, as absolute http or https URLs; of
	// each only scheme, host and port count. What is not such a URL allows nothing.
	Allow []string
	// EnvironmentProxy lets HTTP_PROXY, HTTPS_PROXY and NO_PROXY choose the way.
	// Left out, connections go straight to the place, or through Proxy.
	EnvironmentProxy bool
	// Proxy is the way to every place; nil is none. It is an http, https or
	// socks5 URL, and may hold the proxy's own credentials.
	Proxy *url.URL
	// RootCAs are the authorities that servers' certificates must come from; nil
	// is the system's.
	RootCAs *x509.CertPool
	// ConnectTimeout is how long a connection may take, and then TLS; 0 is 10
	// seconds.
	ConnectTimeout time.Duration
	// HeaderTimeout is how long an answer's header may take once the request is
	// written; 0 is 10 minutes, which is what providers' own clients wait: an
	// unstreamed answer has its header when the model is done.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a body may say nothing while it is being read; 0 is
	// 5 minutes. Providers ping a stream in which a model thinks.
	IdleTimeout time.Duration
}

const (
	connectTimeout = 10 * time.Second
	headerTimeout  = 10 * time.Minute
	silenceTimeout = 5 * time.Minute
	// A gateway has few hosts and many streams: connections are kept per host as
	// they were needed, and let go when they were idle for longer than providers
	// hold them.
	idlePerHost = 256
	idleTimeout = 90 * time.Second
	// A peer that vanished in the middle of a stream is found out by a ping.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// Transport gives a transport for the places in o.Allow. It is safe for use by
// several goroutines, and has a method CloseIdleConnections, which a client's
// method of that name calls.
func Transport(o Options) http.RoundTripper {
	t := pool(&net.Dialer{Timeout: cmp.Or(o.ConnectTimeout, connectTimeout)})
	t.TLSHandshakeTimeout = cmp.Or(o.ConnectTimeout, connectTimeout)
	t.ResponseHeaderTimeout = cmp.Or(o.HeaderTimeout, headerTimeout)
	switch {
	case o.EnvironmentProxy:
		t.Proxy = http.ProxyFromEnvironment
	case o.Proxy != nil:
		t.Proxy = http.ProxyURL(o.Proxy)
	}
	if o.RootCAs != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs}
	}
	var allowed []string
	for _, place := range o.Allow {
		u, err := url.Parse(place)
		if err != nil {
			continue
		}
		if origin, ok := origin(u.Scheme, u.Host); ok && !slices.Contains(allowed, origin) {
			allowed = append(allowed, origin)
		}
	}
	return &transport{
		pool:    t,
		allowed: allowed,
		silence: cmp.Or(o.IdleTimeout, silenceTimeout),
		allows:  func(origin, _ string) bool { return slices.Contains(allowed, origin) },
	}
}

// Loopback gives a client for servers on this machine, by a loopback address or
// as localhost; that localhost is this machine is checked when it is called. The
// client follows no redirect. Each call gives a client with connections of its
// own: whoever asks for it closes them (CloseIdleConnections).
func Loopback() *http.Client {
	d := &net.Dialer{Timeout: connectTimeout, ControlContext: onlyLoopback}
	return &http.Client{
		Transport: &transport{pool: pool(d), allowed: []string{"loopback"}, allows: func(_, host string) bool {
			addr, err := netip.ParseAddr(host)
			return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// onlyLoopback is the last word, on the address that a name has come to.
func onlyLoopback(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().Unmap().IsLoopback() {
		return &RefusedError{Target: address, Allowed: []string{"loopback"}}
	}
	return nil
}

// pool is a pool of connections with this program's timeouts.
func pool(d *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:           d.DialContext,
		ForceAttemptHTTP2:     true, // a DialContext of one's own would turn it off
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:    true,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: headerTimeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   idlePerHost,
		IdleConnTimeout:       idleTimeout,
	}
}

// RefusedError says that a call was not made because its target is not among
// those that are allowed.
type RefusedError struct {
	Target  string   // scheme://host:port, or what there was of it
	Allowed []string // likewise
}

func (e *RefusedError) Error() string {
	allowed := "nothing"
	if len(e.Allowed) > 0 {
		allowed = strings.Join(e.Allowed, ", ")
	}
	return fmt.Sprintf("call to %s is refused: allowed is %s", e.Target, allowed)
}

// transport is a pool of connections behind a list of the places it is for.
type transport struct {
	pool    *http.Transport
	allowed []string // for the error
	silence time.Duration
	allows  func(origin, host string) bool
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	hosts := []string{r.URL.Host}
	if r.Host != "" {
		hosts = append(hosts, r.Host)
	}
	for _, host := range hosts {
		origin, ok := origin(r.URL.Scheme, host)
		if !ok || !t.allows(origin, hostname(host)) {
			if r.Body != nil {
				r.Body.Close() // as RoundTripper asks, whatever it says
			}
			return nil, &RefusedError{Target: origin, Allowed: t.allowed}
		}
	}
	if t.silence == 0 {
		return t.pool.RoundTrip(r)
	}
	return t.watched(r)
}

// CloseIdleConnections closes the connections that no call uses now.
func (t *transport) CloseIdleConnections() { t.pool.CloseIdleConnections() }

// origin writes a place in one form, as scheme://host:port, and says whether it
// is one that can be called.
func origin(scheme, host string) (string, bool) {
	u := url.URL{Scheme: strings.ToLower(scheme), Host: strings.ToLower(host)}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	ok := u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port), ok
}

func hostname(host string) string {
	u := url.URL{Host: strings.ToLower(host)}
	return u.Hostname()
}
