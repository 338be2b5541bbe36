package match_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard/match"
)

func TestCertificate(t *testing.T) {
	e := compile(t, match.Options{Policy: match.MaskOpen, Evasions: match.Invisible | match.Terminal},
		match.Rule{ID: "short", Pattern: `key=(?P<v>[a-z]{4})!`, Group: "v"},
		match.Rule{ID: "endless", Pattern: `[a-z]*(?P<v>ey[\w-]{4,})\.`, Group: "v", Policy: match.DenyText},
		match.Rule{ID: "long", Pattern: `\bx[0-9]{600}`},
		match.Rule{ID: "either", Pattern: `(?i)(?:Alpha|beta\d+)x?`},
	)
	c := e.Certificate()
	for i, want := range []match.RuleCertificate{
		{Rule: "short", Hold: 4 + 1 + 4, Policy: match.MaskOpen, Literals: []string{"key="}},
		{Rule: "endless", Hold: 515, Cut: true, Grows: `[\-0-9A-Z_a-z]{4,}`, Policy: match.DenyText},
		{Rule: "long", Hold: 515, Cut: true, Grows: `[0-9]{600}`, Policy: match.MaskOpen},
		{Rule: "either", Hold: 515, Cut: true, Grows: `[0-9]+`, Policy: match.MaskOpen, Literals: []string{"alpha", "beta"}},
	} {
		got := c.Rules[i]
		if got.Rule != want.Rule || got.Hold != want.Hold || got.Cut != want.Cut || got.Grows != want.Grows || got.Policy != want.Policy ||
			!slices.Equal(got.Literals, want.Literals) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got.Instructions == 0 || got.Classes == 0 {
			t.Errorf("%s: %d instructions, %d classes", got.Rule, got.Instructions, got.Classes)
		}
	}
	if got, want := c.Rules[1].Holds(c), `unbounded because of [\-0-9A-Z_a-z]{4,}, cut at 512 bytes, at 16384 deny`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 rules hold at most 515 bytes.\n", "3 can match more and are masked from there on, for 16384 bytes at most: endless, long, either.\n",
		"2 have no literal: endless, long.\n",
		"Read through: invisible, terminal.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}

// TestCertificateOfPacks shows what all packs can cost.
func TestCertificateOfPacks(t *testing.T) {
	c := packs(t).Certificate()
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	if c.Hold != match.DefaultHoldLimit+3 {
		t.Errorf("up to %d bytes are held", c.Hold)
	}
}
