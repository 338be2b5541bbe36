package govern

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

// maxAnswer is the largest unstreamed answer taken, in bytes.
const maxAnswer = 64 << 20

// deniedInput is the answer to a request that may not be sent.
func deniedInput(o wire.Outcome) wire.Error {
	e := wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "content_filter", Outcome: &o,
		Message: fmt.Sprintf("the request was not sent: guard %s, rule %s", o.Guard, o.Rule)}
	switch {
	case o.Guard != wire.GuardPolicy:
	case o.Rule == "models":
		e.Code, e.Message = "model_not_allowed", "the request was not sent: the profile does not allow this model"
	case o.Rule == RuleDataClass:
		e.Message = "the request was not sent: " + o.Reason
	}
	if o.Status == wire.ApprovalRequired {
		e.Message += " asks for approval, which there is none of for requests"
	}
	return e
}

// readBody reads a request's body whole: what is judged must be all there, and
// an upstream that answers early must not race with it (golang/go#40747).
func readBody(req *http.Request, body io.Reader, most int64) ([]byte, *wire.Error) {
	tooLarge := &wire.Error{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Code: "request_too_large",
		Message: fmt.Sprintf("the request is larger than %d bytes (max_body_bytes)", most)}
	plain, err := decode(req.Header.Get("Content-Encoding"), io.LimitReader(body, most+1))
	switch {
	case errors.Is(err, errEncoding):
		return nil, &wire.Error{Status: http.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "unsupported_encoding",
			Message: fmt.Sprintf("a request in Content-Encoding %s cannot be judged: send it plain, or in gzip, br or zstd", printable(req.Header.Get("Content-Encoding")))}
	case err != nil:
		return nil, &wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_encoding", Message: "the request " + err.Error()}
	}
	var read bytes.Buffer // it doubles as bytes come: what is announced need not
	read.Grow(int(max(0, min(req.ContentLength+bytes.MinRead, 1<<16))))
	_, err = read.ReadFrom(io.LimitReader(plain, most+1))
	b := read.Bytes()
	switch {
	case int64(len(b)) > most:
		return nil, tooLarge
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_encoding", Message: "the request is not in its Content-Encoding, or broke off"}
	case err != nil:
		return nil, &wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "unreadable", Message: "the request ended too early"}
	}
	return b, nil
}

