package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// A tape feeds a stream event by event and keeps what the client was sent.
type tape struct {
	t   *testing.T
	f   *Format
	s   *Stream
	out []byte
}

func newTape(t *testing.T, f *Format, chain *guard.Chain, opt Options) *tape {
	opt.Context, opt.Chain = context.Background(), chain
	return &tape{t: t, f: f, s: f.NewStream(opt)}
}

// say serves payloads and returns what came out for them.
func (p *tape) say(payloads ...string) string {
	from := len(p.out)
	for _, payload := range payloads {
		p.out = append(p.out, p.s.Write(frameOf(p.f, payload))...)
	}
	return string(p.out[from:])
}

func (p *tape) cut() string {
	from := len(p.out)
	p.out = append(p.out, p.s.Cut()...)
	return string(p.out[from:])
}

// end ends the answer and returns what the client understood of all of it.
func (p *tape) end(err error) heard {
	p.t.Helper()
	p.out = append(p.out, p.s.Close(err)...)
	return hear(p.t, p.f, p.out, true)
}

func frameOf(f *Format, payload string) []byte {
	b := serve(f, []string{payload})
	return bytes.TrimSuffix(b, []byte("data: [DONE]\n\n"))
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

const usageChunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}`

// TestDenyEndsOneChoice: the others go on, the usage comes, and each choice
// ends once.
func TestDenyEndsOneChoice(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Deny, "secrets"), Options{Choices: 2, Usage: true, Run: "run_1"})
	p.say(
		`{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, // as Azure begins
		chunkOf(choiceOf(0, `{"role":"assistant","content":"my key is `+half+`"}`, "null"), choiceOf(1, `{"role":"assistant","content":"mine "}`, "null")),
		deltaOf(`{"content":"`+rest+` ok"}`),
		chunkOf(choiceOf(0, `{"content":" more"}`, "null"), choiceOf(1, `{"content":"is fine"}`, "stop")),
		finishOf("stop"), usageChunk, "[DONE]")
	h := p.end(nil)
	expect(t, "choice 0", h.text["0/content"], "my key is ")
	expect(t, "choice 1", h.text["1/content"], "mine is fine")
	expect(t, "its end", h.finish["0/finish"], "content_filter")
	expect(t, "the other's", h.finish["1/finish"], "stop")
	expect(t, "usage", h.usage, `{"prompt_tokens":7,"completion_tokens":9}`)
	expect(t, "stoplog", h.stoplog, `{"run":"run_1","status":"guardrail_blocked","guard":"test","rule":"github-pat"}`)
	if !strings.Contains(string(p.out), `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"content_filter"}]}`) {
		t.Errorf("the end of choice 0 does not say whose it is:\n%s", p.out)
	}
	if p.s.Stopped() {
		t.Error("one of two choices was stopped, and it says all were")
	}
}

// TestUsageIsAskedFor: where the caller did not ask for it, it is read and left
// out, and what happened is told in the chunk before.
func TestUsageIsAskedFor(t *testing.T) {
	for _, asked := range []bool{true, false} {
		p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{Usage: asked, Run: "r"})
		p.say(deltaOf(`{"content":"`+planted+`"}`), finishOf("stop"), usageChunk, "[DONE]")
		h := p.end(nil)
		if (h.usage != "") != asked {
			t.Errorf("asked %v, got usage %q", asked, h.usage)
		}
		expect(t, "text", h.text["0/content"], "[redacted:github-pat]")
		expect(t, "stoplog", h.stoplog, `{"run":"r","status":"redacted","guard":"test","rule":"github-pat"}`)
		if u := p.s.Outcome().Usage; u != (Usage{Input: 7, Output: 9}) {
			t.Errorf("usage %+v", u)
		}
	}
}

