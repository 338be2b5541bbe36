package main

import (
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/config"
)

// TestLiteralsOfConfiguration: a value that a configuration names is replaced,
// encoded and in disguise.
func TestLiteralsOfConfiguration(t *testing.T) {
	conf, err := config.Parse("stoplog.yaml", []byte(`version: 1
guards:
  vault: {literals: [env:STRIPE_KEY]}
profiles:
  default: {output: {vault: enforce}}
`))
	if err != nil {
		t.Fatal(err)
	}
	found, err := conf.ReadSecrets(func(name string) string {
		return map[string]string{"STRIPE_KEY": "not-like-a-key-at-all"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	guards, err := compileGuards(conf, found, nil, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := conf.Profile("default")
	chain := guard.NewChain(guard.Options{}, members(guards, p.Output)...)
	const text = "it is not-like-\u200ba-key-at-all, or bm90LWxpa2UtYS1rZXktYXQtYWxs, or not-like-\\u0061-key-at-all"
	f := guard.NewFilter(chain.Open(t.Context(), guard.Channel{}))
	out, _ := f.Write(nil, []byte(text))
	out, _ = f.Close(out)
	const want = "it is [redacted:env:STRIPE_KEY], or [redacted:env:STRIPE_KEY], or [redacted:env:STRIPE_KEY]"
	if string(out) != want {
		t.Errorf("%q leaves, want %q", out, want)
	}
}
