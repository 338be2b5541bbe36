package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stoplog/stoplog/guard/rules"
)

// secret is an example of a rule, and the part of it that must never be seen.
type secret struct{ rule, example, never string }

// secrets are the examples of all rules, judged by Go's regexp.
func secrets(t testing.TB) []secret {
	t.Helper()
	rs, err := rules.Select("secrets", "credentials", "pii")
	if err != nil {
		t.Fatal(err)
	}
	var out []secret
	for _, r := range rs {
		re := regexp.MustCompile(r.Pattern)
		group := max(0, re.SubexpIndex(r.Group))
		for _, example := range r.Match {
			for _, m := range re.FindAllStringSubmatch(example, -1) {
				ok := len(m[group]) >= 6
				for _, v := range r.Validators {
					ok = ok && v.Accept([]byte(m[group]))
				}
				if ok {
					out = append(out, secret{r.ID, example, m[group]})
				}
			}
		}
	}
	if len(out) < 40 {
		t.Fatalf("only %d secrets", len(out))
	}
	return out
}

// A writer makes up answers.
type writer struct {
	*rand.Rand
	secrets []secret
	planted []secret
	odds    int // one piece of text in so many holds a secret; 0: none does
}

var words = []string{"the", "answer", "is", "here", "näive", "日本語", "🙂🙃", "a \"quoted\" word", "C:\\dir", "line\nbreak", "tab\there", "x = {1: [2]}", "</tag>", "42", "3.14", "sk-", "e.g.", "\u2028"}

// text is a few words, perhaps with a secret among them.
func (w *writer) text() string {
	var b strings.Builder
	for range 1 + w.IntN(8) {
		if w.odds > 0 && w.IntN(w.odds) == 0 {
			s := w.secrets[w.IntN(len(w.secrets))]
			w.planted = append(w.planted, s)
			b.WriteString("see " + s.example + " there ")
		}
		b.WriteString(words[w.IntN(len(words))] + " ")
	}
	return b.String()
}

// args is a JSON document, written in one of the ways there are.
func (w *writer) args(depth int) string {
	space := strings.Repeat(" ", w.IntN(2))
	switch k := w.IntN(9); {
	case depth == 0 || depth < 3 && k < 3:
		var ms []string
		for i := range w.IntN(4) {
			name := fmt.Sprintf("k%d", i)
			if w.IntN(6) == 0 {
				name += w.text()
			}
			ms = append(ms, w.quoted(name)+space+":"+space+w.args(depth+1))
		}
		return "{" + space + strings.Join(ms, ","+space) + "}"
	case depth < 3 && k < 5:
		var es []string
		for range w.IntN(4) {
			es = append(es, w.args(depth+1))
		}
		return "[" + strings.Join(es, space+","+space) + "]"
	case k == 5:
		return []string{"true", "false", "null"}[w.IntN(3)]
	case k == 6:
		if w.odds > 0 && w.IntN(w.odds) == 0 {
			w.planted = append(w.planted, secret{"credit-card", "", "4111111111111111"})
			return "4111111111111111"
		}
		return []string{"0", "-12.5e+3", "1E9", strconv.Itoa(w.IntN(99999))}[w.IntN(4)]
	}
	return w.quoted(w.text())
}

