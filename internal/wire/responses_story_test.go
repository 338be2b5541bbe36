package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// A responder writes a response's events, with their numbers.
type responder struct{ n int }

func (r *responder) event(kind, format string, args ...any) string {
	r.n++
	return fmt.Sprintf(`{"type":%q,"sequence_number":%d%s}`, kind, r.n-1, fmt.Sprintf(format, args...))
}

func (r *responder) created() string {
	return r.event("response.created", `,"response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","model":"m","output":[],"usage":null}`)
}

const usage = `{"input_tokens":7,"output_tokens":9,"total_tokens":16}`

func (r *responder) completed(items ...string) string {
	return r.event("response.completed", `,"response":{"id":"resp_1","object":"response","created_at":7,"status":"completed","incomplete_details":null,"model":"m","output":[%s],"usage":%s}`, strings.Join(items, ","), usage)
}

func (r *responder) added(index int, item string) string {
	return r.event("response.output_item.added", `,"output_index":%d,"item":%s`, index, item)
}

func (r *responder) done(index int, item string) string {
	return r.event("response.output_item.done", `,"output_index":%d,"item":%s`, index, item)
}

func (r *responder) delta(kind string, index int, more, text string) string {
	return r.event("response."+kind+".delta", `,"item_id":"it_%d","output_index":%d%s,"delta":%s`, index, index, more, jsonString(text))
}

const inFirst = `,"content_index":0`

// begin is a message that has begun.
func (r *responder) begin() []string {
	return []string{
		r.created(), r.added(0, `{"id":"it_0","type":"message","role":"assistant","status":"in_progress","content":[]}`),
		r.event("response.content_part.added", `,"item_id":"it_0","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`),
	}
}

func (r *responder) text(text string) string { return r.delta("output_text", 0, inFirst, text) }

func responsesTape(t *testing.T, v guard.Verdict) (*responder, *tape) {
	return &responder{}, newTape(t, OpenAIResponses, patterns(t, v, "secrets"), Options{Run: "r", Input: 7})
}

// eventNames are the names of what the client was sent, in order.
func eventNames(out []byte) (names []string) {
	for line := range strings.SplitSeq(string(out), "\n") {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimPrefix(name, "response."))
		}
	}
	return names
}

// TestDeniedResponse: the safe prefix, then all that is open ends, in the order
// in which clients want it, and the response is incomplete, with its usage.
func TestDeniedResponse(t *testing.T) {
	for v, status := range map[guard.Verdict]string{guard.Deny: "guardrail_blocked", guard.RequireApproval: "guardrail_approval_required"} {
		r, p := responsesTape(t, v)
		p.say(r.begin()...)
		p.say(r.text("my key is "), r.text(half), r.text(rest+" ok"), r.text("more"))
		if !p.s.Stopped() {
			t.Error("not stopped")
		}
		item := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"my key is ` + planted + ` okmore"}]}`
		p.say(r.done(0, item), r.completed(item))
		h := p.end(nil)
		want := []string{"created", "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "incomplete"}
		if got := eventNames(p.out); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		expect(t, "text", h.text["0/content/0/text"], "my key is ")
		expect(t, "end", h.finish["0"], "incomplete content_filter")
		expect(t, "usage", h.usage, `{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":16}`)
		if !strings.Contains(h.stoplog, `"status":"`+status+`","guard":"test","rule":"github-pat"`) {
			t.Errorf("stoplog %s", h.stoplog)
		}
		if !strings.Contains(string(p.out), `"output":[{"id":"it_0","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"my key is "}]}]`) {
			t.Errorf("the end does not say what there was:\n%s", p.out)
		}
	}
}

