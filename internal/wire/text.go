package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
	"unicode/utf16"
	"unicode/utf8"
)

// plainRun is how many bytes of b come before a quote, a backslash or a control
// character. It looks at eight at once: in a byte less than its bound, and in none
// but those behind one, the subtraction sets the highest bit.
func plainRun(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(b[n:])
		quote, slash := v^ones*'"', v^ones*'\\'
		if hit := ((v-ones*' ')&^v | (quote-ones)&^quote | (slash-ones)&^slash) & highs; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' {
			return n
		}
	}
	return n
}

// escapeLen is the length of the escape that b starts with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 is the value of four hexadecimal digits, or -1.
func hex4(b []byte) rune {
	var v rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		v = v<<4 | rune(c)
	}
	return v
}

var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unit reads what the inside of a JSON string starts with: a run without
// escapes, or one escape (a surrogate pair counts as one). It appends the text
// to dst and returns how many bytes of b it read. An unpaired surrogate is
// U+FFFD, as decoders have it.
func unit(dst, b []byte) ([]byte, int) {
	if b[0] != '\\' {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			n = len(b)
		}
		return append(dst, b[:n]...), n
	}
	n := escapeLen(b)
	if n == 2 {
		return append(dst, simple[b[1]]), 2
	}
	if n == 0 { // only in text that no scanner has checked
		return append(dst, b[0]), 1
	}
	r := hex4(b[2:6])
	if utf16.IsSurrogate(r) {
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(b[8:12])); pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), 12
			}
		}
		r = utf8.RuneError
	}
	return utf8.AppendRune(dst, r), 6
}

// surrogateLen is the length of an escaped surrogate.
const surrogateLen = len(`\ud800`)

// surrogate is the half of a surrogate pair that b starts with, 0 if none.
func surrogate(b []byte) rune {
	if b[0] == '\\' && escapeLen(b) == surrogateLen {
		if r := hex4(b[2:6]); utf16.IsSurrogate(r) {
			return r
		}
	}
	return 0
}

// unescaped reports whether what stands behind the inside of a JSON string is
// not escaped by it.
func unescaped(b []byte) bool {
	n := len(b) - len(bytes.TrimRight(b, `\`))
	return n%2 == 0
}

// unescape appends to dst what the inside of a JSON string says.
func unescape(dst, b []byte) []byte {
	for len(b) > 0 {
		var n int
		dst, n = unit(dst, b)
		b = b[n:]
	}
	return dst
}

// escape appends text to dst as the inside of a JSON string.
func escape(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// quote appends text to dst as a JSON string.
func quote(dst []byte, text string) []byte {
	return append(escape(append(dst, '"'), text), '"')
}

// An edit replaces [from, to) of a channel's text.
type edit struct {
	from, to int64
	text     string
}

// appendEdited appends text that is written as raw, starts at offset at of a
// channel and is the inside of a JSON string unless bare: only what lies in
// [from, to), with the edits made. What is not edited stays as it is written.
func appendEdited(dst, raw []byte, bare bool, at, from, to int64, edits []edit) []byte {
	if bare {
		return appendRun(dst, raw, true, at, from, to, edits)
	}
	var buf [16]byte
	for len(raw) > 0 {
		edits = after(edits, at)
		var n int
		var size int64
		if raw[0] == '\\' {
			var text []byte
			text, n = unit(buf[:0], raw)
			size = int64(len(text))
			if len(edits) > 0 && edits[0].from < at+size {
				dst = placed(dst, edits[0], false, at, at+size, from, to)
			} else if at >= from && at+size <= to {
				dst = append(dst, raw[:n]...)
			}
		} else {
			for n < len(raw) && raw[n] != '\\' {
				n++
			}
			size = int64(n)
			dst = appendRun(dst, raw[:n], false, at, from, to, edits)
		}
		raw, at = raw[n:], at+size
	}
	return dst
}

// appendRun is appendEdited for text without escapes.
func appendRun(dst, run []byte, bare bool, at, from, to int64, edits []edit) []byte {
	end := at + int64(len(run))
	keep := func(a, b int64) {
		if a, b = max(a, from), min(b, to); a < b {
			dst = append(dst, run[a-at:b-at]...)
		}
	}
	next := at
	for _, e := range after(edits, at) {
		if e.from >= end {
			break
		}
		keep(next, e.from)
		dst = placed(dst, e, bare, at, end, from, to)
		next = e.to
	}
	keep(next, end)
	return dst
}

// after is the edits, which are in order, without those that end before at.
func after(edits []edit, at int64) []edit {
	if len(edits) == 0 || edits[0].to > at {
		return edits
	}
	return edits[sort.Search(len(edits), func(i int) bool { return edits[i].to > at }):]
}

// touched reports whether an edit touches [at, end).
func touched(edits []edit, at, end int64) bool {
	edits = after(edits, at)
	return len(edits) > 0 && edits[0].from < end
}

// placed appends an edit's text where the edit starts in [at, end), and there
// in [from, to).
func placed(dst []byte, e edit, bare bool, at, end, from, to int64) []byte {
	switch {
	case e.from < max(at, from) || e.from >= min(end, to):
	case bare:
		dst = append(dst, e.text...)
	default:
		dst = escape(dst, e.text)
	}
	return dst
}