// TestUsageOnTheFinishChunk: some upstreams send no chunk of its own.
func TestUsageOnTheFinishChunk(t *testing.T) {
	last := strings.Replace(chunkOf(choiceOf(0, `{"content":"`+rest+`"}`, "stop")), `]}`, `],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, 1)
	p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{})
	p.say(strings.Replace(deltaOf(`{"content":"`+half+`"}`), `]}`, `],"usage":null}`, 1), last, "[DONE]")
	h := p.end(nil)
	expect(t, "text", h.text["0/content"], "[redacted:github-pat]")
	expect(t, "finish", h.finish["0/finish"], "stop")
	if u := p.s.Outcome().Usage; u != (Usage{Input: 1, Output: 2}) {
		t.Errorf("usage %+v", u)
	}
}

// TestCallsWithoutIndex: Mistral sends calls whole and without an index, others
// send the same index for each.
func TestCallsWithoutIndex(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Deny, "secrets"), Options{})
	p.say(deltaOf(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"k\": 1}"}},{"id":"b","function":{"name":"g","arguments":"{\"k\": 2}"}}]}`),
		deltaOf(`{"tool_calls":[{"id":"c","function":{"name":"h","arguments":"{\"k\":\"`+planted+`\"}"}}]}`), finishOf("tool_calls"), "[DONE]")
	h := p.end(nil)
	expect(t, "first", h.text["0/tool/0"], `{"k": 1}`)
	expect(t, "second", h.text["0/tool/1"], `{"k": 2}`)
	expect(t, "the end", h.finish["0/finish"], "content_filter")
	if strings.Contains(string(p.out), `"c"`) {
		t.Errorf("the third call came out:\n%s", p.out)
	}
}

// TestCallsTakeTurns: arguments of several calls that alternate are each judged
// as one document, and leave as one or not at all.
func TestCallsTakeTurns(t *testing.T) {
	part := func(index int, args string) string {
		return deltaOf(`{"tool_calls":[{"index":` + string(rune('0'+index)) + `,"function":{"arguments":` + jsonString(args) + `}}]}`)
	}
	answer := []string{
		deltaOf(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`),
		deltaOf(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}`),
		part(0, `{"a":"g\u006`), part(1, `{"n":41111111`), part(0, `8`+planted[2:20]), part(1, `11111111,"x":"`), part(0, planted[20:]+`"}`), part(1, `y"}`),
		finishOf("tool_calls"), "[DONE]"}
	p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets", "pii"), Options{})
	p.say(answer...)
	h := p.end(nil)
	expect(t, "first", h.text["0/tool/0"], `{"a":"[redacted:github-pat]"}`)
	expect(t, "second", h.text["0/tool/1"], `{"n":"[redacted:credit-card]","x":"y"}`)

	p = newTape(t, OpenAIChat, patterns(t, guard.Deny, "credit-card"), Options{})
	p.say(answer...)
	h = p.end(nil)
	expect(t, "both, for half of each stands behind the stop", h.text["0/tool/0"]+h.text["0/tool/1"]+h.text["0/tool/0/name"]+h.text["0/tool/1/name"], "")
	expect(t, "the end", h.finish["0/finish"], "content_filter")
}

// TestTextsTakeTurns: a text that was taken to have ended goes on after all. It
// is complete where it is clean, and no secret is ever whole.
func TestTextsTakeTurns(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets", "pii"), Options{})
	p.say(deltaOf(`{"content":"one "}`), deltaOf(`{"reasoning_content":"a "}`), deltaOf(`{"content":"tw"}`), deltaOf(`{"reasoning_content":"b"}`), deltaOf(`{"content":"o"}`), finishOf("stop"), "[DONE]")
	h := p.end(nil)
	expect(t, "content", h.text["0/content"], "one two")
	expect(t, "reasoning", h.text["0/reasoning_content"], "a b")

	for at := 1; at < len(planted); at++ {
		p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets", "pii"), Options{})
		p.say(deltaOf(`{"content":"key `+planted[:at]+`"}`), deltaOf(`{"reasoning_content":"hm "}`), deltaOf(`{"content":"`+planted[at:]+` end"}`), finishOf("stop"), "[DONE]")
		h := p.end(nil)
		if text := h.text["0/content"]; strings.Contains(text, planted) || strings.Contains(text, planted[at:]+" ") || !strings.HasSuffix(text, " end") {
			t.Errorf("cut at %d: %q", at, text)
		}
	}
	for _, v := range []guard.Verdict{guard.Deny, guard.RequireApproval} {
		p := newTape(t, OpenAIChat, patterns(t, v, "secrets"), Options{})
		p.say(deltaOf(`{"content":"key `+half+`"}`), deltaOf(`{"reasoning_content":"hm "}`), deltaOf(`{"content":"`+rest+` end"}`), finishOf("stop"), "[DONE]")
		h := p.end(nil)
		expect(t, "content", h.text["0/content"], "key "+half)
		expect(t, "the end", h.finish["0/finish"], "content_filter")
	}
}

