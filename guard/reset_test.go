package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/stoplog/stoplog/guard"
)

// again is lit, whose screens can begin anew and count how often they were
// opened.
type again struct {
	lit
	opened *int
	fails  string // a text at which a screen fails, and one at which Reset panics
}

type againScreen struct {
	litScreen
	g again
}

func (g again) Open(context.Context, Channel) Screen {
	*g.opened++
	return &againScreen{litScreen{l: g.lit}, g}
}

func (s *againScreen) Write(p []byte) (Progress, error) {
	if string(p) == s.g.fails {
		return Progress{}, errors.New("out of order")
	}
	return s.litScreen.Write(p)
}

func (s *againScreen) Reset(_ context.Context, ch Channel) {
	if ch.Name == s.g.fails {
		panic("cannot")
	}
	s.litScreen = litScreen{l: s.l, outs: s.outs, buf: s.buf[:0]}
}

// story judges one text of a channel and says what came of it.
func story(s *Stream, text string) string {
	f := NewFilter(s)
	out, first := f.Write(nil, []byte(text))
	said := len(first.Decisions)
	out, last := f.Close(out)
	what := string(out) + strings.Repeat("!", said+len(last.Decisions))
	if last.Stop != nil {
		what += " stopped by " + last.Stop.Rule
	}
	return what
}

// TestReset judges channels one after the other with one stream, and each with a
// stream of its own: what comes of them is the same.
func TestReset(t *testing.T) {
	opened := 0
	chain := NewChain(Options{},
		Member{Guard: again{lit{"a", "cat", "cat", Redact}, &opened, "fail"}},
		Member{Guard: lit{"b", "dog", "dog", Redact}}, // its screens cannot begin anew
		Member{Guard: lit{"c", "wolf", "wolf", Deny}},
		Member{Guard: lit{"d", "a", "a", Deny}, Mode: Audit},
		Member{Guard: lit{"e", "o", "o", Deny}, Mode: Shadow})
	open := func(name string) *Stream { return chain.Open(t.Context(), Channel{Name: name}) }
	one := open("first")
	for i, text := range []string{"a cat", "a dog and a ca", "t", "a wolf and a cat", "do", "fail", "the cat again", "", "cat"} {
		if i > 0 {
			one.Reset(t.Context(), Channel{Name: text})
		}
		if got, want := story(one, text), story(open(text), text); got != want {
			t.Errorf("%q: %q, with a stream of its own %q", text, got, want)
		}
	}
	one.Reset(t.Context(), Channel{})
	one.Write([]byte("a ca")) // and nobody closes it
	one.Reset(t.Context(), Channel{})
	if got := story(one, "t"); got != "t" {
		t.Errorf("after a channel that was not closed: %q", got)
	}
	if one.Held() != 0 || one.Stopped() != nil {
		t.Errorf("it holds %d bytes, and was stopped: %v", one.Held(), one.Stopped())
	}
}

// TestResetOpensAnew only where a screen failed, in a channel or in its Reset.
func TestResetOpensAnew(t *testing.T) {
	opened := 0
	s := NewChain(Options{}, Member{Guard: again{lit{"a", "cat", "cat", Redact}, &opened, "fail"}}).Open(t.Context(), Channel{})
	for _, c := range []struct {
		channel, text, want string
		opened              int
	}{
		{"x", "cat", "[redacted:cat]!", 1},
		{"x", "fail", "! stopped by " + RuleGuardFailed, 1},
		{"x", "cat", "[redacted:cat]!", 2},
		{"fail", "cat", "[redacted:cat]!", 3},
		{"x", "cat", "[redacted:cat]!", 3},
	} {
		s.Reset(t.Context(), Channel{Name: c.channel})
		if got := story(s, c.text); got != c.want || opened != c.opened {
			t.Errorf("%+v: %q, opened %d times", c, got, opened)
		}
	}
}
