package govern

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/policy"
	"github.com/stoplog/stoplog/internal/wire"
)

// Upstream is a provider, or what stands for one.
type Upstream struct {
	Name     string
	Protocol string // OpenAI or Anthropic
	// BaseURL is what the protocol's paths are appended to. OpenAI's includes
	// the version (https://api.openai.com/v1), Anthropic's and Azure's do not.
	BaseURL string
	// Zone is where it is: ZoneLocal, ZonePrivate or ZoneExternal; empty is external.
	Zone string
	// Key is sent in place of the caller's; if empty the caller's passes.
	Key string
	// Header is sent with each call, in place of what the caller's brings.
	Header http.Header
	// Retries is how often a call is made again that failed before the first byte
	// of its answer. A caller that tries again by itself is left to it: an SDK,
	// which says so in X-Stainless-Retry-Count, and a run (WithParent).
	Retries int
	// Azure, if not nil, gives the paths the shape that Azure's have.
	Azure *Azure

	// Transport reaches it; nil is a connection to BaseURL's host, made as Dial
	// says.
	Transport http.RoundTripper
	Dial      Dial

	zone policy.Zone
}

// Dial says how an upstream's host is called. The zero value is straight, by the
// system's authorities, with package dial's timeouts.
type Dial struct {
	EnvironmentProxy bool   // HTTP_PROXY, HTTPS_PROXY and NO_PROXY choose the way
	Proxy            string // the way there, as a URL
	RootCAs          []byte // certificates in PEM, in place of the system's authorities
	ConnectTimeout   time.Duration
	HeaderTimeout    time.Duration
	IdleTimeout      time.Duration // of a body of which nothing comes
}

// Azure is what Azure's paths hold beside the protocol's.
type Azure struct {
	APIVersion string
	// Deployments are the names under which models are deployed; one that is not
	// among them is deployed under its own name.
	Deployments map[string]string
}

// Open makes the transport that d describes, for one place.
func (d Dial) Open(baseURL string) (http.RoundTripper, error) {
	opt := dial.Options{Allow: []string{baseURL}, EnvironmentProxy: d.EnvironmentProxy,
		ConnectTimeout: d.ConnectTimeout, HeaderTimeout: d.HeaderTimeout, IdleTimeout: d.IdleTimeout}
	if d.Proxy != "" {
		proxy, err := url.Parse(d.Proxy)
		if err != nil || proxy.Hostname() == "" {
			return nil, errors.New("its proxy is not a URL with a host") // the URL may hold credentials
		}
		opt.Proxy = proxy
	}
	if d.RootCAs != nil {
		opt.RootCAs = x509.NewCertPool()
		if !opt.RootCAs.AppendCertsFromPEM(d.RootCAs) {
			return nil, errors.New("its authorities are no certificates in PEM")
		}
	}
	return dial.Transport(opt), nil
}

// complete checks an upstream and fills in what it leaves out.
func (u *Upstream) complete() error {
	if formats[u.Protocol] == nil {
		return fmt.Errorf("unknown protocol %q: want openai or anthropic", u.Protocol)
	}
	base, err := url.Parse(u.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return fmt.Errorf("%q is not an http or https URL", u.BaseURL)
	}
	if u.Azure != nil && u.Protocol != OpenAI {
		return fmt.Errorf("azure's paths are those of openai, and it speaks %s", u.Protocol)
	}
	if u.zone, err = policy.ParseZone(cmp.Or(u.Zone, ZoneExternal)); err != nil {
		return err
	}
	u.BaseURL = strings.TrimRight(u.BaseURL, "/")
	if u.Transport == nil {
		u.Transport, err = u.Dial.Open(u.BaseURL)
	}
	return err
}

// callUpstream asks the profile's upstreams in turn until one answers. One that
// is out of order, or out of patience, gives way to the next.
func (c *call) callUpstream() (*http.Response, error) {
	var failed []error
	for i, u := range c.upstreams() {
		c.upstream = u
		resp, err := c.ask(u)
		switch {
		case err != nil && c.ctx.Err() != nil:
			return nil, errors.Join(c.settle(wire.Outcome{Status: wire.Cancelled, Usage: c.estimate()}), c.ctx.Err())
		case err != nil:
			failed = append(failed, fmt.Errorf("upstream %s: %w", u.Name, err))
		case passing(resp.StatusCode) && i+1 < len(c.upstreams()):
			resp.Body.Close()
			failed = append(failed, fmt.Errorf("upstream %s answered %d", u.Name, resp.StatusCode))
		default:
			return resp, nil
		}
	}
	err := &UpstreamError{Upstream: c.upstream.Name, Err: errors.Join(failed...)}
	outcome := wire.Outcome{Status: wire.UpstreamFailed, Reason: "no upstream could be reached"}
	return nil, errors.Join(err, c.settle(outcome))
}

