package sse

import (
	"bytes"
	"testing"
)

// delta is a frame as a provider sends it.
const delta = `data: {"id":"chatcmpl-A1b2C3","object":"chat.completion.chunk","created":1770933923,"model":"gpt-4o-mini",` +
	`"choices":[{"index":0,"delta":{"content":" stream"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

// TestNoAllocation shows that a warm scanner allocates nothing for a frame:
// whole, in pieces, mended, and of several data lines.
func TestNoAllocation(t *testing.T) {
	for name, pieces := range map[string][]string{
		"clean":              {delta},
		"in pieces":          {delta[:1], delta[1:40], delta[40 : len(delta)-1], delta[len(delta)-1:]},
		"mended":             {"event: a\r\ndata: 1\r\n\r", "\n"},
		"several data lines": {"data: 1\ndata: 2\n\n"},
		"comment":            {": ping\n\n"},
		"one in two pieces":  {delta + delta[:9], delta[9:]},
	} {
		s := NewScanner(0)
		var bytewise [][]byte
		for _, p := range pieces {
			bytewise = append(bytewise, []byte(p))
		}
		frames := 0
		run := func() {
			for _, p := range bytewise {
				s.Write(p)
				for {
					_, ok, err := s.Next()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					frames++
				}
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if frames < 102 {
			t.Errorf("%s: only %d frames", name, frames)
		}
	}
}

// TestLinear feeds streams that tempt a scanner to look again, in pieces of 4
// bytes and in one: what it looks at and moves is at most 5 bytes a byte,
// however long the stream.
func TestLinear(t *testing.T) {
	for name, stream := range map[string]func(n int) []byte{
		"one line":            func(n int) []byte { return bytes.Repeat([]byte("x"), n) },
		"one frame, LF lines": func(n int) []byte { return bytes.Repeat([]byte("x\n"), n/2) },
		"one frame, CR lines": func(n int) []byte { return bytes.Repeat([]byte("x\r"), n/2) },
		"data lines":          func(n int) []byte { return bytes.Repeat([]byte("data\n"), n/5) },
		"long data lines":     func(n int) []byte { return bytes.Repeat([]byte("data: some more text\r\n"), n/22) },
		"blank lines":         func(n int) []byte { return bytes.Repeat([]byte("\n"), n) },
		"small frames":        func(n int) []byte { return bytes.Repeat([]byte("x\n\n"), n/3) },
		"mended frames":       func(n int) []byte { return bytes.Repeat([]byte("data: x\r\n\r\n"), n/11) },
	} {
		for _, size := range []int{1 << 17, 1 << 19} {
			for _, piece := range []int{4, size} {
				work := workOf(stream(size), piece)
				if a := float64(work) / float64(size); a > 5 {
					t.Errorf("%s, %d bytes in pieces of %d: %.1f bytes of work a byte", name, size, piece, a)
				}
			}
		}
	}
}

// workOf is how many bytes the scanning of a stream looks at and moves.
func workOf(stream []byte, piece int) int64 {
	s := NewScanner(0)
	for p := stream; len(p) > 0; p = p[min(piece, len(p)):] {
		s.Write(p[:min(piece, len(p))])
		for ok := true; ok; {
			_, ok, _ = s.Next()
		}
	}
	s.Close()
	s.Next()
	return s.moved + s.lf.looked + s.cr.looked
}

func BenchmarkFrame(b *testing.B) {
	for name, frame := range map[string]string{
		"clean": delta,
		"crlf":  string(bytes.ReplaceAll([]byte(delta), []byte("\n"), []byte("\r\n"))),
	} {
		b.Run(name, func(b *testing.B) {
			s, p := NewScanner(0), []byte(frame)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				s.Write(p)
				if _, ok, err := s.Next(); !ok || err != nil {
					b.Fatal("no frame", err)
				}
			}
		})
	}
}

// BenchmarkLongLine is 10 MB on one line, in pieces of 4 bytes.
func BenchmarkLongLine(b *testing.B) {
	piece := []byte("xxxx")
	const pieces = 10 << 20 / 4
	b.SetBytes(10 << 20)
	for b.Loop() {
		s := NewScanner(0)
		for range pieces {
			s.Write(piece)
			if _, ok, err := s.Next(); ok || err != nil {
				b.Fatal("a frame", err)
			}
		}
	}
}
