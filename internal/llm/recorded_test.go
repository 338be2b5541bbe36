package llm_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/llm"
)

// TestRecordedStreams reads what providers really sent, through the door, and
// compares with a reading that shares no code: payloads as plain maps.
func TestRecordedStreams(t *testing.T) {
	read := 0
	for name, payloads := range recorded(t) {
		protocol, want := govern.OpenAI, &reading{parts: map[string]float64{}, calls: map[string]*llm.Call{}}
		var stream strings.Builder
		for _, p := range payloads {
			var doc map[string]any
			if err := json.Unmarshal([]byte(p), &doc); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "anthropic") {
				protocol = govern.Anthropic
				fmt.Fprintf(&stream, "event: %v\n", doc["type"])
				want.anthropic(doc)
			} else {
				want.openai(doc)
			}
			fmt.Fprintf(&stream, "data: %s\n\n", p)
		}
		if protocol == govern.OpenAI {
			stream.WriteString("data: [DONE]\n\n")
		}
		t.Run(name, func(t *testing.T) {
			c := &llm.Client{Protocol: protocol, Transport: door(t, protocol, answers(200, kind("text/event-stream"), stream.String()))}
			var got llm.Answer
			var failed error
			text, ready := "", 0
			for ev, err := range c.Ask(t.Context(), hello) {
				switch ev := ev.(type) {
				case llm.Delta:
					if ev.Kind != llm.Reasoning {
						text += ev.Text
					}
				case llm.CallReady:
					ready++
				case llm.Finished:
					got = ev.Answer
				}
				failed = err
			}
			if want.failed != (failed != nil) {
				t.Fatalf("%v", failed)
			}
			if want.failed {
				return
			}
			read++
			if text != got.Text || ready != len(got.Calls) {
				t.Errorf("told %d bytes and %d calls, in the end %d and %d", len(text), ready, len(got.Text), len(got.Calls))
			}
			if d := cmp.Diff(want.answer(), llm.Answer{Text: got.Text, Thought: got.Thought, Calls: got.Calls, Finish: got.Finish, Model: got.Model, Usage: got.Usage}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if want.needsKept() != (got.Kept != nil) {
				t.Errorf("kept: %s", got.Kept)
			}
			want.compareKept(t, got.Kept)
			sendBack(t, protocol, got)
		})
	}
	if read < 30 {
		t.Errorf("%d streams were read to the end", read)
	}
}

// reading is what a stream says, read in the plainest way.
type reading struct {
	text, thought, model, finish string
	order                        []string
	calls                        map[string]*llm.Call // by message and place
	input, output                float64
	inputBefore, outputBefore    float64            // of messages that ended before
	parts                        map[string]float64 // of the input, as Anthropic counts
	ended                        bool
	failed                       bool

	message int
	blocks  []map[string]any
	at      map[float64]int
}

func (r *reading) call(key string) *llm.Call {
	if r.calls[key] == nil {
		r.calls[key] = &llm.Call{}
		r.order = append(r.order, key)
	}
	return r.calls[key]
}

func str(v any) string { s, _ := v.(string); return s }

