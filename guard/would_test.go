package guard

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// lines is a guard that settles a text line by line, and finds nothing.
type lines struct{}

func (lines) Name() string                         { return "lines" }
func (lines) Open(context.Context, Channel) Screen { return &lineScreen{} }

type lineScreen struct{ read, settled int64 }

func (l *lineScreen) Write(p []byte) (Progress, error) {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		l.settled = l.read + int64(i) + 1
	}
	l.read += int64(len(p))
	return Progress{Settled: l.settled}, nil
}

func (l *lineScreen) Close() (Progress, error) { return Progress{Settled: l.read}, nil }

// TestWouldHold: how much a guard in shadow would have held, the same at every
// cut; one that enforces holds it, and one that audits has no say.
func TestWouldHold(t *testing.T) {
	text := strings.Repeat("a", 100) + "\n" + strings.Repeat("b", 700) + "\n" + strings.Repeat("c", 90)
	for mode, want := range map[Mode]int64{Shadow: 768 - 101, Enforce: 0, Audit: 0} {
		c := NewChain(Options{}, Member{Guard: lines{}, Mode: mode})
		for _, piece := range []int{1, 7, 256, 300, len(text)} {
			s := c.Open(t.Context(), Channel{})
			for range 2 { // and again, begun anew
				for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
					s.Write([]byte(rest[:min(piece, len(rest))]))
				}
				s.Close()
				if got := s.WouldHold(); got != want {
					t.Errorf("%s, in pieces of %d: would hold %d bytes, want %d", mode, piece, got, want)
				}
				s.Reset(t.Context(), Channel{})
			}
		}
	}
}
