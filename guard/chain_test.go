package guard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/stoplog/stoplog/guard"
)

// lit finds a literal, holding what may become it. cut > 0 reports a finding
// open once that many bytes of "<…>" have come.
type lit struct {
	name, rule, text string
	verdict          Verdict
}

func (l lit) Name() string                         { return l.name }
func (l lit) Strictest() Verdict                   { return l.verdict }
func (l lit) Open(context.Context, Channel) Screen { return &litScreen{l: l} }

type litScreen struct {
	l    lit
	buf  []byte
	at   int // searched up to here
	outs []Finding
}

func (s *litScreen) Write(p []byte) (Progress, error) {
	s.buf = append(s.buf, p...)
	s.outs = s.outs[:0]
	for {
		i := bytes.Index(s.buf[s.at:], []byte(s.l.text))
		if i < 0 {
			break
		}
		start := s.at + i
		s.at = start + len(s.l.text)
		s.outs = append(s.outs, Finding{Guard: s.l.name, Rule: s.l.rule, Start: int64(start), End: int64(s.at), Verdict: s.l.verdict})
	}
	settled := len(s.buf)
	for n := min(len(s.l.text)-1, len(s.buf)-s.at); n > 0; n-- {
		if strings.HasPrefix(s.l.text, string(s.buf[len(s.buf)-n:])) {
			settled -= n
			break
		}
	}
	return Progress{Settled: int64(settled), Findings: s.outs}, nil
}

func (s *litScreen) Close() (Progress, error) { return Progress{Settled: int64(len(s.buf))}, nil }

// span finds "<" to ">", and reports a span open once it is longer than limit.
type span struct {
	name    string
	limit   int
	verdict Verdict
}

func (g span) Name() string                         { return g.name }
func (g span) Open(context.Context, Channel) Screen { return &spanScreen{g: g, start: -1} }

type spanScreen struct {
	g     span
	read  int64
	start int64
	open  bool
	outs  []Finding
}

func (s *spanScreen) find(end int64) {
	s.outs = append(s.outs, Finding{Guard: s.g.name, Rule: "span", Start: s.start, End: end, Verdict: s.g.verdict})
}

func (s *spanScreen) Write(p []byte) (Progress, error) {
	s.outs = s.outs[:0]
	for _, b := range p {
		s.read++
		switch {
		case b == '<' && s.start < 0:
			s.start = s.read - 1
		case b == '>' && s.start >= 0:
			s.find(s.read)
			s.start, s.open = -1, false
		case s.start >= 0 && !s.open && s.read-s.start >= int64(s.g.limit):
			s.find(Open)
			s.open = true
		}
	}
	return s.progress(), nil
}

func (s *spanScreen) progress() Progress {
	settled := s.read
	if s.start >= 0 && !s.open {
		settled = s.start
	}
	return Progress{Settled: settled, Findings: s.outs}
}

func (s *spanScreen) Close() (Progress, error) {
	s.outs = s.outs[:0]
	if s.open {
		s.find(s.read)
	}
	return Progress{Settled: s.read, Findings: s.outs}, nil
}

// run filters the pieces and returns the released text, the stop, and the
// decisions, as one string.
func run(t *testing.T, c *Chain, pieces ...string) (released, story string) {
	t.Helper()
	stream := c.Open(context.Background(), Channel{Name: "test"})
	f := NewFilter(stream)
	var out []byte
	var log []string
	note := func(step Step) {
		for _, d := range step.Decisions {
			log = append(log, fmt.Sprintf("%s %s/%s [%d,%d) %s", d.Mode, d.Guard, d.Rule, d.Start, d.End, d.Verdict))
		}
	}
	for _, p := range pieces {
		var step Step
		out, step = f.Write(out, []byte(p))
		note(step)
	}
	out, step := f.Close(out)
	note(step)
	if step.Stop != nil {
		log = append(log, fmt.Sprintf("stop at %d: %s by %s/%s", step.Stop.At, step.Stop.Verdict, step.Stop.Guard, step.Stop.Rule))
	}
	return string(out), strings.Join(log, "\n")
}

func bytewise(s string) []string {
	var out []string
	for i := range len(s) {
		out = append(out, s[i:i+1])
	}
	return out
}

func enforce(gs ...Guard) []Member {
	var ms []Member
	for _, g := range gs {
		ms = append(ms, Member{Guard: g})
	}
	return ms
}