// TestWithheldCall: a call that a rule stops is not even announced, whatever its
// arguments are called; what stood before it stays.
func TestWithheldCall(t *testing.T) {
	calls := map[string]struct{ kind, item, text string }{
		"function":  {"function_call_arguments", `"type":"function_call","call_id":"c","name":"rm_all","arguments":`, `{"k":"` + planted + `"}`},
		"escaped":   {"function_call_arguments", `"type":"function_call","call_id":"c","name":"rm_all","arguments":`, `{"k":"` + strings.Replace(planted, "g", `\u0067`, 1) + `"}`},
		"custom":    {"custom_tool_call_input", `"type":"custom_tool_call","call_id":"c","name":"rm_all","input":`, "select " + planted},
		"mcp":       {"mcp_call_arguments", `"type":"mcp_call","server_label":"s","name":"rm_all","arguments":`, `{"` + planted + `":1}`},
		"code":      {"code_interpreter_call_code", `"type":"code_interpreter_call","container_id":"rm_all","code":`, "print('" + planted + "')"},
		"announced": {"", `"type":"mcp_approval_request","name":"rm_all","server_label":"s","arguments":`, `{"k":"` + planted + `"}`},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			r, p := responsesTape(t, guard.Deny)
			p.say(r.begin()...)
			message := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"I will. "}]}`
			p.say(r.text("I will. "), r.done(0, message))
			head := `{"id":"it_1","status":"in_progress",` + c.item
			if c.kind != "" {
				p.say(r.added(1, head+`""}`))
				for piece := range slices.Chunk([]byte(c.text), 7) {
					p.say(r.delta(c.kind, 1, "", string(piece)))
				}
			}
			call := head + jsonString(c.text) + "}"
			p.say(r.done(1, call), r.completed(message, call))
			h := p.end(nil)
			expect(t, "text", h.text["0/content/0/text"], "I will. ")
			expect(t, "end", h.finish["0"], "incomplete content_filter")
			if strings.Contains(string(p.out), "rm_all") {
				t.Errorf("the call came out:\n%s", p.out)
			}
			v := OpenAIResponses.Answer(Options{Context: t.Context(), Chain: p.s.chain, Run: "r"}, []byte(`{"id":"resp_1","object":"response","created_at":7,"status":"completed","incomplete_details":null,"model":"m","output":[`+message+`,`+call+`],"usage":`+usage+`}`))
			whole := hear(t, OpenAIResponses, v.Doc, false)
			if whole.text["0/content/0/text"] != "I will. " || whole.finish["0"] != h.finish["0"] || whole.stoplog != h.stoplog || strings.Contains(string(v.Doc), "rm_all") {
				t.Errorf("unstreamed: %s", v.Doc)
			}
		})
	}
}

// TestCleanCallIsWhole: a call that a rule may stop leaves once it is complete,
// with all that was said about it; text behind it waits.
func TestCleanCallIsWhole(t *testing.T) {
	r, p := responsesTape(t, guard.Deny)
	p.say(r.created())
	before := len(p.out)
	p.say(r.added(0, `{"id":"it_0","type":"function_call","call_id":"c","name":"f","arguments":""}`),
		r.delta("function_call_arguments", 0, "", `{"a":`), r.delta("function_call_arguments", 0, "", `1}`),
		r.added(1, `{"id":"it_1","type":"function_call","call_id":"d","name":"g","arguments":""}`), r.delta("function_call_arguments", 1, "", `{}`))
	if len(p.out) != before {
		t.Errorf("before it was complete came %s", p.out[before:])
	}
	first := `{"id":"it_0","type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}`
	second := `{"id":"it_1","type":"function_call","call_id":"d","name":"g","arguments":"{}"}`
	said := p.say(r.done(0, first))
	if !strings.Contains(said, `"name":"f"`) || strings.Contains(said, `"name":"g"`) {
		t.Errorf("once the first is complete came %s", said)
	}
	p.say(r.done(1, second), r.completed(first, second))
	h := p.end(nil)
	expect(t, "first", h.text["0/arguments"], `{"a":1}`)
	expect(t, "second", h.text["1/arguments"], `{}`)
	expect(t, "end", h.finish["0"], "completed ")
}

