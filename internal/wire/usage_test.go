package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/guard"
)

// What a provider reports is read by its own convention, the same streamed and
// not: Anthropic's input is without what was cached, OpenAI's is with it.
func TestUsageConventions(t *testing.T) {
	for _, c := range []struct {
		name      string
		f         *Format
		start     string // of a stream of Anthropic's
		end, body string // the usage at the end, and in a document
		want      Usage
	}{
		{"openai, cached and reasoned", OpenAIChat, "",
			`{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":80,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":40}}`, "",
			Usage{Input: 100, Output: 50, CacheRead: 80, Reasoning: 40}},
		{"openai, a cache written", OpenAIChat, "",
			`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":90}}`, "",
			Usage{Input: 100, Output: 5, CacheWrite: 90}},
		{"openai's way, reasoning apart", OpenAIChat, "",
			`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":145,"completion_tokens_details":{"reasoning_tokens":40}}`, "",
			Usage{Input: 100, Output: 45, Reasoning: 40}},
		{"nothing is no count of something", OpenAIChat, "",
			`{"prompt_tokens":0,"completion_tokens":0}`, "",
			Usage{Input: 11, Output: 2, Estimated: true}},
		{"anthropic, read and written for both times", AnthropicMessages,
			`{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":1}`,
			`{"output_tokens":9}`,
			`{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":9}`,
			Usage{Input: 1310, Output: 9, CacheRead: 1000, CacheWrite: 100, CacheWrite1h: 200}},
		{"anthropic, said again at the end", AnthropicMessages,
			`{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}`,
			`{"input_tokens":10,"cache_read_input_tokens":7,"output_tokens":9}`,
			`{"input_tokens":10,"cache_read_input_tokens":7,"output_tokens":9}`,
			Usage{Input: 17, Output: 9, CacheRead: 7}},
		{"anthropic, written for nobody says how long", AnthropicMessages,
			`{"input_tokens":10,"cache_creation_input_tokens":300,"output_tokens":1}`, `{"output_tokens":9}`,
			`{"input_tokens":10,"cache_creation_input_tokens":300,"output_tokens":9}`,
			Usage{Input: 310, Output: 9, CacheWrite: 300, Estimated: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := Options{Input: 11}
			p := newTape(t, c.f, patterns(t, guard.Redact, "secrets"), opt)
			var doc string
			if c.f == OpenAIChat {
				p.say(deltaOf(`{"content":"hi, you"}`), finishOf("stop"), `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+c.end+`}`, "[DONE]")
				doc = `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"hi, you"},"finish_reason":"stop"}],"usage":` + c.end + `}`
			} else {
				p.say(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":`+c.start+`}}`,
					blockStart(0, `{"type":"text","text":""}`), textDelta("hi, you"), blockStop(0),
					`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":`+c.end+`}`, messageStop)
				doc = `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi, you"}],"stop_reason":"end_turn","usage":` + c.body + `}`
			}
			p.end(nil)
			if diff := cmp.Diff(c.want, p.s.Outcome().Usage); diff != "" {
				t.Errorf("streamed (-want +got):\n%s", diff)
			}
			opt.Context, opt.Chain = t.Context(), p.s.chain
			if diff := cmp.Diff(c.want, c.f.Answer(opt, []byte(doc)).Outcome.Usage); diff != "" {
				t.Errorf("not streamed (-want +got):\n%s", diff)
			}
		})
	}
}

// An answer that breaks off is estimated from what came: what Anthropic says at
// its beginning is not how long it was.
func TestUsageOfABrokenAnswer(t *testing.T) {
	p := newTape(t, AnthropicMessages, patterns(t, guard.Redact, "secrets"), Options{})
	p.say(messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("four and twenty blackbirds"))
	if got := p.s.Spent(); got != 7 {
		t.Errorf("spent %d so far, want 7", got)
	}
	p.end(errors.New("gone"))
	if diff := cmp.Diff(Usage{Input: 7, Output: 7, Estimated: true}, p.s.Outcome().Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// Two messages of one stream are both counted.
func TestUsageOfTwoMessages(t *testing.T) {
	p := newTape(t, AnthropicMessages, patterns(t, guard.Redact, "secrets"), Options{})
	for range 2 {
		p.say(messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("hi"), blockStop(0), messageDelta, messageStop)
	}
	p.end(nil)
	if diff := cmp.Diff(Usage{Input: 14, Output: 18}, p.s.Outcome().Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// A response says its usage in words of its own, and embeddings have no output.
func TestUsageOfOtherFormats(t *testing.T) {
	for _, c := range []struct {
		f    *Format
		doc  string
		want Usage
	}{
		{OpenAIResponses, `{"id":"resp_1","object":"response","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":80},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":150}}`,
			Usage{Input: 100, Output: 50, CacheRead: 80, Reasoning: 40}},
		{OpenAIEmbeddings, `{"object":"list","data":[],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`, Usage{Input: 5}},
		{OpenAIEmbeddings, `{"object":"list","data":[],"model":"m"}`, Usage{Input: 11, Estimated: true}},
	} {
		opt := Options{Context: t.Context(), Chain: patterns(t, guard.Redact, "secrets"), Input: 11}
		if diff := cmp.Diff(c.want, c.f.Answer(opt, []byte(c.doc)).Outcome.Usage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.f.name, diff)
		}
	}
}
