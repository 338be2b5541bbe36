package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/sse"
)

// Client asks a server. What the server did not carry out is an *Error.
type Client struct {
	// Transport is the way to the server, of internal/dial's making.
	Transport http.RoundTripper
	// Base is where the server is: http://127.0.0.1:4180. Empty: it is at the other
	// end of a socket.
	Base string
}

// ErrCut: a stream ended without its Done. The run is not touched by that: come
// back with the last position.
var ErrCut = errors.New("the stream was cut off")

// Chat says something, or goes on with a run, behind after if that is not zero.
// The last item is a Done, or there is an error.
func (c *Client) Chat(ctx context.Context, body ChatRequest, after chat.Position) iter.Seq2[chat.Item, error] {
	return func(yield func(chat.Item, error) bool) {
		r, err := c.request(ctx, http.MethodPost, "/chat/stream", body)
		if err != nil {
			yield(chat.Item{}, err)
			return
		}
		c.read(r, after, yield)
	}
}

// Events follows a run to its end, behind after.
func (c *Client) Events(ctx context.Context, run string, after chat.Position) iter.Seq2[chat.Item, error] {
	return func(yield func(chat.Item, error) bool) {
		r, err := c.request(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(run)+"/events", nil)
		if err != nil {
			yield(chat.Item{}, err)
			return
		}
		c.read(r, after, yield)
	}
}

// Ask is Chat without the stream: it returns when there is an end.
func (c *Client) Ask(ctx context.Context, body ChatRequest) (d chat.Done, err error) {
	return d, c.call(ctx, http.MethodPost, "/chat/stream", body, &d)
}

// Runs lists runs; q has the parameters of GET /v1/runs.
func (c *Client) Runs(ctx context.Context, q url.Values) (l RunList, err error) {
	return l, c.call(ctx, http.MethodGet, "/v1/runs?"+q.Encode(), nil, &l)
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, run string) (r Run, err error) {
	return r, c.call(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(run), nil, &r)
}

// Cancel asks for the end of a run.
func (c *Client) Cancel(ctx context.Context, run, by string) (r Run, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(run)+"/cancel", CancelRequest{By: by}, &r)
}

// Resolve says what became of a call in doubt.
func (c *Client) Resolve(ctx context.Context, run string, body ResolveRequest) (r Run, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(run)+"/resolve", body, &r)
}

// Approvals lists questions; q has the parameters of GET /v1/approvals.
func (c *Client) Approvals(ctx context.Context, q url.Values) (l ApprovalList, err error) {
	return l, c.call(ctx, http.MethodGet, "/v1/approvals?"+q.Encode(), nil, &l)
}

// Approval shows a question.
func (c *Client) Approval(ctx context.Context, id string) (a Approval, err error) {
	return a, c.call(ctx, http.MethodGet, "/v1/approvals/"+url.PathEscape(id), nil, &a)
}

// Decide answers a question: state is QuestionApproved, QuestionDenied or
// QuestionAnswered.
func (c *Client) Decide(ctx context.Context, id string, state journal.QuestionState, d Decision) (a Approval, err error) {
	verb := map[journal.QuestionState]string{
		journal.QuestionApproved: "approve", journal.QuestionDenied: "deny", journal.QuestionAnswered: "answer",
	}[state]
	return a, c.call(ctx, http.MethodPost, "/v1/approvals/"+url.PathEscape(id)+"/"+verb, d, &a)
}

// request makes a request with a body in JSON; nil is none.
func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(b)
	}
	base := c.Base
	if base == "" {
		base = "http://" + SocketHost
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// call asks and reads the answer, one JSON value.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := c.send(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return nil
}

// send asks. An answer that is not 200 is an error.
func (c *Client) send(r *http.Request) (*http.Response, error) {
	resp, err := c.Transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var refused struct{ Error *Error }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&refused); err != nil || refused.Error == nil {
		return nil, fmt.Errorf("%s %s: the answer is %s, and not stoplog's", r.Method, r.URL.Path, resp.Status)
	}
	return nil, refused.Error
}

// read reads a stream to its Done.
func (c *Client) read(r *http.Request, after chat.Position, yield func(chat.Item, error) bool) {
	r.Header.Set("Accept", "text/event-stream")
	if !after.IsZero() {
		r.Header.Set("Last-Event-ID", after.String())
	}
	resp, err := c.send(r)
	if err != nil {
		yield(chat.Item{}, err)
		return
	}
	defer resp.Body.Close()
	for item, err := range scan(resp.Body) {
		if !yield(item, err) || err != nil {
			return
		}
		if _, over := item.Event.(chat.Done); over {
			return
		}
	}
	if err := context.Cause(r.Context()); err != nil {
		yield(chat.Item{}, err)
		return
	}
	yield(chat.Item{}, ErrCut)
}

// scan reads items off a stream. Its end, however it comes, is no error.
func scan(body io.Reader) iter.Seq2[chat.Item, error] {
	return func(yield func(chat.Item, error) bool) {
		s := sse.NewScanner(0)
		buf := make([]byte, 32<<10)
		for {
			n, rerr := body.Read(buf)
			s.Write(buf[:n])
			for {
				f, ok, err := s.Next()
				if err != nil {
					yield(chat.Item{}, err)
					return
				}
				if !ok {
					break
				}
				item, err := itemOf(f)
				if err == nil && item.Event == nil {
					continue // a heartbeat, or from a newer program
				}
				if !yield(item, err) || err != nil {
					return
				}
			}
			if rerr != nil {
				return
			}
		}
	}
}

func itemOf(f sse.Frame) (i chat.Item, err error) {
	if f.Comment {
		return i, nil
	}
	for line := range strings.Lines(string(f.Raw)) {
		if id, ok := strings.CutPrefix(line, "id:"); ok {
			if i.At, err = chat.ParsePosition(strings.TrimSpace(id)); err != nil {
				return i, err
			}
		}
	}
	i.Event, err = chat.Decode(string(f.Event), f.Data)
	return i, err
}
