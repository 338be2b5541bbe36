package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// planted is no secret: it has the shape of one.
const planted = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

// pinned is every field that passes without being looked at. A field that is
// added here leaves the product's promise: it needs a reason in its table.
var pinned = []string{
	"anthropic-messages content_block_delta delta.citation.encrypted_index",
	"anthropic-messages content_block_delta delta.signature",
	"anthropic-messages content_block_start content_block.citations[].encrypted_index",
	"anthropic-messages content_block_start content_block.content.encrypted_stdout",
	"anthropic-messages content_block_start content_block.content[].encrypted_content",
	"anthropic-messages content_block_start content_block.data",
	"anthropic-messages content_block_start content_block.signature",
	"anthropic-messages message content[].citations[].encrypted_index",
	"anthropic-messages message content[].content.encrypted_stdout",
	"anthropic-messages message content[].content[].encrypted_content",
	"anthropic-messages message content[].data",
	"anthropic-messages message content[].signature",
	"anthropic-messages request messages[].content[].citations[].encrypted_index",
	"anthropic-messages request messages[].content[].content[].encrypted_content",
	"anthropic-messages request messages[].content[].content[].source.data",
	"anthropic-messages request messages[].content[].data",
	"anthropic-messages request messages[].content[].signature",
	"anthropic-messages request messages[].content[].source.content[].source.data",
	"anthropic-messages request messages[].content[].source.data",
	"openai-chat chunk choices[].delta.audio.data",
	"openai-chat chunk choices[].delta.reasoning_details[].data",
	"openai-chat chunk choices[].delta.reasoning_details[].signature",
	"openai-chat chunk choices[].logprobs.content[].logprob",
	"openai-chat chunk choices[].logprobs.content[].top_logprobs[].logprob",
	"openai-chat chunk choices[].logprobs.refusal[].logprob",
	"openai-chat chunk choices[].logprobs.refusal[].top_logprobs[].logprob",
	"openai-chat chunk obfuscation",
	"openai-chat completion choices[].logprobs.content[].logprob",
	"openai-chat completion choices[].logprobs.content[].top_logprobs[].logprob",
	"openai-chat completion choices[].logprobs.refusal[].logprob",
	"openai-chat completion choices[].logprobs.refusal[].top_logprobs[].logprob",
	"openai-chat completion choices[].message.audio.data",
	"openai-chat completion choices[].message.reasoning_details[].data",
	"openai-chat completion choices[].message.reasoning_details[].signature",
	"openai-chat request messages[].content[].file.file_data",
	"openai-chat request messages[].content[].image_url.url",
	"openai-chat request messages[].content[].input_audio.data",
	"openai-chat request messages[].reasoning_details[].data",
	"openai-chat request messages[].reasoning_details[].signature",
	"openai-responses +item encrypted_content",
	"openai-responses +item fingerprint",
	"openai-responses +item output.image_url",
	"openai-responses +item output[].file_data",
	"openai-responses +item output[].image_url",
	"openai-responses +item outputs[].url",
	"openai-responses +item result",
	"openai-responses +item results[].score",
	"openai-responses +part data",
	"openai-responses +part file_data",
	"openai-responses +part image_url",
	"openai-responses +part input_audio.data",
	"openai-responses +part logprobs[].logprob",
	"openai-responses +part logprobs[].top_logprobs[].logprob",
	"openai-responses response.apply_patch_call_operation_diff.delta obfuscation",
	"openai-responses response.audio.delta delta",
	"openai-responses response.audio.transcript.delta obfuscation",
	"openai-responses response.code_interpreter_call_code.delta obfuscation",
	"openai-responses response.custom_tool_call_input.delta obfuscation",
	"openai-responses response.function_call_arguments.delta obfuscation",
	"openai-responses response.image_generation_call.partial_image partial_image_b64",
	"openai-responses response.output_text.delta logprobs[].logprob",
	"openai-responses response.output_text.delta logprobs[].top_logprobs[].logprob",
	"openai-responses response.output_text.delta obfuscation",
	"openai-responses response.output_text.done logprobs[].logprob",
	"openai-responses response.output_text.done logprobs[].top_logprobs[].logprob",
	"openai-responses response.reasoning_summary_text.delta obfuscation",
	"openai-responses response.reasoning_text.delta obfuscation",
	"openai-responses response.refusal.delta obfuscation",
	"openai-responses response.shell_call_command.delta obfuscation",
	"openai-responses response.shell_call_output_content.delta obfuscation",
}

