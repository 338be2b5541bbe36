package match_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// throughTricks are an engine of all packs for each evasion, for none and for all.
func throughTricks(t testing.TB, evasions ...match.Evasion) []*match.Engine {
	t.Helper()
	rs, err := rules.Select("secrets", "credentials", "pii")
	if err != nil {
		t.Fatal(err)
	}
	var all []*match.Engine
	for _, e := range evasions {
		all = append(all, compile(t, match.Options{Key: []byte("key of the tests"), Evasions: e}, rs...))
	}
	return all
}

// BenchmarkEvasions is what it costs to read through tricks, in text that has none
// and in text that is full of what could be one.
func BenchmarkEvasions(b *testing.B) {
	const size = 1 << 20
	evasions := []match.Evasion{0, match.Invisible, match.Terminal, match.FullWidth, match.LookAlike, match.Evasions}
	engines := throughTricks(b, evasions...)
	all := texts(b, size)
	text := all[:3]
	russian := strings.Repeat("Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства. ", size/150)
	chinese := strings.Repeat("天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。寒来暑往，秋收冬藏。", size/100)
	coloured := bytes.ReplaceAll(all[2].text, []byte(`"level"`), []byte("\x1b[1;32m\"level\"\x1b[0m"))
	text = append(text, named{"russian", []byte(russian)}, named{"chinese", []byte(chinese)}, named{"coloured", coloured})
	for _, text := range text {
		for _, piece := range []int{4096, 4} {
			for i, e := range engines {
				if piece == 4 && i > 0 && i < len(engines)-1 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%dB/%v", text.name, piece, evasions[i]), func(b *testing.B) {
					feed(b, e.Open(b.Context(), guard.Channel{}), text.text, piece)
					b.ReportAllocs()
					began := cpu(b)
					for b.Loop() {
						feed(b, e.Open(b.Context(), guard.Channel{}), text.text, piece)
					}
					used := cpu(b) - began
					b.ReportMetric(float64(used.Nanoseconds())*float64(piece)/(float64(b.N)*float64(len(text.text))), "cpu-ns/piece")
					b.ReportMetric(float64(b.N)*float64(len(text.text))/used.Seconds()/1e6, "cpu-MB/s")
				})
			}
		}
	}
}

// spread puts something between the characters of a text.
func spread(text, between string) string {
	return strings.Join(strings.Split(text, ""), between)
}

// TestEvadedTokens finds the tokens of the packs through every trick, whole, and
// puts what leaves through the suite at every cut.
func TestEvadedTokens(t *testing.T) {
	e := throughTricks(t, match.Evasions)[0]
	token := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	wide := strings.Map(func(r rune) rune { return r - '!' + 0xff01 }, token)
	tricks := map[string]string{
		"plain":                   token,
		"zero-width spaces":       spread(token, "\u200b"),
		"several in a row":        spread(token, "\u2060\u200d\ufeff"),
		"an override":             token[:9] + "\u202e" + token[9:20] + "\u202c" + token[20:],
		"soft hyphens":            token[:12] + "\u00ad" + token[12:],
		"variation selectors":     spread(token, "\ufe0f"),
		"tags":                    spread(token, "\U000e0061"),
		"as grep colours":         token[:9] + "\x1b[01;31m\x1b[K" + token[9:],
		"behind the start of one": "\x1b[" + token,
		"colour":                  token[:3] + "\x1b[1;31m" + token[3:17] + "\x1b[0m\x1b[38;2;10;200;3m" + token[17:],
		"full width":              wide,
		"look-alikes":             strings.NewReplacer("p", "р", "e", "е", "c", "с", "A", "Α").Replace(token),
		"all of them":             "\uff47\u200bh\x1b[0m\u0440_" + wide[12:] + "\u200b",
		"in a word that is plain": "а " + token,
	}
	rng := rand.New(rand.NewPCG(3, 1))
	for name, trick := range tricks {
		text := "the token is " + trick + ", and so on"
		chain := guard.NewChain(guard.Options{}, guard.Member{Guard: e})
		f := guard.NewFilter(chain.Open(t.Context(), guard.Channel{}))
		var out []byte
		for rest := text; rest != ""; {
			n := min(len(rest), 1+rng.IntN(6))
			out, _ = f.Write(out, []byte(rest[:n]))
			rest = rest[n:]
		}
		out, _ = f.Close(out)
		want := "the token is [redacted:github-pat], and so on"
		if name == "all of them" {
			want = strings.Replace(want, ",", "\u200b,", 1) // what is hidden behind it stays
		}
		if name == "behind the start of one" {
			want = strings.Replace(want, "[", "\x1b[[", 1) // a terminal eats the g, and nobody else does
		}
		if name == "in a word that is plain" {
			want = strings.Replace(want, "[", "а [", 1)
		}
		if string(out) != want {
			t.Errorf("%s: %q leaves", name, out)
		}
		guardtest.Run(t, e, text)
	}
}

// TestMostHidden: more than that in a row is not read through, so that what is held
// is bounded.
func TestMostHidden(t *testing.T) {
	e := throughTricks(t, match.Evasions)[0]
	s := e.Open(t.Context(), guard.Channel{})
	most := int64(0)
	for i, p := range append([]string{"ghp_16C7e42F292c"}, slicesOf("\u200b", 1<<16)...) {
		said, err := s.Write([]byte(p))
		if err != nil {
			t.Fatal(err)
		}
		if most = max(most, 16+int64(i*len("\u200b"))-said.Settled); most > 16+match.MostHidden {
			t.Fatalf("%d bytes are held", most)
		}
	}
	if most < match.MostHidden {
		t.Errorf("only %d bytes are held", most)
	}
}

func slicesOf(s string, n int) []string { return strings.SplitAfter(strings.Repeat(s, n), s) }
