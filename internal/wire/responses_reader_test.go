package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type responsesSaid struct {
	ID, Type, Status, Name string
	Content, Summary       []struct {
		Type, Text, Refusal string
		Annotations         []map[string]any
		Logprobs            json.RawMessage
	}
	Arguments json.RawMessage
	Input     string
	Code      string
	Action    struct {
		Query    string
		Commands []string
	}
	Operation struct{ Path, Diff string }
	Output    json.RawMessage
}

// responses notes what an item says.
func (h heard) responses(n int, it responsesSaid) {
	p := fmt.Sprintf("%d/", n)
	for i, c := range it.Content {
		h.say(fmt.Sprintf("%scontent/%d/text", p, i), c.Text)
		h.say(fmt.Sprintf("%scontent/%d/refusal", p, i), c.Refusal)
		for k, a := range c.Annotations {
			h.say(fmt.Sprintf("%scontent/%d/annotation/%d", p, i, k), jsonOf(a))
		}
	}
	for i, c := range it.Summary {
		h.say(fmt.Sprintf("%ssummary/%d", p, i), c.Text)
	}
	args := string(it.Arguments)
	json.Unmarshal(it.Arguments, &args)
	h.say(p+"arguments", args)
	h.say(p+"input", it.Input)
	h.say(p+"code", it.Code)
	h.say(p+"query", it.Action.Query)
	for i, c := range it.Action.Commands {
		h.say(fmt.Sprintf("%scommands/%d", p, i), c)
	}
	h.say(p+"path", it.Operation.Path)
	h.say(p+"diff", it.Operation.Diff)
	h.say(p+"output", string(it.Output))
}

type responseSaid struct {
	Status             string
	Output             []responsesSaid
	Incomplete_details struct{ Reason string }
	Usage              json.RawMessage
	Stoplog            json.RawMessage
}

func (h *heard) response(r responseSaid) {
	for i, it := range r.Output {
		h.responses(i, it)
	}
	h.finish["0"] = r.Status + " " + r.Incomplete_details.Reason
	h.usage, h.stoplog = string(r.Usage), string(r.Stoplog)
}

type responsesEvent struct {
	Type            string
	Sequence_number *int
	Output_index    int
	Content_index   int
	Summary_index   int
	Command_index   int
	Item            responsesSaid
	Part            struct{ Text, Refusal string }
	Delta           json.RawMessage
	Text, Refusal   string
	Arguments       string
	Input, Code     string
	Diff            string
	Annotation      map[string]any
	Response        responseSaid
	Error           struct{ Message string }
	Stoplog         json.RawMessage
}

// hearResponses understands a response. Of a streamed one it follows the deltas,
// and checks that every copy says the same.
func hearResponses(t testing.TB, out []byte, streamed bool) heard {
	t.Helper()
	h := newHeard()
	if !streamed {
		var r responseSaid
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		h.response(r)
		return h
	}
	live := newHeard() // what the deltas say
	order := map[int]int{}
	done := map[int]bool{}
	var ended string
	next := -1
	for _, doc := range events(t, OpenAIResponses, out) {
		var e responsesEvent
		if err := json.Unmarshal([]byte(doc), &e); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		if ended != "" && e.Type != "response.failed" {
			t.Errorf("an event after the end: %s", doc)
		}
		if e.Sequence_number != nil && e.Type != "response.created" && next >= 0 && *e.Sequence_number != next {
			t.Errorf("number %d where %d is due: %s", *e.Sequence_number, next, doc)
		}
		if e.Sequence_number != nil {
			next = *e.Sequence_number + 1
		}
		if e.Type == "error" {
			h.failed, h.stoplog, ended = e.Error.Message, string(e.Stoplog), e.Type
			continue
		}
		n, ok := order[e.Output_index]
		if !ok && e.Type == "response.output_item.added" {
			n = len(order)
			order[e.Output_index] = n
		}
		live.hearEvent(t, e, n, done)
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			if ended = e.Type; h.failed == "" {
				h.response(e.Response)
			}
		}
	}
	switch {
	case h.failed != "":
		live.failed, live.stoplog = h.failed, h.stoplog
		return live
	case ended == "":
		t.Errorf("the stream has no end: %s", clip(out, len(out)))
	}
	for channel, text := range live.text {
		if done[atoi(channel)] && h.text[channel] != text {
			t.Errorf("%s: the deltas say %q, the end %q", channel, text, h.text[channel])
		}
	}
	return h
}

func atoi(channel string) (n int) {
	fmt.Sscanf(channel, "%d/", &n)
	return n
}

// hearEvent adds what an event says of an item, or checks what it repeats.
func (h heard) hearEvent(t testing.TB, e responsesEvent, n int, done map[int]bool) {
	t.Helper()
	p := fmt.Sprintf("%d/", n)
	again := func(channel, text string) {
		t.Helper()
		if h.text[p+channel] == "" { // some send no deltas
			h.say(p+channel, text)
		}
		if h.text[p+channel] != text {
			t.Errorf("%s says of %s %q, and its deltas said %q", e.Type, channel, text, h.text[p+channel])
		}
	}
	var delta string
	json.Unmarshal(e.Delta, &delta)
	content := fmt.Sprintf("content/%d/", e.Content_index)
	summary := fmt.Sprintf("summary/%d", e.Summary_index)
	switch e.Type {
	case "response.output_item.added":
		h.responses(n, e.Item)
	case "response.output_item.done":
		item := newHeard()
		item.responses(n, e.Item)
		for channel, text := range item.text {
			again(strings.TrimPrefix(channel, p), text)
		}
		done[n] = true
	case "response.output_text.delta", "response.reasoning_text.delta":
		h.say(p+content+"text", delta)
	case "response.refusal.delta":
		h.say(p+content+"refusal", delta)
	case "response.reasoning_summary_text.delta":
		h.say(p+summary, delta)
	case "response.function_call_arguments.delta":
		h.say(p+"arguments", delta)
	case "response.custom_tool_call_input.delta":
		h.say(p+"input", delta)
	case "response.code_interpreter_call_code.delta":
		h.say(p+"code", delta)
	case "response.shell_call_command.delta":
		h.say(fmt.Sprintf("%scommands/%d", p, e.Command_index), delta)
	case "response.apply_patch_call_operation_diff.delta":
		h.say(p+"diff", delta)
	case "response.output_text.annotation.added":
		k := 0
		for h.text[fmt.Sprintf("%s%sannotation/%d", p, content, k)] != "" {
			k++
		}
		h.say(fmt.Sprintf("%s%sannotation/%d", p, content, k), jsonOf(e.Annotation))
	case "response.output_text.done", "response.reasoning_text.done":
		again(content+"text", e.Text)
	case "response.refusal.done":
		again(content+"refusal", e.Refusal)
	case "response.content_part.done":
		again(content+"text", e.Part.Text)
		again(content+"refusal", e.Part.Refusal)
	case "response.reasoning_summary_text.done":
		again(summary, e.Text)
	case "response.reasoning_summary_part.done":
		again(summary, e.Part.Text)
	case "response.function_call_arguments.done":
		again("arguments", e.Arguments)
	case "response.custom_tool_call_input.done":
		again("input", e.Input)
	case "response.code_interpreter_call_code.done":
		again("code", e.Code)
	case "response.apply_patch_call_operation_diff.done":
		again("diff", e.Diff)
	}
}
