package match_test

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A reading is a text with one kind of escapes undone: its bytes, and where in the
// text each starts and ends.
type reading struct {
	text     string
	from, to []int
	rest     int // where what may be an escape begins, the text's length if nowhere
}

// readings undoes each kind of escapes in a text, whole if last is set.
func readings(text string, last bool) []reading {
	all := []reading{{}, {}, {}}
	for k := range all {
		r := &all[k]
		r.rest = len(text)
		for i := 0; i < len(text); {
			out, n := text[i:i+1], 1
			switch {
			case k == 1 && text[i] == '\\':
				out, n = jsonEscape(text[i:], last)
			case k == 2 && text[i] == '%':
				out, n = percentEscape(text[i:], last)
			}
			if n == 0 {
				r.rest = i
				break
			}
			for range len(out) {
				r.from, r.to = append(r.from, i), append(r.to, i+n)
			}
			r.text += out
			i += n
		}
	}
	return all
}

// decided takes an attempt to read an escape: more text may make one if it does not
// go on too long already.
func decided(text string, most int, last bool, out string, n int) (string, int) {
	switch {
	case n > 0:
		return out, n
	case len(text) < most && !last:
		return "", 0
	}
	return text[:1], 1
}

func percentEscape(text string, last bool) (string, int) {
	if b, err := hex.DecodeString(text[1:min(3, len(text))]); err == nil && len(b) == 1 {
		return string(b), 3
	}
	if len(text) == 2 && !strings.Contains("0123456789abcdefABCDEF", text[1:]) {
		last = true
	}
	return decided(text, 3, last, "", 0)
}

func jsonEscape(text string, last bool) (string, int) {
	if s, ok := map[string]string{`"`: `"`, `\`: `\`, `/`: `/`, `b`: "\b", `f`: "\f", `n`: "\n", `r`: "\r", `t`: "\t"}[text[1:min(2, len(text))]]; ok {
		return s, 2
	}
	for i := 1; i < min(6, len(text)); i++ {
		if i == 1 && text[i] != 'u' || i > 1 && !strings.Contains("0123456789abcdefABCDEF", text[i:i+1]) {
			return text[:1], 1
		}
	}
	if len(text) < 6 {
		return decided(text, 6, last, "", 0)
	}
	pair := text[:min(12, len(text))]
	if s, err := strconv.Unquote(`"` + pair + `"`); err == nil && len(pair) == 12 && utf8.RuneCountInString(s) == 1 {
		return s, 12 // Go joins surrogates in no string; json does
	}
	v, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		panic(err)
	}
	if v >= 0xd800 && v < 0xdc00 {
		low, ok := uint64(0), len(text) >= 12
		for i := 6; i < min(12, len(text)); i++ {
			if i < 8 && text[i] != `\u`[i-6] || i >= 8 && !strings.Contains("0123456789abcdefABCDEF", text[i:i+1]) {
				return "\ufffd", 6
			}
		}
		if !ok {
			return decided(text, 12, last, "\ufffd", map[bool]int{true: 6}[last])
		}
		if low, _ = strconv.ParseUint(text[8:12], 16, 16); low >= 0xdc00 && low < 0xe000 {
			return string(rune(0x10000 + (v-0xd800)<<10 + low - 0xdc00)), 12
		}
	}
	return string(rune(v)), 6
}

// formed are the forms of values of at most 128 bytes, made the long way: in
// base64 between all pairs of bytes, as far as they agree.
func formed(value string) []string {
	all := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			a := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + value + "\x00\x00\x00"))
			b := enc.EncodeToString([]byte(strings.Repeat("\xff", before) + value + "\xff\xff\xff"))
			from := 0
			for a[from] != b[from] {
				from++
			}
			to := from
			for to < len(a) && a[to] == b[to] {
				to++
			}
			end := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			all = append(all, a[from:to], strings.TrimRight(end, "=")[from:], end[from:])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type span struct{ from, to int }

// occurs are the places where forms are in a text, whole: the longest at each
// start, and none that lies in one before.
func occurs(text string, forms []string) []span {
	var all []span
	for _, r := range readings(text, true) {
		for i := range r.text {
			for _, f := range forms {
				if strings.HasPrefix(r.text[i:], f) {
					all = append(all, span{r.from[i], r.to[i+len(f)-1]})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	covered := 0
	return slices.DeleteFunc(all, func(s span) bool {
		inside := s.to <= covered
		covered = max(covered, s.to)
		return inside
	})
}

// waits is where the first form begins that a text may go on with, or its length.
func waits(text string, forms []string) int {
	at := len(text)
	for _, r := range readings(text, false) {
		at = min(at, r.rest)
		for i := range r.text {
			for _, f := range forms {
				if len(f) > len(r.text)-i && strings.HasPrefix(f, r.text[i:]) {
					at = min(at, r.from[i])
				}
			}
		}
	}
	return at
}
