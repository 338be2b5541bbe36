// Package llm is a model as the loop sees it: a history goes in, what the model
// says comes out as it is said, in one shape for every provider.
//
//	Request ──► provider JSON, stream: true ──► http.RoundTripper (the door)
//	                                                   │ governed event stream
//	Delta, Delta, … CallReady, … Finished ◄── reader ◄─┘
//	                             or Withheld: a guard stopped it
//	                             or *Error: there is no answer
//
// It judges nothing and retries nothing. What it is given to read has been
// through the guards, so it meets what they leave: answers that end in the
// middle because a rule said so, and errors in the provider's own protocol.
//
// # Laws
//
// An answer ends in exactly one way: [Finished], [Withheld], or an error. A call
// is told of once, whole, and only when its answer has finished; a call of which
// a part came is none.
//
// A policy outcome is a value, [Withheld]. An error is an [*Error], or the
// context's.
//
// A history in which a call has no result is not sent: no provider takes it, and
// a run that has one could never go on.
//
// What a provider signed goes back as it came or not at all.
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/sse"
)

// maxAnswer is how much of an answer is read, in bytes of its stream.
const maxAnswer = 64 << 20

// Client asks models through a door. It is safe for use by several goroutines.
type Client struct {
	// Protocol is the provider's: govern.OpenAI or govern.Anthropic.
	Protocol string
	// Transport is the way to it: a govern.Transport. The context of a call says
	// under which profile.
	Transport http.RoundTripper
}

// protocol is what the providers do in their own ways.
type protocol struct {
	path   string
	header map[string]string
	body   func(Request) (any, error)
	reader func() reader
}

var protocols = map[string]protocol{
	govern.OpenAI:    {"/v1/chat/completions", nil, openaiBody, func() reader { return &openaiReader{} }},
	govern.Anthropic: {"/v1/messages", map[string]string{"anthropic-version": "2023-06-01"}, anthropicBody, func() reader { return &anthropicReader{} }},
}

// Body is the request as it is sent.
func (c *Client) Body(r Request) (json.RawMessage, error) {
	p, ok := protocols[c.Protocol]
	if !ok {
		return nil, fmt.Errorf("ask a model: unknown protocol %q", c.Protocol)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("ask model %s: %w", r.Model, err)
	}
	doc, err := p.body(r)
	if err != nil {
		return nil, fmt.Errorf("ask model %s: %w", r.Model, err)
	}
	b, err := encode(doc)
	if err != nil {
		return nil, fmt.Errorf("ask model %s: %w", r.Model, err)
	}
	return b, nil
}

// Ask asks a model once. The sequence's last element is Finished or Withheld, or
// has the error; leaving it early ends the call.
func (c *Client) Ask(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, exchange := govern.Watch(ctx)
		resp, err := c.send(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer resp.Body.Close()
		a := &asking{reader: protocols[c.Protocol].reader(), ctx: ctx, exchange: exchange, yield: yield}
		if resp.StatusCode != http.StatusOK {
			a.refused(resp)
			return
		}
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
			yield(nil, &Error{Retryable: true, Message: "the answer is not an event stream"})
			return
		}
		a.listen(resp.Body)
	}
}

func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	body, err := c.Body(r)
	if err != nil {
		return nil, err
	}
	p := protocols[c.Protocol]
	// The door decides where this goes; the path says what it is.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model.invalid"+p.path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask model %s: %w", r.Model, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range p.header {
		req.Header.Set(k, v)
	}
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return nil, broken(ctx, err, false)
	}
	return resp, nil
}

// A reader reads one provider's stream.
type reader interface {
	// read takes the payload of one event and adds to the answer what it says.
	read(a *answer, payload []byte) error
	// ended reports whether the answer may be over: its end mark has come.
	ended() bool
	// finish is called once, when the answer is over.
	finish(a *answer)
}

// asking is one call on its way back.
type asking struct {
	reader   reader
	ctx      context.Context
	exchange *govern.Exchange
	yield    func(Event, error) bool
	answer   answer
	err      error // that the stream tells of, or is
}