func TestOpaqueFieldsArePinned(t *testing.T) {
	var got []string
	for _, f := range all {
		for _, tb := range inOrder(f) {
			for _, r := range tb.named {
				if r.part == nil && r.kind == Opaque {
					got = append(got, f.Name()+" "+tb.names[0]+" "+r.path)
				}
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, pinned) {
		t.Errorf("opaque fields changed:\n%s", strings.Join(got, "\n"))
	}
}

func walk(n *node, visit func(*node)) {
	visit(n)
	for _, m := range n.members {
		walk(m, visit)
	}
	for _, m := range []*node{n.elem, n.rest} {
		if m != nil && m != n {
			walk(m, visit)
		}
	}
}

// plants returns the payload with the secret added to each of its strings in
// turn, and the place of each.
func plants(payload string) (places []string, with []string) {
	var doc any
	if json.Unmarshal([]byte(payload), &doc) != nil {
		return nil, nil
	}
	var visit func(v any, path string, set func(any))
	visit = func(v any, path string, set func(any)) {
		switch v := v.(type) {
		case string:
			set(v + " " + planted + " ")
			b, _ := json.Marshal(doc)
			set(v)
			places, with = append(places, path), append(with, string(b))
		case map[string]any:
			for k, m := range v {
				visit(m, path+"."+k, func(x any) { v[k] = x })
			}
		case []any:
			for i, m := range v {
				visit(m, path+"[]", func(x any) { v[i] = x })
			}
		}
	}
	visit(doc, "", func(x any) { doc = x })
	return places, with
}

// isOpaque reports whether a path is opaque in a document of a format.
func isOpaque(f *Format, path string) bool {
	found := false
	for _, tb := range f.tables {
		walk(tb.root, func(n *node) { found = found || n.kind == Opaque && "."+n.path == path })
	}
	return found
}

// TestPlantedSecretNeverPasses puts a secret in every string of every kind of
// frame of recorded streams, one at a time.
func TestPlantedSecretNeverPasses(t *testing.T) {
	for _, f := range all {
		chain := patterns(t, guard.Redact, "secrets")
		opt := Options{Context: context.Background(), Chain: chain, Usage: true}
		planted1, places := 0, map[string]int{}
		for name, payloads := range recorded(t, f.Name()) {
			seen := map[string]int{} // a stream repeats itself: a few of each place will do
			for i, p := range payloads {
				at, with := plants(p)
				for k := range at {
					if seen[at[k]]++; seen[at[k]] > 3 || isOpaque(f, at[k]) {
						continue
					}
					changed := slices.Concat(payloads[:i], []string{with[k]}, payloads[i+1:])
					out, _, o := stream(f, opt, serve(f, changed), 1<<20)
					if bytes.Contains(out, []byte(planted)) {
						t.Errorf("%s: a secret in %s of frame %d passed (%+v)", name, at[k], i, o)
					}
					if o.Status == Allowed {
						t.Errorf("%s: a secret in %s of frame %d was not noticed", name, at[k], i)
					}
					planted1++
					places[at[k]]++
				}
			}
		}
		t.Logf("%s: %d secrets planted in %d places", f.Name(), planted1, len(places))
		if planted1 < 200 {
			t.Errorf("only %d secrets were planted", planted1)
		}
	}
}

// TestPlantedInAnAnswer does the same to unstreamed answers.
func TestPlantedInAnAnswer(t *testing.T) {
	answers := map[*Format][]string{
		OpenAIChat:        {`{"id":"c","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp","service_tier":"default","choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":"r","reasoning_content":"t","annotations":[{"type":"url_citation","url_citation":{"url":"u","title":"t"}}],"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"k\":\"v\"}"}}]},"logprobs":{"content":[{"token":"a","bytes":[97],"logprob":-0.1,"top_logprobs":[{"token":"b","bytes":[98],"logprob":-1}]}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2},"new":{"deep":["x",{"y":"z"}]}}`},
		AnthropicMessages: {`{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a","citations":[{"type":"web","cited_text":"c","title":"t","url":"u"}]},{"type":"tool_use","id":"t","name":"n","input":{"k":["v"]}},{"type":"new","what":"w"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"service_tier":"standard"},"new":"x"}`},
	}
	for _, payloads := range recorded(t, OpenAIResponses.Name()) {
		var e struct {
			Type     string
			Response json.RawMessage
		}
		if json.Unmarshal([]byte(payloads[len(payloads)-1]), &e) == nil && e.Type == "response.completed" {
			answers[OpenAIResponses] = append(answers[OpenAIResponses], string(e.Response))
		}
	}
	for f, docs := range answers {
		opt := Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets")}
		for _, doc := range docs {
			if v := f.Answer(opt, []byte(doc)); string(v.Doc) != doc {
				t.Errorf("%s: clean, became\n%s\n%+v", f.Name(), v.Doc, v.Outcome)
			}
			at, with := plants(doc)
			for k := range at {
				if isOpaque(f, at[k]) {
					continue
				}
				v := f.Answer(opt, []byte(with[k]))
				dropped := strings.Contains(at[k], ".logprobs.") // without a word: they only repeat
				if bytes.Contains(v.Doc, []byte(planted)) || v.Outcome.Status == Allowed && !dropped {
					t.Errorf("%s: a secret in %s passed: %+v\n%s", f.Name(), at[k], v.Outcome, v.Doc)
				}
				if v.Doc != nil && !json.Valid(v.Doc) {
					t.Errorf("%s: a secret in %s broke the document: %s", f.Name(), at[k], v.Doc)
				}
			}
		}
	}
}
