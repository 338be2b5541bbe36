package approval

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

func sum(b []byte) [32]byte { return sha256.Sum256(b) }

// canonical returns the RFC 8785 JSON of a value, with one difference. That
// scheme knows numbers as doubles only, and leaves open what becomes of a number
// that a double cannot hold; rounded, two different calls would have the same
// digest. Here such a number stays as it was written.
func canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	form := jsontext.Value(b)
	if err := form.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, err
	}
	return numbers(form), nil
}

// numbers rewrites the numbers in JSON without white space.
func numbers(form []byte) []byte {
	out := make([]byte, 0, len(form))
	for i := 0; i < len(form); {
		n := 1
		switch c := form[i]; {
		case c == '"':
			n = stringLen(form[i:])
			out = append(out, form[i:i+n]...)
		case c == '-' || '0' <= c && c <= '9':
			n = numberLen(form[i:])
			out = append(out, number(string(form[i:i+n]))...)
		default:
			out = append(out, c)
		}
		i += n
	}
	return out
}

// stringLen is the length of the JSON string that b begins with.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

func numberLen(b []byte) int {
	n := 0
	for n < len(b) && strings.IndexByte("-+.eE0123456789", b[n]) >= 0 {
		n++
	}
	return n
}

// number is the shortest spelling of the double that a literal is equal to; the
// literal itself if there is none.
func number(literal string) string {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || !tame(literal) {
		return literal
	}
	short := jsontext.Value(literal)
	if short.Canonicalize() != nil {
		return literal
	}
	want, ok := new(big.Rat).SetString(literal)
	got, ok2 := new(big.Rat).SetString(string(short))
	if !ok || !ok2 || want.Cmp(got) != 0 || f == 0 && want.Sign() != 0 {
		return literal
	}
	return string(short)
}

// tame reports whether a literal can be compared exactly without a great deal of
// memory: no double needs more than this to be told from its neighbours.
func tame(literal string) bool {
	_, exp, _ := strings.Cut(strings.ToLower(literal), "e")
	return len(literal) < 1100 && len(strings.TrimLeft(exp, "+-0")) <= 3
}
