package budget

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// USD is an amount of money in nano-dollars: 1e9 are a dollar.
type USD int64

// Dollar is one dollar.
const Dollar USD = 1e9

// ParseUSD reads a decimal number of dollars, such as 12.5: no sign, no exponent,
// at most nine digits behind the point.
func ParseUSD(s string) (USD, error) {
	n, err := parseDecimal(s, 9)
	if err != nil {
		return 0, fmt.Errorf("%q is not an amount of dollars: %w", s, err)
	}
	return USD(n), nil
}

// String gives the amount as a decimal number of dollars without a sign for the
// currency, exact, with at least two digits behind the point: 0.50.
func (u USD) String() string {
	s := decimal(int64(u), 9)
	whole, part, _ := strings.Cut(s, ".")
	for len(part) < 2 {
		part += "0"
	}
	return whole + "." + part
}

// MarshalJSON gives a number of dollars, exact.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(decimal(int64(u), 9)), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (u *USD) UnmarshalJSON(b []byte) error {
	n, err := ParseUSD(string(b))
	*u = n
	return err
}

// parseDecimal reads a number with at most digits behind the point, as an integer
// of its last digit.
func parseDecimal(s string, digits int) (int64, error) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || point && part == "" || strings.ContainsFunc(whole+part, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("want digits, and a point with digits behind it or none")
	}
	if part = strings.TrimRight(part, "0"); len(part) > digits {
		return 0, fmt.Errorf("more than %d digits behind the point", digits)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("too large")
	}
	return n, nil
}

// decimal writes n, of which the last digits stand behind the point.
func decimal(n int64, digits int) string {
	sign := ""
	if n < 0 {
		sign = "-"
	}
	s := strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
	for len(s) <= digits {
		s = "0" + s
	}
	part := strings.TrimRight(s[len(s)-digits:], "0")
	if part != "" {
		part = "." + part
	}
	return sign + s[:len(s)-digits] + part
}

// plus adds, and stays at the largest where the sum is none: what a provider
// reports can be any number.
func plus[T ~int64](a, b T) T {
	sum := a + b
	if b > 0 && sum < a {
		return math.MaxInt64
	}
	if b < 0 && sum > a {
		return math.MinInt64
	}
	return sum
}

// times multiplies what is not negative, and stays at the largest.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Amount is how much: tokens, and money. Where nothing is known about the money
// the tokens count alone.
type Amount struct {
	Tokens int64 `json:"tokens"`
	USD    USD   `json:"usd"`
}

// Plus is the sum.
func (a Amount) Plus(b Amount) Amount {
	return Amount{plus(a.Tokens, b.Tokens), plus(a.USD, b.USD)}
}

// Minus is the difference.
func (a Amount) Minus(b Amount) Amount {
	return Amount{plus(a.Tokens, -b.Tokens), plus(a.USD, -b.USD)}
}

func (a Amount) atMost(b Amount) Amount { return Amount{min(a.Tokens, b.Tokens), min(a.USD, b.USD)} }

func (a Amount) atLeast(b Amount) Amount { return Amount{max(a.Tokens, b.Tokens), max(a.USD, b.USD)} }

func (a Amount) over(n int64) Amount { return Amount{a.Tokens / n, a.USD / USD(n)} }