func obj(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

func (r *reading) openai(doc map[string]any) {
	if doc["error"] != nil {
		r.failed = true
	}
	if s := str(doc["model"]); s != "" {
		r.model = s
	}
	if u := obj(doc["usage"]); u != nil {
		r.input, r.output = u["prompt_tokens"].(float64), u["completion_tokens"].(float64)
		if total, ok := u["total_tokens"].(float64); ok { // some count reasoning apart
			r.output = max(r.output, total-r.input)
		}
	}
	for _, c := range list(doc["choices"]) {
		choice := obj(c)
		delta := obj(choice["delta"])
		r.thought += str(delta["reasoning"]) + str(delta["reasoning_content"])
		r.text += str(delta["content"])
		for _, part := range list(delta["content"]) {
			r.text += str(obj(part)["text"])
			for _, thought := range list(obj(part)["thinking"]) {
				r.thought += str(obj(thought)["text"])
			}
		}
		for _, tc := range list(delta["tool_calls"]) {
			call, fn := r.call(fmt.Sprint(obj(tc)["index"])), obj(obj(tc)["function"])
			call.ID += str(obj(tc)["id"])
			call.Tool += str(fn["name"])
			call.Args += str(fn["arguments"])
		}
		if f := str(choice["finish_reason"]); f != "" {
			r.finish = f
		}
	}
}

func (r *reading) anthropic(doc map[string]any) {
	switch doc["type"] {
	case "error":
		r.failed = true
	case "message_start":
		r.message++
		r.at = map[float64]int{}
		r.model = str(obj(doc["message"])["model"])
		if r.ended {
			r.inputBefore, r.outputBefore, r.ended = r.input, r.output, false
		}
		r.usage(obj(obj(doc["message"])["usage"]))
	case "content_block_start":
		block := obj(doc["content_block"])
		r.at[doc["index"].(float64)] = len(r.blocks)
		r.blocks = append(r.blocks, block)
		r.text += str(block["text"])
		r.thought += str(block["thinking"])
		if block["type"] == "tool_use" {
			call := r.call(fmt.Sprint(r.message, doc["index"]))
			call.ID, call.Tool = str(block["id"]), str(block["name"])
		}
	case "content_block_delta":
		delta, block := obj(doc["delta"]), r.blocks[r.at[doc["index"].(float64)]]
		r.text += str(delta["text"])
		r.thought += str(delta["thinking"])
		if block["type"] == "tool_use" {
			r.call(fmt.Sprint(r.message, doc["index"])).Args += str(delta["partial_json"])
		}
		for _, name := range []string{"text", "thinking", "signature"} {
			if s, ok := delta[name].(string); ok {
				block[name] = str(block[name]) + s
			}
		}
		if s, ok := delta["partial_json"].(string); ok {
			block["partial"] = str(block["partial"]) + s
		}
		if c := delta["citation"]; c != nil {
			block["citations"] = append(list(block["citations"]), c)
		}
	case "message_delta":
		r.finish = str(obj(doc["delta"])["stop_reason"])
		r.usage(obj(doc["usage"]))
		r.ended = true
	}
}

func (r *reading) usage(u map[string]any) {
	for _, part := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
		if n, ok := u[part].(float64); ok {
			r.parts[part] = n
		}
	}
	r.input = r.inputBefore
	for _, n := range r.parts {
		r.input += n
	}
	if n, ok := u["output_tokens"].(float64); ok {
		r.output = r.outputBefore + n
	}
}

func (r *reading) answer() llm.Answer {
	a := llm.Answer{Text: r.text, Thought: r.thought, Model: r.model, Usage: llm.Usage{Input: int64(r.input), Output: int64(r.output)}}
	switch r.finish {
	case "length", "max_tokens":
		a.Finish = llm.Length
	case "refusal", "content_filter":
		a.Finish = llm.Refused
	}
	for _, key := range r.order {
		c := *r.calls[key]
		if c.Args == "" && r.blocks != nil {
			c.Args = "{}"
		}
		a.Calls = append(a.Calls, c)
	}
	return a
}

// needsKept: there is more in it than text and calls.
func (r *reading) needsKept() bool {
	for _, b := range r.blocks {
		if b["type"] != "text" && b["type"] != "tool_use" {
			return true
		}
	}
	return false
}

// compareKept checks that what goes back is what came, block by block.
func (r *reading) compareKept(t *testing.T, kept json.RawMessage) {
	t.Helper()
	if kept == nil {
		return
	}
	var k struct{ Content []map[string]any }
	if err := json.Unmarshal(kept, &k); err != nil {
		t.Fatal(err)
	}
	var want []map[string]any
	for _, b := range r.blocks {
		if b["type"] == "text" && strings.TrimSpace(str(b["text"])) == "" {
			continue // nobody takes an empty one
		}
		if p := str(b["partial"]); p != "" {
			var input any
			if err := json.Unmarshal([]byte(p), &input); err != nil {
				t.Fatal(err)
			}
			b["input"] = input
		}
		delete(b, "partial")
		want = append(want, b)
	}
	if d := cmp.Diff(want, k.Content); d != "" {
		t.Errorf("kept, -want +got:\n%s", d)
	}
}

// recorded is the recorded streams of both protocols, a payload a line.
func recorded(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open("../../../shared/data/streams.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/data is not there: nothing recorded to read")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string][]string{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return streams
		}
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(h.Name)
		if path.Ext(h.Name) != ".jsonl" || dir != "anthropic-messages" && dir != "openai-chat" {
			continue
		}
		sc := bufio.NewScanner(tr)
		sc.Buffer(nil, 16<<20)
		for sc.Scan() {
			if line := strings.TrimSpace(sc.Text()); line != "" {
				streams[h.Name] = append(streams[h.Name], line)
			}
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
