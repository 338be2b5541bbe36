package match

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Validator says whether a match is a finding. Patterns find what looks like a
// secret; validators know what cannot be one.
type Validator struct {
	// Name is how the validator is written down, such as `entropy(3.5)`.
	Name string
	// Accept judges the text of the rule's group, or of the match. It keeps
	// and changes nothing, and its answer depends on the text alone.
	Accept func(text []byte) bool
}

// Entropy accepts text of at least floor bits of Shannon entropy a byte.
// English words have around 3, random base64 of 40 characters more than 4.5.
func Entropy(floor float64) Validator {
	return Validator{
		Name: "entropy(" + strconv.FormatFloat(floor, 'g', -1, 64) + ")",
		Accept: func(text []byte) bool {
			var count [256]int
			for _, b := range text {
				count[b]++
			}
			bits := 0.0
			for _, n := range count {
				if n > 0 {
					p := float64(n) / float64(len(text))
					bits -= p * math.Log2(p)
				}
			}
			return bits >= floor
		},
	}
}

// Luhn accepts text whose digits have a right check digit by ISO/IEC 7812-1.
// What is not an ASCII digit is skipped.
func Luhn() Validator {
	return Validator{Name: "luhn", Accept: func(text []byte) bool {
		sum, n := 0, 0
		for i := len(text) - 1; i >= 0; i-- {
			d := int(text[i] - '0')
			if text[i] < '0' || text[i] > '9' {
				continue
			}
			if n++; n%2 == 0 {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum += d
		}
		return n > 0 && sum%10 == 0
	}}
}

// Mod97 accepts text that checks by ISO 7064 MOD 97-10 as an IBAN does: its
// first four characters moved to the end, letters counted from A = 10, the
// remainder is 1. What is neither an ASCII digit nor a capital is skipped.
func Mod97() Validator {
	return Validator{Name: "mod97", Accept: func(text []byte) bool {
		digits := make([]byte, 0, 64)
		for _, b := range text {
			if '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' {
				digits = append(digits, b)
			}
		}
		if len(digits) < 4 {
			return false
		}
		rest := 0
		for _, part := range [][]byte{digits[4:], digits[:4]} {
			for _, b := range part {
				if b <= '9' {
					rest = (rest*10 + int(b-'0')) % 97
				} else {
					rest = (rest*100 + int(b-'A') + 10) % 97
				}
			}
		}
		return rest == 1
	}}
}

// Without accepts text in which none of the words appears, in any case of its
// ASCII letters. Words are given in lower case.
func Without(words ...string) Validator {
	return Validator{
		Name: "without(" + strings.Join(words, ", ") + ")",
		Accept: func(text []byte) bool {
			low := bytes.ToLower(text)
			for _, w := range words {
				if bytes.Contains(low, []byte(w)) {
					return false
				}
			}
			return true
		},
	}
}
