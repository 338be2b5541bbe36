package match

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// mostEscape is how many bytes of text an escaped byte has at most, mostPair how
// many an escaped character has.
const (
	mostEscape = len(`\u0041`)
	mostPair   = len(`\ud83d\ude00`)
)

// An escapeKind is a way to write characters otherwise. Read reads what text
// begins with, a mark: it appends to dst what that stands for, and says how long it
// is. If it is no escape, nothing is appended and n is 1; if more text must tell, n
// is 0.
type escapeKind struct {
	mark byte
	read func(dst, text []byte, last bool) (out []byte, n int)
}

var (
	jsonEscapes    = &escapeKind{'\\', readJSON}
	percentEscapes = &escapeKind{'%', readPercent}
)

// escapes is the reading of a text in which escapes of a kind are undone. It is
// followed from an escape on for as long as a form may have that escape in it. Up
// to the escape it is the text as it stands: it takes over the walks that are under
// way there.
type escapes struct {
	kind  *escapeKind
	awake bool
	mark  int64 // of the next escape that is known of, in this call
	to    int64 // it has read so far, if awake; what is before is not looked at again
	edge  int64 // where the last escape ends
	since int   // bytes read since
	last  head
	from  [headLength]int64 // where in the text each of the last bytes starts
	walks []path

	rest   []byte // what may be an escape and is not all there
	at     int64  // where it starts
	forked []path // that go on with it if it is one
	buf    [utf8.UTFMax]byte
}

func (e *escapes) reset() {
	*e = escapes{kind: e.kind, walks: e.walks[:0], rest: e.rest[:0], forked: e.forked[:0]}
}

func (e *escapes) busy() bool { return e.awake || len(e.rest) > 0 }

// begin starts a call with the text p, and ends what waits for it.
func (e *escapes) begin(s *literalScreen, p []byte) {
	e.mark = -1
	if len(e.rest) == 0 {
		return
	}
	old := len(e.rest)
	e.rest = append(e.rest, p[:min(len(p), mostPair)]...)
	e.settle(s, old, false)
}

// close ends the reading with the text.
func (e *escapes) close(s *literalScreen) {
	e.settle(s, len(e.rest), true)
	for i := range e.walks {
		s.finish(&e.walks[i])
	}
	e.walks, e.awake = e.walks[:0], false
}

// settle reads the first bytes of e.rest; the others are in the text that comes.
func (e *escapes) settle(s *literalScreen, first int, last bool) {
	i := 0
	for i < first {
		if e.rest[i] != e.kind.mark {
			e.byte(s, e.rest[i])
			i++
			continue
		}
		out, n := e.kind.read(e.buf[:0], e.rest[i:], last)
		if n == 0 {
			e.rest = e.rest[:copy(e.rest, e.rest[i:])]
			return
		}
		e.escape(s, e.rest[i], out, n)
		i += n
	}
	e.rest, e.to = e.rest[:0], e.at
}

// next is where in p, which starts at base, the next escape may be behind from.
func (e *escapes) next(p []byte, base, from int64) int {
	if len(e.rest) > 0 {
		return len(p)
	}
	from = max(from, e.to)
	if e.mark < from {
		e.mark = base + int64(len(p))
		if i := bytes.IndexByte(p[min(from-base, int64(len(p))):], e.kind.mark); i >= 0 {
			e.mark = from + int64(i)
		}
	}
	return int(e.mark - base)
}

// take reads what may be an escape, where s has read up to it.
func (e *escapes) take(s *literalScreen, p []byte, base int64) {
	if e.follow(s, p, base, s.read); !e.awake {
		e.last, e.since = s.last, headLength
		for i := range e.from {
			e.from[i] = s.read + int64(i-headLength)
		}
	}
	for _, w := range s.walks {
		if w.start >= e.edge {
			e.forked = append(e.forked, w)
		}
	}
	e.at = s.read
	text := p[s.read-base:]
	out, n := e.kind.read(e.buf[:0], text, false)
	if n == 0 {
		e.rest = append(e.rest[:0], text...)
		return
	}
	e.escape(s, text[0], out, n)
	e.to = e.at
}

