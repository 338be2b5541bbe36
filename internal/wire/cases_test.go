package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

type splitCase struct {
	ID     string
	Deltas []string
	Never  []string
	Keep   []string
}

func splitCases(t *testing.T) []splitCase {
	t.Helper()
	f, err := os.Open("../../../shared/cases/stream.jsonl")
	if os.IsNotExist(err) {
		t.Skip("../shared/cases is not there: no cases to read")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []splitCase
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c splitCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func jsonString(s string) string { b, _ := json.Marshal(s); return string(b) }

// say frames deltas as one answer of a format, and gives the unstreamed twin.
func say(f *Format, deltas []string) (streamed, whole []byte) {
	var p []string
	all := jsonString(strings.Join(deltas, ""))
	if f == OpenAIChat {
		chunk := func(delta, finish string) string {
			return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
		}
		p = append(p, chunk(`{"role":"assistant","content":""}`, "null"))
		for _, d := range deltas {
			p = append(p, chunk(`{"content":`+jsonString(d)+`}`, "null"))
		}
		p = append(p, chunk(`{}`, `"stop"`), `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}`)
		return serve(f, p), []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + all + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}`)
	}
	p = append(p, `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`)
	for _, d := range deltas {
		p = append(p, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+jsonString(d)+`}}`)
	}
	p = append(p, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	return serve(f, p), []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":` + all + `}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`)
}

// client is what a client has understood in the end.
type client struct {
	text, finish string
	stoplog      any
}

// readStream reads a stream as a client would, independently of this package.
func readStream(t *testing.T, f *Format, out []byte) (c client, releases []string) {
	t.Helper()
	done := false
	for ev := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte("\n\n")), []byte("\n\n")) {
		if done {
			t.Errorf("an event after the end: %s", ev)
		}
		_, data, _ := bytes.Cut(ev, []byte("data: "))
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		var e struct {
			Type    string
			Delta   struct{ Text, Stop_reason string }
			Choices []struct {
				Delta         struct{ Content string }
				Finish_reason string
			}
			Stoplog any
		}
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%v: %s", err, ev)
		}
		text := e.Delta.Text
		if f == AnthropicMessages {
			if name, _, _ := bytes.Cut(ev, []byte("\n")); string(name) != "event: "+e.Type {
				t.Errorf("event %s is named %s", e.Type, name)
			}
			done = e.Type == "message_stop"
			c.finish += e.Delta.Stop_reason
		}
		for _, ch := range e.Choices {
			text += ch.Delta.Content
			c.finish += ch.Finish_reason
		}
		if e.Stoplog != nil {
			if c.stoplog != nil {
				t.Error("two stoplog members")
			}
			c.stoplog = e.Stoplog
		}
		if text != "" {
			releases = append(releases, text)
		}
		c.text += text
	}
	if !done {
		t.Errorf("the stream has no end: %s", out)
	}
	return c, releases
}

func readBody(t *testing.T, f *Format, out []byte) client {
	t.Helper()
	var e struct {
		Content     []struct{ Text string }
		Stop_reason string
		Choices     []struct {
			Message       struct{ Content string }
			Finish_reason string
		}
		Stoplog any
	}
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := client{finish: e.Stop_reason, stoplog: e.Stoplog}
	for _, b := range e.Content {
		c.text += b.Text
	}
	for _, ch := range e.Choices {
		c.text += ch.Message.Content
		c.finish += ch.Finish_reason
	}
	return c
}

// record is decisions in the order in which records are compared.
func record(ds []Decision) string {
	var lines []string
	for _, d := range ds {
		lines = append(lines, fmt.Sprintf("%s %08d %d %s/%s %s %s %s", d.Channel, d.Start, d.End, d.Guard, d.Rule, d.Mode, d.Verdict, d.Fingerprint))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func bytePieces(s string) []string {
	var out []string
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// TestSplitCases is law 2 on the faults that others shipped: at their cuts,
// rune by rune, whole and unstreamed, a client reads the same.
func TestSplitCases(t *testing.T) {
	for _, c := range splitCases(t) {
		whole := strings.Join(c.Deltas, "")
		for _, v := range []guard.Verdict{guard.Redact, guard.Deny, guard.RequireApproval} {
			chain := patterns(t, v, "secrets", "credentials", "pii")
			for _, f := range []*Format{OpenAIChat, AnthropicMessages} {
				t.Run(fmt.Sprintf("%s/%s/%s", c.ID, v, f.Name()), func(t *testing.T) {
					_, body := say(f, c.Deltas)
					opt := Options{Context: context.Background(), Chain: chain, Run: "run_1"}
					verdict := f.Answer(opt, body)
					want, wantRecord := readBody(t, f, verdict.Doc), record(verdict.Decisions)
					for _, never := range c.Never {
						if strings.Contains(want.text, never) {
							t.Errorf("unstreamed: released %q in %q", never, want.text)
						}
					}
					for _, keep := range c.Keep {
						if v == guard.Redact && !strings.Contains(want.text, keep) {
							t.Errorf("unstreamed: lost %q in %q", keep, want.text)
						}
					}
					for _, deltas := range [][]string{c.Deltas, bytePieces(whole), {whole}} {
						upstream, _ := say(f, deltas)
						for _, n := range []int{1, 100, len(upstream)} {
							out, ds, o := stream(f, opt, upstream, n)
							got, releases := readStream(t, f, out)
							if got.text != want.text || got.finish != want.finish || jsonOf(got.stoplog) != jsonOf(want.stoplog) {
								t.Errorf("%d deltas in pieces of %d:\n%+v\nunstreamed:\n%+v\n%s", len(deltas), n, got, want, out)
							}
							if r := record(ds); r != wantRecord {
								t.Errorf("%d deltas in pieces of %d: record\n%s\nunstreamed\n%s", len(deltas), n, r, wantRecord)
							}
							if o != verdict.Outcome {
								t.Errorf("outcome %+v, unstreamed %+v", o, verdict.Outcome)
							}
							seen := ""
							for _, r := range releases {
								seen += r
								for _, never := range c.Never {
									if strings.Contains(seen, never) {
										t.Fatalf("released %q", never)
									}
								}
							}
						}
					}
				})
			}
		}
	}
}

func jsonOf(v any) string { b, _ := json.Marshal(v); return string(b) }
