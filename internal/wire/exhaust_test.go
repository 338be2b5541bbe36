package wire

import (
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

const noBudget = "100 tokens are needed and 3 are left"

// exhaust ends a tape's answer for want of budget.
func (p *tape) exhaust() heard {
	p.t.Helper()
	p.out = append(p.out, p.s.Exhaust("profile p", noBudget)...)
	if !p.s.Ended() {
		p.t.Error("the answer has not ended")
	}
	return hear(p.t, p.f, p.out, true)
}

// An answer for which there is no more budget ends as one that came to its
// length: what was held is decided first, and the usage is there.
func TestExhaust(t *testing.T) {
	const told = `{"run":"r","status":"budget_exceeded","guard":"budget","rule":"profile p","reason":"` + noBudget + `"}`
	t.Run("openai", func(t *testing.T) {
		p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{Choices: 2, Usage: true, Run: "r", Input: 7})
		p.say(chunkOf(choiceOf(0, `{"role":"assistant","content":"done"}`, "stop"), choiceOf(1, `{"role":"assistant","content":"it is `+half+`"}`, "null")))
		h := p.exhaust()
		expect(t, "choice 0", h.text["0/content"], "done")
		expect(t, "its end", h.finish["0/finish"], "stop")
		expect(t, "choice 1", h.text["1/content"], "it is "+half)
		expect(t, "its end", h.finish["1/finish"], "length")
		expect(t, "usage", h.usage, `{"prompt_tokens":7,"completion_tokens":6,"total_tokens":13}`)
		expect(t, "stoplog", h.stoplog, told)
		expect(t, "last", p.lastLine(), "data: [DONE]")
		if u := p.s.Outcome().Usage; u != (Usage{Input: 7, Output: 6, Estimated: true}) {
			t.Errorf("usage %+v", u)
		}
	})
	t.Run("openai, usage not asked for", func(t *testing.T) {
		p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{Run: "r"})
		p.say(deltaOf(`{"content":"` + planted + ` so"}`))
		h := p.exhaust()
		expect(t, "text", h.text["0/content"], "[redacted:github-pat] so")
		expect(t, "end", h.finish["0/finish"], "length")
		expect(t, "usage", h.usage, "")
		expect(t, "stoplog", h.stoplog, told)
	})
	t.Run("anthropic", func(t *testing.T) {
		p := newTape(t, AnthropicMessages, patterns(t, guard.Redact, "secrets"), Options{Run: "r"})
		p.say(messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta("it is "+half))
		h := p.exhaust()
		expect(t, "text", joined(h), "it is "+half)
		expect(t, "end", h.finish["0"], "max_tokens")
		expect(t, "stoplog", h.stoplog, told)
		expect(t, "last", p.lastLine(), `data: {"type":"message_stop"}`)
		if got := string(p.out); strings.Count(got, "content_block_stop") != 2 { // the event and its type
			t.Errorf("the block is not closed once:\n%s", got)
		}
	})
}

// A verdict about what was held is worse than an empty purse.
func TestExhaustFindsHeldText(t *testing.T) {
	for _, f := range []*Format{OpenAIChat, AnthropicMessages} {
		p := newTape(t, f, patterns(t, guard.Deny, "secrets"), Options{Run: "r"})
		whole := "it is " + planted
		if f == OpenAIChat {
			p.say(deltaOf(`{"content":"` + whole + `"}`))
		} else {
			p.say(messageStart, blockStart(0, `{"type":"text","text":""}`), textDelta(whole))
		}
		h := p.exhaust()
		if said := joined(h); said != "it is " {
			t.Errorf("%s: said %q", f.name, said)
		}
		if !strings.Contains(h.stoplog, `"status":"guardrail_blocked"`) {
			t.Errorf("%s: stoplog %s", f.name, h.stoplog)
		}
		if finish := h.finish["0/finish"] + h.finish["0"]; finish != "content_filter" && finish != "refusal" {
			t.Errorf("%s: ended with %q", f.name, finish)
		}
	}
}

// A tool call that leaves whole or not at all, and is not whole, does not leave.
func TestExhaustDropsHalfACall(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Deny, "secrets"), Options{Run: "r"})
	p.say(deltaOf(`{"content":"I will."}`), deltaOf(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"rm","arguments":"{\"path\": \"/tm"}}]}`))
	h := p.exhaust()
	expect(t, "text", h.text["0/content"], "I will.")
	expect(t, "end", h.finish["0/finish"], "length")
	if strings.Contains(string(p.out), "/tm") {
		t.Errorf("half a call left:\n%s", p.out)
	}
	if more := p.say(deltaOf(`{"content":"more"}`)); more != "" {
		t.Errorf("after the end came %q", more)
	}
}

func (p *tape) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(p.out)), "\n")
	return lines[len(lines)-1]
}

const (
	responseCreated = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`
	responseItem    = `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`
	responsePart    = `{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}`
)

func responseDelta(text string) string {
	return `{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + text + `","logprobs":[]}`
}

// A response for which there is no more budget ends as one that is not complete.
func TestExhaustResponse(t *testing.T) {
	p := newTape(t, OpenAIResponses, patterns(t, guard.Redact, "secrets"), Options{Run: "r", Input: 7})
	p.say(responseCreated, responseItem, responsePart, responseDelta("it is "+half))
	p.exhaust()
	for _, want := range []string{
		`"delta":"it is ` + half, `"incomplete_details":{"reason":"max_output_tokens"}`,
		`"usage":{"input_tokens":7`, `"stoplog":{"run":"r","status":"budget_exceeded","guard":"budget","rule":"profile p","reason":"` + noBudget + `"}`,
		"event: response.output_text.done", "event: response.output_item.done",
	} {
		if n := strings.Count(string(p.out), want); n != 1 {
			t.Errorf("%d times %s in\n%s", n, want, p.out)
		}
	}
}
