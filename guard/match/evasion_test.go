package match_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// A plain is the projection of a text, and of each of its bytes where in the text
// its rune starts and ends. It is made of the whole text, with a regular expression
// for what is hidden and a table that is spelt out.
type plain struct {
	text       string
	start, end []int64
	read       int // of the text; the rest may be hidden yet
}

var sequence = regexp.MustCompile("^\x1b\\[[0-9]{1,4}(?:[;:][0-9]{0,4})*m")

// begun are starts of a sequence.
var begun = regexp.MustCompile("^\x1b(?:\\[(?:[0-9]{1,4}(?:[;:][0-9]{0,4})*)?)?$")

const (
	nothing = "\u00ad\u034f\u061c\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2065\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f\ufe00\ufe0f\ufeff\ufff8\U000e0000\U000e0041\U000e01ef"
	latin   = "ABCEHIJKMNOPSTXYacehijlopqsuvwxy"
	leads   = "\xc2\xcd\xce\xcf\xd0\xd1\xd2\xd3\xd4\xd8\xe1\xe2\xef\xf3" // that what is not itself begins with
	like    = "АВСЕНІЈКМΝОРЅТХҮасеһіјӏорԛѕυνԝху"
)

// evasionCases is how many texts TestEvasions makes up.
var evasionCases = 4_000

func project(text string, last bool) plain {
	p := plain{}
	likes := []rune(like)
	hidden, coloured := 0, false
	keep := func(s string, from, n int) {
		for range len(s) {
			p.start, p.end = append(p.start, int64(from)), append(p.end, int64(from+n))
		}
		p.text += s
		p.read, hidden, coloured = from+n, 0, false
	}
	for i := 0; i < len(text); {
		rest := text[i:]
		r, n := utf8.DecodeRuneInString(rest)
		if !last && !utf8.FullRuneInString(rest) && !strings.Contains(leads, rest[:1]) {
			keep(rest, i, len(rest)) // the engine waits for the rest of it
			break
		}
		if !last && (!utf8.FullRuneInString(rest) || begun.MatchString(rest) && len(rest) < match.MostHidden) {
			break
		}
		s := rest[:n]
		hide := strings.ContainsRune(nothing, r) || r >= 0xe0000 && r <= 0xe01ef || r >= 0xfe00 && r <= 0xfe0f
		if seq := sequence.FindString(rest); seq != "" && len(seq) <= match.MostHidden {
			hide, n = true, len(seq)
		} else if coloured && strings.HasPrefix(rest, "\x1b[K") {
			hide, n = true, 3
		} else if k := slices.Index(likes, r); k >= 0 {
			s = latin[k : k+1]
		} else if r >= 0xff01 && r <= 0xff5e {
			s = string(r - 0xff01 + '!')
		}
		if hide && hidden+n > match.MostHidden {
			hide, n = false, utf8.RuneLen(r)
		}
		switch {
		case hide:
			hidden, coloured = hidden+n, rest[0] == 0x1b
			p.read = i + n
		case len(s) == 1 || len(s) == n:
			if s[0] == 0x1b {
				n = 1
			}
			keep(s, i, n)
		default:
			panic(fmt.Sprintf("%q", s))
		}
		i += n
	}
	return p
}

// from is where the rune at a place starts in the text.
func (p plain) from(at int64) int64 {
	if at == int64(len(p.text)) {
		return int64(p.read)
	}
	return p.start[at]
}

// to is where the rune before a place ends in the text.
func (p plain) to(at int64) int64 {
	if at == 0 {
		return 0
	}
	return p.end[at-1]
}

var evasionRules = []match.Rule{
	{ID: "token", Pattern: `\bkey_[a-z0-9]{4,}`},
	{ID: "after", Pattern: `pass(?:word)?: *(?P<secret>[^ \n]+)`, Group: "secret"},
	{ID: "long", Pattern: `<[^>]*>`},
	{ID: "any", Pattern: "\x1b[^a]b"},
}

