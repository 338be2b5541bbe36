package config

import (
	"path/filepath"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestExamples reads the project's own configurations, as a new user would.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %q, %v; want the examples", files, err)
	}
	for _, file := range files {
		c, err := Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(c.Warnings) > 0 {
			t.Errorf("an example is no good if it is warned of:\n%v", c.Warnings)
		}
	}
}

// TestExampleNeedsNothing: the first configuration that a new user starts calls
// nobody, needs no key, and has a profile that denies.
func TestExampleNeedsNothing(t *testing.T) {
	c, err := Load("../../examples/stoplog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range c.Upstreams {
		if len(u.Cassettes) == 0 || u.Key.Env+u.Key.File != "" || len(u.Key.Command) > 0 {
			t.Errorf("upstream %s calls out: %+v", u.Name, u)
		}
	}
	denies := func(profile string) bool {
		p, ok := c.Profile(profile)
		if !ok {
			t.Fatalf("no profile %q", profile)
		}
		for _, use := range p.Output {
			if g, _ := c.Guard(use.Guard); use.Mode == guard.Enforce && g.Verdict == guard.Deny {
				return true
			}
		}
		return false
	}
	if denies("default") || !denies("strict") {
		t.Errorf("denies: default %v, strict %v; want strict alone", denies("default"), denies("strict"))
	}
	for protocol, m := range map[string]Mount{OpenAI: c.Gateway.OpenAI, Anthropic: c.Gateway.Anthropic} {
		if m.Profile != "default" || len(m.Choices) != 2 || m.Choices[1] != "strict" {
			t.Errorf("mount %s: %+v, want default, and strict to choose", protocol, m)
		}
	}
}