// TestCut lets out the settled part of frames whose rest waits.
func TestCut(t *testing.T) {
	for _, f := range []*Format{OpenAIChat, AnthropicMessages} {
		t.Run(f.Name(), func(t *testing.T) {
			text := func(s string) string { return deltaOf(`{"role":"assistant","content":` + jsonString(s) + `}`) }
			before, after := []string(nil), []string{finishOf("stop"), "[DONE]"}
			channel := "0/content"
			if f == AnthropicMessages {
				before, after = []string{messageStart, blockStart(0, `{"type":"text","text":""}`)}, []string{blockStop(0), messageDelta, messageStop}
				text, channel = textDelta, "0/0/text"
			}
			p := newTape(t, f, patterns(t, guard.Redact, "secrets", "pii"), Options{})
			p.say(before...)
			expect(t, "at once", p.say(text("Write \"to\"\t\u00e9 jane")), "")
			if p.s.Waiting() == 0 {
				t.Fatal("nothing waits")
			}
			expect(t, "cut", p.cut(), string(frameOf(f, text("Write \"to\"\t\u00e9 "))))
			if p.s.Waiting() != 0 || p.cut() != "" {
				t.Error("the same was cut twice")
			}
			p.say(text(".doe@"), text("example.com! Or to bob"))
			p.cut()
			p.say(after...)
			h := p.end(nil)
			expect(t, "text", h.text[channel], "Write \"to\"\t\u00e9 [redacted:email]! Or to bob")
		})
	}
}

// TestCutKeepsRedactions: what was replaced in a frame stays replaced in each
// of its parts; what would be heard twice is not cut.
func TestCutKeepsRedactions(t *testing.T) {
	const held = `to jane`
	cases := []struct {
		name    string
		f       *Format
		payload string
		waits   bool
	}{
		{"text", OpenAIChat, deltaOf(`{"content":"` + held + `"}`), true},
		{"with logprobs", OpenAIChat, strings.Replace(deltaOf(`{"content":"`+held+`"}`), `"finish_reason"`, `"logprobs":{"content":[{"token":"`+held+`","logprob":-1}]},"finish_reason"`, 1), true},
		{"with the end", OpenAIChat, chunkOf(choiceOf(0, `{"content":"`+held+`"}`, "length")), true},
		{"beside a field that is new", OpenAIChat, deltaOf(`{"content":"` + held + `","note":{"n":1}}`), false},
		{"beside another text", OpenAIChat, deltaOf(`{"content":"` + held + `","refusal":"no"}`), false},
		{"in a part", OpenAIChat, deltaOf(`{"content":[{"type":"text","text":"` + held + `"}]}`), false},
		{"in a new field", OpenAIChat, deltaOf(`{"note":"` + held + `"}`), false},
		{"in a call", OpenAIChat, deltaOf(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":\"` + held + `"}}]}`), false},
		{"in a call", AnthropicMessages, blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"a\":\"`+held+`"}`), false},
		{"text", AnthropicMessages, textDelta(held), true},
		{"thinking", AnthropicMessages, blockDelta(0, `{"type":"thinking_delta","thinking":"`+held+`"}`), true},
		{"a block's start", AnthropicMessages, blockStart(0, `{"type":"text","text":"`+held+`"}`), false},
		{"beside a field that is new", AnthropicMessages, strings.Replace(textDelta(held), `"index"`, `"note":"`+planted+`","index"`, 1), false},
	}
	for _, c := range cases {
		t.Run(c.f.Name()+"/"+c.name, func(t *testing.T) {
			p := newTape(t, c.f, patterns(t, guard.Redact, "secrets", "pii"), Options{})
			if c.f == AnthropicMessages {
				p.say(messageStart)
			}
			p.say(c.payload)
			if (p.s.Waiting() != 0) != (c.waits && !strings.Contains(c.payload, "length")) {
				t.Fatalf("waiting: %d", p.s.Waiting())
			}
			cut := p.cut()
			if strings.Contains(cut, "jane") || strings.Contains(cut, `"token"`) || strings.Contains(cut, planted) {
				t.Errorf("cut %s", cut)
			}
			p.out = append(p.out, p.s.Close(errors.New("enough"))...)
			if s := string(p.out); strings.Count(s, "jane") != 1 || strings.Count(s, "to ") != 1 || strings.Contains(s, planted) || strings.Contains(cut, "to ") && strings.Contains(s, `"token"`) {
				t.Errorf("in all:\n%s", s)
			}
		})
	}
}