// ask calls one upstream, again and again while its failure may pass.
func (c *call) ask(u *Upstream) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := u.Transport.RoundTrip(c.outgoing(u))
		refused := (*dial.RefusedError)(nil)
		if attempt >= u.Retries || c.triesAgain() || errors.As(err, &refused) || err == nil && !passing(resp.StatusCode) {
			return resp, err
		}
		wait := backoff(attempt)
		if err == nil {
			if said := dial.RetryAfter(resp.Header); said > 0 {
				wait = said
			}
			if wait > longestWait {
				return resp, nil
			}
			resp.Body.Close()
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			timer.Stop()
			return nil, c.ctx.Err()
		}
	}
}

// triesAgain reports whether who asked tries again by itself: two layers that
// do would multiply.
func (c *call) triesAgain() bool {
	return c.parent() != "" || c.req.Header.Get("X-Stainless-Retry-Count") != ""
}

// passing reports whether an upstream's status is of a failure that may pass, as
// providers' own clients see it.
func passing(status int) bool {
	return slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529}, status)
}

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 8 * time.Second
	// longestWait is how long an upstream may ask to be left alone before its
	// answer is passed on instead.
	longestWait = 30 * time.Second
)

// backoff is how long to wait after a failed attempt: twice as long each time,
// less up to a quarter, so that callers who failed together do not come together.
func backoff(attempt int) time.Duration {
	wait := min(firstWait<<attempt, mostWait)
	return wait - rand.N(wait/4)
}

// outgoing is the request that an upstream is sent.
func (c *call) outgoing(u *Upstream) *http.Request {
	body := c.body
	if c.asked != nil {
		if body = c.asked.Doc; c.asked.Recalled != nil && u == c.upstreams()[0] {
			body = c.asked.Recalled
		}
	}
	req, err := http.NewRequestWithContext(c.ctx, c.req.Method, u.BaseURL+c.path(u), bytes.NewReader(body))
	if err != nil {
		panic(err) // the base URL was parsed, the rest is ours
	}
	if c.asked == nil {
		req.Body, req.ContentLength = http.NoBody, 0
		req.URL.RawQuery = page(c.req.URL.Query()).Encode()
	}
	if u.Azure != nil {
		query := req.URL.Query()
		query.Set("api-version", u.Azure.APIVersion)
		req.URL.RawQuery = query.Encode()
	}
	for _, h := range passed {
		if v := c.req.Header.Values(h); len(v) > 0 {
			req.Header[h] = v
		}
	}
	req.Header.Set("Accept-Encoding", "identity")
	u.setKey(req, c.req)
	maps.Copy(req.Header, u.Header)
	return req
}

// path is what an upstream calls what is asked for.
func (c *call) path(u *Upstream) string {
	switch {
	case u.Protocol == Anthropic:
		return "/v1" + c.route.path
	case u.Azure == nil:
		return c.route.path
	case c.asked == nil || c.route.path == "/responses": // not of one model
		return "/openai" + c.route.path
	}
	deployment := u.Azure.Deployments[c.asked.Model]
	if deployment == "" {
		deployment = c.asked.Model
	}
	return "/openai/deployments/" + url.PathEscape(deployment) + c.route.path
}

// setKey gives the upstream its key: its own, or the caller's.
func (u *Upstream) setKey(req, from *http.Request) {
	switch {
	case u.Key == "":
		for _, h := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			if v := from.Header.Values(h); len(v) > 0 {
				req.Header[h] = v
			}
		}
	case u.Azure != nil:
		req.Header.Set("Api-Key", u.Key)
	case u.Protocol == Anthropic:
		req.Header.Set("X-Api-Key", u.Key)
	default:
		req.Header.Set("Authorization", "Bearer "+u.Key)
	}
}
