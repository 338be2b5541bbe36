package e2e

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// askAnthropic asks with anthropic-sdk-go.
func askAnthropic(t *testing.T, q question) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts := []option.RequestOption{option.WithBaseURL(q.Base), option.WithAPIKey(q.Key), option.WithMaxRetries(retries)}
	for name, value := range q.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	client := anthropic.NewClient(opts...)
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(q.Model),
		MaxTokens: cmp.Or(q.MaxTokens, 1024),
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(q.Text))},
	}
	if q.Tool != nil {
		params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: decoded(t, q.Tool.Schema)["properties"]}, q.Tool.Name)}
	}
	if q.Schema != nil {
		params.OutputConfig.Format.Schema = decoded(t, q.Schema)
	}
	if !q.Stream {
		done, err := client.Messages.New(ctx, params)
		if err != nil {
			return answer{Error: anthropicFailure(err)}
		}
		a := anthropicAnswer(*done)
		a.Policy = policyIn(t, done.RawJSON())
		return a
	}

	stream := client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var total anthropic.Message
	var text string
	var deltas int
	var said *policy
	for stream.Next() {
		event := stream.Current()
		if err := total.Accumulate(event); err != nil {
			t.Errorf("anthropic-sdk-go can't add the event %s: %v", event.RawJSON(), err)
		}
		if p := policyIn(t, event.RawJSON()); p != nil {
			said = p
		}
		if event.Type == "content_block_delta" && event.Delta.Text != "" {
			text += event.Delta.Text
			deltas++
		}
	}
	a := anthropicAnswer(total)
	if a.Text != text {
		t.Errorf("anthropic-sdk-go accumulates %q of deltas that say %q", a.Text, text)
	}
	a.Deltas, a.Policy, a.Error = deltas, said, anthropicFailure(stream.Err())
	return a
}

func anthropicAnswer(m anthropic.Message) answer {
	a := answer{Finish: string(m.StopReason), Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens}
	for _, block := range m.Content {
		a.Text += block.Text
		a.Reasoning += block.Thinking
		if strings.HasSuffix(block.Type, "tool_use") {
			a.Tools = append(a.Tools, block.Name)
			a.Args += string(block.Input)
		}
	}
	return a
}

func anthropicFailure(err error) *failure {
	var told *anthropic.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told):
		f := &failure{Status: told.StatusCode, Code: string(told.Type()), Message: told.Message}
		if f.Status == 200 { // that of the stream in which the error came
			f.Status = 0
		}
		return f
	}
	return &failure{Message: err.Error()}
}
