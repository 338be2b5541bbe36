package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
)

// words is an asker that objects to a word.
type words struct {
	word    string
	verdict guard.Verdict
	delay   time.Duration
	err     error

	asked, under, most atomic.Int64
}

func (w *words) Ask(ctx context.Context, q Question) ([]Finding, error) {
	w.asked.Add(1)
	n := w.under.Add(1)
	defer w.under.Add(-1)
	for m := w.most.Load(); n > m && !w.most.CompareAndSwap(m, n); m = w.most.Load() {
	}
	if w.delay > 0 {
		select {
		case <-time.After(w.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var found []Finding
	for at := 0; ; {
		i := strings.Index(q.Text[at:], w.word)
		if i < 0 {
			return found, w.err
		}
		found = append(found, Finding{Rule: "word", Start: at + i, End: at + i + len(w.word), Verdict: w.verdict, Severity: guard.High})
		at += i + len(w.word)
	}
}

var prose = strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 16)

func texts() []string {
	return []string{
		"", "nothing to say", "a BAD word", "BAD", prose, prose + "BAD", "BAD " + prose, prose[:700] + "BAD BAD\n" + prose,
		strings.Repeat("x", 2500) + "BAD" + strings.Repeat("日本", 400), strings.Repeat("- a line\n", 60) + "BAD\n",
	}
}

// TestConformance puts both kinds through the suite that every guard passes.
func TestConformance(t *testing.T) {
	for name, opt := range map[string]Options{
		"windows":     {Name: "words", Strictest: guard.Redact, Key: []byte("k")},
		"one at once": {Name: "words", Strictest: guard.Redact, Key: []byte("k"), Ahead: 1},
		"whole":       {Name: "words", Strictest: guard.Redact, Key: []byte("k"), Whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			guardtest.Test(t, guardtest.Config{Guard: New(&words{word: "BAD", verdict: guard.Redact}, opt), Texts: texts()})
		})
	}
}

// TestWindows: behind a sentence once there is enough, between words if there is
// none, between runes if there are no words; nothing of the text is lost.
func TestWindows(t *testing.T) {
	for _, text := range append(texts(), strings.Repeat("日", 3000), strings.Repeat("word ", 1000), "\xff\xfe"+strings.Repeat("\x80", 3000)) {
		cut := func(piece int) (windows []string) {
			var c cutter
			var rest []byte
			for at := 0; at < len(text); at += piece {
				rest = append(rest, text[at:min(at+piece, len(text))]...)
				for n := c.next(rest); n > 0; n = c.next(rest) {
					windows, rest = append(windows, string(rest[:n])), rest[n:]
				}
			}
			return append(windows, string(rest))
		}
		want := cut(len(text) + 1)
		if strings.Join(want, "") != text {
			t.Errorf("%.40q: the windows are not the text", text)
		}
		for i, w := range want[:len(want)-1] {
			if len(w) < minWindow || len(w) > maxWindow {
				t.Errorf("%.40q: window %d has %d bytes", text, i, len(w))
			}
		}
		for _, piece := range []int{1, 7, 333} {
			if got := cut(piece); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%.40q: in pieces of %d other windows", text, piece)
			}
		}
	}
	var c cutter
	if n := c.next([]byte(prose)); prose[n-2] != '.' {
		t.Errorf("the first window ends with %q", prose[n-10:n])
	}
}

// TestAhead: a window leaves when it was answered and the next one has been asked
// about; so many are in question at once, and no more.
func TestAhead(t *testing.T) {
	for _, ahead := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := &words{word: "BAD", verdict: guard.Redact, delay: time.Second}
			s := New(w, Options{Name: "words", Strictest: guard.Redact, Ahead: ahead}).Open(t.Context(), guard.Channel{})
			began := time.Now()
			var settled []int64
			text := prose + prose + prose
			for i := range len(text) {
				p, err := s.Write([]byte(text[i : i+1]))
				if err != nil {
					t.Fatal(err)
				}
				if n := len(settled); n == 0 || settled[n-1] != p.Settled {
					settled = append(settled, p.Settled)
				}
			}
			if _, err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := w.most.Load(); got > int64(ahead) {
				t.Errorf("ahead %d: %d were in question at once", ahead, got)
			}
			windows := w.asked.Load()
			waited := time.Since(began)
			if want := time.Duration((windows+int64(ahead)-1)/int64(ahead)) * time.Second; waited > want+time.Second || waited < want-time.Second {
				t.Errorf("ahead %d: %d windows took %s, want about %s", ahead, windows, waited, want)
			}
			if len(settled) < 3 {
				t.Errorf("ahead %d: settled at %v", ahead, settled)
			}
		})
	}
}

