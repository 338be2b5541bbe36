package wire

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/sse"
)

// cleanFrames are frames as providers send them, each a write of its own.
func cleanFrames(f *Format) (start, frames [][]byte) {
	words := []string{"The", " quick", " brown", " fox", " jumps", " over", " the", " lazy", " dog", ".\n", " It", " said:", " \u201cno\u201d"}
	if f == AnthropicMessages {
		start = [][]byte{frameOf(f, messageStart), frameOf(f, blockStart(0, `{"type":"text","text":""}`))}
	}
	if f == OpenAIResponses {
		for _, payload := range (&responder{}).begin() {
			start = append(start, frameOf(f, payload))
		}
	}
	for _, w := range words {
		payload := textDelta(w)
		if f == OpenAIResponses {
			payload = fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":44,"item_id":"msg_0123456789abcdef0123456789abcdef","output_index":0,"content_index":0,"delta":%s,"logprobs":[],"obfuscation":"aB3dE5"}`, jsonString(w))
		}
		if f == OpenAIChat {
			payload = fmt.Sprintf(`{"id":"chatcmpl-CAFEbabe0123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aB3dE5"}`, jsonString(w))
		}
		frames = append(frames, frameOf(f, payload))
	}
	return start, frames
}

// BenchmarkStream is what a clean frame costs, beside finding where frames end.
func BenchmarkStream(b *testing.B) {
	for _, f := range all {
		start, frames := cleanFrames(f)
		b.Run(f.Name()+"/frames", func(b *testing.B) {
			s := sse.NewScanner(0)
			b.ReportAllocs()
			for i := range b.N {
				s.Write(frames[i%len(frames)])
				for _, ok, _ := s.Next(); ok; _, ok, _ = s.Next() {
				}
			}
		})
		for _, packs := range [][]string{nil, {"secrets", "credentials", "pii"}} {
			name := "no guard"
			chain := guard.NewChain(guard.Options{})
			if packs != nil {
				name, chain = "all packs", patterns(b, guard.Redact, packs...)
			}
			b.Run(f.Name()+"/"+name, func(b *testing.B) {
				s := f.NewStream(Options{Context: context.Background(), Chain: chain})
				for _, p := range start {
					s.Write(p)
				}
				b.ReportAllocs()
				for i := range b.N {
					s.Write(frames[i%len(frames)])
				}
			})
		}
	}
}

// TestCleanFramesCostNoMemory once a stream is warm.
func TestCleanFramesCostNoMemory(t *testing.T) {
	for _, f := range all {
		start, frames := cleanFrames(f)
		s := f.NewStream(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets", "credentials", "pii")})
		for _, p := range start {
			s.Write(p)
		}
		pass := func() {
			for _, p := range frames {
				s.Write(p)
			}
		}
		for range 200 {
			pass()
		}
		if n := testing.AllocsPerRun(100, pass); n > 0 {
			t.Errorf("%s: %v allocations for %d frames", f.Name(), n, len(frames))
		}
	}
}

// TestLongDocumentsCostLinear: work is counted in bytes of memory, which does
// not depend on the machine.
func TestLongDocumentsCostLinear(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets")
	shapes := map[string]func(n int) string{
		"fields": func(n int) string {
			return `{"a":{` + list(n, func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }) + `}}`
		},
		"strings": func(n int) string {
			return `{"a":[` + list(n, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}`
		},
		"secrets":   func(n int) string { return `{"a":[` + list(n, func(int) string { return `"` + planted + `"` }) + `]}` },
		"long text": func(n int) string { return `{"a":"` + string(bytes.Repeat([]byte("x y "), n)) + `"}` },
	}
	for name, shape := range shapes {
		spent := func(n int) uint64 {
			doc := []byte(shape(n))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			v := OpenAIChat.Answer(Options{Context: context.Background(), Chain: chain}, doc)
			runtime.ReadMemStats(&after)
			if v.Doc == nil {
				t.Fatal(v.Outcome)
			}
			return after.TotalAlloc - before.TotalAlloc
		}
		spent(10)
		few, many := spent(20_000), spent(80_000)
		if many > 6*few {
			t.Errorf("%s: 4 times the document takes %d, not %d bytes", name, many, 4*few)
		}
	}
}

// TestManyEditsInManyEscapes would not end if each escape were compared with
// each edit.
func TestManyEditsInManyEscapes(t *testing.T) {
	const lines = 60_000
	line := strings.Repeat(`\n`, 20) + ` ann@example.com `
	doc := `{"choices":[{"index":0,"message":{"content":"` + strings.Repeat(line, lines) + `","tool_calls":[{"function":{"name":"f","arguments":"[` + list(lines, func(int) string { return `\"` + `\\n ann@example.com` + `\"` }) + `]"}}]}}]}`
	v := OpenAIChat.Answer(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "email")}, []byte(doc))
	if n := bytes.Count(v.Doc, []byte("[redacted:email]")); n != 2*lines || bytes.Contains(v.Doc, []byte("ann@")) {
		t.Errorf("%d of %d were replaced: %+v", n, 2*lines, v.Outcome)
	}
}

func list(n int, element func(i int) string) string {
	var b bytes.Buffer
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String()
}