// TestCopyThatDiffers is judged by itself: an upstream may say at the end what
// its deltas did not.
func TestCopyThatDiffers(t *testing.T) {
	r, p := responsesTape(t, guard.Redact)
	p.say(r.begin()...)
	p.say(r.text("all is well"))
	item := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"not: ` + planted + `"}]}`
	p.say(r.event("response.output_text.done", `,"output_index":0,"content_index":0,"text":%q`, "all is well, and "+planted+" too"), r.done(0, item), r.completed(item))
	p.out = append(p.out, p.s.Close(nil)...)
	out := string(p.out)
	if strings.Contains(out, planted) || strings.Count(out, "[redacted:github-pat]") != 3 {
		t.Errorf("came out:\n%s", out)
	}
}

// TestCitationsMove: indices count runes, and those behind a redaction follow
// the text; logprobs of changed text go, and padding says nothing of its length.
func TestCitationsMove(t *testing.T) {
	r, p := responsesTape(t, guard.Redact)
	p.say(r.begin()...)
	note := func(from, to int) string {
		return fmt.Sprintf(`{"type":"url_citation","title":"t","url":"https://example.com","start_index":%d,"end_index":%d}`, from, to)
	}
	text := "näive 🙂 " + planted + " see here"
	logprobs := `[{"token":` + jsonString(text) + `,"logprob":-1,"top_logprobs":[]}]`
	p.say(r.event("response.output_text.delta", `,"item_id":"it_0","output_index":0,"content_index":0,"delta":%s,"logprobs":%s,"obfuscation":"aaaaaaaaaaaaaaaaaaaaaaa"`, jsonString(text), logprobs))
	notes := note(0, 5) + "," + note(49, 53) + "," + note(10, 20)
	for i, n := range strings.SplitAfter(notes, "},") {
		p.say(r.event("response.output_text.annotation.added", `,"item_id":"it_0","output_index":0,"content_index":0,"annotation_index":%d,"annotation":%s`, i, strings.TrimSuffix(n, ",")))
	}
	part := `{"type":"output_text","annotations":[` + notes + `],"logprobs":` + logprobs + `,"text":` + jsonString(text) + `}`
	item := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[` + part + `]}`
	p.say(r.event("response.content_part.done", `,"item_id":"it_0","output_index":0,"content_index":0,"part":%s`, part), r.done(0, item), r.completed(item))
	h := p.end(nil)
	out := string(p.out)
	moved := note(0, 5) + "," + note(30, 34) + "," + note(8, 29)
	if strings.Count(out, moved) != 3 {
		t.Errorf("%d of 3 copies have %s:\n%s", strings.Count(out, moved), moved, out)
	}
	runes := []rune(h.text["0/content/0/text"])
	expect(t, "the second", string(runes[30:34]), "see ")
	expect(t, "the third", string(runes[8:29]), "[redacted:github-pat]")
	if strings.Contains(out, "logprob\":-1") || !strings.Contains(out, `"logprobs":[]`) || strings.Contains(out, "aaaa") {
		t.Errorf("logprobs or padding are those of another text:\n%s", out)
	}
	v := OpenAIResponses.Answer(Options{Context: t.Context(), Chain: p.s.chain}, []byte(`{"id":"resp_1","object":"response","status":"completed","output":[`+item+`]}`))
	if !strings.Contains(string(v.Doc), moved) || strings.Contains(string(v.Doc), "logprob\":-1") {
		t.Errorf("unstreamed: %s", v.Doc)
	}
}

// TestNumbersFollow: an event that leaves in two parts takes two numbers, and
// those behind it move on.
func TestNumbersFollow(t *testing.T) {
	r, p := responsesTape(t, guard.Redact)
	p.say(r.begin()...)
	p.say(r.text("all is well and the key is " + half))
	if said := p.cut(); !strings.Contains(said, `"sequence_number":3`) || !strings.Contains(said, "the key is") {
		t.Errorf("the first part is %s", said)
	}
	item := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"all is well and the key is ` + half + `"}]}`
	p.say(r.done(0, item), r.completed(item))
	h := p.end(nil) // checks the numbers
	expect(t, "text", h.text["0/content/0/text"], "all is well and the key is "+half)
	if !strings.Contains(string(p.out), `"sequence_number":6,"response"`) {
		t.Errorf("the last is not number 6:\n%s", p.out)
	}
}

// TestResponseEnds is how responses end that do not end well.
func TestResponseEnds(t *testing.T) {
	held := func(r *responder) []string { return append(r.begin(), r.text("key "+half)) }
	failure := `{"code":"server_error","message":"it broke ` + planted + `"}`
	for name, c := range map[string]struct {
		more   func(*responder) []string
		err    error
		failed string
	}{
		"early":  {func(*responder) []string { return nil }, nil, "before its end mark"},
		"broken": {func(*responder) []string { return nil }, errors.New("the connection broke"), "the connection broke"},
		"an error": {func(r *responder) []string {
			return []string{r.event("error", `,"code":"x","message":"overloaded","error":{"message":"overloaded"}`)}
		}, nil, "overloaded"},
		"a mark in between": {func(*responder) []string { return []string{"raw:data: [DONE]\n\n"} }, nil, "ended before its response did"},
		"an event misnamed": {func(*responder) []string {
			return []string{"raw:event: response.x\ndata: " + `{"type":"response.output_text.delta","delta":"` + planted + `"}` + "\n\n"}
		}, nil, "another name"},
		"half an event": {func(*responder) []string { return []string{`{"type":"response.output_text.delta","delta":"` + planted} }, nil, "not valid JSON"},
		"failed, with a key": {func(r *responder) []string {
			return []string{r.event("error", `,"error":{"message":"overloaded"}`), r.event("response.failed", `,"response":{"id":"resp_1","status":"failed","error":%s,"output":[]}`, failure)}
		}, nil, "overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := responsesTape(t, guard.Redact)
			p.say(held(r)...)
			for _, payload := range c.more(r) {
				if raw, ok := strings.CutPrefix(payload, "raw:"); ok {
					p.out = append(p.out, p.s.Write([]byte(raw))...)
					continue
				}
				p.say(payload)
			}
			h := p.end(c.err)
			expect(t, "text", h.text["0/content/0/text"], "key "+half)
			if !strings.Contains(h.failed, c.failed) || !strings.Contains(h.stoplog, `"status":"upstream_failed"`) {
				t.Errorf("the client is told %q, %s", h.failed, h.stoplog)
			}
			if strings.Contains(string(p.out), planted) || p.s.Outcome().Status != UpstreamFailed {
				t.Errorf("%+v\n%s", p.s.Outcome(), p.out)
			}
		})
	}
}

