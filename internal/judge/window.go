package judge

import "unicode/utf8"

// The sizes of windows, in bytes. A window ends behind a sentence once it has
// minWindow, and anywhere between words, or else between runes, at maxWindow.
const (
	minWindow = 200
	maxWindow = 2000
)

// A cutter cuts a text into windows by what it says.
type cutter struct {
	size  int  // of the window so far
	space int  // its size at the end of the last run of spaces; 0: there was none
	last  rune // the last rune that was no space
}

// next returns how many bytes of the text, of which rest is what is not in a
// window yet, the next window has; 0 if its end is not known. It looks at each
// byte once: the text grows at its end only.
func (c *cutter) next(rest []byte) int {
	for c.size < len(rest) {
		r, n := utf8.DecodeRune(rest[c.size:])
		if r == utf8.RuneError && n == 1 && !utf8.FullRune(rest[c.size:]) {
			return 0 // a rune that has not come whole
		}
		isSpace := r == ' ' || r == '\n' || r == '\t' || r == '\r'
		if !isSpace && c.space == c.size && c.size >= minWindow && endsSentence(c.last, rest[c.size-1]) {
			return c.cut(c.size)
		}
		if c.size+n > maxWindow {
			if c.space > 0 {
				return c.cut(c.space)
			}
			return c.cut(c.size)
		}
		c.size += n
		if isSpace {
			c.space = c.size
		} else {
			c.last = r
		}
	}
	return 0
}

// cut begins the next window.
func (c *cutter) cut(n int) int {
	*c = cutter{}
	return n
}

// endsSentence reports whether a sentence ends before a run of spaces: behind its
// mark, or with its line.
func endsSentence(last rune, space byte) bool {
	switch last {
	case '.', '!', '?', '…', '。', '！', '？', ':', ';', ')', '"', '”':
		return true
	}
	return space == '\n'
}
