package match

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// # Evasions
//
// A token can be written so that people and their programs still read it and a
// pattern does not. An engine that reads through such tricks judges a projection
// of the text: what hides is left out of it, what looks like an ASCII character
// is that character. Its meaning is the batch meaning over the projection; what
// validators and fingerprints are given is of the projection too. A finding
// reaches in the text from the start of its first rune to the end of its last,
// with whatever is hidden between them; what is hidden beside it is not part of
// it.
//
// A rule that looks for such a character itself, by a class of few, is not kept from
// it: all rules of its engine then read that character as it stands.
//
// At most MostHidden bytes in a row are hidden; what would make them more is read
// as it stands. So an engine that holds n bytes of the projection holds at most
// n·(MostHidden+3) bytes of the text.

// Evasion is a set of tricks that an engine reads through.
type Evasion uint8

const (
	// Invisible is what shows nothing: zero-width spaces and joiners, soft
	// hyphens, controls of direction, variation selectors, tags.
	Invisible Evasion = 1 << iota
	// Terminal is the escape sequences by which a terminal colours text. Others,
	// also those that carry a text such as a title or a link, are judged as they
	// stand.
	Terminal
	// FullWidth is the ASCII characters in the width of Chinese ones.
	FullWidth
	// LookAlike is the Cyrillic and Greek letters that look like Latin ones.
	LookAlike

	// Evasions are all of them.
	Evasions = Invisible | Terminal | FullWidth | LookAlike
)

// MostHidden is how many bytes in a row an engine reads through.
const MostHidden = 32

var evasionNames = [...]string{"invisible", "terminal", "full_width", "look_alike"}

func (e Evasion) String() string {
	var names []string
	for i, n := range evasionNames {
		if e&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ParseEvasion reads the name of one.
func ParseEvasion(s string) (Evasion, error) {
	if i := slices.Index(evasionNames[:], s); i >= 0 {
		return 1 << i, nil
	}
	return 0, fmt.Errorf("unknown evasion %q: want one of %q", s, evasionNames)
}

// A disguise says what the projection has in the place of runes and escape
// sequences. It is the same for all engines with the same evasions.
type disguise struct {
	evasions Evasion
	stop     [256]bool // the first bytes of what may not be itself
	page     [(maxDisguised >> pageBits) + 1]uint8
	named    func(rune) bool
	as       [][1 << pageBits]int8 // by page: 0 for a rune itself, hidden, or what it stands for
}

// Of the runes beyond maxDisguised, tags and the variation selectors between them
// are hidden.
const (
	maxDisguised = 0xffff
	firstTag     = 0xe0000
	lastTag      = 0xe01ef
)

// hidden stands for a rune that is not in the projection.
const hidden int8 = -1

const escape = 0x1b

// newDisguise returns nil if there is nothing to read through. What named says of
// stays as it is.
func newDisguise(e Evasion, named func(rune) bool) *disguise {
	if e == 0 {
		return nil
	}
	d := &disguise{evasions: e, as: make([][1 << pageBits]int8, 1), named: named}
	d.stop[escape] = e&Terminal != 0
	if e&Invisible != 0 {
		for _, r := range invisible {
			for c := r[0]; c <= r[1]; c++ {
				d.set(c, hidden)
			}
		}
		d.stop[utf8.AppendRune(nil, firstTag)[0]] = true
	}
	if e&FullWidth != 0 {
		for c := rune('!'); c <= '~'; c++ {
			d.set(c-'!'+0xff01, int8(c))
		}
	}
	if e&LookAlike != 0 {
		for ascii, like := range lookAlikes {
			for _, c := range like {
				d.set(c, int8(ascii))
			}
		}
	}
	return d
}

func (d *disguise) set(r rune, as int8) {
	if d.named(r) {
		return
	}
	page := &d.page[r>>pageBits]
	if *page == 0 {
		*page = uint8(len(d.as))
		d.as = append(d.as, [1 << pageBits]int8{})
	}
	d.as[*page][r&(1<<pageBits-1)] = as
	d.stop[utf8.AppendRune(nil, r)[0]] = true
}

// of says what stands for a rune: 0 for itself.
func (d *disguise) of(r rune) int8 {
	switch {
	case r <= maxDisguised:
		return d.as[d.page[r>>pageBits]][r&(1<<pageBits-1)]
	case r >= firstTag && r <= lastTag && d.evasions&Invisible != 0 && !d.named(r):
		return hidden
	}
	return 0
}

// invisible runes, from and to: those of Unicode's Default_Ignorable_Code_Point
// below U+10000, but for the Hangul fillers, which have a width.
var invisible = [][2]rune{
	{0x00ad, 0x00ad}, // soft hyphen
	{0x034f, 0x034f}, // combining grapheme joiner
	{0x061c, 0x061c}, // Arabic letter mark
	{0x17b4, 0x17b5}, // Khmer inherent vowels
	{0x180b, 0x180f}, // Mongolian selectors and vowel separator
	{0x200b, 0x200f}, // zero-width space and joiners, marks of direction
	{0x202a, 0x202e}, // embeddings and overrides of direction
	{0x2060, 0x206f}, // word joiner, invisible operators, isolates, format controls
	{0xfe00, 0xfe0f}, // variation selectors
	{0xfeff, 0xfeff}, // zero-width no-break space
	{0xfff0, 0xfff8}, // reserved, ignored
}

// lookAlikes are Cyrillic and Greek letters beside the ASCII letter that Unicode's
// confusables.txt takes them for.
var lookAlikes = map[rune]string{
	'A': "АΑ", 'B': "ВΒ", 'C': "СϹ", 'E': "ЕΕ", 'F': "Ϝ", 'G': "Ԍ", 'H': "НΗ", 'I': "ІΙӀ", 'J': "ЈͿ", 'K': "КΚ",
	'M': "МΜϺ", 'N': "Ν", 'O': "ОΟ", 'P': "РΡ", 'Q': "Ԛ", 'S': "Ѕ", 'T': "ТΤ", 'V': "Ѵ", 'W': "Ԝ", 'X': "ХΧ",
	'Y': "УҮΥϒ", 'Z': "Ζ",
	'a': "аα", 'c': "сϲ", 'd': "ԁ", 'e': "еҽ", 'h': "һ", 'i': "іι", 'j': "јϳ", 'l': "ӏ",
	'o': "оοσ", 'p': "рρϱ", 'q': "ԛ", 'r': "г", 's': "ѕ", 'u': "υ", 'v': "νѵ", 'w': "ԝѡ", 'x': "х", 'y': "уγү",
}

// mostNamed is how many runes a class has at most that names them.
const mostNamed = 1024

// names says which runes rules look for by a class of few.
func names(rules []*rule) func(rune) bool {
	var spans [][2]rune
	for _, r := range rules {
		for _, in := range r.prog.inst {
			if !isRune(in.Op) || len(in.Rune) < 2 {
				continue
			}
			size := rune(0)
			for i := 0; i < len(in.Rune); i += 2 {
				size += in.Rune[i+1] - in.Rune[i] + 1
			}
			for i := 0; size <= mostNamed && i < len(in.Rune); i += 2 {
				if s := [2]rune{in.Rune[i], in.Rune[i+1]}; s[1] >= utf8.RuneSelf && !slices.Contains(spans, s) {
					spans = append(spans, s)
				}
			}
		}
	}
	return func(r rune) bool {
		return slices.ContainsFunc(spans, func(s [2]rune) bool { return s[0] <= r && r <= s[1] })
	}
}
