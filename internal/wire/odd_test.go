package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// Payloads of the formats, as short as they come.
func chunkOf(choices ...string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + strings.Join(choices, ",") + `]}`
}

func choiceOf(index int, delta, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return fmt.Sprintf(`{"index":%d,"delta":%s,"finish_reason":%s}`, index, delta, finish)
}

func deltaOf(delta string) string { return chunkOf(choiceOf(0, delta, "null")) }

func finishOf(reason string) string { return chunkOf(choiceOf(0, `{}`, reason)) }

func blockDelta(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func textDelta(text string) string {
	return blockDelta(0, `{"type":"text_delta","text":`+jsonString(text)+`}`)
}

func blockStart(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func blockStop(index int) string {
	return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)
}

const (
	messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`
	messageDelta = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`
	messageStop  = `{"type":"message_stop"}`
)

// inMessage puts events of blocks into a message.
func inMessage(events ...string) []string {
	return append(append([]string{messageStart}, events...), messageDelta, messageStop)
}

// oneBlock puts events into a message's only block.
func oneBlock(block string, events ...string) []string {
	return inMessage(append(append([]string{blockStart(0, block)}, events...), blockStop(0))...)
}

// everything is all that a client could make of bytes: as they are, and with
// all strings decoded once and twice, each event's joined to the next one's.
func everything(out []byte) string {
	var b strings.Builder
	b.Write(out)
	for line := range bytes.Lines(out) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			said, _ := spoken(string(data))
			for _, s := range said {
				again, _ := spoken(s)
				b.WriteString("\n" + s + "\n" + strings.Join(again, "\n"))
			}
		}
	}
	return b.String()
}

// half and rest are the planted secret, cut.
var (
	half = planted[:13]
	rest = planted[13:]
)

// escapedPlant is the planted secret as JSON may write it.
var escapedPlant = strings.ReplaceAll(planted, "h", `\u0068`)