func TestChain(t *testing.T) {
	cat := lit{"a", "cat", "cat", Redact}
	attack := lit{"b", "attack", "attack", Redact}
	denied := lit{"d", "tack", "tack", Deny}
	ask := lit{"e", "ask", "ask", RequireApproval}
	note := lit{"n", "ca", "ca", Allow}
	tests := []struct {
		name     string
		members  []Member
		text     string
		released string
		story    string
	}{
		{"nothing to say", enforce(cat), "a dog", "a dog", ""},
		{"redacts", enforce(cat), "a cat.", "a [redacted:cat].", "enforce a/cat [2,5) redact"},
		{"held to the end and let go", enforce(cat), "a ca", "a ca", ""},
		{"two that touch stay two", enforce(cat), "catcat", "[redacted:cat][redacted:cat]",
			"enforce a/cat [0,3) redact\nenforce a/cat [3,6) redact"},
		{"overlap unites under the first", enforce(attack, lit{"c", "tackle", "tackle", Redact}), "an attackle!", "an [redacted:attack]!",
			"enforce b/attack [3,9) redact\nenforce c/tackle [5,11) redact"},
		{"ties go by name", enforce(lit{"z", "z", "cat", Redact}, lit{"y", "y", "cats", Redact}), "cats", "[redacted:y]",
			"enforce y/y [0,4) redact\nenforce z/z [0,3) redact"},
		{"the severest wins", enforce(attack, denied), "an attack!", "an ",
			"enforce b/attack [3,9) redact\nenforce d/tack [5,9) deny\nstop at 3: deny by b/attack"},
		{"approval stops too", enforce(ask, cat), "cat ask cat", "[redacted:cat] ",
			"enforce a/cat [0,3) redact\nenforce e/ask [4,7) require_approval\nstop at 4: require_approval by e/ask"},
		{"a note changes nothing", enforce(note, lit{"m", "ats", "ats", Redact}), "cats", "c[redacted:ats]",
			"enforce n/ca [0,2) allow\nenforce m/ats [1,4) redact"},
		{"one that is decided late has its place", enforce(lit{"a", "late", "bcdefgh", Redact}, lit{"y", "abc", "abc", Redact}, lit{"z", "cd", "cd", Redact}), "abcdefgh", "[redacted:abc]",
			"enforce y/abc [0,3) redact\nenforce a/late [1,8) redact\nenforce z/cd [2,4) redact"},
		{"a note that is known late has its place", enforce(lit{"a", "late", "bcdefgh", Allow}, lit{"y", "abc", "abc", Redact}, lit{"z", "cd", "cd", Allow}), "abcdefgh", "[redacted:abc]defgh",
			"enforce y/abc [0,3) redact\nenforce a/late [1,8) allow\nenforce z/cd [2,4) allow"},
		{"shadow changes nothing", []Member{{Guard: denied, Mode: Shadow}, {Guard: cat}}, "cat attack", "[redacted:cat] attack",
			"enforce a/cat [0,3) redact\nshadow d/tack [6,10) deny"},
		{"shadow sees what was let through", []Member{{Guard: cat, Mode: Shadow}, {Guard: ask}}, "cat ask cat", "cat ",
			"shadow a/cat [0,3) redact\nenforce e/ask [4,7) require_approval\nstop at 4: require_approval by e/ask"},
		{"audit comes last", []Member{{Guard: denied, Mode: Audit}, {Guard: cat}}, "attack cat", "attack [redacted:cat]",
			"enforce a/cat [7,10) redact\naudit d/tack [2,6) deny"},
		{"a short span", enforce(span{"s", 6, Redact}), "a <b> c", "a [redacted:span] c", "enforce s/span [2,5) redact"},
		{"a long span", enforce(span{"s", 6, Redact}), "a <bcdefghijk> c", "a [redacted:span] c",
			"enforce s/span [2,-1) redact\nenforce s/span [2,14) redact"},
		{"a span without end", enforce(span{"s", 6, Redact}), "a <bcdefghijk", "a [redacted:span]",
			"enforce s/span [2,-1) redact\nenforce s/span [2,13) redact"},
		{"a short one without end is none", enforce(span{"s", 6, Redact}), "a <bc", "a <bc", ""},
		{"a long span that denies", enforce(span{"s", 6, Deny}), "a <bcdefghijk> c", "a ",
			"enforce s/span [2,14) deny\nstop at 2: deny by s/span"},
		{"a denial inside a long span", enforce(span{"s", 6, Redact}, denied), "a <bcdefgtack hijk> c", "a [redacted:span]",
			"enforce s/span [2,-1) redact\nenforce s/span [2,19) redact\nenforce d/tack [9,13) deny\nstop at 2: deny by s/span"},
		{"a denial before the long span is known", enforce(span{"s", 12, Redact}, lit{"d", "bc", "bc", Deny}), "a <bcdefghijkl> c", "a [redacted:span]",
			"enforce s/span [2,-1) redact\nenforce s/span [2,15) redact\nenforce d/bc [3,5) deny\nstop at 2: deny by s/span"},
		{"a denial that starts before the long span", enforce(span{"s", 6, Redact}, lit{"d", "a <b", "a <b", Deny}), "a <bcdefghijk> c", "",
			"enforce d/a <b [0,4) deny\nenforce s/span [2,14) redact\nstop at 0: deny by d/a <b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewChain(Options{}, tt.members...)
			for _, pieces := range [][]string{{tt.text}, bytewise(tt.text), {tt.text[:len(tt.text)/2], "", tt.text[len(tt.text)/2:]}} {
				released, story := run(t, c, pieces...)
				if released != tt.released || sorted(story) != sorted(tt.story) {
					t.Errorf("in %d pieces:\nreleased %q\n    want %q\n%s\nwant\n%s", len(pieces), released, tt.released, story, tt.story)
				}
			}
		})
	}
}

