package guardtest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

var texts = []string{
	"key-1234 and key-12345 and key-1234",
	"key-1234",
	"a key-12 3, keykey-9876key-0000",
	"nothing here",
	"",
}

// TestGoodGuards shows that a guard which keeps the laws passes, whether it
// decides as it goes or waits for the whole text.
func TestGoodGuards(t *testing.T) {
	Test(t, Config{Guard: fake{"whole", func() guard.Screen { return &whole{} }}, Texts: texts})
	Test(t, Config{Guard: fake{"careful", func() guard.Screen { return &careful{} }}, Texts: texts, Bound: 8})
}

// TestBrokenGuards shows that the suite can fail: each guard breaks one law, in
// a way that products have shipped.
func TestBrokenGuards(t *testing.T) {
	for _, broken := range []struct {
		name   string
		screen func() guard.Screen
		want   string // in what the suite says
	}{
		{"looks at the last six bytes and the piece", func() guard.Screen { return &tail{} }, "findings are"},
		{"settles what it has read", func() guard.Screen { return &hasty{} }, "was settled"},
		{"takes the end of a piece for the end of the text", func() guard.Screen { return &ender{} }, "findings are"},
		{"scans again and reports again", func() guard.Screen { return &again{} }, "reported twice"},
		{"goes back", func() guard.Screen { return &back{} }, "settled is 0, after"},
		{"keeps the piece", func() guard.Screen { return &keeper{} }, "finds nothing"},
		{"settles by the piece", func() guard.Screen { return &ragged{} }, "are settled"},
		{"reports as it pleases", func() guard.Screen { return &disorder{} }, "after one at"},
		{"leaves the rest", func() guard.Screen { return &unfinished{} }, "at the end: settled is 0 of"},
		{"finds nothing", func() guard.Screen { return &blind{} }, "they try nothing"},
	} {
		t.Run(broken.name, func(t *testing.T) {
			said := record(t, func(t testing.TB) {
				Test(t, Config{Guard: fake{"broken", broken.screen}, Texts: texts})
			})
			if !strings.Contains(said, broken.want) {
				t.Errorf("the suite says\n%sand not %q", said, broken.want)
			}
		})
	}
	t.Run("holds too much", func(t *testing.T) {
		said := record(t, func(t testing.TB) {
			Test(t, Config{Guard: fake{"whole", func() guard.Screen { return &whole{} }}, Texts: texts, Bound: 16})
		})
		if want := "after 17 bytes 17 are held, more than 16"; !strings.Contains(said, want) {
			t.Errorf("the suite says\n%sand not %q", said, want)
		}
	})
}

// record runs a suite and returns what it says of the guard.
func record(t testing.TB, suite func(testing.TB)) string {
	r := &recorder{TB: t}
	suite(r)
	return r.said.String()
}

// recorder is a testing.TB whose failures are its own.
type recorder struct {
	testing.TB
	said bytes.Buffer
}

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.said, format+"\n", args...) }
func (r *recorder) Failed() bool                      { return r.said.Len() > 0 }

// fake is a guard that opens the screens it is told to. All look for key- and
// four digits that no fifth follows.
type fake struct {
	name string
	open func() guard.Screen
}

func (f fake) Name() string                                     { return f.name }
func (f fake) Open(context.Context, guard.Channel) guard.Screen { return named{f.name, f.open()} }

// named puts the guard's name on the findings of a screen.
type named struct {
	name string
	guard.Screen
}

func (n named) Write(p []byte) (guard.Progress, error) { return n.sign(n.Screen.Write(p)) }
func (n named) Close() (guard.Progress, error)         { return n.sign(n.Screen.Close()) }

func (n named) sign(p guard.Progress, err error) (guard.Progress, error) {
	for i := range p.Findings {
		p.Findings[i].Guard = n.name
	}
	return p, err
}

var key = regexp.MustCompile(`(key-\d{4})(?:\D|$)`)

// find returns the findings in a text that starts at base.
func find(text []byte, base int64) []guard.Finding {
	var out []guard.Finding
	for _, m := range key.FindAllSubmatchIndex(text, -1) {
		out = append(out, guard.Finding{Rule: "key", Start: base + int64(m[2]), End: base + int64(m[3]), Verdict: guard.Redact})
	}
	return out
}

// buffer is what most of the fakes keep.
type buffer struct{ text []byte }

func (b *buffer) add(p []byte) int64 {
	b.text = append(b.text, p...)
	return int64(len(b.text))
}

func (b *buffer) Close() (guard.Progress, error) {
	return guard.Progress{Settled: int64(len(b.text)), Findings: find(b.text, 0)}, nil
}

// whole waits for the end.
type whole struct{ buffer }

func (w *whole) Write(p []byte) (guard.Progress, error) {
	w.add(p)
	return guard.Progress{}, nil
}

