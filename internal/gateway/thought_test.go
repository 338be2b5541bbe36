package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// Thinking in which a guard found something goes out changed and unsigned, and back
// to its provider as that signed it: for the caller who got it, and nobody else.
func TestThoughtGoesBack(t *testing.T) {
	const signature = "c2lnbmVkCg=="
	for _, stream := range []bool{false, true} {
		for _, unsigned := range []string{`,"signature":""`, ""} {
			w := open(t, guard.Redact)
			said := "I see \"" + secret + "\" there"
			w.upstream.says(func() reply {
				if !stream {
					return says(200, "application/json", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":`+quoted(said)+`,"signature":"`+signature+`"},{"type":"text","text":"done"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`)
				}
				p := []string{
					`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
					`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
				}
				for _, d := range []string{said[:12], said[12:20], said[20:]} {
					p = append(p, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":`+quoted(d)+`}}`)
				}
				p = append(p, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`+signature+`"}}`,
					`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
				return streams(frames(govern.Anthropic, p), 40)
			})
			body := func(message string) string {
				return fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"messages":[{"role":"user","content":"hello"}%s]}`, stream, message)
			}
			first := w.ask("POST", path(govern.Anthropic), body(""), "X-Api-Key", "ann")
			if got := string(first.body); strings.Contains(got, secret[4:20]) || strings.Contains(got, signature) {
				t.Fatalf("the client gets %s", got)
			}
			shown := "I see \"[redacted:github-pat]\" there"
			next := body(`,{"role":"assistant","content":[{"type":"thinking","thinking":` + quoted(shown) + unsigned + `}]},{"role":"user","content":"go on"}`)
			for who, back := range map[string]bool{"ann": true, "bob": false} {
				w.ask("POST", path(govern.Anthropic), next, "X-Api-Key", who)
				asked := w.upstream.requests()
				sent := asked[len(asked)-1].body
				want := `{"type":"thinking","thinking":` + quoted(said) + `,"signature":"` + signature + `"}`
				if strings.Contains(sent, want) != back || strings.Contains(sent, secret[4:20]) != back {
					t.Errorf("stream %v, %s: the provider is sent %s", stream, who, sent)
				}
			}
		}
	}
}
