package gateway_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

const shared = "../../../shared/"

// TestSplitCases is law 2 through the whole gateway: a client that asks for a
// stream, however the provider cut it, reads what one reads that does not, and
// the record is the same.
func TestSplitCases(t *testing.T) {
	for _, v := range []guard.Verdict{guard.Redact, guard.Deny} {
		w := open(t, v)
		for _, c := range splitCases(t) {
			whole := strings.Join(c.Deltas, "")
			for _, p := range surfaces {
				t.Run(fmt.Sprintf("%s/%s/%s", v, p, c.ID), func(t *testing.T) {
					_, body := said(p, c.Deltas...)
					w.upstream.says(func() reply { return says(200, "application/json", body) })
					a := w.ask("POST", path(p), question(p, false))
					want, record := understand(t, p, a), w.records.of(t, a.run())
					want.Done = true
					for _, never := range c.Never {
						if strings.Contains(want.Text, never) {
							t.Errorf("unstreamed: %q leaves in %q", never, want.Text)
						}
					}
					for _, keep := range c.Keep {
						if v == guard.Redact && !strings.Contains(want.Text, keep) {
							t.Errorf("unstreamed: %q is lost in %q", keep, want.Text)
						}
					}
					for _, deltas := range [][]string{c.Deltas, runes(whole), {whole}} {
						for _, n := range []int{1, 100, 1 << 20} {
							body, _ := said(p, deltas...)
							w.upstream.says(func() reply { return streams(body, n) })
							a := w.ask("POST", path(p), question(p, true))
							if diff := cmp.Diff(want, understand(t, p, a)); diff != "" {
								t.Errorf("%d deltas in pieces of %d (-unstreamed +streamed):\n%s", len(deltas), n, diff)
							}
							if diff := cmp.Diff(record, w.records.of(t, a.run())); diff != "" {
								t.Errorf("%d deltas in pieces of %d: the record (-unstreamed +streamed):\n%s", len(deltas), n, diff)
							}
							for _, never := range c.Never {
								if bytes.Contains(a.body, []byte(never)) {
									t.Errorf("%d deltas in pieces of %d: %q leaves", len(deltas), n, never)
								}
							}
						}
					}
				})
			}
		}
	}
}

func runes(s string) (out []string) {
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

type splitCase struct {
	ID                  string
	Deltas, Never, Keep []string
}

func splitCases(t *testing.T) (cases []splitCase) {
	t.Helper()
	b, err := os.ReadFile(shared + "cases/stream.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/cases is not there: no cases to read")
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var c splitCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// recorded are the recorded streams of a protocol: by name, a payload a line.
func recorded(t *testing.T, protocol string) map[string][]string {
	t.Helper()
	f, err := os.Open(shared + "data/streams.tar.gz")
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
	folder := map[string]string{govern.OpenAI: "openai-chat/", govern.Anthropic: "anthropic-messages/", responses: "openai-responses/"}[protocol]
	all := map[string][]string{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Name, folder) || !strings.HasSuffix(h.Name, ".jsonl") {
			continue
		}
		sc := bufio.NewScanner(tr)
		sc.Buffer(nil, 16<<20)
		for sc.Scan() {
			if line := sc.Text(); line != "" {
				all[h.Name] = append(all[h.Name], line)
			}
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d recorded streams of %s", len(all), protocol)
	}
	return all
}

var pings = regexp.MustCompile(`event: ping\ndata: [^\n]*\n\n`)

// unpinged is a stream without its pings, which overtake text that waits.
func unpinged(body []byte) []byte { return pings.ReplaceAll(body, nil) }

// TestRecordedStreams serves what providers have sent: what no guard minds
// leaves as the bytes that came.
func TestRecordedStreams(t *testing.T) {
	w := open(t, guard.Redact, func(c *govern.Config) {
		c.Profiles[0].Output = []guard.Member{guardOf(t, guard.Redact, "secrets", "credentials")}
	})
	for _, p := range surfaces {
		all, texts := recorded(t, p), 0
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(name, func(t *testing.T) {
				in := frames(p, all[name])
				w.upstream.says(func() reply { return streams(in, 4096) })
				a := w.ask("POST", path(p), question(p, true))
				want, got := channels(t, all[name]), channels(t, payloads(a.body))
				texts += len(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the text of channels (-recorded +client):\n%s", diff)
				}
				last := all[name][len(all[name])-1]
				if strings.HasPrefix(last, `{"error"`) || strings.HasPrefix(last, `{"type":"error"`) || strings.HasPrefix(last, `{"type":"response.failed"`) {
					if s := w.records.settled(t, a.run()); s.Status != "failed" {
						t.Errorf("a stream that ends in an error is settled as %+v", s)
					}
					return
				}
				if !bytes.Equal(unpinged(a.body), unpinged(in)) {
					t.Errorf("the bytes differ: %d came, %d left", len(in), len(a.body))
				}
				if s := w.records.settled(t, a.run()); s.Status != "completed" {
					t.Errorf("settled as %+v", s)
				}
			})
		}
		t.Logf("%s: %d streams, %d channels of text", p, len(all), texts)
		if texts < len(all) {
			t.Errorf("%s: only %d channels in %d streams", p, texts, len(all))
		}
	}
}

func payloads(body []byte) (out []string) {
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && data[0] == '{' {
			out = append(out, string(data))
		}
	}
	return out
}

// channels joins what each field with words says over a stream: by message,
// choice or block, field and tool call.
func channels(t *testing.T, payloads []string) map[string]string {
	t.Helper()
	said, message := map[string]string{}, 0
	for _, p := range payloads {
		var e map[string]any
		if err := json.Unmarshal([]byte(p), &e); err != nil {
			t.Fatalf("%v: %s", err, p)
		}
		if e["type"] == "message_start" {
			message++
		}
		for _, field := range []string{"choices", "delta", "content_block", "response"} {
			join(said, fmt.Sprintf("%d/%v/%v/%v/%s", message, e["index"], e["output_index"], e["type"], field), e[field])
		}
	}
	return said
}

// join adds the strings of a value, by their path; elements of arrays that have
// an index are told apart by it.
func join(said map[string]string, at string, v any) {
	switch v := v.(type) {
	case string:
		if v != "" {
			said[at] += v
		}
	case map[string]any:
		for k, m := range v {
			if k != "stoplog" { // ours
				join(said, at+"/"+k, m)
			}
		}
	case []any:
		for i, m := range v {
			if o, ok := m.(map[string]any); ok && o["index"] != nil {
				join(said, fmt.Sprintf("%s/%v", at, o["index"]), m)
			} else {
				join(said, fmt.Sprintf("%s/%d", at, i), m)
			}
		}
	}
}
