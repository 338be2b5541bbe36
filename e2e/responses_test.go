package e2e

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// askResponses asks for a response with openai-go.
func askResponses(t *testing.T, q question) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := openai.NewClient(openAIOptions(q)...)
	params := responses.ResponseNewParams{Model: q.Model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(q.Text)}}
	if q.Tool != nil {
		params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction(q.Tool.Name, decoded(t, q.Tool.Schema), true)}
	}
	if q.Schema != nil {
		format := responses.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Schema: decoded(t, q.Schema), Strict: openai.Bool(true)}
		params.Text.Format = responses.ResponseFormatTextConfigUnionParam{OfJSONSchema: &format}
	}
	if !q.Stream {
		done, err := client.Responses.New(ctx, params)
		if err != nil {
			return answer{Error: openAIFailure(err)}
		}
		return responsesAnswer(t, done)
	}
	stream := client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	var total responses.ResponseAccumulator
	var text string
	var deltas int
	for stream.Next() {
		event := stream.Current()
		var same responses.ResponsesServerEventUnion
		if err := same.UnmarshalJSON([]byte(event.RawJSON())); err != nil {
			t.Errorf("openai-go can't read %s: %v", event.RawJSON(), err)
		}
		if err := total.AddEvent(same); err != nil {
			t.Errorf("openai-go can't add the event %s: %v", event.RawJSON(), err)
		}
		if event.Type == "response.output_text.delta" {
			text += event.Delta
			deltas++
		}
	}
	if err := stream.Err(); err != nil {
		return answer{Text: text, Deltas: deltas, Error: openAIFailure(err)}
	}
	done, err := total.ReconstructedResponse()
	if err != nil {
		t.Fatalf("openai-go makes no response of the stream: %v", err)
	}
	a := responsesAnswer(t, done)
	if a.Text != text {
		t.Errorf("openai-go accumulates %q of deltas that say %q", a.Text, text)
	}
	a.Deltas = deltas
	return a
}

func responsesAnswer(t *testing.T, r *responses.Response) answer {
	t.Helper()
	a := answer{Text: r.OutputText(), Finish: string(r.Status), Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens, Policy: policyIn(t, r.RawJSON())}
	if reason := r.IncompleteDetails.Reason; reason != "" {
		a.Finish = reason
	}
	for _, item := range r.Output {
		for _, part := range item.Summary {
			a.Reasoning += part.Text
		}
		if item.Type == "function_call" {
			a.Tools = append(a.Tools, item.Name)
			a.Args += item.AsFunctionCall().Arguments
		}
	}
	return a
}
