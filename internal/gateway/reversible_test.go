package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// pem is longer than a guard waits for: it is masked before its end is known.
var pem = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEA0Z3VS5JJcds3xfnQyCwGSuu7XqYB1vIc+Vq2cXwZ5tE8rPzL\n", 18) + "-----END RSA " + "PRIVATE KEY-----"

// secretFile is what a coding agent reads and writes back: secrets between
// quotes, behind escapes, twice, over several lines.
var secretFile = "# deploy\nTOKEN=" + secret + "\nquoted: \"" + secret + "\" and a \\ and a \ttab\nmail: ann.lee@corp-mail.example\n" + pem + "\nend {}\n"

// reversible is a change of a door: requests are redacted, and answers undo it.
func reversible(cfg *govern.Config) {
	for i := range cfg.Profiles {
		cfg.Profiles[i].Input, cfg.Profiles[i].Reversible = cfg.Profiles[0].Output, []string{"test"}
	}
}

// A model is one that a test plays: of what it was sent it says what to call, or
// words. deltas are the cuts that it makes.
type model struct {
	protocol string
	next     func(seen []string) (tool string, args any, words string)
	cut      func(string) []string
}

// seen is every string in a request's messages, in order: what a model has read.
func seen(t testing.TB, body string) (texts []string) {
	t.Helper()
	var asked struct{ Messages []any }
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k])
			}
		}
	}
	for _, m := range asked.Messages {
		walk(m)
	}
	return texts
}

// answers is what the model answers to a request.
func (m model) answers(t testing.TB, a asked) (reply, error) {
	tool, args, words := m.next(seen(t, a.body))
	if tool == "" {
		streamed, whole := said(m.protocol, m.cut(words)...)
		if strings.Contains(a.body, `"stream":true`) {
			return streams(streamed, 999), nil
		}
		return says(200, "application/json", whole), nil
	}
	doc, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(a.body, `"stream":true`) {
		return says(200, "application/json", m.call(tool, string(doc))), nil
	}
	return streams(m.calls(tool, m.cut(string(doc))), 777), nil
}

func (m model) call(tool, args string) string {
	if m.protocol == govern.OpenAI {
		return fmt.Sprintf(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}]}`, tool, quoted(args))
	}
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"call_1","name":%q,"input":%s}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`, tool, args)
}