// TestSecretsInOddPlaces plants a secret where no table expects text. It must
// not come out: not in one piece, not joined, not decoded.
func TestSecretsInOddPlaces(t *testing.T) {
	deep := func(n int, in string) string { return strings.Repeat(`{"a":[`, n) + in + strings.Repeat(`]}`, n) }
	q := jsonString(" " + planted + " ")
	cases := []struct {
		name     string
		f        *Format
		payloads []string
	}{
		{"a field of the delta that is new", OpenAIChat, []string{deltaOf(`{"new_field":` + q + `}`), finishOf("stop")}},
		{"a new field, over two frames", OpenAIChat, []string{deltaOf(`{"new_field":"` + half + `"}`), deltaOf(`{"new_field":"` + rest + ` "}`), finishOf("stop")}},
		{"a new structure, over two frames", OpenAIChat, []string{deltaOf(`{"new":{"deep":[{"text":"` + half + `"}]}}`), deltaOf(`{"new":{"deep":[{"text":"` + rest + ` "}]}}`), finishOf("stop")}},
		{"a member name", OpenAIChat, []string{deltaOf(`{` + q + `:1}`), finishOf("stop")}},
		{"a member name, escaped", OpenAIChat, []string{deltaOf(`{"` + escapedPlant + `":{"x":1}}`), finishOf("stop")}},
		{"content, its name escaped", OpenAIChat, []string{deltaOf(`{"\u0063ontent":"` + half + `"}`), deltaOf(`{"cont\u0065nt":"` + rest + ` "}`), finishOf("stop")}},
		{"content, in capitals", OpenAIChat, []string{deltaOf(`{"Content":"` + half + `"}`), deltaOf(`{"CONTENT":"` + rest + ` "}`), finishOf("stop")}},
		{"content and Content", OpenAIChat, []string{deltaOf(`{"content":"` + half + `"}`), deltaOf(`{"Content":"` + rest + ` "}`), finishOf("stop")}},
		{"a choice's own field", OpenAIChat, []string{chunkOf(`{"index":0,"delta":{},"note":` + q + `,"finish_reason":"stop"}`)}},
		{"an index that is text", OpenAIChat, []string{chunkOf(`{"index":` + q + `,"delta":{"content":"x"},"finish_reason":"stop"}`)}},
		{"content that is a number", OpenAIChat, []string{deltaOf(`{"content":4111111111111111}`), finishOf("stop")}},
		{"content that is an object", OpenAIChat, []string{deltaOf(`{"content":{"text":` + q + `}}`), finishOf("stop")}},
		{"content that is a list of strings", OpenAIChat, []string{deltaOf(`{"content":["` + half + `","` + rest + `"]}`), deltaOf(`{"content":[` + q + `]}`), finishOf("stop")}},
		{"content parts", OpenAIChat, []string{deltaOf(`{"content":[{"type":"text","text":"` + half + `"}]}`), deltaOf(`{"content":[{"type":"text","text":"` + rest + ` "}]}`), finishOf("stop")}},
		{"thinking parts", OpenAIChat, []string{deltaOf(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":` + q + `}]}]}`), finishOf("stop")}},
		{"arguments as an object", OpenAIChat, []string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"k":` + q + `}}}]}`), finishOf("tool_calls")}},
		{"arguments as a list", OpenAIChat, []string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":[{"k":"` + escapedPlant + `"}]}}]}`), finishOf("tool_calls")}},
		{"arguments as a number", OpenAIChat, []string{deltaOf(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":4111111111111111}}]}`), finishOf("tool_calls")}},
		{"a call that is text", OpenAIChat, []string{deltaOf(`{"tool_calls":[` + q + `]}`), finishOf("tool_calls")}},
		{"calls that are text", OpenAIChat, []string{deltaOf(`{"tool_calls":` + q + `}`), finishOf("tool_calls")}},
		{"choices that are text", OpenAIChat, []string{`{"id":"c","choices":[` + q + `]}`, finishOf("stop")}},
		{"choices that are an object", OpenAIChat, []string{`{"id":"c","choices":{"delta":{"content":` + q + `}}}`, finishOf("stop")}},
		{"a payload that is a string", OpenAIChat, []string{q, finishOf("stop")}},
		{"a payload that is a list", OpenAIChat, []string{`[{"choices":[{"delta":{"content":` + q + `}}]}]`, finishOf("stop")}},
		{"an error beside text", OpenAIChat, []string{`{"error":{"message":"bad"},"choices":[{"index":0,"delta":{"content":` + q + `}}]}`}},
		{"an error beside a call", OpenAIChat, []string{`{"error":{"message":"bad"},"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":{"k":` + q + `}}}]}}]}`}},
		{"an error's message", OpenAIChat, []string{`{"error":{"message":` + q + `,"code":null}}`}},
		{"padding that is no padding", OpenAIChat, []string{`{"choices":[],"obfuscation":` + q + `}`, finishOf("stop")}},
		{"an opaque object", OpenAIChat, []string{`{"choices":[],"obfuscation":{"x":` + q + `}}`, finishOf("stop")}},
		{"a logarithm that is text", OpenAIChat, []string{chunkOf(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":` + q + `}]},"finish_reason":null}`), finishOf("stop")}},
		{"a token's own text", OpenAIChat, []string{chunkOf(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":` + q + `,"logprob":-1}]},"finish_reason":null}`), finishOf("stop")}},
		{"an alternative token", OpenAIChat, []string{chunkOf(`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1,"top_logprobs":[{"token":` + q + `,"logprob":-2}]}]},"finish_reason":null}`), finishOf("stop")}},
		{"deep down", OpenAIChat, []string{`{"choices":[],"x":` + deep(100, q) + `}`, finishOf("stop")}},
		{"deeper than documents may be", OpenAIChat, []string{`{"choices":[],"x":` + deep(600, q) + `}`, finishOf("stop")}},
		{"content twice", OpenAIChat, []string{deltaOf(`{"content":"a","content":` + q + `}`), finishOf("stop")}},
		{"content twice, once escaped", OpenAIChat, []string{deltaOf(`{"content":"a","\u0063ontent":` + q + `}`), finishOf("stop")}},
		{"a new field twice", OpenAIChat, []string{deltaOf(`{"n":"a","n":` + q + `}`), finishOf("stop")}},
		{"after the end", OpenAIChat, []string{finishOf("stop"), "[DONE]", deltaOf(`{"content":` + q + `}`)}},
		{"no JSON", OpenAIChat, []string{planted + " {"}},
		{"half a document", OpenAIChat, []string{`{"choices":[{"delta":{"content":` + q}},
		{"a signature that is text", OpenAIChat, []string{deltaOf(`{"reasoning_details":[{"type":"x","signature":` + q + `}]}`), finishOf("stop")}},
		{"a call's name", OpenAIChat, []string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"` + planted + `","arguments":"{}"}}]}`), finishOf("tool_calls")}},
		{"a call's name escaped and arguments", OpenAIChat, []string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"\u0066","arguments":"{\"k\":\"` + escapedPlant + `\"}"}}]}`), finishOf("tool_calls")}},

		{"an event of a new type", AnthropicMessages, inMessage(`{"type":"note","note":` + q + `}`)},
		{"an event of a new type, over two", AnthropicMessages, inMessage(`{"type":"note","note":"`+half+`"}`, `{"type":"note","note":"`+rest+` "}`)},
		{"an event without a type", AnthropicMessages, inMessage(`{"note":` + q + `}`)},
		{"an event called as a table is", AnthropicMessages, inMessage(`{"type":"request","system":`+q+`}`, `{"type":"message","content":[{"type":"text","text":`+q+`}]}`)},
		{"a type that is text", AnthropicMessages, inMessage(`{"type":` + q + `}`)},
		{"a new kind of delta", AnthropicMessages, oneBlock(`{"type":"new"}`, blockDelta(0, `{"type":"new_delta","new":"`+half+`"}`), blockDelta(0, `{"type":"new_delta","new":"`+rest+` "}`))},
		{"a new kind of block", AnthropicMessages, oneBlock(`{"type":"new","what":{"it":[` + q + `]}}`)},
		{"text at a block's start", AnthropicMessages, oneBlock(`{"type":"text","text":"`+half+`"}`, textDelta(rest+" "))},
		{"input at a block's start", AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":{"k":"` + escapedPlant + `"}}`)},
		{"input that is a number", AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":4111111111111111}`)},
		{"input in escapes cut in two", AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":{}}`,
			blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"k\":\"g\\u0"}`), blockDelta(0, `{"type":"input_json_delta","partial_json":"068`+planted[2:]+` \"}"}`))},
		{"a number in input cut in two", AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":{}}`,
			blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"k\":41111111"}`), blockDelta(0, `{"type":"input_json_delta","partial_json":"11111111}"}`))},
		{"partial input that is a number", AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":{}}`, blockDelta(0, `{"type":"input_json_delta","partial_json":4111111111111111}`))},
		{"a signature that is text", AnthropicMessages, oneBlock(`{"type":"thinking","thinking":"x","signature":""}`, blockDelta(0, `{"type":"signature_delta","signature":`+q+`}`))},
		{"a citation", AnthropicMessages, oneBlock(`{"type":"text","text":""}`, blockDelta(0, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":`+q+`,"new":`+q+`}}`))},
		{"a server tool's result", AnthropicMessages, oneBlock(`{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","title":` + q + `,"url":"https://x.example/?t=` + planted + `","encrypted_content":` + q + `}]}`)},
		{"a stop sequence", AnthropicMessages, append(oneBlock(`{"type":"text","text":""}`)[:3], `{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":`+q+`},"usage":{"output_tokens":1}}`, messageStop)},
		{"an error", AnthropicMessages, append(oneBlock(`{"type":"text","text":""}`)[:2], `{"type":"error","error":{"type":"overloaded_error","message":`+q+`}}`)},
		{"two types", AnthropicMessages, inMessage(`{"type":"ping","type":"note","note":` + q + `}`)},
		{"Type beside type", AnthropicMessages, inMessage(`{"type":"ping","Type":"note","note":` + q + `}`)},
		{"a ping with text", AnthropicMessages, inMessage(`{"type":"ping","note":` + q + `}`)},
		{"between messages", AnthropicMessages, append(inMessage(), oneBlock(`{"type":"text","text":""}`, textDelta("x "+planted+" y"))...)},
	}
	for _, c := range cases {
		t.Run(c.f.Name()+"/"+c.name, func(t *testing.T) {
			for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
				chain := patterns(t, v, "secrets", "pii")
				for _, n := range []int{1, 1 << 20} {
					out, ds, o := stream(c.f, Options{Chain: chain, Usage: true}, serve(c.f, c.payloads), n)
					for _, s := range []string{planted, rest, "4111111111111111", "41111111"} {
						if strings.Contains(everything(out), s) {
							t.Errorf("%s: %q came out (%+v):\n%s", v, s, o, out)
						}
					}
					if strings.Contains(fmt.Sprint(ds, o), planted) {
						t.Errorf("%s: recorded: %v %+v", v, ds, o)
					}
					events(t, c.f, out)
				}
			}
		})
	}
}

// TestOddAnswers does the same to unstreamed answers.
func TestOddAnswers(t *testing.T) {
	q := jsonString(" " + planted + " ")
	openai := func(choice string) string { return `{"id":"c","object":"chat.completion","choices":[` + choice + `]}` }
	anthropic := func(block string) string {
		return `{"id":"m","type":"message","role":"assistant","model":"m","content":[` + block + `],"stop_reason":"end_turn"}`
	}
	cases := map[*Format][]string{
		OpenAIChat: {
			openai(`{"index":0,"message":{"content":"x","function_call":{"name":"f","arguments":"{\"k\":\"` + escapedPlant + `\"}"}}}`),
			openai(`{"index":0,"message":{"content":"x","function_call":{"name":"f","arguments":{"k":` + q + `}}}}`),
			openai(`{"index":0,"message":{"tool_calls":[{"function":{"name":"f","arguments":{"k":` + q + `}}},{"function":{"name":"g"}}]}}`),
			openai(`{"index":0,"message":{"tool_calls":[{"function":{"name":"f","arguments":4111111111111111}}]}}`),
			openai(`{"index":` + q + `,"message":{"content":` + q + `}}`),
			openai(`{"index":0,"message":{"content":[{"type":"text","text":` + q + `}],"reasoning_content":4111111111111111}}`),
			openai(`{"index":0,"message":{"Content":` + q + `}}`),
			openai(`{"index":0,"message":{"content":"a","Content":` + q + `}}`),
			openai(q), `{"choices":` + q + `}`, `[` + q + `]`, q, `{"error":{"message":` + q + `}}`, `<html>` + planted,
			openai(`{"index":0,"message":{"content":` + q + `,"tool_calls":[{"id":"a","function":{"name":"g","arguments":"{}"}}]}}`),
		},
		AnthropicMessages: {
			anthropic(`{"type":"tool_use","id":"t","name":"n","input":4111111111111111}`),
			anthropic(`{"type":"tool_use","id":"t","name":"n","input":[{"k":` + q + `}]}`),
			anthropic(`{"type":"thinking","thinking":"x","signature":` + q + `}`),
			anthropic(`{"type":"redacted_thinking","data":` + q + `}`),
			anthropic(`{"type":"thinking","thinking":` + q + `,"signature":"c2ln"}`),
			anthropic(`{"type":"text","text":"x","citations":[{"cited_text":` + q + `}]}`),
			anthropic(q), `{"content":` + q + `}`, `{"type":"error","error":{"message":` + q + `}}`,
		},
	}
	for f, docs := range cases {
		for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
			chain := patterns(t, v, "secrets", "pii")
			for _, doc := range docs {
				verdict := f.Answer(Options{Context: context.Background(), Chain: chain}, []byte(doc))
				seen := everything([]byte("data: " + string(verdict.Doc)))
				if strings.Contains(seen, planted) || strings.Contains(seen, "4111111111111111") {
					t.Errorf("%s: %s\nbecame %s", v, doc, verdict.Doc)
				}
				if strings.Contains(fmt.Sprint(verdict.Decisions, verdict.Outcome), planted) {
					t.Errorf("%s: recorded: %v %+v", v, verdict.Decisions, verdict.Outcome)
				}
				if verdict.Doc != nil && !json.Valid(verdict.Doc) {
					t.Errorf("%s: %s\nbecame no JSON: %s", v, doc, verdict.Doc)
				}
				if verdict.Outcome.Status == Allowed {
					t.Errorf("%s: %s\nwas not noticed", v, doc)
				}
				if v == guard.Deny && bytes.Contains(verdict.Doc, []byte(`"name"`)) {
					t.Errorf("a call behind a stop is still there: %s", verdict.Doc)
				}
			}
		}
	}
}