// disguised makes a text with tokens in it, and tricks in them.
func disguised(rng *rand.Rand) string {
	parts := []string{"key_ab12", "key_", "pass: ", "password:", " ", "\n", "x", "<", ">", "a", "b", "1", "\x1b", "\x1b[", "\x1b[1m", "\x1b[38;2;255;100;100m", "\x1b[1;22;333;4444", "\x1b[K", "\x1b[1m\x1b[K", "\x1b[m",
		"ｋｅｙ＿", "кеу_", "ｐass", "раss", "\u200b", "\ufeff", "\U000e0041", "\u200b\u200c\u200d\u2060\u200b\u200c\u200d\u2060\u200b\u200c\u200d\u2060", "\xe2\x80", "\xf3\xa0", "é", "中", "\xff", "о", "ｚ",
		strings.Repeat("y", 30)}
	var b strings.Builder
	for range 1 + rng.IntN(14) {
		part := parts[rng.IntN(len(parts))]
		if rng.IntN(3) == 0 && len(part) > 1 { // a trick inside
			at := rng.IntN(len(part))
			part = part[:at] + parts[rng.IntN(len(parts))] + part[at:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// TestEvasions compares what is said of texts with tricks in them, after every
// prefix and at random cuts, with what an engine that reads through nothing says
// of their projection.
func TestEvasions(t *testing.T) {
	opt := match.Options{Key: []byte("key"), HoldLimit: 24, SwallowLimit: 64}
	base := compile(t, opt, evasionRules...)
	opt.Evasions = match.Evasions
	e := compile(t, opt, evasionRules...)
	rng := rand.New(rand.NewPCG(5, 8))
	found, masked := 0, 0
	for range evasionCases {
		text := disguised(rng)
		want := batch(t, base, text)
		for k := range 2 {
			got := e.Open(t.Context(), guard.Channel{})
			var all []guard.Finding
			for at := 0; at < len(text); {
				n := min(len(text)-at, 1+k*rng.IntN(12))
				p, err := got.Write([]byte(text[at : at+n]))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, p.Findings...)
				if at += n; p.Settled != want.settled[at] {
					t.Fatalf("%q: after %d bytes %d are settled, not %d", text, at, p.Settled, want.settled[at])
				}
			}
			p, err := got.Close()
			if err != nil || p.Settled != int64(len(text)) {
				t.Fatalf("%q: at the end %d are settled, %v", text, p.Settled, err)
			}
			if all = append(all, p.Findings...); !slices.Equal(all, want.findings) {
				t.Fatalf("%q:\n%+v, not\n%+v", text, all, want.findings)
			}
		}
		found += min(1, len(want.findings))
		masked += min(1, len(want.findings)-len(slices.DeleteFunc(slices.Clone(want.findings), func(f guard.Finding) bool { return f.End == guard.Open })))
	}
	t.Logf("%d of %d texts with findings, %d with masks", found, evasionCases, masked)
	if found < evasionCases/4 || masked < evasionCases*3/40 {
		t.Error("too few to say anything")
	}
}

type expected struct {
	findings []guard.Finding
	settled  []int64 // by prefix
}

// batch is what an engine that reads through nothing says of the projections of a
// text's prefixes, of the text.
func batch(t *testing.T, e *match.Engine, text string) expected {
	whole := project(text, true)
	want := expected{settled: make([]int64, len(text)+1)}
	s := e.Open(t.Context(), guard.Channel{})
	done := 0
	open := map[string]guard.Finding{}
	take := func(p guard.Progress) {
		for _, f := range p.Findings {
			o, cut := open[f.Rule+fmt.Sprint(f.Start)]
			at := f.Start
			switch {
			case f.End == guard.Open:
				f.Start = whole.from(at)
				open[f.Rule+fmt.Sprint(at)] = f
			case cut:
				f.Start, f.End = o.Start, whole.to(f.End)
			default:
				f.Start, f.End = whole.from(at), whole.to(f.End)
			}
			want.findings = append(want.findings, f)
		}
	}
	for at := 1; at <= len(text); at++ {
		part := project(text[:at], false)
		p, err := s.Write([]byte(part.text[done:]))
		if err != nil || !strings.HasPrefix(whole.text, part.text) {
			t.Fatalf("%q, %d: %q is not the start of %q, %v", text, at, part.text, whole.text, err)
		}
		done = len(part.text)
		take(p)
		want.settled[at] = part.from(p.Settled)
		if whole := int64(done - unfinished(part.text)); p.Settled == whole && match.Masks(s) > 0 {
			want.settled[at] = part.to(p.Settled)
		}
	}
	p, err := s.Write([]byte(whole.text[done:]))
	if err != nil {
		t.Fatal(err)
	}
	take(p)
	p, err = s.Close()
	if err != nil {
		t.Fatal(err)
	}
	take(p)
	return want
}

func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if rest := text[len(text)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRuneInString(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// TestRulesNameWhatIsHidden: a rule that looks for characters which are otherwise read
// through finds them, and the rest is read through as ever.
func TestRulesNameWhatIsHidden(t *testing.T) {
	e := compile(t, match.Options{Evasions: match.Evasions},
		match.Rule{ID: "tags", Pattern: `[\x{E0020}-\x{E007E}]{3,}`},
		match.Rule{ID: "token", Pattern: `key_[a-z0-9]{4}[^a]`})
	got := found(t, e.Open(t.Context(), guard.Channel{}), "key_\u200bab12. a\U000e0041\U000e0042", "\U000e0043b ")
	if want := []string{"token", "tags"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
