package wire

import (
	"fmt"
	"strings"
)

// responsesItems makes up the items of a response. A text's name says more of
// it: of a message the part's annotation, of a patch the path.
func (w *writer) responsesItems() [][]said {
	var out [][]said
	if w.IntN(2) == 0 {
		var parts []said
		for range 1 + w.IntN(2) {
			parts = append(parts, said{field: "summary", text: w.text()})
		}
		if w.IntN(2) == 0 {
			parts = append(parts, said{field: "reasoning", text: w.text()})
		}
		out = append(out, parts)
	}
	for range 1 + w.IntN(3) {
		switch w.IntN(7) {
		case 0, 1, 2:
			var parts []said
			for range 1 + w.IntN(2) {
				p := said{field: "text", text: w.text()}
				if w.IntN(3) == 0 {
					p.name = w.text()
				}
				parts = append(parts, p)
			}
			if w.IntN(5) == 0 {
				parts = append(parts, said{field: "refusal", text: w.text()})
			}
			out = append(out, parts)
		case 3:
			out = append(out, []said{{field: "tool", text: w.args(0), name: "lookup"}})
		case 4:
			out = append(out, []said{{field: "custom", text: w.text(), name: "query"}})
		case 5:
			out = append(out, []said{{field: "patch", text: w.text(), name: w.text()}})
		case 6:
			out = append(out, []said{{field: "commands", text: w.text()}, {field: "commands", text: w.text()}})
		}
	}
	return out
}

// responses writes a response, streamed and not.
func (w *writer) responses(items [][]said) (payloads []string, body string) {
	p := &responsesPen{writer: w}
	response := func(status, output, usage string) string {
		return `{"id":"resp_1","object":"response","created_at":1700000000,"status":"` + status + `","error":null,"incomplete_details":null,"instructions":null,"model":"m-1","output":[` + output + `],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":` + usage + `,"metadata":{}}`
	}
	p.say("response.created", `"response":%s`, response("in_progress", "", "null"))
	p.say("response.in_progress", `"response":%s`, response("in_progress", "", "null"))
	var whole []string
	for i, parts := range items {
		p.item = i
		switch parts[0].field {
		case "text", "refusal":
			whole = append(whole, p.message(parts))
		case "summary":
			whole = append(whole, p.reasoning(parts))
		default:
			whole = append(whole, p.call(parts))
		}
	}
	body = response("completed", strings.Join(whole, ","), `{"input_tokens":7,"output_tokens":9,"total_tokens":16}`)
	p.say("response.completed", `"response":%s`, body)
	return p.payloads, body
}

// A responsesPen writes events.
type responsesPen struct {
	*writer
	payloads []string
	item     int
}

func (p *responsesPen) say(kind, format string, args ...any) {
	p.payloads = append(p.payloads, fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, kind, len(p.payloads))+fmt.Sprintf(format, args...)+"}")
}

// of is say about the item.
func (p *responsesPen) of(kind, format string, args ...any) {
	p.say(kind, fmt.Sprintf(`"output_index":%d,"item_id":"it_%d",`, p.item, p.item)+format, args...)
}

// deltas writes a text in pieces, or none: some upstreams send it only whole.
func (p *responsesPen) deltas(kind, members, text string) bool {
	if p.IntN(6) == 0 {
		return false
	}
	for _, d := range p.cut(text) {
		p.of(kind+".delta", `%s"delta":%s`, members, p.quoted(d))
	}
	return true
}

func (p *responsesPen) added(item string) {
	p.say("response.output_item.added", `"output_index":%d,"item":%s`, p.item, item)
}

func (p *responsesPen) done(item string) string {
	p.say("response.output_item.done", `"output_index":%d,"item":%s`, p.item, item)
	return item
}

