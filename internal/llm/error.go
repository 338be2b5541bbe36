package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/dial"
)

// Error says that there is no answer, or that it broke off.
type Error struct {
	// Retryable says that asking again may help: nothing was reached, the
	// provider is busy or failed, and nothing of the answer has been told yet.
	Retryable bool
	// Released says that some of the answer was told.
	Released bool
	// RetryAfter is how long the provider wants to be left alone; 0 if it did
	// not say.
	RetryAfter time.Duration
	Status     int    // HTTP; 0 where there was none, or it was fine
	Type       string // the provider's word for it; may be empty
	Message    string
	Usage      Usage
	Err        error // may be nil
}

func (e *Error) Error() string {
	s := "ask a model: "
	if e.Status != 0 {
		s += fmt.Sprintf("status %d: ", e.Status)
	}
	if e.Type != "" {
		s += e.Type + ": "
	}
	s += e.Message
	if e.Err != nil {
		s += e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// broken is the error of a call that the transport could not make, or of a body
// that it could not read on. What the door itself could not do is no better the
// next time.
func broken(ctx context.Context, err error, released bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask a model: %w", context.Cause(ctx))
	}
	var up *govern.UpstreamError
	return &Error{Retryable: errors.As(err, &up) && !released, Released: released, Err: err}
}

// providerError is an error in an answer's body, in the form that both
// providers have.
type providerError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    any    `json:"code"`
}

// passing are the types of errors of which a provider says that they pass.
var passing = map[string]bool{
	"overloaded_error": true, "api_error": true, "rate_limit_error": true, "timeout_error": true, // Anthropic
	"server_error": true, "rate_limit_exceeded": true, "service_unavailable": true, // OpenAI
}

// lasting are the codes of those that do not, whatever their status says.
var lasting = map[string]bool{"insufficient_quota": true, "billing_hard_limit_reached": true, "budget_exceeded": true}

// in is the error of an answer with a status; 0 is that of an error that comes
// in the middle of a stream.
func (p *providerError) in(status int) *Error {
	e := &Error{Status: status, Type: p.Type, Message: p.Message}
	code, _ := p.Code.(string)
	if n, ok := p.Code.(float64); ok && status == 0 {
		e.Retryable = passes(int(n))
	}
	e.Retryable = e.Retryable || passes(status) || passing[p.Type] && status == 0 || code == "upstream_failed"
	e.Retryable = e.Retryable && !lasting[code] && !lasting[p.Type]
	return e
}

// passes reports whether a status is one that may be another next time.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// refused tells of an answer that is an error.
func (a *asking) refused(resp *http.Response) {
	const most = 1 << 20
	doc, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		a.fail(broken(a.ctx, err, false))
		return
	}
	var body struct {
		Error   *providerError `json:"error"`
		Stoplog *member        `json:"stoplog"`
	}
	if json.Unmarshal(doc, &body) != nil || body.Error == nil {
		body.Error = &providerError{Message: "the answer says nothing more"}
	}
	a.answer.note(body.Stoplog)
	if w, ok := a.withheld(); ok {
		// What was sent was at least counted.
		w.Request = w.Usage.Input == 0
		a.yield(w, nil)
		return
	}
	e := body.Error.in(resp.StatusCode)
	e.RetryAfter = dial.RetryAfter(resp.Header)
	if resp.Header.Get("X-Should-Retry") == "false" {
		e.Retryable = false
	}
	a.fail(e)
}
