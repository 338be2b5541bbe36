package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is a made-up key of the rule aws-access-token.
const key = "AK" + "IA" + "2Q7XN4RZ6LTVWB3K"

// A provider answers one request as a test wants it.
type provider func(*http.Request) (*http.Response, error)

func (p provider) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// answers is a provider that gives one answer, its body in the pieces given.
func answers(status int, header http.Header, pieces ...string) provider {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header.Clone(), Body: io.NopCloser(&chopped{pieces: pieces}), Request: r}, nil
	}
}

func kind(s string) http.Header { return http.Header{"Content-Type": {s}} }

// chopped is a body that comes in pieces, and ends with an error if it has one.
type chopped struct {
	pieces []string
	err    error
}

func (c *chopped) Read(p []byte) (int, error) {
	for len(c.pieces) > 0 && c.pieces[0] == "" {
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	c.pieces[0] = c.pieces[0][n:]
	return n, nil
}

// door is a governed way to a provider; guards judge both ways.
func door(t testing.TB, protocol string, up http.RoundTripper, guards ...guard.Member) *govern.Transport {
	t.Helper()
	d, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "up", Protocol: protocol, BaseURL: "http://up.invalid", Transport: up}},
		Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"up"}, Models: []string{"m*"}, Input: guards, Output: guards}},
		Record:    func(...govern.Record) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// secrets finds what the built-in packs find, with one verdict.
func secrets(t testing.TB, verdict string) []guard.Member {
	t.Helper()
	if verdict == "" {
		return nil
	}
	v, err := guard.ParseVerdict(verdict)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rules.Select("secrets", "credentials")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(rs, match.Options{Name: "secrets", Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	return []guard.Member{{Guard: g, Mode: guard.Enforce}}
}

var hello = llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: "hello"}}}

// told is the events of a call, one a line; deltas of one kind that follow each
// other are one.
func told(ctx context.Context, c *llm.Client, r llm.Request) string {
	var b strings.Builder
	var last llm.Kind
	open := false
	text := ""
	flush := func() {
		if open {
			fmt.Fprintf(&b, "%s %q\n", last, text)
		}
		open, text = false, ""
	}
	for ev, err := range c.Ask(ctx, r) {
		if d, ok := ev.(llm.Delta); ok {
			if open && d.Kind != last {
				flush()
			}
			open, last = true, d.Kind
			text += d.Text
			continue
		}
		flush()
		switch ev := ev.(type) {
		case llm.CallReady:
			fmt.Fprintf(&b, "call %s %s %s\n", ev.Call.ID, ev.Call.Tool, ev.Call.Args)
		case llm.Finished:
			a := ev.Answer
			fmt.Fprintf(&b, "finished %s, %d calls, text %q, thought %q, model %s, usage %s\n", a.Finish, len(a.Calls), a.Text, a.Thought, a.Model, spent(a.Usage))
			if a.Kept != nil {
				fmt.Fprintf(&b, "kept %s\n", a.Kept)
			}
		case llm.Spent:
			fmt.Fprintf(&b, "spent: %s, %s, text %q, usage %s\n", ev.Envelope, ev.Reason, ev.Text, spent(ev.Usage))
		case llm.Withheld:
			what := "answer"
			if ev.Request {
				what = "request"
			}
			verdict := "needs approval"
			if ev.Deny {
				verdict = "denied"
			}
			fmt.Fprintf(&b, "withheld: %s %s by %s %s, text %q, usage %s\n", what, verdict, ev.Guard, ev.Rule, ev.Text, spent(ev.Usage))
		}
		if err != nil {
			b.WriteString("error " + failure(err) + "\n")
		}
	}
	flush()
	return b.String()
}

func spent(u llm.Usage) string {
	s := fmt.Sprintf("%d+%d", u.Input, u.Output)
	if u.Estimated {
		s += " estimated"
	}
	return s
}

func failure(err error) string {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	s := "lasting"
	if e.Retryable {
		s = "passing"
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(", after %v", e.RetryAfter)
	}
	if e.Released {
		s += ", some was told"
	}
	return s + ": " + strings.ReplaceAll(err.Error(), "\n", " ")
}