// TestHalvesOfARune: an upstream that cuts UTF-16 sends half of a pair in each
// of two deltas. The text is the same as whole, and so are findings behind it.
func TestHalvesOfARune(t *testing.T) {
	for _, text := range []string{
		`\ud83d\ude42 see ` + planted + ` \ud83d\ude42`,
		`a \ud83d\ude42\ud83d\ude42 ` + planted + `\ud83d b`,
		`x \ud83d ` + planted + ` \ude42\ud83d\ud83d\ude42 y`,
		`\\ud83d\\ude42 ` + planted + ` \\`,
	} {
		chain := patterns(t, guard.Redact, "secrets")
		opt := Options{Context: context.Background(), Chain: chain}
		v := OpenAIChat.Answer(opt, []byte(`{"choices":[{"index":0,"message":{"content":"`+text+`"}}]}`))
		want := hear(t, OpenAIChat, v.Doc, false).text["0/content"]
		for at := range len(text) {
			first, second := text[:at], text[at:]
			if !json.Valid([]byte(`"`+first+`"`)) || !json.Valid([]byte(`"`+second+`"`)) {
				continue // inside an escape
			}
			upstream := serve(OpenAIChat, []string{deltaOf(`{"content":"` + first + `"}`), deltaOf(`{"content":"` + second + `"}`), finishOf("stop")})
			out, ds, _ := stream(OpenAIChat, opt, upstream, 1<<20)
			var joined string // as a client that keeps halves has it
			for _, m := range contents.FindAllStringSubmatch(string(out), -1) {
				joined += m[1]
			}
			var got string
			if err := json.Unmarshal([]byte(`"`+joined+`"`), &got); err != nil || got != want {
				t.Errorf("%s cut at %d: %q, want %q", text, at, got, want)
			}
			if record(ds) != record(v.Decisions) {
				t.Errorf("%s cut at %d:\n%s\nwant\n%s", text, at, record(ds), record(v.Decisions))
			}
		}
	}
}

var contents = regexp.MustCompile(`"content":"((?:[^"\\]|\\.)*)"`)

// TestBrokenCall: where a rule may stop a call, one that the upstream did not
// end does not leave; one that it did end leaves, whatever comes after.
func TestBrokenCall(t *testing.T) {
	call := func(index int, args string) string {
		return deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f%d","arguments":%s}}]}`, index, index, index, jsonString(args)))
	}
	for _, last := range []string{"", `{"error":{"message":"overloaded"}}`, "{"} {
		p := newTape(t, OpenAIChat, patterns(t, guard.Deny, "secrets"), Options{})
		p.say(deltaOf(`{"content":"Now. "}`), call(0, `{"a":1}`), call(1, `{"rm":"/`))
		if last != "" {
			p.say(last)
		}
		h := p.end(nil)
		expect(t, "text", h.text["0/content"], "Now. ")
		expect(t, "the first", h.text["0/tool/0"], `{"a":1}`)
		if strings.Contains(string(p.out), "f1") || h.failed == "" {
			t.Errorf("after %q:\n%s", last, p.out)
		}
	}
	p := newTape(t, AnthropicMessages, patterns(t, guard.Deny, "secrets"), Options{})
	p.say(messageStart, blockStart(0, `{"type":"tool_use","id":"t","name":"n","input":{}}`), blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"rm\":"}`))
	h := p.end(errors.New("broke"))
	if strings.Contains(string(p.out), "tool_use") || h.failed == "" {
		t.Errorf("out:\n%s", p.out)
	}
}

// TestTooMuchWaits: what may wait is bounded.
func TestTooMuchWaits(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Deny, "secrets"), Options{MaxFrame: 2000})
	n := 0
	for ; !p.s.Ended() && n < 1000; n++ {
		p.say(deltaOf(`{"tool_calls":[{"index":0,"function":{"arguments":"[1234567890,"}}]}`))
	}
	h := p.end(nil)
	if !strings.Contains(h.failed, "too much") || n < 20 || n > 80 || strings.Contains(string(p.out), "123") {
		t.Errorf("after %d frames: %q\n%s", n, h.failed, p.out)
	}
}