func (m model) calls(tool string, deltas []string) []byte {
	var p []string
	if m.protocol == govern.OpenAI {
		head := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
		p = append(p, head+`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":`+quoted(tool)+`,"arguments":""}}]},"finish_reason":null}]}`)
		for _, d := range deltas {
			p = append(p, head+`{"tool_calls":[{"index":0,"function":{"arguments":`+quoted(d)+`}}]},"finish_reason":null}]}`)
		}
		return frames(m.protocol, append(p, head+`{},"finish_reason":"tool_calls"}]}`))
	}
	p = append(p, `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":`+quoted(tool)+`,"input":{}}}`)
	for _, d := range deltas {
		p = append(p, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+quoted(d)+`}}`)
	}
	return frames(m.protocol, append(p, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`))
}

// arguments reads the arguments of the one tool call of an answer.
func arguments(t testing.TB, a answer) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(string(a.body)) {
		doc, streamed := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !streamed && !strings.HasPrefix(doc, "{") || doc == "[DONE]" {
			continue
		}
		type calls struct {
			Tool_calls []struct{ Function struct{ Arguments string } }
		}
		var e struct {
			Choices []struct{ Delta, Message calls }
			Delta   struct{ Partial_json string }
			Content []struct{ Input json.RawMessage }
		}
		if err := json.Unmarshal([]byte(doc), &e); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		for _, c := range e.Choices {
			for _, call := range append(c.Delta.Tool_calls, c.Message.Tool_calls...) {
				all.WriteString(call.Function.Arguments)
			}
		}
		all.WriteString(e.Delta.Partial_json)
		for _, c := range e.Content {
			all.Write(c.Input)
		}
	}
	return all.String()
}

// history is a coding agent's: each round adds a call and its result.
type history struct {
	protocol string
	messages []string
}

func (h *history) called(tool, args, result string) {
	if h.protocol == govern.OpenAI {
		h.messages = append(h.messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, quoted(args)),
			`{"role":"tool","tool_call_id":"call_1","content":`+quoted(result)+`}`)
		return
	}
	h.messages = append(h.messages,
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":%q,"input":%s}]}`, tool, args),
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":`+quoted(result)+`}]}]}`)
}

func (h *history) body(stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":99,"stream":%v,"messages":[%s]}`, stream, strings.Join(h.messages, ","))
}

var placeholder = regexp.MustCompile(`\[[A-Z0-9_]+_\d+\]`)

// A coding agent that reads a file with keys and writes it back ends with the file
// intact, and the provider never saw one of them.
func TestCodingAgent(t *testing.T) {
	cuts := map[string]func(string) []string{
		"whole":      func(s string) []string { return []string{s} },
		"byte runes": func(s string) []string { return strings.Split(s, "") },
		"random": func(s string) (all []string) {
			r := rand.New(rand.NewPCG(1, 2))
			for len(s) > 0 {
				n := min(len(s), 1+r.IntN(30))
				all, s = append(all, s[:n]), s[n:]
			}
			return all
		},
	}
	for _, protocol := range protocols {
		for _, stream := range []bool{false, true} {
			for name, cut := range cuts {
				t.Run(fmt.Sprintf("%s stream=%v %s", protocol, stream, name), func(t *testing.T) {
					codingAgent(t, protocol, stream, cut)
				})
			}
		}
	}
}

func codingAgent(t *testing.T, protocol string, stream bool, cut func(string) []string) {
	w := open(t, guard.Redact, reversible)
	m := model{protocol: protocol, cut: cut}
	m.next = func(seen []string) (string, any, string) {
		var file string
		for _, s := range seen {
			if strings.HasPrefix(s, "# deploy") {
				file = s
			}
		}
		switch {
		case file == "":
			return "read_file", map[string]string{"path": "deploy.env"}, ""
		case !slices.Contains(seen, "written"):
			return "write_file", map[string]any{"path": "deploy.env", "content": file + "NEW=1\n", "copies": []string{placeholder.FindString(file)}}, ""
		}
		return "", nil, "The token is " + strings.ToLower(placeholder.FindString(file)) + ", not [GITHUB_PAT_99] nor [unknown]."
	}
	w.upstream.answer = func(a asked) (reply, error) { return m.answers(t, a) }

	h := &history{protocol: protocol, messages: []string{`{"role":"user","content":"add NEW=1 to deploy.env"}`}}
	args := arguments(t, w.ask("POST", path(protocol), h.body(stream)))
	h.called("read_file", args, secretFile)

	args = arguments(t, w.ask("POST", path(protocol), h.body(stream)))
	var wrote struct {
		Content string
		Copies  []string
	}
	if err := json.Unmarshal([]byte(args), &wrote); err != nil {
		t.Fatalf("the arguments are no JSON (%v): %s", err, args)
	}
	if wrote.Content != secretFile+"NEW=1\n" {
		t.Errorf("the file is\n%s\nwant\n%s", wrote.Content, secretFile)
	}
	if len(wrote.Copies) != 1 || wrote.Copies[0] != secret {
		t.Errorf("the copy is %q, want the secret", wrote.Copies)
	}
	h.called("write_file", args, "written")

	if got := understand(t, protocol, w.ask("POST", path(protocol), h.body(stream))).Text; got != "The token is "+secret+", not [GITHUB_PAT_99] nor [unknown]." {
		t.Errorf("at the end it says %q", got)
	}
	for i, a := range w.upstream.requests() {
		for _, part := range []string{secret[4:20], "MIIEowIBAAKCAQEA0Z3VS5", "ann.lee"} {
			if strings.Contains(a.body, part) {
				t.Errorf("request %d shows the provider %s: %s", i, part, a.body)
			}
		}
	}
	// The same value has the same placeholder in every request.
	last := w.upstream.requests()[2].body
	for _, name := range placeholder.FindAllString(w.upstream.requests()[1].body, -1) {
		if strings.Count(last, name) < 2 {
			t.Errorf("%s is %d times in the last request, want it where it was read and where it was written", name, strings.Count(last, name))
		}
	}
}
