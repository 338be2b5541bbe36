package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	if f == OpenAIResponses {
		r := &responder{}
		p = r.begin()
		for _, d := range deltas {
			p = append(p, r.text(d))
		}
		part := `{"type":"output_text","annotations":[],"text":` + all + `}`
		item := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[` + part + `]}`
		p = append(p, r.event("response.output_text.done", `,"output_index":0,"content_index":0,"text":%s`, all),
			r.event("response.content_part.done", `,"output_index":0,"content_index":0,"part":%s`, part), r.done(0, item), r.completed(item))
		whole := strings.Replace(p[len(p)-1], fmt.Sprintf(`{"type":"response.completed","sequence_number":%d,"response":`, r.n-1), "", 1)
		return serve(f, p), []byte(strings.TrimSuffix(whole, "}"))
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
			for _, f := range all {
				t.Run(fmt.Sprintf("%s/%s/%s", c.ID, v, f.Name()), func(t *testing.T) {
					_, body := say(f, c.Deltas)
					opt := Options{Context: context.Background(), Chain: chain, Run: "run_1"}
					verdict := f.Answer(opt, body)
					want, wantRecord := hear(t, f, verdict.Doc, false), record(verdict.Decisions)
					text := joined(want)
					for _, never := range c.Never {
						if strings.Contains(text, never) {
							t.Errorf("unstreamed: released %q in %q", never, text)
						}
					}
					for _, keep := range c.Keep {
						if v == guard.Redact && !strings.Contains(text, keep) {
							t.Errorf("unstreamed: lost %q in %q", keep, text)
						}
					}
					for _, deltas := range [][]string{c.Deltas, bytePieces(whole), {whole}} {
						upstream, _ := say(f, deltas)
						for _, n := range []int{1, 100, len(upstream)} {
							out, ds, o := stream(f, opt, upstream, n)
							got := hear(t, f, out, true)
							want.usage = got.usage // written otherwise
							if got.String() != want.String() {
								t.Errorf("%d deltas in pieces of %d:\n%s\nunstreamed:\n%s\n%s", len(deltas), n, got, want, out)
							}
							if r := record(ds); r != wantRecord {
								t.Errorf("%d deltas in pieces of %d: record\n%s\nunstreamed\n%s", len(deltas), n, r, wantRecord)
							}
							if o != verdict.Outcome {
								t.Errorf("outcome %+v, unstreamed %+v", o, verdict.Outcome)
							}
						}
					}
				})
			}
		}
	}
}

// joined is all text that a client has heard. A stream only ever adds to it, so
// what is not in it was never shown.
func joined(h heard) string { return strings.Join(slices.Collect(maps.Values(h.text)), "\n") }

func jsonOf(v any) string { b, _ := json.Marshal(v); return string(b) }