// sorted orders the decisions of guards that only watch, behind the others: when
// one of them speaks before another is no matter of the text alone.
func sorted(story string) string {
	var acted, watched []string
	for line := range strings.Lines(story + "\n") {
		if strings.HasPrefix(line, "shadow") || strings.HasPrefix(line, "audit") {
			watched = append(watched, line)
		} else {
			acted = append(acted, line)
		}
	}
	slices.Sort(watched)
	return strings.Join(append(acted, watched...), "")
}

func TestChainAnyCuts(t *testing.T) {
	c := NewChain(Options{MaxHold: 40},
		Member{Guard: span{"s", 9, Redact}}, Member{Guard: lit{"a", "cat", "cat", Redact}},
		Member{Guard: lit{"d", "dog>>", "dog>>", Deny}}, Member{Guard: lit{"w", "cat<", "cat<", RequireApproval}, Mode: Shadow},
		Member{Guard: span{"t", 1 << 40, Redact}, Mode: Shadow}, Member{Guard: lit{"n", "o", "o", Allow}})
	words := []string{"<", ">", "cat", "ca", "dog", "dog>>", " ", "é", "好", "🙂", "\xff", "o", "abcdefgh"}
	rng := rand.New(rand.NewPCG(1, 2))
	stops := 0
	for range 3000 {
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteString(words[rng.IntN(len(words))])
		}
		text := b.String()
		released, story := run(t, c, text)
		if strings.Contains(story, "stop") {
			stops++
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := 1 + rng.IntN(min(len(rest), 1+rng.IntN(12)))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		for _, p := range [][]string{bytewise(text), pieces} {
			r, st := run(t, c, p...)
			if r != released || sorted(st) != sorted(story) {
				t.Fatalf("%q cut as %q:\n%q\n%s\nwhole:\n%q\n%s", text, p, r, st, released, story)
			}
		}
	}
	if stops < 100 {
		t.Errorf("only %d of the texts were stopped: they test too little", stops)
	}
}

func TestChainMaxHold(t *testing.T) {
	c := NewChain(Options{MaxHold: 100}, Member{Guard: span{"s", 1 << 40, Redact}})
	text := "fine <" + strings.Repeat("x", 300) + ">"
	for _, pieces := range [][]string{{text}, bytewise(text)} {
		released, story := run(t, c, pieces...)
		// The limit is looked at every 100/16 = 6 bytes: 6·18 is the first
		// length at which more than 100 bytes wait from offset 5 on.
		want := "enforce s/max_hold_bytes [5,108) deny\nstop at 5: deny by s/max_hold_bytes"
		if released != "fine " || story != want {
			t.Errorf("in %d pieces: %q\n%s\nwant\n%s", len(pieces), released, story, want)
		}
	}
}

type broken struct {
	Guard
	write func(n int) (Progress, error)
}

func (b broken) Name() string                         { return "broken" }
func (b broken) Open(context.Context, Channel) Screen { return &brokenScreen{b: b} }

type brokenScreen struct {
	b broken
	n int
}

func (s *brokenScreen) Write(p []byte) (Progress, error) { s.n += len(p); return s.b.write(s.n) }
func (s *brokenScreen) Close() (Progress, error)         { return s.b.write(s.n) }

