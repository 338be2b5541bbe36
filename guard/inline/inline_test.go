package inline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/inline"
	"github.com/stoplog/stoplog/guard/match"
)

func numbers(t testing.TB) guard.Guard {
	t.Helper()
	e, err := match.Compile([]match.Rule{
		{ID: "number", Pattern: `\b\d{4}\b`, Verdict: guard.Redact},
		{ID: "key", Pattern: `BEGIN\n(?:\w+\n)+END`, Verdict: guard.Deny},
	}, match.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// story is a report, a line each.
func story(r inline.Report) string {
	var lines []string
	for _, f := range r.Findings {
		line := fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Rule)
		if f.Allowed != nil {
			line += ": " + f.Allowed.Why
		}
		lines = append(lines, line)
	}
	for _, c := range r.Comments {
		if c.Wrong != "" {
			lines = append(lines, fmt.Sprintf("%d:%d %s", c.Line, c.Col, c.Wrong))
		}
	}
	return strings.Join(lines, "\n")
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"none", "pin: 1234\n", "1:6 number"},
		{"behind it", "pin: 1234 # stoplog:allow number a year\n", "1:6 number: a year"},
		{"before it", "# stoplog:allow number a year\npin: 1234\nnext: 1234", "2:6 number: a year\n3:7 number"},
		{"in a prompt", "<!-- stoplog:allow number a year -->\nIn 1984 and 1985", "2:4 number: a year\n2:13 number: a year"},
		{"behind it in a prompt", "In 1984 <!-- stoplog:allow number a year -->", "1:4 number: a year"},
		{"only its own line", "größe: 1234 # stoplog:allow number a year\n1234", "1:8 number: a year\n2:1 number"},
		{"another rule", "pin: 1234 // stoplog:allow key a test", "1:6 number\n1:11 rule key finds nothing here"},
		{"many lines", "; stoplog:allow key a test\r\nBEGIN\nabc\nEND\n", "2:1 key: a test"},
		{"no reason", "1234 # stoplog:allow number", "1:1 number\n1:6 it does not say why: write stoplog:allow RULE WHY"},
		{"no rule", "1234 # stoplog:allow", "1:1 number\n1:6 it names no rule: write stoplog:allow RULE WHY"},
		{"no rule, but a reason", "1234 # stoplog:allow !! it is fine", "1:1 number\n1:6 it names no rule: write stoplog:allow RULE WHY"},
		{"unused", "# stoplog:allow number a year\n\n1234", "3:1 number\n1:1 rule number finds nothing here"},
		{"no comment", "stoplog:allow number a year: 1234", "1:30 number"},
		{"another word", "1234 # stoplog:allowed number a year", "1:1 number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := inline.Check(t.Context(), numbers(t), []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := story(r); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

type broken struct{ guard.Guard }

func (broken) Name() string                                       { return "broken" }
func (b broken) Open(context.Context, guard.Channel) guard.Screen { return b }
func (broken) Write([]byte) (guard.Progress, error)               { return guard.Progress{}, errors.New("no") }
func (broken) Close() (guard.Progress, error)                     { return guard.Progress{}, nil }

// TestCheckFails: what the guard did not judge is not said to be clean.
func TestCheckFails(t *testing.T) {
	if _, err := inline.Check(t.Context(), broken{}, []byte("x")); err == nil || err.Error() != "guard broken: no" {
		t.Errorf("got %v", err)
	}
}

// FuzzCheck: whatever the text, each finding has a place in it.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("pin: 1234 # stoplog:allow number a year\n"))
	f.Add([]byte("<!-- stoplog:allow key x -->\xff\nBEGIN\na\nEND"))
	g := numbers(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := inline.Check(t.Context(), g, text)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(text), "\n") + 1
		for _, found := range r.Findings {
			if found.Line < 1 || found.Line > lines || found.Col < 1 {
				t.Errorf("a finding at %d:%d of %d lines", found.Line, found.Col, lines)
			}
		}
	})
}
