package rules

import (
	"strings"

	"github.com/stoplog/stoplog/guard/match"
)

// digitsOf are the digits of a text, as numbers, and how many; more than fit are
// counted and left out.
func digitsOf(text []byte) (d [16]int, n int) {
	for _, b := range text {
		if '0' <= b && b <= '9' {
			if n < len(d) {
				d[n] = int(b - '0')
			}
			n++
		}
	}
	return d, n
}

// weighted is the sum of digits times their weights.
func weighted(d [16]int, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * d[i]
	}
	return sum
}

// nhs accepts ten digits of which the last checks the others modulo 11: NHS Data
// Model and Dictionary, "NHS Number".
var nhs = match.Validator{Name: "nhs", Accept: func(text []byte) bool {
	d, n := digitsOf(text)
	check := (11 - weighted(d, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11) % 11
	return n == 10 && check == d[9] && weighted(d, 1, 1, 1, 1, 1, 1, 1, 1, 1) > 0
}}

// nifLetters check a number by its remainder modulo 23: Spain, Orden
// EHA/451/2008 and Real Decreto 1553/2005.
const nifLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

// nif accepts a number with its letter; a foreigner's begins with X, Y or Z,
// which counts as 0, 1 or 2.
var nif = match.Validator{Name: "nif", Accept: func(text []byte) bool {
	number := strings.IndexByte("XYZ", text[0])
	digits := 0
	if number >= 0 {
		digits = 1
	} else {
		number = 0
	}
	for _, b := range text {
		if '0' <= b && b <= '9' {
			number = 10*number + int(b-'0')
			digits++
		}
	}
	return digits == 8 && number > 0 && text[len(text)-1] == nifLetters[number%23]
}}

// pesel accepts eleven digits that begin with a day of birth and end with a
// check digit: Poland, Ustawa o ewidencji ludności, art. 15.
var pesel = match.Validator{Name: "pesel", Accept: func(text []byte) bool {
	d, n := digitsOf(text)
	month, day := (10*d[2]+d[3])%20, 10*d[4]+d[5] // the tens of the month say the century
	check := (10 - weighted(d, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)%10) % 10
	return n == 11 && 1 <= month && month <= 12 && 1 <= day && day <= 31 && check == d[10]
}}

// tfn accepts nine digits whose weighted sum is a multiple of 11: Australia,
// the tax file number.
var tfn = match.Validator{Name: "tfn", Accept: func(text []byte) bool {
	d, n := digitsOf(text)
	sum := weighted(d, 1, 4, 3, 7, 5, 8, 6, 9, 10)
	return n == 9 && sum > 0 && sum%11 == 0
}}

// aadhaar accepts twelve digits that check by Verhoeff's scheme: UIDAI.
var aadhaar = match.Validator{Name: "aadhaar", Accept: func(text []byte) bool {
	_, n := digitsOf(text)
	return n == 12 && verhoeff.Accept(text)
}}

// verhoeff accepts digits that check by the scheme of J. Verhoeff, Error
// Detecting Decimal Codes, 1969.
var verhoeff = match.Validator{Name: "verhoeff", Accept: func(text []byte) bool {
	sum, n := 0, 0
	for i := len(text) - 1; i >= 0; i-- {
		if b := text[i]; '0' <= b && b <= '9' {
			sum = dihedral(sum, permuted(int(b-'0'), n%8))
			n++
		}
	}
	return n > 0 && sum == 0
}}

// dihedral multiplies in the group of the symmetries of a pentagon: 0 to 4 turn
// it, 5 to 9 turn it over.
func dihedral(a, b int) int {
	switch {
	case a < 5 && b < 5:
		return (a + b) % 5
	case a < 5:
		return 5 + (a+b-5)%5
	case b < 5:
		return 5 + (a-5-b+5)%5
	}
	return (a - b + 5) % 5
}

// permuted applies Verhoeff's permutation to a digit so many times.
func permuted(digit, times int) int {
	for range times {
		digit = int("1576283094"[digit] - '0')
	}
	return digit
}
