package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A tap stands between one client and the gateway. It passes on what either
// sends, as it comes, and keeps a copy. An answer is read to its end, even if
// the client has seen enough and left: what is kept is what was sent.
type tap struct {
	server *httptest.Server
	target string
	client *http.Client

	mu   sync.Mutex
	seen []exchange
}

// An exchange is one request and what was answered.
type exchange struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	Status       int
	AnswerHeader http.Header
	Answer       []byte
	Cut          bool // the answer broke off below HTTP
}

func newTap(t *testing.T, g *gateway) *tap {
	p := &tap{target: g.url, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchange{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone()}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, e)
	}()
	var err error
	if e.Body, err = io.ReadAll(r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(e.Body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Header = r.Header.Clone()
	res, err := p.client.Do(req)
	if err != nil {
		e.Cut = true
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	e.Status, e.AnswerHeader = res.StatusCode, res.Header.Clone()

	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	piece := make([]byte, 8<<10)
	for {
		n, err := res.Body.Read(piece)
		e.Answer = append(e.Answer, piece[:n]...)
		w.Write(piece[:n]) // fails when the client has left
		if err == io.EOF {
			return
		}
		if err != nil {
			e.Cut = true
			panic(http.ErrAbortHandler)
		}
		http.NewResponseController(w).Flush()
	}
}

// exchanges returns what passed, once the handlers of the requests are through.
func (p *tap) exchanges() []exchange {
	p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}
