package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// takeResponse reads an event of a response, or a whole one, as a client does
// that trusts the end: what a delta said must be what the end says.
func (m *message) takeResponse(t testing.TB, doc string) {
	t.Helper()
	type response struct {
		Object             string
		Status             string
		Incomplete_details struct{ Reason string }
		Output             []struct{ Content []struct{ Text string } }
		Stoplog            map[string]any
	}
	var e struct {
		response
		Type     string
		Error    *struct{ Message string }
		Delta    string
		Text     *string
		Response response
	}
	if err := json.Unmarshal([]byte(doc), &e); err != nil {
		t.Errorf("%v: %s", err, doc)
	}
	r := e.response
	switch e.Type {
	case "response.output_text.delta":
		m.Text += e.Delta
	case "response.output_text.done":
		if *e.Text != m.Text {
			t.Errorf("the deltas said %q, and then %s", m.Text, doc)
		}
	case "response.completed", "response.incomplete", "error", "":
		if e.Type != "" && e.Type != "error" {
			r = e.Response
		}
		text := ""
		for _, item := range r.Output {
			for _, c := range item.Content {
				text += c.Text
			}
		}
		if e.Type != "" && e.Type != "error" && text != m.Text {
			t.Errorf("the deltas said %q, and the end %q", m.Text, text)
		}
		if e.Type != "error" {
			m.Text = text
		}
		if m.Finish = r.Status; r.Incomplete_details.Reason != "" {
			m.Finish = r.Incomplete_details.Reason
		}
		if r.Stoplog != nil {
			m.Stoplog = maps.Clone(r.Stoplog)
			delete(m.Stoplog, "run")
		}
	}
	if e.Error != nil {
		m.Error += e.Error.Message
	}
}

// saidResponse is a response that says the deltas: streamed, and its unstreamed
// twin.
func saidResponse(deltas ...string) (streamed []byte, whole string) {
	var p []string
	say := func(kind, format string, args ...any) {
		p = append(p, fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, kind, len(p))+fmt.Sprintf(format, args...)+"}")
	}
	all := quoted(strings.Join(deltas, ""))
	const head = `{"id":"resp_1","object":"response","created_at":1700000000,"model":"m","error":null,"incomplete_details":null,"status":`
	const item = `{"id":"msg_1","type":"message","role":"assistant","status":`
	const at = `"item_id":"msg_1","output_index":0,"content_index":0,`
	part := `{"type":"output_text","annotations":[],"logprobs":[],"text":` + all + `}`
	done := item + `"completed","content":[` + part + `]}`
	whole = head + `"completed","output":[` + done + `],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}`
	say("response.created", `"response":%s"in_progress","output":[],"usage":null}`, head)
	say("response.output_item.added", `"output_index":0,"item":%s"in_progress","content":[]}`, item)
	say("response.content_part.added", at+`"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	for _, d := range deltas {
		say("response.output_text.delta", at+`"delta":%s,"logprobs":[]`, quoted(d))
	}
	say("response.output_text.done", at+`"text":%s,"logprobs":[]`, all)
	say("response.content_part.done", at+`"part":%s`, part)
	say("response.output_item.done", `"output_index":0,"item":%s`, done)
	say("response.completed", `"response":%s`, whole)
	return frames(responses, p), whole
}
