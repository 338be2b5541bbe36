package disclosure

import (
	"crypto/sha256"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prompt is a text by its words.
type prompt struct {
	digest [sha256.Size]byte
	words  []string
	// letters is how many letters the words before each have.
	letters []int
	// room says of each word whether a run that begins there can become a finding.
	room []bool
	// at is where each word stands.
	at map[string][]int
	// openings are the words with which a run may begin that can become a finding,
	// in order; canaries are those of the prompt.
	openings, canaries []string
	// longest is the longest word, in bytes.
	longest int
}

// barrier stands for a canary among the words: no run goes across.
const barrier = ""

func newPrompt(text string) *prompt {
	p := &prompt{at: map[string][]int{}, letters: []int{0}}
	add := func(w string) {
		if p.longest = max(p.longest, len(w)); canaryForm.MatchString(w) {
			p.canaries = append(p.canaries, w)
			w = barrier
		}
		if w != barrier {
			p.at[w] = append(p.at[w], len(p.words))
		}
		p.words = append(p.words, w)
		p.letters = append(p.letters, p.letters[len(p.letters)-1]+utf8.RuneCountInString(w))
	}
	var word []byte
	for _, r := range text {
		switch kindOf(r) {
		case inWord:
			word = utf8.AppendRune(word, folded(r))
		case alone, apart:
			if len(word) > 0 {
				add(string(word))
				word = word[:0]
			}
			if kindOf(r) == alone {
				add(string(folded(r)))
			}
		}
	}
	if len(word) > 0 {
		add(string(word))
	}
	for first := range p.words {
		p.room = append(p.room, p.hasRoom(first))
	}
	for w, places := range p.at {
		if slices.ContainsFunc(places, func(at int) bool { return p.room[at] }) {
			p.openings = append(p.openings, w)
		}
	}
	slices.Sort(p.openings)
	slices.Sort(p.canaries)
	return p
}

// hasRoom reports whether a run that begins at a word can become a finding.
func (p *prompt) hasRoom(first int) bool {
	end := first
	for end < len(p.words) && p.words[end] != barrier && !p.complete(first, end) {
		end++
	}
	return p.complete(first, end)
}

// complete reports whether the words from first on, those before end, are a
// finding.
func (p *prompt) complete(first, end int) bool {
	return end-first >= LeastWords && p.letters[end]-p.letters[first] >= LeastLetters
}

// opens reports whether a word that begins so may begin a run, or be a canary.
func (p *prompt) opens(part string) bool {
	return hasPrefix(p.openings, part) || hasPrefix(p.canaries, part)
}

// isCanary reports whether a word is one of the prompt's canaries.
func (p *prompt) isCanary(word []byte) bool {
	for _, c := range p.canaries {
		if c == string(word) {
			return true
		}
	}
	return false
}

// hasPrefix reports whether one of sorted words begins so.
func hasPrefix(words []string, part string) bool {
	i := sort.SearchStrings(words, part)
	return i < len(words) && strings.HasPrefix(words[i], part)
}

// runeKind is what a rune is to words.
type runeKind uint8

const (
	apart  runeKind = iota // it parts words
	inWord                 // it is part of one
	alone                  // it is one, in a script that does not part its words
	unseen                 // it is not there
)

func kindOf(r rune) runeKind {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return inWord
	case r < utf8.RuneSelf:
		return apart
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return alone
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
		return inWord
	case unicode.Is(unicode.Cf, r):
		return unseen
	}
	return apart
}

// folded is a rune as words are compared: in small letters, and of the usual
// width.
func folded(r rune) rune {
	if 0xff01 <= r && r <= 0xff5e {
		r -= 0xfee0
	}
	return unicode.ToLower(r)
}
