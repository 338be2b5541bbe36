// Package guardtest is the conformance suite of guards.
//
// A guard that passes keeps the contract of [guard.Screen] and the laws of
// package guard on the texts that it was tried on:
//
//   - chunk invariance: what is settled and what has been reported after a
//     prefix is the same wherever the prefix was cut, byte by byte too;
//   - settled means settled: it never goes back, and no finding is reported
//     late, twice or out of order;
//   - a screen that can be reset is then as if it had just been opened;
//   - bounded hold, where the guard states a bound;
//   - through a [guard.Chain]: the same text leaves after every prefix; nothing
//     of a blocked span does; a failure denies; the order of guards does not
//     matter; in shadow the guard changes nothing.
//
// The texts make the test. Give it those in which the guard finds something, at
// the start, at the end, twice in a row, and some that come close.
package guardtest

import (
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// Config is a guard and how to try it.
type Config struct {
	Guard guard.Guard
	// Texts are tried one by one. The guard must find something in at least
	// one of them.
	Texts []string
	// Bound is the most bytes that the guard may hold in any of the texts;
	// 0 means that it states none.
	Bound int
	// Channel is the channel that is opened; its zero value is the text of an
	// answer.
	Channel guard.Channel
}

// Run tries a guard that states no bound.
func Run(t testing.TB, g guard.Guard, texts ...string) {
	t.Helper()
	Test(t, Config{Guard: g, Texts: texts})
}

// Test tries a guard. It reports each law that is broken in each text once.
func Test(t testing.TB, c Config) {
	t.Helper()
	tried, found := 0, 0
	for _, text := range c.Texts {
		s := &subject{Config: c, t: t, text: []byte(text)}
		want, ok := s.bytewise()
		if !ok {
			continue // nothing to compare with
		}
		tried++
		found += len(want.reported)
		s.splits(want)
		s.resets(want)
		s.bound(want)
		s.releases()
		s.blocks(want)
		s.fails(want)
		s.orders()
		s.shadows(want)
	}
	if found == 0 && tried == len(c.Texts) {
		t.Errorf("guard %s finds nothing in %d texts: they try nothing", c.Guard.Name(), tried)
	}
}

// subject is a guard and the text that it is tried on.
type subject struct {
	Config
	t    testing.TB
	text []byte
}

// errorf reports a broken law.
func (s *subject) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("guard %s on %.80q: "+format, append([]any{s.Guard.Name(), s.text}, args...)...)
}

// most is how many cuts of one text are tried: all, if it is not longer.
const most = 700

// cuts returns the places at which the text is cut in two.
func (s *subject) cuts() []int {
	var at []int
	step := max(1, (len(s.text)+most)/most)
	for i := 0; i <= len(s.text); i += step {
		at = append(at, i)
	}
	return at
}

// pieces returns the text cut at the places given.
func (s *subject) pieces(at ...int) [][]byte {
	var out [][]byte
	from := 0
	for _, to := range append(at, len(s.text)) {
		out = append(out, s.text[from:to])
		from = to
	}
	return out
}

// every returns the text in pieces of n bytes.
func (s *subject) every(n int) [][]byte {
	var at []int
	for i := n; i < len(s.text); i += n {
		at = append(at, i)
	}
	return s.pieces(at...)
}
