package rules_test

import (
	"testing"

	"github.com/stoplog/stoplog/guard/rules"
)

func TestParseValidator(t *testing.T) {
	for _, c := range []struct{ written, yes, no string }{
		{"luhn", "4111111111111111", "4111111111111112"},
		{"mod97", "GB82WEST12345698765432", "GB82WEST12345698765431"},
		{"verhoeff", "2363", "2364"},
		{"digit", "a1", "ab"},
		{"mixed", "aB", "ab"},
		{"both-cases", "aB", "ab1"},
		{"filled-in", "hunter2", "${PASSWORD}"},
		{"no-code", "hunter2", "e.target.value"},
		{"entropy(2.5)", "abcdefgh", "aaaaaaab"},
		{"without(test, Example)", "acme-1", "EXAMPLE-1"},
	} {
		v, err := rules.ParseValidator(c.written)
		if err != nil {
			t.Errorf("%s: %v", c.written, err)
			continue
		}
		if !v.Accept([]byte(c.yes)) || v.Accept([]byte(c.no)) {
			t.Errorf("%s: %q %t, %q %t, want true, false", c.written, c.yes, v.Accept([]byte(c.yes)), c.no, v.Accept([]byte(c.no)))
		}
	}
	for written, want := range map[string]string{
		"lunh":         `unknown validator "lunh"`,
		"luhn()":       `validator luhn takes nothing in brackets`,
		"entropy":      `entropy takes a number of bits a byte, above 0 and up to 8, not ""`,
		"entropy(9)":   `entropy takes a number of bits a byte, above 0 and up to 8, not "9"`,
		"entropy(NaN)": `entropy takes a number of bits a byte, above 0 and up to 8, not "NaN"`,
		"without( ,)":  `without takes words, such as without(example, test)`,
		"a b":          `"a b" is not a validator`,
	} {
		if _, err := rules.ParseValidator(written); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", written, err, want)
		}
	}
}
