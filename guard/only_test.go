package guard_test

import (
	"testing"

	. "github.com/stoplog/stoplog/guard"
)

// TestOnly judges channels of the kinds that were named, and no others; a stream
// that begins anew on another channel too.
func TestOnly(t *testing.T) {
	g := Only(numbers(t, Redact), ToolResult, Document)
	if g.Name() != "numbers" {
		t.Errorf("its name is %q", g.Name())
	}
	chain := NewChain(Options{}, Member{Guard: g})
	if v := chain.Strictest(); v != Redact {
		t.Errorf("the strictest is %s", v)
	}
	if got, want := chain.Waits(), NewChain(Options{}, Member{Guard: numbers(t, Redact)}).Waits(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	s := chain.Open(t.Context(), Channel{})
	for _, c := range []struct {
		kind  Kind
		edits int
	}{{ToolResult, 1}, {Text, 0}, {Document, 1}, {ToolArgs, 0}, {Reasoning, 0}} {
		s.Reset(t.Context(), Channel{Kind: c.kind})
		step := s.Write([]byte("in 1984 "))
		if len(step.Edits) != c.edits || step.Settled != 8 {
			t.Errorf("%s: %+v", c.kind, step)
		}
	}
}