// follow reads on up to an offset, if there is a reason to.
func (e *escapes) follow(s *literalScreen, p []byte, base, to int64) {
	if len(e.rest) > 0 {
		return
	}
	for e.at = e.to; e.awake && e.to < to; e.to = e.at {
		e.byte(s, p[e.to-base])
	}
}

// escape reads n bytes at e.at: an escape, or a mark that is none.
func (e *escapes) escape(s *literalScreen, mark byte, out []byte, n int) {
	if len(out) == 0 {
		e.forked = e.forked[:0]
		e.byte(s, mark)
		return
	}
	e.walks = append(e.walks, e.forked...)
	e.forked = e.forked[:0]
	e.awake, e.edge = true, e.at+int64(n)
	for _, c := range out {
		e.since = -1
		e.add(s, c, e.edge)
	}
	e.at = e.edge
}

// byte reads a byte that stands for itself.
func (e *escapes) byte(s *literalScreen, c byte) {
	if e.awake {
		e.add(s, c, e.at+1)
	}
	e.at++
}

// add adds a byte to the reading, which reaches to to in the text.
func (e *escapes) add(s *literalScreen, c byte, to int64) {
	e.walks = s.step(e.walks, c, to)
	e.last = e.last<<8 | head(c)
	copy(e.from[:], e.from[1:])
	e.from[headLength-1] = e.at
	if e.since++; e.since < headLength && s.dict.filter.may(e.last, headLength) {
		e.walks = s.start(e.walks, e.last, e.from[0], to)
	}
	if e.since >= headLength && len(e.walks) == 0 {
		e.awake = false
	}
}

// hold is where the text begins, if before at, that the reading may yet make a
// form of.
func (e *escapes) hold(s *literalScreen, at int64) int64 {
	least := e.since + 1 // fewer bytes have no escape among them
	switch {
	case len(e.rest) > 0:
		at, least = min(at, e.at), 1
		for i := range e.forked {
			at = min(at, e.forked[i].start)
		}
	case !e.awake:
		return at
	}
	for i := range e.walks {
		at = min(at, e.walks[i].start)
	}
	for n := headLength - 1; n >= least; n-- {
		if from := e.from[headLength-n]; from >= s.settled && from < at && s.dict.begins(e.last, n) {
			return from
		}
	}
	return at
}

// readPercent reads %41.
func readPercent(dst, text []byte, last bool) (out []byte, n int) {
	for i := 1; i < 3; i++ {
		if i == len(text) && !last {
			return dst, 0
		}
		if i == len(text) || digit(text[i]) < 0 {
			return dst, 1
		}
	}
	return append(dst, byte(digit(text[1])<<4|digit(text[2]))), 3
}

// readJSON reads an escape of a JSON string. Half of a surrogate pair is U+FFFD.
func readJSON(dst, text []byte, last bool) (out []byte, n int) {
	if len(text) == 1 {
		if last {
			return dst, 1
		}
		return dst, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return append(dst, "\"\\/\b\f\n\r\t"[i]), 2
	}
	r, n := unit(text, last)
	if n <= 1 {
		return dst, n
	}
	if utf16.IsSurrogate(r) {
		low, m := unit(text[n:], last)
		if m == 0 && r < 0xdc00 {
			return dst, 0
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			n += m
		}
	}
	return utf8.AppendRune(dst, r), n
}

// unit reads \u0041. n is 1 if text does not begin so, 0 if more must tell.
func unit(text []byte, last bool) (r rune, n int) {
	for i := range len(`\u0041`) {
		switch {
		case i == len(text) && last:
			return 0, 1
		case i == len(text):
			return 0, 0
		case i < 2 && text[i] != `\u`[i], i >= 2 && digit(text[i]) < 0:
			return 0, 1
		case i >= 2:
			r = r<<4 | rune(digit(text[i]))
		}
	}
	return r, len(`\u0041`)
}

// digit is the value of a hexadecimal digit, -1 if c is none.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
