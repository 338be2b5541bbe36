package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// askOpenAI asks with openai-go.
func askOpenAI(t *testing.T, q question) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := openai.NewClient(openAIOptions(q)...)
	params := openai.ChatCompletionNewParams{
		Model:    q.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(q.Text)},
	}
	if q.Tool != nil {
		params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: q.Tool.Name, Parameters: decoded(t, q.Tool.Schema)})}
	}
	if q.Schema != nil {
		format := shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: q.Schema, Strict: openai.Bool(true)}}
		params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &format}
	}
	if !q.Stream {
		done, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return answer{Error: openAIFailure(err)}
		}
		a := openAIAnswer(t, *done)
		a.Policy = policyIn(t, done.RawJSON())
		return a
	}

	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var total openai.ChatCompletionAccumulator
	var text string
	var deltas int
	var said *policy
	for stream.Next() {
		chunk := stream.Current()
		if !total.AddChunk(chunk) {
			t.Errorf("openai-go can't add the chunk %s", chunk.RawJSON())
		}
		if p := policyIn(t, chunk.RawJSON()); p != nil {
			said = p
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				text += choice.Delta.Content
				deltas++
			}
		}
	}
	a := openAIAnswer(t, total.ChatCompletion)
	if a.Text != text {
		t.Errorf("openai-go accumulates %q of deltas that say %q", a.Text, text)
	}
	a.Deltas, a.Policy, a.Error = deltas, said, openAIFailure(stream.Err())
	return a
}

func openAIAnswer(t *testing.T, c openai.ChatCompletion) answer {
	t.Helper()
	a := answer{Input: c.Usage.PromptTokens, Output: c.Usage.CompletionTokens}
	if len(c.Choices) > 1 {
		t.Errorf("%d choices", len(c.Choices))
	}
	for _, choice := range c.Choices {
		a.Text, a.Finish = choice.Message.Content, choice.FinishReason
		for _, call := range choice.Message.ToolCalls {
			a.Tools = append(a.Tools, call.Function.Name)
			a.Args += call.Function.Arguments
		}
	}
	return a
}

// openAIOptions are those of a client of OpenAI's for one question.
func openAIOptions(q question) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(q.Base), option.WithAPIKey(q.Key), option.WithMaxRetries(retries)}
	for name, value := range q.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return opts
}

// decoded is a JSON object as SDKs take a schema.
func decoded(t *testing.T, object json.RawMessage) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatalf("%v in the schema %s", err, object)
	}
	return o
}

func openAIFailure(err error) *failure {
	var answered *openai.Error
	var streamed *ssestream.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answered):
		return &failure{Status: answered.StatusCode, Code: answered.Code, Message: answered.Message}
	case errors.As(err, &streamed):
		var said struct {
			Error struct{ Code, Message string }
		}
		if json.Unmarshal(streamed.Event.Data, &said) == nil {
			return &failure{Code: said.Error.Code, Message: said.Error.Message}
		}
	}
	return &failure{Message: err.Error()}
}

// policyIn reads the member `stoplog` of a JSON object, nil if there is none.
func policyIn(t *testing.T, object string) *policy {
	t.Helper()
	var has struct{ Stoplog *policy }
	if err := json.Unmarshal([]byte(object), &has); err != nil {
		t.Errorf("%v in %s", err, object)
	}
	return has.Stoplog
}