// careful decides as soon as it can: a key is held until the rune behind it.
type careful struct {
	read  int64
	match []byte // the part of a key that was just read
}

func (c *careful) Write(p []byte) (guard.Progress, error) {
	var out []guard.Finding
	for _, b := range p {
		if len(c.match) == 8 && (b < '0' || b > '9') {
			out = append(out, c.finding())
		}
		c.match = append(c.match, b)
		for !partial(c.match) {
			c.match = c.match[1:]
		}
		c.read++
	}
	return guard.Progress{Settled: c.read - int64(len(c.match)), Findings: out}, nil
}

func (c *careful) Close() (guard.Progress, error) {
	var out []guard.Finding
	if len(c.match) == 8 {
		out = append(out, c.finding())
	}
	return guard.Progress{Settled: c.read, Findings: out}, nil
}

func (c *careful) finding() guard.Finding {
	return guard.Finding{Rule: "key", Start: c.read - 8, End: c.read, Verdict: guard.Redact}
}

// partial says whether a text can go on to be a key.
func partial(text []byte) bool {
	const form = "key-0000"
	for i, b := range text {
		if i >= len(form) || form[i] == '0' && (b < '0' || b > '9') || form[i] != '0' && b != form[i] {
			return false
		}
	}
	return true
}

// tail scans each piece together with the last six bytes before it.
type tail struct {
	last []byte
	read int64
}

func (s *tail) Write(p []byte) (guard.Progress, error) {
	window := append(s.last, p...)
	base := s.read - int64(len(s.last))
	s.read += int64(len(p))
	var out []guard.Finding
	for _, f := range find(window, base) {
		if f.Start >= base {
			out = append(out, f)
		}
	}
	s.last = append([]byte(nil), window[max(0, len(window)-6):]...)
	return guard.Progress{Settled: s.read - int64(len(s.last)), Findings: out}, nil
}

func (s *tail) Close() (guard.Progress, error) { return guard.Progress{Settled: s.read}, nil }

// hasty finds all there is, but holds nothing.
type hasty struct{ careful }

func (h *hasty) Write(p []byte) (guard.Progress, error) {
	pr, err := h.careful.Write(p)
	pr.Settled = h.read
	return pr, err
}

// ender scans what it has, as if there were no more.
type ender struct {
	buffer
	known int
}

func (e *ender) Write(p []byte) (guard.Progress, error) {
	e.add(p)
	all := find(e.text, 0)
	out := all[min(e.known, len(all)):]
	e.known = max(e.known, len(all))
	return guard.Progress{Findings: out}, nil
}

func (e *ender) Close() (guard.Progress, error) {
	pr, err := e.Write(nil)
	pr.Settled = int64(len(e.text))
	return pr, err
}

// again scans all it has with every piece.
type again struct{ buffer }

func (a *again) Write(p []byte) (guard.Progress, error) {
	a.add(p)
	return guard.Progress{Findings: find(bytes.TrimRight(a.text, "0123456789"), 0)}, nil
}

// back settles text, and thinks better of it.
type back struct{ buffer }

func (b *back) Write(p []byte) (guard.Progress, error) {
	return guard.Progress{Settled: b.add(p) % 3}, nil
}

// keeper remembers pieces, not their bytes.
type keeper struct {
	pieces [][]byte
	read   int64
}

func (k *keeper) Write(p []byte) (guard.Progress, error) {
	k.pieces = append(k.pieces, p)
	k.read += int64(len(p))
	return guard.Progress{}, nil
}

func (k *keeper) Close() (guard.Progress, error) {
	return guard.Progress{Settled: k.read, Findings: find(bytes.Join(k.pieces, nil), 0)}, nil
}

// ragged settles nothing of a piece of more than one byte.
type ragged struct{ careful }

func (r *ragged) Write(p []byte) (guard.Progress, error) {
	before := r.read - int64(len(r.match))
	pr, err := r.careful.Write(p)
	if len(p) > 1 {
		pr.Settled = before
	}
	return pr, err
}

// disorder reports the last finding first.
type disorder struct{ whole }

func (d *disorder) Close() (guard.Progress, error) {
	pr, err := d.whole.Close()
	for i, j := 0, len(pr.Findings)-1; i < j; i, j = i+1, j-1 {
		pr.Findings[i], pr.Findings[j] = pr.Findings[j], pr.Findings[i]
	}
	return pr, err
}

// unfinished forgets what it held.
type unfinished struct{ whole }

func (unfinished) Close() (guard.Progress, error) { return guard.Progress{}, nil }

// blind lets everything pass.
type blind struct{ buffer }

func (b *blind) Write(p []byte) (guard.Progress, error) {
	return guard.Progress{Settled: b.add(p)}, nil
}
func (b *blind) Close() (guard.Progress, error) { return b.Write(nil) }
