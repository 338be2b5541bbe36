package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// accounts are the numbers that money is moved by.
func accounts() []match.Rule {
	return []match.Rule{
		{
			// The groups are fixed and the first four digits name a brand, so that
			// a number in front of a card does not hide it.
			ID:       "credit-card",
			Pattern:  cards,
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{noFraction, match.Luhn()},
			Match: []string{
				"my card is 4111-1111-1111-1111, valid 10/29",
				"4111 1111 1111 1111",
				"MasterCard 5555555555554444.",
				"in 2024 5555 5555 5555 4444 was charged",
				"Amex 3782 822463 10005",
				"Diners 30569309025904",
				"Discover 6011-1111-1111-1117",
				"JCB 3530111333300000",
				"2-series 2223003122003222",
			},
			NoMatch: []string{
				"order number 4111-1111-1111-1112 shipped",
				"at 1720000000, 1720000000123 and 1720000000123456789",
				"1234567890123456",
				"0.4111111111111111",
				"$4503601774854144.0",
				"52525210 52525218 52525220",
				"44111111111111111",
				"id 4111111111111111abc",
			},
		},
		{
			ID:       "iban",
			Pattern:  ibans(),
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{match.Mod97()},
			Match: []string{
				"pay to DE89 3704 0044 0532 0130 00 EUR 20",
				"GB82WEST12345698765432",
				"ES91 2100 0418 4502 0005 1332 PLUS",
				"NO93 8601 1117 947",
				"MT84MALT011000012345MTLCAST001S",
			},
			NoMatch: []string{
				"DE89 3704 0044 0532 0130 01",
				"GB82WEST123456987654321",
				"ZZ89370400440532013000",
				"AWAITING TEST RESULTS",
			},
		},
	}
}

// cards matches what is laid out like a card number of a brand that exists, and
// a fraction that only begins or ends like one, to be rejected.
var cards = func() string {
	// In groups, or in one piece: never half so, as columns of numbers are.
	groups := func(sizes ...int) string {
		apart, total := "", 0
		for _, n := range sizes {
			apart += fmt.Sprintf(`%s\d{%d}`, gap, n)
			total += n
		}
		return fmt.Sprintf(`(?:%s|\d{%d})`, apart, total)
	}
	sixteen := `(?:4\d{3}` + // Visa
		`|5[1-5]\d{2}|22(?:2[1-9]|[3-9]\d)|2[3-6]\d{2}|27(?:[01]\d|20)` + // Mastercard
		`|6011|64[4-9]\d|65\d{2}` + // Discover
		`|62\d{2}` + // UnionPay
		`|35(?:2[89]|[3-8]\d))` + groups(4, 4, 4) // JCB
	fifteen := `3[47]\d{2}` + groups(6, 5)             // American Express
	fourteen := `3(?:0[0-5]|[689]\d)\d` + groups(6, 4) // Diners Club
	return `\b(?:\d{1,9}\.)?(?:` + sixteen + `|` + fifteen + `|` + fourteen + `)(?:\.\d{1,9})?\b`
}()

// noFraction accepts text without a point or a comma in it.
var noFraction = match.Validator{Name: "no-fraction", Accept: func(text []byte) bool {
	return !bytes.ContainsAny(text, ".,")
}}

// ibanCountries are the countries that issue IBANs, by the length of theirs:
// the SWIFT IBAN registry, release 99.
var ibanCountries = map[int]string{
	15: "NO", 16: "BE", 18: "DK FK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
	21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
	24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM",
	28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
}

// ibans matches an IBAN of any country by its length, in groups of four or in
// one piece, and so never takes in the word behind it.
func ibans() string {
	var lengths []int
	for n := range ibanCountries {
		lengths = append(lengths, n)
	}
	slices.Sort(lengths)
	var alternatives []string
	for _, n := range lengths {
		alt := `(?:` + strings.ReplaceAll(ibanCountries[n], " ", "|") + `)\d{2}` +
			fmt.Sprintf(`(?:%s?[0-9A-Z]{4}){%d}`, ibanGap, (n-4)/4)
		if rest := n % 4; rest > 0 {
			alt += fmt.Sprintf(`%s?[0-9A-Z]{%d}`, ibanGap, rest)
		}
		alternatives = append(alternatives, alt)
	}
	return `\b(?:` + strings.Join(alternatives, "|") + `)\b`
}

const ibanGap = `[ \x{A0}\x{202F}]`
