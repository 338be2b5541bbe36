package claude

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/gateway"
)

// gatePort is where the gate listens inside of the sandbox.
const gatePort = 4180

// gate is a gateway for one run: it takes the run's key, lets only the pinned
// model be asked, and sees what passes.
type gate struct {
	door    http.RoundTripper
	asking  context.Context // of whoever asks: what the door is to know of the calls
	profile string
	parent  string // the run that the calls are part of
	pin     string
	key     string
	meter   *meter
	active  func()                     // called when something passes
	show    func(channel, text string) // what the model says; may be nil

	mu    sync.Mutex
	seen  Gate
	calls int
}

// newKey makes a key that is good for one run. It is held in memory alone.
func newKey() string { return "stoplog-run-" + rand.Text() }

// endLimit is how long calls under way may take to end once their program has.
const endLimit = 10 * time.Second

// serve answers on a listener until that is closed and the calls that are under way
// have ended, which they do with their program.
func (g *gate) serve(l net.Listener) {
	mount := gateway.Mount{Protocol: govern.Anthropic, Profiles: []string{g.profile}}
	inner := gateway.New(g, mount)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &http.Server{
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !g.knows(r) {
				http.Error(w, "this is the gate of another run", http.StatusUnauthorized)
				return
			}
			// What judged it knows its own key: this one ends here.
			r.Header.Del("X-Api-Key")
			r.Header.Del("Authorization")
			r.Header.Del("Stoplog-Profile")
			inner.ServeHTTP(w, r)
		}),
	}
	s.Serve(l) // returns when the listener is closed
	cancel()
	end, stop := context.WithTimeout(context.Background(), endLimit)
	defer stop()
	s.Shutdown(end)
	s.Close()
}

// carried is a call's context, with what another one holds.
type carried struct {
	context.Context
	from context.Context
}

func (c carried) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.from.Value(key)
}

// knows reports whether a request has the run's key.
func (g *gate) knows(r *http.Request) bool {
	key := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && key == "" {
		key = bearer
	}
	return subtle.ConstantTimeCompare([]byte(key), []byte(g.key)) == 1
}

// RoundTrip asks the door, for the pinned model alone.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		if err := g.asks(body); err != nil {
			return refusal(r, err), nil
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	g.active()
	ctx := govern.WithParent(carried{r.Context(), g.asking}, g.parent)
	resp, err := g.door.RoundTrip(r.WithContext(govern.WithProfile(ctx, g.profile)))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.calls++
	t := &tap{gate: g, body: resp.Body, id: fmt.Sprintf("call %d", g.calls)}
	g.mu.Unlock()
	t.stream = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = t
	return resp, nil
}

// asks notes which model a question is for, and says no to one that is not
// pinned, or when there is nothing left to spend.
func (g *gate) asks(body []byte) error {
	var q struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return errors.New("the request is no JSON")
	}
	g.mu.Lock()
	note(&g.seen.Asked, q.Model)
	g.mu.Unlock()
	if !sameModel(g.pin, q.Model) {
		return errors.New("the step is pinned to another model")
	}
	if !g.meter.wanted() {
		return errors.New("the step's tokens are spent")
	}
	return nil
}

// note adds a word to a list that does not have it.
func note(list *[]string, word string) {
	if !slices.Contains(*list, word) {
		*list = append(*list, word)
	}
}

// problem is an error in Anthropic's protocol.
type problem struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// refusal is an answer that is not worth asking again for.
func refusal(r *http.Request, err error) *http.Response {
	p := problem{Type: "error"}
	p.Error.Type, p.Error.Message = "invalid_request_error", err.Error()
	text, encodeErr := json.Marshal(p)
	if encodeErr != nil {
		panic(encodeErr) // strings alone
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Should-Retry": {"false"}},
		Body:   io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// saw is what passed until now.
func (g *gate) saw() Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.seen
	s.Asked, s.Served = slices.Clone(s.Asked), slices.Clone(s.Served)
	s.Tokens, s.Exceeded = g.meter.state()
	return s
}
