package guard_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// numbers finds numbers of four digits or more, and cuts those that are long.
func numbers(t *testing.T, v Verdict) Guard {
	t.Helper()
	e, err := match.Compile([]match.Rule{{ID: "number", Pattern: `\d{4,}`, Verdict: v}},
		match.Options{Name: "numbers", Key: []byte("key of the tests"), HoldLimit: match.LeastHoldLimit})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fingerprint is what numbers makes of a text.
func fingerprint(t *testing.T, text string) string {
	t.Helper()
	s := NewChain(Options{}, Member{Guard: numbers(t, Redact)}).Open(t.Context(), Channel{})
	found := append(s.Write([]byte(text)).Decisions, s.Close().Decisions...)
	if len(found) != 1 {
		t.Fatalf("%q has %d findings", text, len(found))
	}
	return found[0].Fingerprint
}

// allowing allows one fingerprint.
func allowing(print string) func() Allowed {
	a := &Allowance{By: "ann", Why: "a year", Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	return func() Allowed {
		return func(f Finding) *Allowance {
			if f.Rule == "number" && f.Fingerprint == print {
				return a
			}
			return nil
		}
	}
}

// TestAllowed lets out what is allowed, in every mode and under every verdict, and
// records the finding with who allowed it. Another finding of the rule is not
// spared, wherever the text is cut.
func TestAllowed(t *testing.T) {
	opt := Options{Allowed: allowing(fingerprint(t, "1984"))}
	for _, c := range []struct {
		mode    Mode
		verdict Verdict
		want    string
	}{
		{Enforce, Redact, "in 1984 and [redacted:number], 1984"},
		{Enforce, Deny, "in 1984 and "},
		{Shadow, Deny, "in 1984 and 2025, 1984"},
		{Audit, Deny, "in 1984 and 2025, 1984"},
	} {
		for _, size := range []int{1, 3, 100} {
			f := NewFilter(NewChain(opt, Member{Guard: numbers(t, c.verdict), Mode: c.mode}).Open(t.Context(), Channel{}))
			var out []byte
			var told []string
			note := func(step Step) {
				for _, d := range step.Decisions {
					line := d.Verdict.String()
					if d.Allowed != nil {
						line += " by " + d.Allowed.By
					}
					told = append(told, line)
				}
			}
			for text := "in 1984 and 2025, 1984"; text != ""; {
				n := min(size, len(text))
				var step Step
				out, step = f.Write(out, []byte(text[:n]))
				note(step)
				text = text[n:]
			}
			out, step := f.Close(out)
			note(step)
			if string(out) != c.want {
				t.Errorf("%s, %s: %q leaves, want %q", c.mode, c.verdict, out, c.want)
			}
			want := "allow by ann, " + c.verdict.String() + ", allow by ann"
			if c.mode == Enforce && c.verdict == Deny {
				want = "allow by ann, deny"
			}
			if got := strings.Join(told, ", "); got != want {
				t.Errorf("%s, %s: told %s, want %s", c.mode, c.verdict, got, want)
			}
		}
	}
}

// TestAllowedTooLate replaces what is cut at the hold limit: its placeholder is out
// before its fingerprint is known.
func TestAllowedTooLate(t *testing.T) {
	long := strings.Repeat("7", 4*match.LeastHoldLimit)
	f := NewFilter(NewChain(Options{Allowed: allowing(fingerprint(t, "1984"))}, Member{Guard: numbers(t, Redact)}).Open(t.Context(), Channel{}))
	out, _ := f.Write(nil, []byte("a "+long+" b 1984"))
	out, _ = f.Close(out)
	if string(out) != "a [redacted:number] b 1984" {
		t.Errorf("%q leaves", out)
	}
}

// TestAllowedForAChannel asks once for a channel, when it is opened, and again for
// the next one.
func TestAllowedForAChannel(t *testing.T) {
	print, asked := fingerprint(t, "1984"), 0
	opt := Options{Allowed: func() Allowed {
		if asked++; asked == 1 {
			return nil
		}
		return allowing(print)()
	}}
	s := NewChain(opt, Member{Guard: numbers(t, Redact)}).Open(t.Context(), Channel{})
	if step := s.Write([]byte("1984 and ")); len(step.Edits) != 1 {
		t.Errorf("before it was allowed: %+v", step)
	}
	if step := s.Write([]byte("1984 ")); len(step.Edits) != 1 {
		t.Errorf("allowed in the middle of a channel: %+v", step)
	}
	s.Reset(t.Context(), Channel{})
	if step := s.Write([]byte("1984 and ")); len(step.Edits) != 0 || len(step.Decisions) != 1 {
		t.Errorf("the next channel: %+v", step)
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