// TestInFlight: all channels together ask no more at once than they may.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &words{word: "BAD", verdict: guard.Redact, delay: time.Second}
		g := New(w, Options{Name: "words", Strictest: guard.Redact, Ahead: 8, InFlight: 3, Timeout: time.Hour})
		done := make(chan error)
		for range 4 {
			go func() {
				s := g.Open(t.Context(), guard.Channel{})
				_, err := s.Write([]byte(prose))
				if err == nil {
					_, err = s.Close()
				}
				done <- err
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := w.most.Load(); got != 3 {
			t.Errorf("%d were asked at once, want 3", got)
		}
	})
}

// TestClosed: what a judge does wrong is an error, and a chain denies.
func TestClosed(t *testing.T) {
	for name, c := range map[string]struct {
		asker Asker
		want  string
	}{
		"fails":               {&words{word: "BAD", err: errors.New("no way")}, "no way"},
		"is late":             {&words{word: "BAD", delay: time.Hour}, "no answer within 10s"},
		"panics":              {says(func(Question) []Finding { panic("oh") }), "panicked: oh"},
		"points outside":      {says(func(q Question) []Finding { return []Finding{{Rule: "r", End: len(q.Text) + 1}} }), "of a text of"},
		"points at nothing":   {says(func(Question) []Finding { return []Finding{{Rule: "r"}} }), "finding at [0, 0)"},
		"goes too far":        {says(func(Question) []Finding { return []Finding{{Rule: "r", End: 1, Verdict: guard.Deny}} }), "severest is redact"},
		"names no rule":       {says(func(Question) []Finding { return []Finding{{End: 1}} }), "without a rule"},
		"is left by a caller": {&words{word: "BAD", delay: time.Hour}, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if name == "is left by a caller" {
					leave()
				}
				g := New(c.asker, Options{Name: "words", Strictest: guard.Redact})
				_, err := func() (guard.Progress, error) {
					s := g.Open(ctx, guard.Channel{})
					if p, err := s.Write([]byte("hello")); err != nil {
						return p, err
					}
					return s.Close()
				}()
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got the error %v, want %s", err, c.want)
				}
				s := guard.NewChain(guard.Options{}, guard.Member{Guard: g}).Open(ctx, guard.Channel{})
				s.Write([]byte("hello"))
				if step := s.Close(); step.Stop == nil || step.Stop.Verdict != guard.Deny || step.Settled != 0 {
					t.Errorf("the chain does not deny: %+v", step)
				}
			})
		})
	}
}

// says is an asker that says what it says.
type says func(Question) []Finding

func (s says) Ask(_ context.Context, q Question) ([]Finding, error) { return s(q), nil }

// TestBefore: a window is asked about with the one before it.
func TestBefore(t *testing.T) {
	var asked []Question
	g := New(says(func(q Question) []Finding { asked = append(asked, q); return nil }), Options{Ahead: 1})
	s := g.Open(t.Context(), guard.Channel{Name: "c"})
	if _, err := s.Write([]byte(prose)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(asked) < 3 || asked[0].Before != "" || asked[1].Before != asked[0].Text || asked[0].Channel.Name != "c" {
		t.Errorf("asked %q", asked)
	}
}

// BenchmarkLinear cuts a long text that comes at once.
func BenchmarkLinear(b *testing.B) {
	text := []byte(strings.Repeat(prose, 1000))
	b.SetBytes(int64(len(text)))
	g := New(says(func(Question) []Finding { return nil }), Options{InFlight: 1})
	for b.Loop() {
		s := g.Open(b.Context(), guard.Channel{})
		if _, err := s.Write(text); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFields: an id is asked about by nobody, and what reads like a text is.
func TestFields(t *testing.T) {
	w := &words{word: "BAD", verdict: guard.Redact}
	g := New(w, Options{Name: "words", Strictest: guard.Redact})
	for text, want := range map[string]int64{"chatcmpl-BAD": 0, "a BAD word": 1, strings.Repeat("x", 513): 1} {
		w.asked.Store(0)
		s := g.Open(t.Context(), guard.Channel{Kind: guard.Field})
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Close(); err != nil || p.Settled != int64(len(text)) || w.asked.Load() != want {
			t.Errorf("%.20q: settled %d, asked %d times, %v", text, p.Settled, w.asked.Load(), err)
		}
	}
}
