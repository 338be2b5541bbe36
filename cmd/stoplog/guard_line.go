package main

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// lineReader reads the text out of lines of the form {"text":"…"}. It is strict:
// the one member, once, in valid UTF-8. It is not encoding/json because that
// reads a surrogate without its other half as U+FFFD, and a line may end between
// the halves: the other half may be what the next line's text begins with.
type lineReader struct {
	half rune // the first half of a pair that ended the last text; 0 if none did
}

// A lineError says where a line is wrong.
type lineError struct {
	col  int // in runes, from 1
	what string
}

// next appends to dst the text of a line, less a first half that ends it, plus
// what the last one kept back.
func (r *lineReader) next(dst, line []byte) ([]byte, *lineError) {
	s := &lineScanner{line: line}
	s.want('{')
	var half rune
	key := s.text(nil, &half)
	if s.err == nil && (string(key) != "text" || half != 0) {
		s.at = s.began
		s.fail(oneMember)
	}
	s.want(':')
	dst = s.text(dst, &r.half)
	if s.space(); s.at < len(s.line) && s.line[s.at] == ',' {
		s.fail(oneMember)
	}
	s.want('}')
	s.space()
	if s.at < len(s.line) {
		s.fail("the object ends here, and the line goes on")
	}
	return dst, s.err
}

const oneMember = `a line has the member "text" and no other`

// end appends what is still kept back when the input ends.
func (r *lineReader) end(dst []byte) []byte {
	if r.half != 0 {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	r.half = 0
	return dst
}

// lineScanner goes over one line. After the first mistake it does nothing more.
type lineScanner struct {
	line  []byte
	at    int
	began int // where the last string begins
	err   *lineError
}

// fail notes the first mistake, at the place that the scanner has come to.
func (s *lineScanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = &lineError{utf8.RuneCount(s.line[:s.at]) + 1, fmt.Sprintf(format, args...)}
	}
}

func (s *lineScanner) space() {
	for s.at < len(s.line) && (s.line[s.at] == ' ' || s.line[s.at] == '\t' || s.line[s.at] == '\r') {
		s.at++
	}
}

// want passes the character c, and spaces before it.
func (s *lineScanner) want(c byte) {
	if s.err != nil {
		return
	}
	s.space()
	if s.at == len(s.line) {
		s.fail("the line ends, and %q is missing", c)
		return
	}
	if s.line[s.at] != c {
		s.fail("%q is missing", c)
		return
	}
	s.at++
}

// text passes a string and appends what it says to dst. half is the first half
// of a pair that came before it; it is set to one that the string ends with.
func (s *lineScanner) text(dst []byte, half *rune) []byte {
	s.want('"')
	s.began = s.at - 1
	for s.err == nil {
		if s.at == len(s.line) {
			s.fail("the line ends inside a string")
			break
		}
		switch c := s.line[s.at]; {
		case c == '"':
			s.at++
			return dst
		case c == '\\':
			dst = joinHalves(dst, half, s.escape())
		case c < ' ':
			s.fail("a string has the control character %#U: write it as an escape", rune(c))
		default:
			r, size := utf8.DecodeRune(s.line[s.at:])
			if r == utf8.RuneError && size == 1 {
				s.fail("the line is not UTF-8")
				break
			}
			s.at += size
			dst = joinHalves(dst, half, r)
		}
	}
	return dst
}

// joinHalves appends r, which may be half of a surrogate pair: the first half is
// kept until the next rune is known, and a half without the other is U+FFFD.
func joinHalves(dst []byte, half *rune, r rune) []byte {
	if *half != 0 {
		whole := utf16.DecodeRune(*half, r)
		*half = 0
		dst = utf8.AppendRune(dst, whole) // U+FFFD unless r is the other half
		if whole != utf8.RuneError {
			return dst
		}
	}
	if 0xD800 <= r && r < 0xDC00 {
		*half = r
		return dst
	}
	return utf8.AppendRune(dst, r) // a second half alone is U+FFFD
}

var plainEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape passes an escape and returns what it stands for, which may be half of a
// surrogate pair.
func (s *lineScanner) escape() rune {
	rest := s.line[s.at+1:]
	if len(rest) == 0 {
		s.fail("the line ends inside an escape")
		return 0
	}
	if r, ok := plainEscapes[rest[0]]; ok {
		s.at += 2
		return r
	}
	if rest[0] != 'u' {
		s.fail("%q begins no escape of JSON", `\`+string(rune(rest[0])))
		return 0
	}
	if len(rest) < 5 {
		s.fail("the line ends inside an escape")
		return 0
	}
	var r rune
	for _, c := range rest[1:5] {
		d, ok := hexDigit(c)
		if !ok {
			s.fail(`\u takes four hexadecimal digits`)
			return 0
		}
		r = r<<4 | d
	}
	s.at += 6
	return r
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10, true
	}
	return 0, false
}
