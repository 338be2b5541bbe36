package match_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/transform"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

var _ transform.Transformer = (*guard.Transformer)(nil)

// TestTransformer reads and writes through package transform, whole and byte by
// byte, and through a chain of two.
func TestTransformer(t *testing.T) {
	rs, err := rules.Select("secrets", "pii")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := match.Compile(rs, match.Options{Name: "all", Verdict: guard.Redact})
	if err != nil {
		t.Fatal(err)
	}
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: engine})
	text := strings.Repeat("ask ann@example.com, the token is ghp_16C7e42F292c6912E7710c838347Ae178B4a; ", 500)
	want := strings.Repeat("ask [redacted:email], the token is [redacted:github-pat]; ", 500)

	tr := guard.NewTransformer(chain, transform.ErrShortDst)
	if got, _, err := transform.String(tr, text); got != want || err != nil {
		t.Errorf("String: %.200q, %v", got, err)
	}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		got, err := io.ReadAll(transform.NewReader(r, tr))
		if string(got) != want || err != nil {
			t.Errorf("reading %s: %.200q, %v", name, got, err)
		}
	}
	var out strings.Builder
	w := transform.NewWriter(&out, transform.Chain(tr, guard.NewTransformer(chain, transform.ErrShortDst)))
	for rest := text; rest != ""; {
		n := min(7, len(rest))
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil || out.String() != want {
		t.Errorf("writing: %.200q, %v", out.String(), err)
	}
}