// TestExhaustedResponse ends as one that came to its length; half a call is not
// in it.
func TestExhaustedResponse(t *testing.T) {
	for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
		r, p := responsesTape(t, v)
		p.say(r.begin()...)
		p.say(r.text("it is " + half))
		h := p.exhaust()
		expect(t, "text", h.text["0/content/0/text"], "it is "+half)
		expect(t, "end", h.finish["0"], "incomplete max_output_tokens")
		expect(t, "stoplog", h.stoplog, `{"run":"r","status":"budget_exceeded","guard":"budget","rule":"profile p","reason":"`+noBudget+`"}`)
		want := []string{"output_text.done", "content_part.done", "output_item.done", "incomplete"}
		if got := eventNames(p.out); !slices.Equal(got[len(got)-4:], want) {
			t.Errorf("events %q", got)
		}
		r, p = responsesTape(t, v)
		p.say(r.created(), r.added(0, `{"id":"it_0","type":"function_call","call_id":"c","name":"f","arguments":""}`), r.delta("function_call_arguments", 0, "", `{"path":"/tm`))
		h = p.exhaust()
		expect(t, "end", h.finish["0"], "incomplete max_output_tokens")
		if strings.Contains(h.String(), "/tm") && v > guard.Redact || strings.Contains(string(p.out), `"output":[{`) {
			t.Errorf("half a call is in the end:\n%s", p.out)
		}
	}
}

// TestBackgroundIsRefused: its answer would be fetched by a path that is not
// served.
func TestBackgroundIsRefused(t *testing.T) {
	opt := Options{Context: t.Context(), Chain: patterns(t, guard.Redact, "secrets")}
	if _, err := OpenAIResponses.Request(opt, []byte(`{"model":"m","input":"hi","background":true}`)); !errors.As(err, new(*RefusedError)) {
		t.Errorf("in the background: %v", err)
	}
	if r, err := OpenAIResponses.Request(opt, []byte(`{"model":"m","input":"key `+planted+`","background":false,"stream":true}`)); err != nil || !r.Stream || strings.Contains(string(r.Doc), planted) {
		t.Errorf("%+v %v", r, err)
	}
}

// TestIncompleteIsJudged: an upstream may end a response itself, and say nothing
// at its end of what its deltas said.
func TestIncompleteIsJudged(t *testing.T) {
	r := &responder{}
	p := newTape(t, OpenAIResponses, patterns(t, guard.Redact, "pii"), Options{Run: "r"})
	p.say(r.begin()...)
	p.say(r.text("my card is 4111-1111"), r.text("-1111-1111 ok"))
	p.say(r.event("response.incomplete", `,"response":{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":null}`))
	p.out = append(p.out, p.s.Close(nil)...)
	if out := string(p.out); strings.Contains(out, "4111") || !strings.Contains(out, "[redacted:credit-card]") || p.s.Outcome().Status != Redacted {
		t.Errorf("%+v\n%s", p.s.Outcome(), out)
	}
}
