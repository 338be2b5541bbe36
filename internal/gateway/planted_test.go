package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// opaque are members that pass unread, by policy: wire pins the whole list.
var opaque = []string{"signature", "encrypted_index", "encrypted_content", "encrypted_stdout", "data", "obfuscation", "fingerprint", "result", "partial_image_b64"}

// planted are recorded streams with much of what the formats have: reasoning,
// tool calls, search results, MCP, thinking.
var planted = map[string][]string{
	govern.OpenAI:    {"openai--azure-model-router.1", "xai--xai-tool-call", "deepseek--deepseek-reasoning"},
	responses:        {"openai--openai-mcp-tool-approval.4", "openai--openai-shell-container-multiturn.1", "openai--openai-custom-tool.1", "openai--programmatic-tool-calling.1"},
	govern.Anthropic: {"anthropic--anthropic-mcp.1", "anthropic--anthropic-clear-tool-uses.1", "anthropic--anthropic-web-search-tool.1"},
}

// TestPlantedSecret puts a secret in every string of every frame of recorded
// streams, and of the unstreamed answers made of them, one at a time. No client
// ever gets it.
func TestPlantedSecret(t *testing.T) {
	w := open(t, guard.Redact)
	for _, p := range surfaces {
		all := recorded(t, p)
		for _, name := range planted[p] {
			t.Run(p+"/"+name, func(t *testing.T) {
				var stream []string
				for file, payloads := range all {
					if strings.HasSuffix(file, name+".jsonl") {
						stream = payloads
					}
				}
				n := 0
				for i, frame := range stream {
					for at, with := range plants(t, frame) {
						n++
						body := frames(p, slices.Concat(stream[:i], []string{with}, stream[i+1:]))
						w.upstream.says(func() reply { return streams(body, 1<<20) })
						w.neverShows(t, p, true, fmt.Sprintf("%s of frame %d", at, i))
					}
				}
				doc := unstreamed(t, p, stream)
				for at, with := range plants(t, doc) {
					n++
					w.upstream.says(func() reply { return says(200, "application/json", with) })
					w.neverShows(t, p, false, at)
				}
				t.Logf("%d secrets planted", n)
				if n < 3*len(stream) {
					t.Errorf("only %d secrets were planted in %d frames", n, len(stream))
				}
			})
		}
	}
}

func (w *world) neverShows(t *testing.T, protocol string, stream bool, at string) {
	t.Helper()
	a := w.ask("POST", path(protocol), question(protocol, stream))
	if bytes.Contains(a.body, []byte(secret)) {
		t.Errorf("a secret in %s leaves", at)
	}
	if stream {
		for field, said := range channels(t, payloads(a.body)) {
			if strings.Contains(said, secret) {
				t.Errorf("a secret in %s leaves in pieces, in %s", at, field)
			}
		}
	}
	if s := w.records.settled(t, a.run()); s.Status == "completed" && !w.records.acted(a.run()) && !strings.Contains(at, "logprobs") {
		t.Errorf("a secret in %s was not noticed", at)
	}
}

// plants gives the document with the secret added to each of its strings in
// turn, by place.
func plants(t *testing.T, doc string) map[string]string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(doc), &root); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var visit func(v any, at string, set func(any))
	visit = func(v any, at string, set func(any)) {
		switch v := v.(type) {
		case string:
			set(v + " " + secret + " ")
			b, _ := json.Marshal(root)
			set(v)
			out[at] = string(b)
		case map[string]any:
			for k, m := range v {
				if !slices.Contains(opaque, k) {
					visit(m, at+"/"+k, func(x any) { v[k] = x })
				}
			}
		case []any:
			for i, m := range v {
				visit(m, fmt.Sprintf("%s/%d", at, i), func(x any) { v[i] = x })
			}
		}
	}
	visit(root, "", func(x any) { root = x })
	return out
}

// unstreamed makes the answer that the stream would have been without one.
func unstreamed(t *testing.T, protocol string, stream []string) string {
	t.Helper()
	doc := map[string]any{}
	for _, p := range stream {
		var e map[string]any
		if err := json.Unmarshal([]byte(p), &e); err != nil {
			t.Fatal(err)
		}
		switch protocol {
		case govern.OpenAI:
			addChunk(doc, e)
		case responses:
			if r, ok := e["response"].(map[string]any); ok {
				doc = r // the last is the answer
			}
		default:
			addEvent(doc, e)
		}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// addChunk adds what a chunk says to a completion: a delta becomes a message.
func addChunk(doc, chunk map[string]any) {
	choices, _ := chunk["choices"].([]any)
	delete(chunk, "choices")
	merge(doc, chunk, "id", "model", "object", "system_fingerprint")
	for _, c := range choices {
		c := c.(map[string]any)
		c["message"] = c["delta"]
		delete(c, "delta")
		list, _ := doc["choices"].([]any)
		if len(list) == 0 {
			list = []any{map[string]any{}}
		}
		merge(list[0].(map[string]any), c, "role", "type", "id", "name")
		doc["choices"] = list
	}
}

// addEvent adds what an event says to a message.
func addEvent(doc, e map[string]any) {
	delta, _ := e["delta"].(map[string]any)
	content, _ := doc["content"].([]any)
	switch e["type"] {
	case "message_start":
		merge(doc, e["message"].(map[string]any))
	case "message_delta":
		merge(doc, delta)
	case "content_block_start":
		doc["content"] = append(content, e["content_block"])
	case "content_block_delta":
		block := content[len(content)-1].(map[string]any)
		switch delta["type"] {
		case "input_json_delta":
			said, _ := block["input"].(string)
			block["input"] = said + delta["partial_json"].(string)
		case "citations_delta":
			list, _ := block["citations"].([]any)
			block["citations"] = append(list, delta["citation"])
		default:
			delete(delta, "type")
			merge(block, delta)
		}
	case "content_block_stop":
		block := content[len(content)-1].(map[string]any)
		if said, ok := block["input"].(string); ok && json.Valid([]byte(said)) {
			var v any
			json.Unmarshal([]byte(said), &v)
			block["input"] = v
		}
	}
}

// merge adds members: strings are joined, but for those named once, structures
// merged, and all else replaced.
func merge(into, from map[string]any, once ...string) {
	for k, v := range from {
		switch v := v.(type) {
		case string:
			if old, ok := into[k].(string); ok && !slices.Contains(once, k) {
				v = old + v
			}
			into[k] = v
		case map[string]any:
			if old, ok := into[k].(map[string]any); ok {
				merge(old, v, once...)
				continue
			}
			into[k] = v
		case []any:
			into[k] = mergeList(into[k], v, once)
		case nil:
		default:
			into[k] = v
		}
	}
}

func mergeList(old any, list []any, once []string) []any {
	out, _ := old.([]any)
	for _, v := range list {
		m, ok := v.(map[string]any)
		index, indexed := m["index"].(float64)
		if ok && indexed && int(index) < len(out) {
			merge(out[int(index)].(map[string]any), m, once...)
			continue
		}
		out = append(out, v)
	}
	return out
}
