package wire

import (
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestLateName: whatever way the name of a call comes, what clients take it for is
// what the tool rules have judged.
func TestLateName(t *testing.T) {
	rules := toolRules{named: map[string]guard.Verdict{"remove": guard.Deny}}
	late := func(name string) string {
		return deltaOf(`{"tool_calls":[{"index":0,"function":{"name":"` + name + `"}}]}`)
	}
	for name, c := range map[string]struct {
		events []string
		status Status
	}{
		"after its arguments":       {[]string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"arguments":"{\"p\":1}"}}]}`), late("remove")}, Blocked},
		"after another call":        {[]string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"arguments":"{\"p\":1}"}}]}`), openaiCall1(1, "ls", `{}`), late("remove")}, UpstreamFailed},
		"in two pieces":             {[]string{openaiCall1(0, "rem", ""), deltaOf(`{"tool_calls":[{"index":0,"function":{"name":"ove","arguments":"{\"p\":1}"}}]}`)}, UpstreamFailed},
		"another name":              {[]string{openaiCall1(0, "ls", `{"p":1}`), late("remove")}, UpstreamFailed},
		"late, and free":            {[]string{deltaOf(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"arguments":"{\"p\":1}"}}]}`), late("ls")}, Allowed},
		"the same name, once again": {[]string{openaiCall1(0, "ls", `{"p"`), openaiCall1(0, "ls", `:1}`)}, Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTape(t, OpenAIChat, guard.NewChain(guard.Options{}), Options{Run: "r", Calls: rules})
			p.say(c.events...)
			p.say(finishOf("tool_calls"), "[DONE]")
			p.end(nil)
			if o := p.s.Outcome(); o.Status != c.status {
				t.Errorf("outcome %+v, want %s", o, c.status)
			}
			if strings.Contains(string(p.out), "remove") || strings.Contains(string(p.out), `"ove"`) {
				t.Errorf("the call passed:\n%s", p.out)
			}
		})
	}
}

// TestSplitName: a secret cut over two pieces of a name does not reach a client.
func TestSplitName(t *testing.T) {
	p := newTape(t, OpenAIChat, patterns(t, guard.Redact, "secrets"), Options{Run: "r"})
	p.say(openaiCall1(0, half, ""), deltaOf(`{"tool_calls":[{"index":0,"function":{"name":"`+rest+`"}}]}`), finishOf("tool_calls"), "[DONE]")
	p.end(nil)
	if o := p.s.Outcome(); o.Status != UpstreamFailed || strings.Contains(string(p.out), rest) {
		t.Errorf("outcome %+v\n%s", o, p.out)
	}
}

// TestRenamedItem: an item of a response stays what it was announced as.
func TestRenamedItem(t *testing.T) {
	item := func(kind, tool, status string) string {
		return `{"id":"i","type":"` + kind + `","call_id":"c","name":"` + tool + `","arguments":"{}","status":"` + status + `"}`
	}
	for name, done := range map[string]string{"another name": item("function_call", "remove", "completed"), "another type": item("custom_tool_call", "ls", "completed")} {
		frames := ""
		for i, e := range []string{
			`{"type":"response.created","response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","error":null,"incomplete_details":null,"model":"m","output":[],"usage":null}`,
			`{"type":"response.output_item.added","output_index":0,"item":` + item("function_call", "ls", "in_progress"),
			`{"type":"response.output_item.done","output_index":0,"item":` + done,
		} {
			frames += "event: " + strings.Split(e, `"`)[3] + "\ndata: " + e + `,"sequence_number":` + string(rune('0'+i)) + "}\n\n"
		}
		out, _, o := stream(OpenAIResponses, Options{Chain: guard.NewChain(guard.Options{}), Run: "r"}, []byte(frames), 1<<20)
		if !strings.Contains(o.Reason, "that it had begun") || strings.Contains(string(out), "remove") || strings.Contains(string(out), "custom_tool_call") {
			t.Errorf("%s: %+v\n%s", name, o, out)
		}
	}
}
