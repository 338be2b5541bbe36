package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
)

// The model keeps what the door withholds of its answers: the door keeps the bytes,
// sealed, with the request; the run asks a person, and reads them again.
var _ engine.Withholder = (*model)(nil)

var errNotKept = errors.New("what was withheld is not kept")

// keeps reports whether a person can let through what was withheld of a step.
func (m *model) keeps(ctx context.Context, c engine.ModelCall, w run.ModelWithheld) bool {
	if w.Request {
		return false
	}
	a, err := approval.AnswerOf(ctx, m.sessions.agents.store, c.Run.Ref)
	return err == nil && a.Denied == ""
}

// Withheld implements [engine.Withholder].
func (m *model) Withheld(c engine.ModelCall, about run.About) ([]byte, json.RawMessage, error) {
	if about != run.AboutAnswer {
		return nil, nil, errNotKept
	}
	a, err := approval.AnswerOf(context.Background(), m.sessions.agents.store, c.Run.Ref)
	if err != nil {
		return nil, nil, err
	}
	return a.Body, a.Findings, nil
}

// Release implements [engine.Withholder].
func (m *model) Release(ctx context.Context, c engine.ModelCall, show engine.Show) (run.Answer, error) {
	a, err := approval.AnswerOf(ctx, m.sessions.agents.store, c.Run.Ref)
	if err != nil {
		return run.Answer{}, err
	}
	if a.Denied != "" {
		return run.Answer{}, fmt.Errorf("%s: %w", a.Denied, approval.ErrUnapprovable)
	}
	client := &llm.Client{Protocol: m.profile.Protocol, Transport: kept(a)}
	answered, err := m.ask(ctx, c, client, rest(len(c.State.Step.Answer.Text), show))
	if err != nil {
		return run.Answer{}, err
	}
	whole, ok := answered.(run.ModelAnswered)
	if !ok {
		return run.Answer{}, fmt.Errorf("the kept answer is a %T", answered)
	}
	return whole.Answer, nil
}

// rest shows the words of an answer behind the first n bytes, which were shown
// before. Reasoning was, as far as it ever is.
func rest(n int, show engine.Show) engine.Show {
	return func(channel, text string) {
		if channel == llm.Reasoning.String() {
			return
		}
		skip := min(n, len(text))
		n -= skip
		if text = text[skip:]; text != "" {
			show(channel, text)
		}
	}
}

// kept answers with what was kept, whatever is asked: what the door let through
// once, for this request.
type kept approval.Answer

func (k kept) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: http.StatusText(k.Status), StatusCode: k.Status, Header: http.Header{"Content-Type": {k.Kind}},
		Body: io.NopCloser(bytes.NewReader(k.Body)), ContentLength: int64(len(k.Body)), Request: req,
	}, nil
}
