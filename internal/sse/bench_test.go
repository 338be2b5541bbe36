package sse

import (
	"bytes"
	"testing"
	"time"
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
// bytes: four times the bytes may take at most eight times as long.
func TestLinear(t *testing.T) {
	const size = 1 << 19
	for name, stream := range map[string]func(n int) []byte{
		"one line":            func(n int) []byte { return bytes.Repeat([]byte("x"), n) },
		"one frame, LF lines": func(n int) []byte { return bytes.Repeat([]byte("x\n"), n/2) },
		"one frame, CR lines": func(n int) []byte { return bytes.Repeat([]byte("x\r"), n/2) },
		"data lines":          func(n int) []byte { return bytes.Repeat([]byte("data\n"), n/5) },
		"blank lines":         func(n int) []byte { return bytes.Repeat([]byte("\n"), n) },
		"small frames":        func(n int) []byte { return bytes.Repeat([]byte("x\n\n"), n/3) },
	} {
		short, long := bestOf3(stream(size/4)), bestOf3(stream(size))
		if long > 8*short+10*time.Millisecond {
			t.Errorf("%s: %v for %d bytes, %v for %d", name, short, size/4, long, size)
		}
		// All of it before the first question: many frames wait in the buffer.
		s := NewScanner(0)
		began := time.Now()
		s.Write(stream(size))
		for ok := true; ok; {
			_, ok, _ = s.Next()
		}
		if took := time.Since(began); took > 8*long+10*time.Millisecond {
			t.Errorf("%s: %v at one go, %v in pieces", name, took, long)
		}
	}
}

// bestOf3 times the scanning of a stream in pieces of 4 bytes.
func bestOf3(stream []byte) time.Duration {
	best := time.Hour
	for range 3 {
		began := time.Now()
		s := NewScanner(0)
		for p := stream; len(p) > 0; p = p[min(4, len(p)):] {
			s.Write(p[:min(4, len(p))])
			for ok := true; ok; {
				_, ok, _ = s.Next()
			}
		}
		s.Close()
		s.Next()
		best = min(best, time.Since(began))
	}
	return best
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