func TestChainFailureDenies(t *testing.T) {
	failures := map[string]func(n int) (Progress, error){
		"error":            func(n int) (Progress, error) { return Progress{}, errors.New("no") },
		"panic":            func(n int) (Progress, error) { panic("no") },
		"settles too much": func(n int) (Progress, error) { return Progress{Settled: int64(n + 1)}, nil },
		"settles back": func(n int) (Progress, error) {
			if n > 3 {
				return Progress{Settled: 1}, nil
			}
			return Progress{Settled: int64(n)}, nil
		},
		"never settles": func(n int) (Progress, error) { return Progress{}, nil },
		"finds outside": func(n int) (Progress, error) {
			return Progress{Findings: []Finding{{Start: 0, End: int64(n + 1), Verdict: Redact}}}, nil
		},
		"finds nothing": func(n int) (Progress, error) {
			return Progress{Findings: []Finding{{Start: 1, End: 1, Verdict: Redact}}}, nil
		},
		"finds too late": func(n int) (Progress, error) {
			return Progress{Settled: int64(n), Findings: []Finding{{Start: 0, End: 1, Verdict: Redact}}}, nil
		},
		"never ends": func(n int) (Progress, error) {
			return Progress{Settled: int64(n), Findings: []Finding{{Start: int64(n - 1), End: Open, Verdict: Redact}}}, nil
		},
	}
	for name, write := range failures {
		t.Run(name, func(t *testing.T) {
			b := broken{write: write}
			c := NewChain(Options{}, Member{Guard: b})
			_, story := run(t, c, "some", "thing")
			if !strings.HasSuffix(story, "deny by broken/guard_failed") {
				t.Errorf("enforced: %s", story)
			}
			for _, mode := range []Mode{Shadow, Audit} {
				released, story := run(t, NewChain(Options{}, Member{Guard: b, Mode: mode}), "some", "thing")
				if released != "something" || !strings.Contains(story, "broken/guard_failed") {
					t.Errorf("%s: released %q\n%s", mode, released, story)
				}
			}
		})
	}
	none := NewChain(Options{}, Member{Guard: nilGuard{}})
	if released, story := run(t, none, "x"); released != "" || !strings.HasSuffix(story, "deny by nil/guard_failed") {
		t.Errorf("a guard without a screen: %q\n%s", released, story)
	}
}

type nilGuard struct{}

func (nilGuard) Name() string                         { return "nil" }
func (nilGuard) Open(context.Context, Channel) Screen { return nil }

func TestChainKeepsRunesWhole(t *testing.T) {
	c := NewChain(Options{}, Member{Guard: lit{"a", "cat", "cat", Redact}})
	stream := c.Open(context.Background(), Channel{})
	f := NewFilter(stream)
	text := "é好🙂 cat 好"
	var all []byte
	for i := range len(text) {
		out, _ := f.Write(nil, []byte(text[i:i+1]))
		if !bytes.Equal(bytes.ToValidUTF8(out, nil), out) {
			t.Errorf("after byte %d: released %q", i, out)
		}
		all = append(all, out...)
	}
	all, _ = f.Close(all)
	if want := "é好🙂 [redacted:cat] 好"; string(all) != want {
		t.Errorf("got %q, want %q", all, want)
	}
}

func TestAuditSeesBothEnds(t *testing.T) {
	c := NewChain(Options{}, Member{Guard: lit{"a", "cat", "cat", Deny}, Mode: Audit})
	fill := strings.Repeat("x", 3*AuditBytes)
	text := "cat" + fill + "cat" + fill + "cat"
	for _, n := range []int{7, 1000, 60_000, len(text)} {
		var pieces []string
		for rest := text; rest != ""; {
			k := min(n, len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		released, story := run(t, c, pieces...)
		want := fmt.Sprintf("audit a/cat [0,3) deny\naudit a/cat [%d,%d) deny", len(text)-3, len(text))
		if released != text || story != want {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", n, story, want)
		}
	}
}

func TestNoAllocationForCleanText(t *testing.T) {
	c := NewChain(Options{}, Member{Guard: quiet{}}, Member{Guard: quiet{}, Mode: Shadow})
	f := NewFilter(c.Open(context.Background(), Channel{}))
	piece, dst := []byte("text"), make([]byte, 0, 64)
	f.Write(dst, piece)
	if n := testing.AllocsPerRun(1000, func() { f.Write(dst, piece) }); n != 0 {
		t.Errorf("%v allocations a piece", n)
	}
}

func TestChainSaysWhatTextWaitsFor(t *testing.T) {
	fast, slow := quiet{}, paced{lit{"w", "w", "w", Redact}, Whole}
	for want, members := range map[string][]Member{
		"text waits for nothing": {{Guard: slow, Mode: Shadow}},
		"text waits only where it may become part of a finding, at most 99 bytes": {{Guard: fast}, {Guard: slow, Mode: Audit}},
		"text waits for its end and guard w's answer, at most 99 bytes":           {{Guard: fast}, {Guard: slow}},
		"text waits for guard w to answer, a window at a time, at most 99 bytes":  {{Guard: paced{slow.lit, Windows}}},
	} {
		if got := NewChain(Options{MaxHold: 99}, members...).Waits(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type paced struct {
	lit
	pace Pace
}

func (p paced) Pace() Pace { return p.pace }

type quiet struct{}

func (quiet) Name() string                         { return "quiet" }
func (quiet) Open(context.Context, Channel) Screen { return &quietScreen{} }

type quietScreen struct{ n int64 }

func (s *quietScreen) Write(p []byte) (Progress, error) {
	s.n += int64(len(p))
	return Progress{Settled: s.n}, nil
}
func (s *quietScreen) Close() (Progress, error) { return Progress{Settled: s.n}, nil }
