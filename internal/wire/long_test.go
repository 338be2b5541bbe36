package wire

import (
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// Ten megabytes on one line are a frame like any other.
func TestTenMegabytesOnOneLine(t *testing.T) {
	text := strings.Repeat("plain words, ", 400_000) + planted + strings.Repeat(" and more", 600_000)
	for _, f := range all {
		upstream, _ := say(f, []string{text})
		if len(upstream) < 10<<20 {
			t.Fatalf("only %d bytes", len(upstream))
		}
		out, _, o := stream(f, Options{Chain: patterns(t, guard.Redact, "secrets")}, upstream, 32<<10)
		got := joined(hear(t, f, out, true))
		if want := strings.Replace(text, planted, "[redacted:github-pat]", 1); got != want || o.Status != Redacted {
			t.Errorf("%s: %d bytes instead of %d, %+v", f.Name(), len(got), len(want), o)
		}
	}
}