// listen reads the stream to its end and tells what it says. It reads on behind
// an error that the stream tells of, since the door says the rest at the end.
func (a *asking) listen(body io.Reader) {
	scan := sse.NewScanner(0)
	buf := make([]byte, 16<<10)
	for size := 0; ; {
		n, err := body.Read(buf)
		scan.Write(buf[:n])
		if size += n; size > maxAnswer {
			a.fail(&Error{Message: fmt.Sprintf("the answer is larger than %d bytes", maxAnswer)})
			return
		}
		if err == io.EOF {
			scan.Close()
		}
		if !a.frames(scan) {
			return // nobody wants to hear more
		}
		switch {
		case err == nil:
		case a.err != nil:
			a.fail(a.err)
			return
		case err == io.EOF && a.reader.ended():
			a.end()
			return
		case err == io.EOF:
			a.fail(&Error{Retryable: true, Message: "the answer broke off"})
			return
		default:
			a.fail(broken(a.ctx, err, a.answer.released))
			return
		}
	}
}

// frames reads what has come, and reports whether somebody wants to hear more.
func (a *asking) frames(scan *sse.Scanner) bool {
	for a.err == nil {
		f, ok, err := scan.Next()
		if err != nil {
			a.err = &Error{Message: err.Error()}
			return true
		}
		if !ok {
			return true
		}
		if f.Data == nil {
			continue
		}
		a.err = a.reader.read(&a.answer, f.Data)
		for _, d := range a.answer.deltas {
			a.answer.released = true
			if !a.yield(d, nil) {
				return false
			}
		}
		a.answer.deltas = a.answer.deltas[:0]
	}
	return true
}

// end tells how a whole answer ended.
func (a *asking) end() {
	if a.stopped() {
		return
	}
	a.reader.finish(&a.answer)
	if a.answer.failure != "" {
		a.fail(&Error{Retryable: true, Message: a.answer.failure})
		return
	}
	out := a.answer.Answer
	out.Text, out.Thought, out.Usage = a.answer.text.String(), a.answer.thought.String(), a.usage()
	for _, c := range out.Calls {
		if !a.yield(CallReady{c}, nil) {
			return
		}
	}
	a.yield(Finished{out}, nil)
}

// fail tells that there is no answer, unless a guard is the reason.
func (a *asking) fail(err error) {
	if a.stopped() {
		return
	}
	var e *Error
	if errors.As(err, &e) {
		e.Released = a.answer.released
		e.Retryable = e.Retryable && !e.Released
		e.Usage = a.usage()
	}
	a.yield(nil, err)
}

// stopped tells of a call that a guard or a budget stopped, if one did.
func (a *asking) stopped() bool {
	if w, ok := a.withheld(); ok {
		a.yield(w, nil)
		return true
	}
	if o := a.outcome(); o.Status == statusSpent {
		a.yield(Spent{Envelope: o.Rule, Reason: o.Reason, Text: a.answer.text.String(), Usage: a.usage()}, nil)
		return true
	}
	return false
}

// withheld is the outcome of a call that a guard stopped.
func (a *asking) withheld() (Withheld, bool) {
	o := a.outcome()
	if o.Status != statusBlocked && o.Status != statusApproval {
		return Withheld{}, false
	}
	return Withheld{Deny: o.Status == statusBlocked, Guard: o.Guard, Rule: o.Rule, Reason: o.Reason, Text: a.answer.text.String(), Usage: a.usage()}, true
}

// What the door says of a call, as clients read it.
const (
	statusBlocked  = "guardrail_blocked"
	statusApproval = "guardrail_approval_required"
	statusSpent    = "budget_exceeded"
)

// outcome is what the door says of the call: to us, or, where another process
// has it, to its clients.
func (a *asking) outcome() govern.Outcome {
	if o, ok := a.exchange.Outcome(); ok {
		return o
	}
	s := a.answer.stoplog
	return govern.Outcome{Run: s.Run, Status: s.Status, Guard: s.Guard, Rule: s.Rule, Reason: s.Reason}
}

// usage is what the call took: what the door counted, or else the provider.
func (a *asking) usage() Usage {
	if o, ok := a.exchange.Outcome(); ok {
		return Usage{Input: o.InputTokens, Output: o.OutputTokens, Estimated: o.Estimated}
	}
	u := a.answer.Usage
	u.Estimated = !a.answer.counted
	return u
}
