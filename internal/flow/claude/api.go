package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/llm"
)

// askAPI asks the model over its provider's interface, with no tools.
func (q *question) askAPI(ctx context.Context, prompt string) Reading {
	if r := over(ctx); r != nil {
		return *r
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	q.meter.turn(stop)
	defer q.meter.turn(nil)
	if !q.meter.wanted() {
		return *q.overTokens()
	}
	took, _ := q.meter.state()
	left := q.MaxTokens - took
	client := llm.Client{Protocol: protocolOf(q.Model), Transport: q.driver.Door}
	asked := llm.Request{
		Model:     q.Model,
		Messages:  []llm.Message{llm.User{Text: prompt + "\n\n" + form(q.Schema)}},
		MaxTokens: int(min(left, llm.DefaultMaxTokens)),
	}
	ctx = govern.WithProfile(govern.WithParent(ctx, string(q.Run.Run)), q.Profile)
	q.turns++
	id := fmt.Sprintf("answer %d", q.turns)
	for event, err := range client.Ask(ctx, asked) {
		switch e := event.(type) {
		case nil:
			return q.broken(ctx, id, err)
		case llm.Delta:
			q.meter.streamed(id, len(e.Text))
			if q.Show != nil {
				q.Show(e.Kind.String(), e.Text)
			}
		case llm.Withheld:
			q.count(id, e.Usage)
			return *reads(steps.Blocked, "guard %s, rule %s: %s", e.Guard, e.Rule, e.Reason)
		case llm.Spent:
			q.count(id, e.Usage)
			return *reads(steps.FailedBudget, "a budget is spent: %s", e.Reason)
		case llm.Finished:
			q.count(id, e.Answer.Usage)
			return q.readAnswer(e.Answer)
		}
	}
	return q.broken(ctx, id, errors.New("the answer has no end"))
}

// count takes in what the provider says of an answer.
func (q *question) count(id string, u llm.Usage) {
	q.meter.reported(id, usage{Input: u.Input, Output: u.Output})
	if !u.Estimated {
		q.meter.settled(id)
	}
}

// protocolOf is the protocol that a model is asked in.
func protocolOf(model string) string {
	if strings.HasPrefix(model, "claude-") {
		return govern.Anthropic
	}
	return govern.OpenAI
}

// form says which answer is wanted.
func form(schema json.RawMessage) string {
	return "Answer with one JSON object, and with nothing before or after it. It must fit this JSON Schema:\n" + string(schema)
}

// broken is a call that came to no answer.
func (q *question) broken(ctx context.Context, id string, err error) Reading {
	if q.exceeded() {
		return *q.overTokens()
	}
	if r := over(ctx); r != nil {
		return *r
	}
	var e *llm.Error
	if errors.As(err, &e) {
		q.count(id, e.Usage)
	}
	return *failed("%v", err)
}

func (q *question) overTokens() *Reading {
	took, _ := q.meter.state()
	return reads(steps.FailedBudget, "it took %d tokens of %d", took, q.MaxTokens)
}

func (q *question) exceeded() bool {
	_, exceeded := q.meter.state()
	return exceeded
}

// readAnswer reads a whole answer: the model is the pin, and all of the text is
// one JSON object that fits.
func (q *question) readAnswer(a llm.Answer) Reading {
	q.served = a.Model
	switch {
	case q.exceeded():
		return *q.overTokens()
	case !sameModel(q.Model, a.Model):
		return *failed("model %s served, and not %s", printable(a.Model), q.Model)
	case a.Finish == llm.Length && !q.meter.wanted():
		return *q.overTokens()
	case a.Finish != llm.Stop:
		return *failed("the answer ended by %s", a.Finish)
	}
	out := json.RawMessage(strings.TrimSpace(a.Text))
	if err := q.checks()(out); err != nil {
		return Reading{State: steps.FailedSchema, Reason: fmt.Sprintf("its answer does not fit the schema: %v", err), Repairable: true}
	}
	return Reading{State: steps.Passed, Output: out}
}