// passed are the headers of a request that an upstream is sent.
var passed = []string{"Content-Type", "Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "Idempotency-Key"}

// returned are the headers of an answer that a caller is sent.
var returned = []string{"Retry-After", "Retry-After-Ms", "Request-Id", "X-Request-Id", "X-Ratelimit-Limit-Requests", "X-Ratelimit-Limit-Tokens",
	"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens"}

// page is what of a list's query an upstream is sent: which part of it.
func page(asked url.Values) url.Values {
	sent := url.Values{}
	for _, name := range []string{"limit", "after_id", "before_id"} {
		if v := asked.Get(name); v != "" && grammatical(v) {
			sent.Set(name, v)
		}
	}
	return sent
}

// respond makes the answer that the caller gets.
func (c *call) respond(status int, kind string, body io.ReadCloser) *http.Response {
	h := c.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", kind)
	h.Set("Stoplog-Run", c.run)
	h.Set("Stoplog-Verdict", "allow")
	if c.asked != nil {
		h.Set("Stoplog-Verdict", verdictOf(c.asked.Outcome))
	}
	return &http.Response{Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: body, ContentLength: -1, Request: c.req}
}

// document makes the answer of a document that was judged.
func (c *call) document(status int, v wire.Verdict) *http.Response {
	resp := c.respond(status, "application/json", io.NopCloser(bytes.NewReader(v.Doc)))
	resp.ContentLength = int64(len(v.Doc))
	resp.Header.Set("Content-Length", strconv.Itoa(len(v.Doc)))
	if o := verdictOf(v.Outcome); o != "allow" {
		resp.Header.Set("Stoplog-Verdict", o)
	} else if slices.ContainsFunc(v.Decisions, acted) { // in an answer that failed for another reason
		resp.Header.Set("Stoplog-Verdict", "redact")
	}
	if status >= 300 && v.Outcome.Status != wire.UpstreamFailed {
		resp.Header.Set("X-Should-Retry", "false")
	}
	return resp
}

// refuse makes the answer that says why there is none.
func (c *call) refuse(e wire.Error) *http.Response {
	f := c.format
	if f == nil {
		f = wire.OpenAIChat
		if protocol, _ := c.ctx.Value(protocolKey{}).(string); protocol == Anthropic {
			f = wire.AnthropicMessages
		}
	}
	e.Run = c.run
	v := wire.Verdict{Doc: f.Error(e)}
	if e.Outcome != nil {
		v.Outcome = *e.Outcome
	}
	return c.document(e.Status, v)
}

// broken answers for an upstream whose answer, of that status, cannot be passed
// on.
func (c *call) broken(status int, reason string) (*http.Response, error) {
	o := wire.Outcome{Status: wire.UpstreamFailed, Reason: reason, Usage: c.estimate()}
	if status >= http.StatusBadRequest {
		o.Usage.Input = 0 // nothing is charged for it
	}
	return c.failed(status, o)
}

func (c *call) failed(status int, o wire.Outcome) (*http.Response, error) {
	if err := c.settle(o); err != nil {
		return nil, err
	}
	e := wire.Error{Status: http.StatusBadGateway, Type: "api_error", Code: string(o.Status), Message: o.Reason, Outcome: &o}
	switch {
	case o.Status != wire.UpstreamFailed: // a verdict about a field that cannot be changed
		e.Status, e.Type, e.Code = http.StatusBadRequest, "invalid_request_error", "content_filter"
	case status >= 400: // clients know by it whether to ask again
		e.Status = status
		if kind := errorTypes[status]; kind != "" {
			e.Type = kind
		}
	}
	return c.refuse(e), nil
}

// errorTypes are the words of both protocols for statuses.
var errorTypes = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
}

// acted reports whether a decision changed something.
func acted(d wire.Decision) bool { return d.Mode == guard.Enforce && d.Verdict > guard.Allow }

// verdictOf is an outcome as the header Stoplog-Verdict has it.
func verdictOf(o wire.Outcome) string {
	switch o.Status {
	case wire.Redacted:
		return "redact"
	case wire.Blocked, wire.BudgetExceeded:
		return "deny"
	case wire.ApprovalRequired:
		return "require_approval"
	}
	return "allow"
}

func wanted(streamed bool) string {
	if streamed {
		return "text/event-stream"
	}
	return "application/json"
}

// printable cuts a caller's word to what a message to it may hold.
func printable(s string) string {
	const most = 80
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// grammatical reports whether a header or a name is one that may be passed on.
func grammatical(s string) bool {
	return len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// judgeHeader takes what may be passed on of an answer's header: what is known,
// and what the guards of answers have nothing against.
func (c *call) judgeHeader(from http.Header) error {
	c.header = http.Header{}
	var found []wire.Decision
	for _, name := range returned {
		v := from.Get(name)
		if v == "" || !grammatical(v) {
			continue
		}
		channel := "header/" + strings.ToLower(name)
		s := c.profile.output.Open(c.ctx, guard.Channel{Name: channel, Kind: guard.Field})
		clean := true
		for _, step := range []func() guard.Step{func() guard.Step { return s.Write([]byte(v)) }, s.Close} {
			st := step()
			for _, d := range st.Decisions {
				found = append(found, wire.Decision{Channel: channel, Decision: d})
			}
			clean = clean && len(st.Edits) == 0 && st.Stop == nil
		}
		if clean {
			c.header.Set(name, v)
		}
	}
	return c.keepVerdicts(found)
}