// quoted is a JSON string that says text, with needless escapes here and there.
func (w *writer) quoted(text string) string {
	escapes := w.IntN(3) // none, some, all
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r >= ' ' && r != '"' && r != '\\' && (escapes == 0 || escapes == 1 && w.IntN(4) > 0):
			b.WriteRune(r)
		case r == '"' || r == '\\' || r == '/':
			b.WriteString("\\" + string(r))
		case r == '\n' && w.IntN(2) == 0:
			b.WriteString(`\n`)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04X`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}

// cut cuts text between runes.
func (w *writer) cut(text string) []string {
	var out []string
	most := []int{1, 3, 8, 40, 1 << 20}[w.IntN(5)]
	for rs := []rune(text); len(rs) > 0; {
		n := min(len(rs), 1+w.IntN(most))
		out, rs = append(out, string(rs[:n])), rs[n:]
	}
	return out
}

// said is one text of an answer.
type said struct {
	field string // how the format calls it
	text  string
	index int // of a tool call
	name  string
}

func (w *writer) openaiChoice() []said {
	var out []said
	if w.IntN(2) == 0 {
		out = append(out, said{field: "reasoning_content", text: w.text()})
	}
	if w.IntN(4) > 0 {
		out = append(out, said{field: "content", text: w.text()})
	}
	if w.IntN(4) == 0 {
		out = append(out, said{field: "refusal", text: w.text()})
	}
	if w.IntN(2) == 0 {
		for i := range 1 + w.IntN(3) {
			out = append(out, said{field: "tool", text: w.args(0), index: i, name: fmt.Sprintf("tool_%d", i)})
		}
	}
	return out
}

// openai writes an answer of n choices, streamed and not.
func (w *writer) openai(choices [][]said) (payloads []string, body string) {
	const head = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m-1","system_fingerprint":"fp_1","choices":[`
	queues := make([][]string, len(choices))
	var whole []string
	for i, parts := range choices {
		say := func(delta, finish string) {
			queues[i] = append(queues[i], fmt.Sprintf(`{"index":%d,"delta":%s,"logprobs":null,"finish_reason":%s}`, i, delta, finish))
		}
		members := []string{`"role":"assistant"`, `"content":null`}
		var calls []string
		say(`{"role":"assistant","content":"","refusal":null}`, "null")
		for _, p := range parts {
			if p.field != "tool" {
				for _, d := range w.cut(p.text) {
					say(fmt.Sprintf(`{%q:%s}`, p.field, w.quoted(d)), "null")
				}
				if p.field == "content" {
					members[1] = `"content":` + w.quoted(p.text)
				} else {
					members = append(members, fmt.Sprintf(`%q:%s`, p.field, w.quoted(p.text)))
				}
				continue
			}
			say(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":""}}]}`, p.index, p.index, p.name), "null")
			for _, d := range w.cut(p.text) {
				say(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.index, w.quoted(d)), "null")
			}
			calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}`, p.index, p.name, w.quoted(p.text)))
		}
		finish := `"stop"`
		if calls != nil {
			finish = `"tool_calls"`
			members = append(members, `"tool_calls":[`+strings.Join(calls, ",")+`]`)
		}
		if k := len(queues[i]) - 1; w.IntN(3) == 0 { // on the last chunk that says something
			queues[i][k] = strings.TrimSuffix(queues[i][k], "null}") + finish + "}"
		} else {
			say(`{}`, finish)
		}
		whole = append(whole, fmt.Sprintf(`{"index":%d,"message":{%s},"logprobs":null,"finish_reason":%s}`, i, strings.Join(members, ","), finish))
	}
	for left := len(choices); left > 0; {
		var now []string
		for i := range queues {
			if len(queues[i]) > 0 && w.IntN(len(queues)) == 0 {
				now, queues[i] = append(now, queues[i][0]), queues[i][1:]
				if len(queues[i]) == 0 {
					left--
				}
			}
		}
		if len(now) > 0 {
			payloads = append(payloads, head+strings.Join(now, ",")+`],"usage":null}`)
		}
	}
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}`
	payloads = append(payloads, head+`],`+usage)
	return payloads, `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m-1","choices":[` + strings.Join(whole, ",") + `],` + usage
}

func (w *writer) anthropicBlocks() []said {
	var out []said
	if w.IntN(2) == 0 {
		out = append(out, said{field: "thinking", text: w.text()})
	}
	for range 1 + w.IntN(3) {
		switch w.IntN(4) {
		case 0, 1:
			out = append(out, said{field: "text", text: w.text()})
		case 2:
			out = append(out, said{field: "tool", text: w.args(0), name: "lookup"})
		case 3:
			out = append(out, said{field: "cited", text: w.text(), name: w.text()})
		}
	}
	return out
}

// anthropic writes a message, streamed and not.
func (w *writer) anthropic(blocks []said) (payloads []string, body string) {
	say := func(format string, args ...any) { payloads = append(payloads, fmt.Sprintf(format, args...)) }
	say(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`)
	var whole []string
	for i, b := range blocks {
		start := func(block string) { say(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block) }
		deltas := func(kind, member, text string) {
			for _, d := range w.cut(text) {
				say(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, member, w.quoted(d))
				if w.IntN(9) == 0 {
					say(ping)
				}
			}
		}
		switch b.field {
		case "text":
			start(`{"type":"text","text":""}`)
			deltas("text_delta", "text", b.text)
			whole = append(whole, `{"type":"text","text":`+w.quoted(b.text)+`}`)
		case "thinking":
			start(`{"type":"thinking","thinking":"","signature":""}`)
			deltas("thinking_delta", "thinking", b.text)
			say(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}`, i)
			whole = append(whole, `{"type":"thinking","thinking":`+w.quoted(b.text)+`,"signature":"c2lnbmVk"}`)
		case "tool":
			start(fmt.Sprintf(`{"type":"tool_use","id":"toolu_1","name":%q,"input":{}}`, b.name))
			deltas("input_json_delta", "partial_json", b.text)
			whole = append(whole, fmt.Sprintf(`{"type":"tool_use","id":"toolu_1","name":%q,"input":%s}`, b.name, b.text))
		case "cited":
			citation := fmt.Sprintf(`{"type":"page_location","cited_text":%s,"document_index":0,"document_title":null,"start_page_number":1,"end_page_number":2}`, w.quoted(b.name))
			start(`{"type":"text","text":"","citations":[]}`)
			say(`{"type":"content_block_delta","index":%d,"delta":{"type":"citations_delta","citation":%s}}`, i, citation)
			deltas("text_delta", "text", b.text)
			whole = append(whole, `{"type":"text","text":`+w.quoted(b.text)+`,"citations":[`+citation+`]}`)
		}
		say(`{"type":"content_block_stop","index":%d}`, i)
	}
	say(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`)
	say(`{"type":"message_stop"}`)
	return payloads, `{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[` + strings.Join(whole, ",") + `],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`
}

// spoken is all that a JSON document says, decoded: keys, strings, numbers.
func spoken(doc string) (out []string, valid bool) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	for {
		tok, err := d.Token()
		if err != nil {
			return out, json.Valid([]byte(doc))
		}
		switch v := tok.(type) {
		case string:
			out = append(out, v)
		case json.Number:
			out = append(out, v.String())
		}
	}
}
