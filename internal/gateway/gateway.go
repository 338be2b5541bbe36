// Package gateway serves providers' HTTP interfaces: what comes in is handed to
// the door, and what the door gives back goes out.
//
//	/openai/v1/chat/completions         POST
//	/openai/v1/responses                POST
//	/openai/v1/embeddings               POST
//	/openai/v1/models, …/models/{model} GET
//	/anthropic/v1/messages              POST
//	/anthropic/v1/messages/count_tokens POST
//	/anthropic/v1/models, …/{model}     GET
//	/healthz                            GET
//
// It judges nothing and changes nothing. A path that it does not serve is
// refused, with the list of those it does: passed on unread, it would bypass
// everything.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/wire"
)

// A Mount is where one provider's interface is served.
type Mount struct {
	Protocol string // govern.OpenAI or govern.Anthropic
	// Profiles are those that a caller may choose with the header
	// Stoplog-Profile; the first is for callers that choose none.
	Profiles []string
}

// prefix is the mount's path.
func (m Mount) prefix() string { return "/" + m.Protocol + "/v1" }

// Gateway is an http.Handler.
type Gateway struct {
	// Keys tells callers apart; nil takes every caller as one on this machine. It is
	// set before the gateway serves.
	Keys *auth.Ring

	door   http.RoundTripper
	mounts []Mount
	mux    *http.ServeMux
}

// New returns a gateway over the door, which is a [govern.Transport].
func New(door http.RoundTripper, mounts ...Mount) *Gateway {
	g := &Gateway{door: door, mounts: mounts, mux: http.NewServeMux()}
	g.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	for _, m := range mounts {
		g.mux.HandleFunc(m.prefix()+"/", func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, m) })
	}
	g.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, govern.OpenAI, http.StatusNotFound, "not_served", "nothing is served here. Served are "+strings.Join(g.Paths(), ", "))
	})
	return g
}

// Paths lists what is served.
func (g *Gateway) Paths() []string {
	paths := []string{}
	for _, m := range g.mounts {
		for _, p := range govern.Paths(m.Protocol) {
			paths = append(paths, p[0]+" "+m.prefix()+p[1])
		}
	}
	return append(paths, "GET /healthz")
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// serve answers one request to a mount.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, m Mount) {
	if r.Header.Get("Upgrade") != "" {
		refuseUpgrade(w, m.Protocol)
		return
	}
	if !govern.Serves(m.Protocol, r.Method, strings.TrimPrefix(r.URL.Path, m.prefix())) {
		refuse(w, m.Protocol, http.StatusNotFound, "not_served", "this is not served: what is not judged is not passed on. Served are "+strings.Join(g.Paths(), ", "))
		return
	}
	caller, err := g.identify(r)
	if err != nil {
		refuseCaller(w, m.Protocol, err)
		return
	}
	profiles := profilesOf(caller, m)
	if len(profiles) == 0 {
		refuse(w, m.Protocol, http.StatusForbidden, "profile_not_allowed", "the key may use none of the profiles of this mount")
		return
	}
	profile := profiles[0]
	if name := r.Header.Get("Stoplog-Profile"); name != "" {
		if !slices.Contains(profiles, name) {
			refuse(w, m.Protocol, http.StatusBadRequest, "unknown_profile", "the header Stoplog-Profile names none of the profiles of this mount: "+strings.Join(profiles, ", "))
			return
		}
		profile = name
	}
	ctx := govern.WithProfile(govern.WithProtocol(r.Context(), m.Protocol), profile)
	ctx, exchange := govern.Watch(govern.WithCaller(ctx, callerOf(caller)))
	resp, err := g.door.RoundTrip(outgoing(ctx, r, m))
	if err != nil {
		failed(w, m.Protocol, exchange, err)
		return
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	send(w, resp)
}

// refuseUpgrade answers who wants to go on in WebSocket frames, in the way that
// makes clients ask again over HTTP at once: Codex takes any other refusal for a
// connection that broke, and tries again first.
func refuseUpgrade(w http.ResponseWriter, protocol string) {
	w.Header().Set("Connection", "close")
	refuse(w, protocol, http.StatusUpgradeRequired, "upgrade_not_served", "WebSocket is not served: ask over HTTP, with stream set to true")
}

// outgoing is the request as the door gets it: the caller's, under the path
// that the provider has.
func outgoing(ctx context.Context, r *http.Request, m Mount) *http.Request {
	out := r.Clone(ctx)
	out.URL.Path = strings.TrimPrefix(r.URL.Path, "/"+m.Protocol)
	out.RequestURI = ""
	out.Header.Del("Stoplog-Profile")
	return out
}

// send copies an answer, and a streamed one as it comes. If it breaks off the
// client has been told in its own protocol by then.
func send(w http.ResponseWriter, resp *http.Response) {
	to := &client{to: w}
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		to.live = http.NewResponseController(w)
		to.live.Flush() // the header: a client knows that it is served
	}
	if _, err := io.Copy(to, resp.Body); err != nil && !to.left && !wellEnded(err) {
		panic(http.ErrAbortHandler) // cut the connection: no clean-looking end
	}
}

// A client is who is written to; one who left is noted, and Close settles.
type client struct {
	to   io.Writer
	live *http.ResponseController // of a stream: each write is sent at once
	left bool
}

func (c *client) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	if err == nil && c.live != nil {
		err = c.live.Flush()
	}
	c.left = err != nil
	return n, err
}

// wellEnded reports whether the answer's own bytes say how it ended.
func wellEnded(err error) bool {
	var upstream *govern.UpstreamError
	return errors.As(err, &upstream)
}

// failed answers a request that the door has no answer to.
func failed(w http.ResponseWriter, protocol string, x *govern.Exchange, err error) {
	e := wire.Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "the request could not be served"}
	o, ended := x.Outcome()
	if ended {
		e.Run = o.Run
		w.Header().Set("Stoplog-Run", o.Run)
	}
	var upstream *govern.UpstreamError
	switch {
	case errors.As(err, &upstream):
		e.Status, e.Code = http.StatusBadGateway, "upstream_failed"
		e.Message = fmt.Sprintf("the upstream %s could not be reached", upstream.Upstream)
		e.Outcome = &wire.Outcome{Status: wire.UpstreamFailed, Reason: e.Message}
	case errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // nobody is there, and nothing that looks like an answer may be
	case ended:
		e.Status, e.Code = http.StatusServiceUnavailable, "not_recorded"
		e.Message = "the request was not served, since it could not be recorded"
	}
	answer(w, protocol, e)
}

// refuse answers in the mount's protocol.
func refuse(w http.ResponseWriter, protocol string, status int, code, message string) {
	answer(w, protocol, wire.Error{Status: status, Code: code, Message: message})
}

func answer(w http.ResponseWriter, protocol string, e wire.Error) {
	f, kind := wire.OpenAIChat, "invalid_request_error"
	if protocol == govern.Anthropic {
		f = wire.AnthropicMessages
	}
	switch {
	case e.Status >= 500:
		kind = "api_error"
	case e.Status == http.StatusNotFound:
		kind = "not_found_error"
	case e.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case e.Status == http.StatusForbidden:
		kind = "permission_error"
	}
	e.Type = kind
	w.Header().Set("Content-Type", "application/json")
	if e.Status < 500 {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(e.Status)
	w.Write(f.Error(e))
}
