package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/diag"
)

// TestRuleFile reads a good rule file.
func TestRuleFile(t *testing.T) {
	p, err := LoadRules("testdata/rules/acme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "acme" || len(p.Rules) != 2 || len(p.Digest) != 64 {
		t.Fatalf("got pack %q with %d rules, digest %q", p.Name, len(p.Rules), p.Digest)
	}
	ticket, token := p.Rules[0], p.Rules[1]
	if ticket.ID != "acme-ticket" || ticket.Group != "number" || ticket.Severity != guard.Low || ticket.Verdict != guard.Redact ||
		len(ticket.Validators) != 1 || len(ticket.Match) != 2 || len(ticket.NoMatch) != 2 {
		t.Errorf("the first rule is %+v", ticket)
	}
	if token.Severity != guard.Critical || token.Verdict != guard.Deny || !strings.HasPrefix(token.Match[0], "line\n") {
		t.Errorf("the second rule is %+v", token)
	}
}

// TestRuleFileErr reads each bad rule file and shows all that is said of it.
func TestRuleFileErr(t *testing.T) {
	for _, file := range files(t, "rules-err") {
		if slices.Contains([]string{"acme.yaml", "one-more.yaml"}, filepath.Base(file)) {
			continue // good by themselves
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := LoadRules(file)
			var list diag.List
			if !errors.As(err, &list) {
				t.Fatalf("got the error %v, want a list of diagnostics", err)
			}
			var out bytes.Buffer
			if err := list.WriteText(&out); err != nil {
				t.Fatal(err)
			}
			golden(t, file, out.Bytes())
		})
	}
}

// TestSelect gives a guard the rules of a pack of its own, before those of
// gitleaks.
func TestSelect(t *testing.T) {
	c, err := Load("testdata/ok/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rs, err := c.Select("secrets", "acme", "project-names")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, r := range rs {
		at[r.ID] = i
	}
	if !(at["anthropic-api-key"] < at["acme-token"] && at["acme-token"] < at["project-names"] && at["project-names"] < at["twitch-api-token"]) {
		t.Errorf("the order is %v", at)
	}
	if _, err := c.Select("acne"); err == nil || !strings.Contains(err.Error(), `did you mean "acme"?`) {
		t.Errorf("got %v, want a suggestion", err)
	}
}

func TestRuleFileThatIsNotThere(t *testing.T) {
	if _, err := LoadRules("testdata/rules/gone.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file is not there", err)
	}
}

// FuzzParseRules: whatever the bytes, the program does not fail, every complaint
// has its place, and a pack that is good compiles with its examples.
func FuzzParseRules(f *testing.F) {
	for _, folder := range []string{"rules", "rules-err"} {
		for _, file := range files(f, folder) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseRules("fuzz.yaml", data)
		var list diag.List
		switch {
		case err == nil:
			for _, r := range p.Rules {
				if err := r.Check(); err != nil {
					t.Error(err)
				}
			}
		case !errors.As(err, &list):
			t.Errorf("the error %v is no list", err)
		}
		for _, d := range list {
			if d.Line < 1 || d.Col < 1 || d.File != "fuzz.yaml" || !utf8.ValidString(diag.Line(d.Message)) {
				t.Errorf("no place for %v", d)
			}
		}
	})
}