func (p *responsesPen) message(parts []said) string {
	head := fmt.Sprintf(`{"id":"it_%d","type":"message","role":"assistant","status":`, p.item)
	p.added(head + `"in_progress","content":[]}`)
	var whole []string
	for i, part := range parts {
		at := fmt.Sprintf(`"content_index":%d,`, i)
		if part.field == "refusal" {
			p.of("response.content_part.added", at+`"part":{"type":"refusal","refusal":""}`)
			p.deltas("response.refusal", at, part.text)
			p.of("response.refusal.done", at+`"refusal":%s`, p.quoted(part.text))
			whole = append(whole, `{"type":"refusal","refusal":`+p.quoted(part.text)+`}`)
			p.of("response.content_part.done", at+`"part":%s`, whole[i])
			continue
		}
		p.of("response.content_part.added", at+`"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
		notes := ""
		if p.deltas("response.output_text", at, part.text) && part.name != "" {
			n := len([]rune(part.text))
			notes = fmt.Sprintf(`{"type":"url_citation","url":"https://example.com","title":%s,"start_index":%d,"end_index":%d}`, p.quoted(part.name), n/3, n/2)
			p.of("response.output_text.annotation.added", at+`"annotation_index":0,"annotation":%s`, notes)
		}
		p.of("response.output_text.done", at+`"text":%s,"logprobs":[]`, p.quoted(part.text))
		whole = append(whole, `{"type":"output_text","annotations":[`+notes+`],"logprobs":[],"text":`+p.quoted(part.text)+`}`)
		p.of("response.content_part.done", at+`"part":%s`, whole[i])
	}
	return p.done(head + `"completed","content":[` + strings.Join(whole, ",") + `]}`)
}

func (p *responsesPen) reasoning(parts []said) string {
	head := fmt.Sprintf(`{"id":"it_%d","type":"reasoning","summary":[`, p.item)
	p.added(head + `]}`)
	var summary, content []string
	for i, part := range parts {
		if part.field == "summary" {
			at := fmt.Sprintf(`"summary_index":%d,`, i)
			p.of("response.reasoning_summary_part.added", at+`"part":{"type":"summary_text","text":""}`)
			p.deltas("response.reasoning_summary_text", at, part.text)
			p.of("response.reasoning_summary_text.done", at+`"text":%s`, p.quoted(part.text))
			summary = append(summary, `{"type":"summary_text","text":`+p.quoted(part.text)+`}`)
			p.of("response.reasoning_summary_part.done", at+`"part":%s`, summary[i])
			continue
		}
		p.of("response.content_part.added", `"content_index":0,"part":{"type":"reasoning_text","text":""}`)
		p.deltas("response.reasoning_text", `"content_index":0,`, part.text)
		p.of("response.reasoning_text.done", `"content_index":0,"text":%s`, p.quoted(part.text))
		content = append(content, `{"type":"reasoning_text","text":`+p.quoted(part.text)+`}`)
		p.of("response.content_part.done", `"content_index":0,"part":%s`, content[0])
	}
	item := head + strings.Join(summary, ",") + `]`
	if content != nil {
		item += `,"content":[` + strings.Join(content, ",") + `]`
	}
	return p.done(item + `}`)
}

func (p *responsesPen) call(parts []said) string {
	head := fmt.Sprintf(`{"id":"it_%d","call_id":"call_%d","status":`, p.item, p.item)
	text := p.quoted(parts[0].text)
	switch parts[0].field {
	case "tool":
		kind := `,"type":"function_call","name":"lookup","arguments":`
		p.added(head + `"in_progress"` + kind + `""}`)
		p.deltas("response.function_call_arguments", "", parts[0].text)
		p.of("response.function_call_arguments.done", `"arguments":%s`, text)
		return p.done(head + `"completed"` + kind + text + `}`)
	case "custom":
		kind := `,"type":"custom_tool_call","name":"query","input":`
		p.added(head + `"in_progress"` + kind + `""}`)
		p.deltas("response.custom_tool_call_input", "", parts[0].text)
		p.of("response.custom_tool_call_input.done", `"input":%s`, text)
		return p.done(head + `"completed"` + kind + text + `}`)
	case "patch":
		kind := `,"type":"apply_patch_call","operation":{"type":"create_file","path":` + p.quoted(parts[0].name) + `,"diff":`
		p.added(head + `"in_progress"` + kind + `""}}`)
		p.deltas("response.apply_patch_call_operation_diff", "", parts[0].text)
		p.of("response.apply_patch_call_operation_diff.done", `"diff":%s`, text)
		return p.done(head + `"completed"` + kind + text + `}}`)
	}
	kind := `,"type":"shell_call","action":{"commands":[`
	p.added(head + `"in_progress"` + kind + `]}}`)
	var commands []string
	for i, c := range parts {
		at := fmt.Sprintf(`"command_index":%d,`, i)
		p.of("response.shell_call_command.added", at+`"command":""`)
		p.deltas("response.shell_call_command", at, c.text)
		commands = append(commands, p.quoted(c.text))
		p.of("response.shell_call_command.done", at+`"command":%s`, commands[i])
	}
	return p.done(head + `"completed"` + kind + strings.Join(commands, ",") + `]}}`)
}
