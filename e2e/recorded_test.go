package e2e

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordings is where recorded streams of providers are kept, outside the
// project: a folder a format, a JSON payload a line.
const recordings = "../../shared/data/streams.tar.gz"

// recorded names two streams of each format: prose, and a tool call.
var recorded = map[string][]string{
	"openai": {
		"openai-chat/openai--openai-text.jsonl",
		"openai-chat/openai-compatible--xai-tool-call.jsonl",
	},
	"anthropic": {
		"anthropic-messages/anthropic--anthropic-web-search-tool.1.jsonl",
		"anthropic-messages/anthropic--anthropic-json-other-tool.1.jsonl",
	},
}

// lenient is a gateway as one gets it without a word of configuration, but for
// its upstreams.
const lenient = `version: 1
upstreams:
  openai:    {protocol: openai, cassettes: ["CASSETTES/openai-*.cassette"], pace: none, zone: local}
  anthropic: {protocol: anthropic, cassettes: ["CASSETTES/anthropic-*.cassette"], pace: none, zone: local}
profiles:
  default:
    extends: builtin
    upstream: [openai, anthropic]
    models: ["*"]
gateway: {openai: default, anthropic: default}
`

// TestRecordedStreams serves recorded streams of real providers to their official
// clients, which must make of them what an independent reader makes of the recording.
func TestRecordedStreams(t *testing.T) {
	streams, err := readRecordings()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("recorded streams are skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for format, names := range recorded {
		for _, name := range names {
			if len(streams[name]) == 0 {
				t.Fatalf("no recording %s", name)
			}
			file := format + "-" + filepath.Base(name) + ".cassette"
			if err := os.WriteFile(filepath.Join(dir, file), cassetteOf(t, format, name, streams[name]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := serve(t, withCassettes(t, lenient, dir))
	for _, c := range official {
		for _, name := range recorded[c.format] {
			t.Run(c.name+"/"+filepath.Base(name), func(t *testing.T) {
				want := readStream(t, c.format, streams[name])
				if want.Text == "" && want.Args == "" || want.Finish == "" {
					t.Fatalf("the recording says nothing: %+v", want)
				}
				got, seen := askThrough(t, g, c, name, true)
				if len(seen) != 1 || seen[0].Status != 200 {
					t.Fatalf("%d exchanges, the first with status %d: %s", len(seen), seen[0].Status, seen[0].Answer)
				}
				got.Tools, got.Reasoning = nil, ""
				if c.format == "anthropic" {
					got.Args, want.Args = compact(t, got.Args), compact(t, want.Args)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the client sees (-recorded +got):\n%s", diff)
				}
				if !t.Failed() {
					checks.Add(1)
				}
			})
		}
	}
}

// compact makes tool arguments comparable: a client may hand out the object
// that it parsed.
func compact(t *testing.T, args string) string {
	t.Helper()
	var out bytes.Buffer
	for rest := json.NewDecoder(strings.NewReader(args)); ; {
		var one json.RawMessage
		if err := rest.Decode(&one); err == io.EOF {
			return out.String()
		} else if err != nil {
			t.Fatalf("%v in the arguments %s", err, args)
		}
		if err := json.Compact(&out, one); err != nil {
			t.Fatal(err)
		}
	}
}

// readRecordings reads the payloads of all recorded streams.
func readRecordings() (map[string][]string, error) {
	f, err := os.Open(recordings)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	streams := map[string][]string{}
	for files := tar.NewReader(unzipped); ; {
		head, err := files.Next()
		if err == io.EOF {
			return streams, nil
		}
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(files)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if line := lines.Text(); line != "" {
				streams[head.Name] = append(streams[head.Name], line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
}

// cassetteOf frames a stream's payloads as its provider does.
func cassetteOf(t *testing.T, format, name string, payloads []string) []byte {
	t.Helper()
	type object = map[string]any
	var out bytes.Buffer
	write := func(o object) {
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	path, content := "/v1/chat/completions", any(name)
	if format == "anthropic" {
		path, content = "/v1/messages", []object{{"text": name}}
	}
	write(object{"cassette": 1, "about": name, "source": "recorded"})
	write(object{
		"request": object{"method": "POST", "path": path, "match": object{"messages": []object{{"content": content}}}},
		"repeat":  true,
	})
	write(object{"response": object{"status": 200, "header": object{"content-type": "text/event-stream"}}})
	for _, p := range payloads {
		frame := "data: " + p + "\n\n"
		if format == "anthropic" {
			var event struct{ Type string }
			if err := json.Unmarshal([]byte(p), &event); err != nil {
				t.Fatal(err)
			}
			frame = "event: " + event.Type + "\n" + frame
		}
		write(object{"ms": 0, "data": frame})
	}
	if format == "openai" {
		write(object{"ms": 0, "data": "data: [DONE]\n\n"})
	}
	write(object{"end": true})
	return out.Bytes()
}

// readStream is the independent reader: what a stream's payloads add up to.
func readStream(t *testing.T, format string, payloads []string) answer {
	t.Helper()
	var a answer
	for _, p := range payloads {
		var err error
		if format == "openai" {
			err = a.addChunk(p)
		} else {
			err = a.addEvent(p)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, p)
		}
	}
	return a
}

func (a *answer) addChunk(payload string) error {
	var c struct {
		Choices []struct {
			Delta struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Usage *struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		return err
	}
	for _, choice := range c.Choices {
		if choice.Delta.Content != "" {
			a.Text += choice.Delta.Content
			a.Deltas++
		}
		for _, call := range choice.Delta.ToolCalls {
			a.Args += call.Function.Arguments
		}
		a.Finish += choice.FinishReason
	}
	if c.Usage != nil {
		a.Input, a.Output = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	return nil
}

func (a *answer) addEvent(payload string) error {
	var e struct {
		Type  string
		Delta struct {
			Text        string
			PartialJSON string `json:"partial_json"`
			StopReason  string `json:"stop_reason"`
		}
		Usage *struct {
			InputTokens  int64 `json:"input_tokens"`
			OutputTokens int64 `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		return err
	}
	switch e.Type {
	case "content_block_delta":
		if e.Delta.Text != "" {
			a.Text += e.Delta.Text
			a.Deltas++
		}
		a.Args += e.Delta.PartialJSON
	case "message_delta":
		a.Finish = e.Delta.StopReason
		a.Input, a.Output = e.Usage.InputTokens, e.Usage.OutputTokens
	}
	return nil
}
