package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestEnds is how answers end that do not end well: what is held is decided,
// and the client reads an error in its own protocol, or the end it was owed.
func TestEnds(t *testing.T) {
	hold := `{"content":"key ` + half + `"}` // decided only at the end
	anthropicHold := []string{messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("key " + half)}
	openai := func(payloads ...string) string {
		return strings.TrimSuffix(string(serve(OpenAIChat, payloads)), "data: [DONE]\n\n")
	}
	anthropic := func(payloads ...string) string { return string(serve(AnthropicMessages, payloads)) }
	broke := errors.New("the connection broke")
	cases := []struct {
		name     string
		f        *Format
		upstream string
		err      error
		status   Status
		text     string // what the client has read
		failed   string // a part of the error
	}{
		{"early, nothing held", OpenAIChat, openai(deltaOf(`{"content":"hi. "}`)), nil, UpstreamFailed, "hi. ", "before its end mark"},
		{"early, text held", OpenAIChat, openai(deltaOf(hold)), nil, UpstreamFailed, "key " + half, "before its end mark"},
		{"early, a secret held", OpenAIChat, openai(deltaOf(hold), deltaOf(`{"content":"`+rest+`"}`)), nil, UpstreamFailed, "key [redacted:github-pat]", "before its end mark"},
		{"before anything", OpenAIChat, "", nil, UpstreamFailed, "", "before its end mark"},
		{"broken", OpenAIChat, openai(deltaOf(hold)), broke, UpstreamFailed, "key " + half, "the connection broke"},
		{"broken in a frame", OpenAIChat, openai(deltaOf(hold)) + `data: {"choices":[{"delta":{"content":"` + planted, broke, UpstreamFailed, "key " + half, "the connection broke"},
		{"half a frame", OpenAIChat, openai(deltaOf(hold)) + `data: {"choices":[{"delta":{"content":"` + planted, nil, UpstreamFailed, "key " + half, "not valid JSON"},
		{"a last frame without its line end", OpenAIChat, openai(deltaOf(hold), finishOf("stop")) + "data: [DONE]", nil, Allowed, "key " + half, ""},
		{"text after the end", OpenAIChat, openai(deltaOf(hold), finishOf("stop"), "[DONE]") + openai(deltaOf(`{"content":"more"}`)), nil, Allowed, "key " + half, ""},
		{"a space at the end mark", OpenAIChat, openai(deltaOf(hold), finishOf("stop")) + "data:  [DONE] \n\n", nil, Allowed, "key " + half, ""},
		{"HTML", OpenAIChat, "<!doctype html>\n<html><body>\n\n<p>" + planted + "</p>\n\n</html>\n", nil, UpstreamFailed, "", "before its end mark"},
		{"an unstreamed answer", OpenAIChat, `{"choices":[{"message":{"content":"` + planted + `"}}]}`, nil, UpstreamFailed, "", "before its end mark"},
		{"an error", OpenAIChat, openai(deltaOf(hold), `{"error":{"message":"overloaded","code":"x"}}`), nil, UpstreamFailed, "key " + half, "overloaded"},
		{"a long frame", OpenAIChat, openai(deltaOf(hold), deltaOf(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`)), nil, UpstreamFailed, "key " + half, "too long"},
		{"no finish, but the end mark", OpenAIChat, openai(deltaOf(hold), "[DONE]"), nil, Allowed, "key " + half, ""},

		{"early, text held", AnthropicMessages, anthropic(anthropicHold...), nil, UpstreamFailed, "key " + half, "before its end mark"},
		{"after message_delta", AnthropicMessages, anthropic(append(anthropicHold, blockStop(0), messageDelta)...), nil, UpstreamFailed, "key " + half, "before its end mark"},
		{"broken", AnthropicMessages, anthropic(anthropicHold...), broke, UpstreamFailed, "key " + half, "the connection broke"},
		{"half a frame", AnthropicMessages, anthropic(anthropicHold...) + "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + planted, nil, UpstreamFailed, "key " + half, "not valid JSON"},
		{"an error", AnthropicMessages, anthropic(append(anthropicHold, `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`)...), nil, UpstreamFailed, "key " + half, "overloaded"},
		{"an event with another name", AnthropicMessages, anthropic(anthropicHold...) + "event: ping\ndata: " + textDelta(planted) + "\n\n", nil, UpstreamFailed, "key " + half, "another name"},
		{"HTML", AnthropicMessages, "<html>\n\n" + planted + "\n\n", nil, UpstreamFailed, "", "before its end mark"},
		{"no event names", AnthropicMessages, openai(append(anthropicHold, blockStop(0), messageDelta, messageStop)...), nil, Allowed, "key " + half, ""},
		{"another message begins", AnthropicMessages, anthropic(append(anthropicHold, blockStop(0), messageDelta, messageStop, messageStart)...), nil, UpstreamFailed, "key " + half, "before its end mark"},
	}
	for _, c := range cases {
		t.Run(c.f.Name()+"/"+c.name, func(t *testing.T) {
			for _, n := range []int{1, 1 << 20} {
				s := c.f.NewStream(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets"), Run: "r", MaxFrame: 1 << 20})
				var out []byte
				for piece := range slices.Chunk([]byte(c.upstream), n) {
					out = append(out, s.Write(piece)...)
				}
				out = append(out, s.Close(c.err)...)
				h := hear(t, c.f, out, true)
				if o := s.Outcome(); o.Status != c.status {
					t.Errorf("outcome %+v", o)
				}
				text := h.text["0/content"] + h.text["0/0/text"]
				expect(t, "text", text, c.text)
				if !strings.Contains(h.failed, c.failed) || (c.failed == "") != (h.failed == "") {
					t.Errorf("the client was told %q", h.failed)
				}
				if c.status == UpstreamFailed && !strings.Contains(h.stoplog, `"status":"upstream_failed"`) {
					t.Errorf("stoplog %s", h.stoplog)
				}
				if strings.Contains(string(out), planted) {
					t.Errorf("came out:\n%s", out)
				}
				if !s.Ended() || len(s.Write([]byte("data: x\n\n"))) > 0 || len(s.Close(nil)) > 0 {
					t.Error("it goes on after its end")
				}
			}
		})
	}
}

// TestStopBeatsFailure: what the upstream does after every answer was stopped
// changes nothing for the client.
func TestStopBeatsFailure(t *testing.T) {
	chain := patterns(t, guard.Deny, "secrets")
	for _, after := range []string{"", `{"error":{"message":"x"}}`, `{"choices":[{"index":0,"delta":{"content":"` + planted + `"}}]}`} {
		p := newTape(t, OpenAIChat, chain, Options{Run: "r"})
		p.say(deltaOf(`{"content":"key ` + planted + ` x"}`))
		if !p.s.Stopped() {
			t.Error("not stopped")
		}
		if after != "" {
			p.say(after)
		}
		h := p.end(errors.New("broke"))
		expect(t, after+": text", h.text["0/content"], "key ")
		expect(t, after+": finish", h.finish["0/finish"], "content_filter")
		expect(t, after+": failed", h.failed, "")
	}
	p := newTape(t, AnthropicMessages, chain, Options{Run: "r"})
	p.say(messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("key "+planted+" x"))
	h := p.end(errors.New("broke"))
	expect(t, "text", h.text["0/0/text"], "key ")
	expect(t, "finish", h.finish["0"], "refusal")
	expect(t, "failed", h.failed, "")
	expect(t, "stoplog", h.stoplog, `{"run":"r","status":"guardrail_blocked","guard":"test","rule":"github-pat"}`)
}

// TestLinesBesideData: what clients do not show is screened too.
func TestLinesBesideData(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets")
	end := string(serve(OpenAIChat, []string{finishOf("stop")}))
	cases := []struct {
		name, upstream string
		passes         bool
	}{
		{"a comment", ": OPENROUTER PROCESSING\n\n", true},
		{"a comment with a secret", ": data: " + planted + "\n\n", false},
		{"an id", "id: 7\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", true},
		{"an id with a secret", "id: " + planted + "\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", false},
		{"a retry with a secret", "retry: " + planted + "\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", false},
		{"a field of another name", planted + ": x\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", false},
		{"a comment inside an event", "data: " + deltaOf(`{"content":"x"}`) + "\n: " + planted + "\n\n", false},
		{"an event's name", "event: " + planted + "\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", false},
		{"an event's first name", "event: " + planted + "\nevent: x\ndata: " + deltaOf(`{"content":"x"}`) + "\n\n", false},
		{"data on two lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"" + planted + "\"}}]}\n\n", false},
		{"no event, so nothing leaves", "id: " + planted + "\n\n", false},
	}
	for _, c := range cases {
		out, _, o := stream(OpenAIChat, Options{Chain: chain}, []byte(c.upstream+end), 1<<20)
		if strings.Contains(string(out), planted) {
			t.Errorf("%s: came out:\n%s", c.name, out)
		}
		if c.passes && (o.Status != Allowed || !bytes.Contains(out, []byte(strings.TrimSuffix(c.upstream, "\n")))) {
			t.Errorf("%s: %+v\n%s", c.name, o, out)
		}
		if noEvent := !strings.Contains(c.upstream, "data: "); !c.passes && o.Status == Allowed && !noEvent {
			t.Errorf("%s: not noticed", c.name)
		}
		events(t, OpenAIChat, out)
	}
}

// TestLogprobs pass, to the byte, where they say what the text says.
func TestLogprobs(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets", "pii")
	token := func(text string, alternatives ...string) string {
		var codes, alts []string
		for _, b := range []byte(text) {
			codes = append(codes, fmt.Sprint(b))
		}
		for _, a := range alternatives {
			alts = append(alts, fmt.Sprintf(`{"token":%s,"logprob":-4111111111111111.5,"bytes":null}`, jsonString(a)))
		}
		return fmt.Sprintf(`{"token":%s,"bytes":[%s],"logprob":-0.4111111111111111,"top_logprobs":[%s]}`, jsonString(text), strings.Join(codes, ","), strings.Join(alts, ","))
	}
	with := func(content string, tokens ...string) string {
		return chunkOf(fmt.Sprintf(`{"index":0,"delta":{"content":%s},"logprobs":{"content":[%s],"refusal":null},"finish_reason":null}`, jsonString(content), strings.Join(tokens, ", ")))
	}
	cases := []struct {
		name    string
		payload string
		passes  bool
	}{
		{"two tokens", with("Hi there. ", token("Hi"), token(" there. ", " you")), true},
		{"half a rune", with("é. ", `{"token":"\\xc3","bytes":[195],"logprob":-1},{"token":"\\xa9. ","bytes":[169,46,32],"logprob":-1}`), false},
		{"no bytes", with("Hi. ", `{"token":"Hi. ","bytes":null,"logprob":-1}`), true},
		{"other text", with("Hi. ", token("Ho. ")), false},
		{"other bytes", with("Hi. ", `{"token":"Hi. ","bytes":[72,105],"logprob":-1}`), false},
		{"bytes that are none", with("Hi. ", `{"token":"Hi. ","bytes":[72,105,46,300],"logprob":-1}`), false},
		{"an alternative with a secret", with("Hi. ", token("Hi. ", planted)), false},
		{"an alternative's bytes", with("Hi. ", `{"token":"Hi. ","logprob":-1,"top_logprobs":[{"token":"x","bytes":[`+strings.Join(strings.Fields(strings.Trim(fmt.Sprint([]byte(planted)), "[]")), ",")+`]}]}`), false},
		{"changed text", with("key "+planted+" ", token("key "), token(planted+" ")), false},
		{"none", chunkOf(`{"index":0,"delta":{"content":"a. "},"logprobs":null,"finish_reason":null}`), true},
	}
	for _, c := range cases {
		upstream := serve(OpenAIChat, []string{c.payload, finishOf("stop")})
		out, _, _ := stream(OpenAIChat, Options{Chain: chain}, upstream, 1<<20)
		if c.passes != bytes.Equal(out, upstream) {
			t.Errorf("%s: passes is %v:\n%s", c.name, !c.passes, out)
		}
		if !c.passes && !bytes.Contains(out, []byte(`"logprobs":null`)) || bytes.Contains(out, []byte(planted)) {
			t.Errorf("%s:\n%s", c.name, out)
		}
		body := strings.NewReplacer(`"delta"`, `"message"`, `"chat.completion.chunk"`, `"chat.completion"`).Replace(c.payload)
		v := OpenAIChat.Answer(Options{Context: context.Background(), Chain: chain}, []byte(body))
		if c.passes != (string(v.Doc) == body) || bytes.Contains(v.Doc, []byte(planted)) {
			t.Errorf("%s, unstreamed: passes is %v:\n%s", c.name, !c.passes, v.Doc)
		}
	}
}

// TestMessagesInARow: channels are numbered anew at each message_start, and a
// stop in one leaves nothing of the next.
func TestMessagesInARow(t *testing.T) {
	first := oneBlock(`{"type":"text","text":""}`, textDelta("one "+half))
	second := oneBlock(`{"type":"text","text":""}`, textDelta(rest+" "), textDelta("and "+planted+" two"))
	for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
		p := newTape(t, AnthropicMessages, patterns(t, v, "secrets"), Options{Run: "r"})
		p.say(first...)
		p.say(second...)
		ds := p.s.Decisions()
		h := p.end(nil)
		expect(t, "first", h.text["0/0/text"], "one "+half)
		want, finish := rest+" and [redacted:github-pat] two", "end_turn"
		if v == guard.Deny {
			want, finish = rest+" and ", "refusal"
		}
		expect(t, "second", h.text["1/0/text"], want)
		expect(t, "its end", h.finish["1"], finish)
		if len(ds) != 1 || ds[0].Channel != "message/1/block/0/text" {
			t.Errorf("decisions %v", ds)
		}
	}
}

// TestWithoutARun: an answer that belongs to no run is redacted like any other,
// and has no member that nobody is there to read.
func TestWithoutARun(t *testing.T) {
	for _, f := range []*Format{OpenAIChat, AnthropicMessages} {
		for _, run := range []string{"", "run_1"} {
			p := newTape(t, f, patterns(t, guard.Redact, "secrets"), Options{Run: run, Usage: true})
			doc := `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + planted + `"},"finish_reason":"stop"}]}`
			if f == OpenAIChat {
				p.say(deltaOf(`{"content":"`+half+`"}`), deltaOf(`{"content":"`+rest+`"}`), finishOf("stop"), "[DONE]")
			} else {
				p.say(oneBlock(`{"type":"text","text":""}`, textDelta(half), textDelta(rest))...)
				doc = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"` + planted + `"}]}`
			}
			p.end(nil)
			v := f.Answer(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets"), Run: run}, []byte(doc))
			for how, out := range map[string]string{"streamed": string(p.out), "unstreamed": string(v.Doc)} {
				if !strings.Contains(out, "[redacted:github-pat]") || strings.Contains(out, `"stoplog"`) != (run != "") {
					t.Errorf("%s, run %q, %s:\n%s", f.Name(), run, how, out)
				}
			}
			if err := p.s.Refused(); err != nil {
				t.Errorf("%s is refused: %v", f.Name(), err)
			}
		}
	}
}

// TestRefused tells an answer that could not be read from one that ended badly.
func TestRefused(t *testing.T) {
	for frame, refused := range map[string]bool{`{"id":`: true, `{"error":{"message":"overloaded"}}`: false} {
		p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{})
		p.say(deltaOf(`{"content":"hi"}`), frame)
		if err := p.s.Refused(); (err != nil) != refused || !p.s.Ended() {
			t.Errorf("after %s: refused %v, ended %v", frame, err, p.s.Ended())
		}
	}
}
