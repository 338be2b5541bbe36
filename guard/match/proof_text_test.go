package match_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard/match"
)

// standsFor is what an engine reads in the place of a character.
var standsFor = func() map[string]string {
	m := map[string]string{}
	for i, r := range []rune(like) {
		m[string(r)] = latin[i : i+1]
	}
	for c := rune('!'); c <= '~'; c++ {
		m[string(c-'!'+0xff01)] = string(c)
	}
	return m
}()

// A chooser makes choices: at random, as rapid wants, or as a fuzzer's bytes say.
type chooser interface{ IntN(n int) int }

// byBytes chooses by bytes, and 0 when there are no more.
type byBytes struct{ *bytes.Reader }

func (b byBytes) IntN(n int) int {
	v := 0
	for m := 1; m < n; m <<= 8 {
		c, err := b.ReadByte()
		if err != nil {
			return 0
		}
		v = v<<8 | int(c)
	}
	return v % n
}

// fromChooser is a source of random numbers that a chooser chooses.
func fromChooser(c chooser) *rand.Rand { return rand.New(rand.NewPCG(uint64(c.IntN(1<<16)), 0)) }

// maxProofText keeps texts below the hold limit, which the oracle does not know.
const maxProofText = match.DefaultHoldLimit - 4

// ingredients are what texts are made of.
type ingredients struct {
	examples, near []string // of the rules
	values         []string
	filler         []string
}

// newIngredients takes the examples of rules. Parts of some are values too, so that
// findings overlap.
func newIngredients(t testing.TB, rules []match.Rule) *ingredients {
	in := &ingredients{values: values}
	for i, r := range rules {
		for _, e := range r.Match {
			if len(e) < maxProofText/2 {
				in.examples = append(in.examples, e)
			}
			if from := len(e) / 2; i%4 == 0 && isASCII(e) && len(e) > 24 && match.CheckLiteral(e[from:from+12]) == nil && !slices.Contains(in.values, e[from:from+12]) && len(in.values) < 60 {
				in.values = append(in.values, e[from:from+12])
			}
		}
		for _, e := range r.NoMatch {
			if len(e) < maxProofText/2 {
				in.near = append(in.near, e)
			}
		}
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for _, text := range [][]byte{prose(rng, 4000), goSource(t, 20_000), jsonLogs(rng, 4000)} {
		for len(text) > 0 {
			n := min(len(text), 1+rng.IntN(60))
			in.filler = append(in.filler, string(text[:n]))
			text = text[n:]
		}
	}
	return in
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// A proofText is a text, and where in it something is that nearly is a token.
type proofText struct {
	text string
	near []span
}

var joints = []string{"", "", " ", "\n", "\"", "=", ": ", "'", "\\", "%", ",", "é", "\xff", "\x1b", "\u200b"}

func (in *ingredients) make(c chooser) proofText {
	var p proofText
	for range 1 + c.IntN(5) {
		token, near := in.filler[c.IntN(len(in.filler))], false
		switch n := c.IntN(20); {
		case n < 7:
			token = in.examples[c.IntN(len(in.examples))]
		case n < 10:
			token, near = mutate(c, in.examples[c.IntN(len(in.examples))]), true
		case n < 11:
			token, near = in.near[c.IntN(len(in.near))], true
		case n < 14:
			token = disguise(c, in.examples[c.IntN(len(in.examples))])
		case n < 17:
			token = encodings[c.IntN(len(encodings))](fromChooser(c), in.values[c.IntN(len(in.values))])
			if c.IntN(4) == 0 {
				token, near = mutate(c, token), true
			}
		}
		joint := joints[c.IntN(len(joints))]
		if len(p.text)+len(joint)+len(token) > maxProofText {
			continue
		}
		p.text += joint
		if near {
			p.near = append(p.near, span{len(p.text), len(p.text) + len(token)})
		}
		p.text += token
	}
	return p
}

// mutate changes, drops or adds a little.
func mutate(c chooser, token string) string {
	for range 1 + c.IntN(3) {
		if token == "" {
			return token
		}
		at := c.IntN(len(token))
		switch c.IntN(5) {
		case 0:
			token = token[:at] + token[at+1:]
		case 1:
			token = token[:at] + string("aZ0-_ .\n"[c.IntN(8)]) + token[at+1:]
		case 2:
			token = token[:at] + string("aZ0-_ .\n"[c.IntN(8)]) + token[at:]
		case 3:
			token = token[:at]
		default:
			token = token[at:]
		}
	}
	return token
}

// disguise hides a token from patterns.
func disguise(c chooser, token string) string {
	var b strings.Builder
	for _, r := range token {
		if c.IntN(8) > 0 {
			b.WriteRune(r)
			continue
		}
		switch n := c.IntN(5); {
		case n == 0 && r > ' ' && r <= '~':
			b.WriteRune(r - '!' + 0xff01)
		case n == 1 && strings.ContainsRune(latin, r):
			b.WriteRune([]rune(like)[strings.IndexRune(latin, r)])
		case n == 2:
			fmt.Fprintf(&b, "%c\x1b[%dm", r, c.IntN(100))
		case n == 3:
			fmt.Fprintf(&b, "%c%s", r, []string{"\u00ad", "\u2060", "\ufe0f", "\U000e0100"}[c.IntN(4)])
		default:
			fmt.Fprintf(&b, "%c\u200b", r)
		}
	}
	return b.String()
}
