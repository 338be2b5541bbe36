package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// gap is what people put between the groups of a long number.
const gap = `[ \x{A0}\x{202F}\x{2010}-\x{2013}-]`

// dash is a gap that is no space.
const dash = `[\x{2010}-\x{2013}-]`

// pii are data about people.
func pii() []match.Rule {
	return []match.Rule{
		{
			// The local part has no boundary in front: a match starts as far left
			// as its 64 letters reach, and no name escapes because an odd character
			// stands before it.
			ID:       "email",
			Pattern:  `[\p{L}\p{M}\p{N}._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,3}[A-Za-z]{2,24}`,
			Severity: guard.Medium, Verdict: guard.Redact,
			Validators: []match.Validator{mailbox},
			Match: []string{
				"Reach me at user@example.com, thanks.",
				"jane.doe+news@mail.example.co.uk.",
				"mail josé@example.com 好",
				"<bob@acme.com>",
			},
			NoMatch: []string{
				"an @ sign, a@b, @handle, user@localhost",
				"icon@2x.png",
				"npm install react@18.2.0-next.beta",
				"git clone git@github.com:acme/app.git",
				"golang.org/x/net@v0.55.0",
			},
		},
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
				"52525210 52525218 52525220",
				"44111111111111111",
				"id 4111111111111111abc",
			},
		},
		{
			ID:       "us-ssn",
			Pattern:  `\b(?:\d{1,9}` + dash + `)?\d{3}` + dash + `\d{2}` + dash + `\d{4}(?:` + dash + `\d{1,9})?\b`,
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{ssn},
			Match: []string{
				"SSN 536-22-8714 ok",
				"899-01-0001",
				"536\u201122\u20118714",
			},
			NoMatch: []string{
				"000-22-8714, 666-22-8714, 900-22-8714",
				"536-00-8714, 536-22-0000",
				"536-22-87145",
				"12-536-22-8714",
				"536-22-8714-1",
				"2024-10-11",
				"536228714",
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
		{
			// Written for people: with a +, or in groups. Bare digits are not a
			// number to call.
			ID: "phone",
			Pattern: `\B\+[1-9]\d{9,14}\b` +
				`|\B\+[1-9]\d{0,2}(?:(?:[ \x{A0}.-]{1,2}\(?|\()\d{1,5}(?:\) ?\d{1,5})?){2,5}\b` +
				`|(?:\b1[ .-])?(?:\B\([2-9]\d{2}\) ?[2-9]\d{2}[ .-]|\b[2-9]\d{2}\.[2-9]\d{2}\.|\b[2-9]\d{2}` + dash + `[2-9]\d{2}` + dash + `)\d{4}\b`,
			Validators: []match.Validator{phoneDigits},
			Severity:   guard.Medium, Verdict: guard.Redact,
			Match: []string{
				"call +44 20 7946 0958 now",
				"+12025550143",
				"(202) 555-0143",
				"202-555-0143",
				"1-202-555-0143",
				"202.555.0143",
				"+1 (202) 555.0143",
				"+44 (0)20 7946 0958",
			},
			NoMatch: []string{
				"1720000000",
				"2025550143",
				"4111-1111-1111-1112",
				"2024-10-11 12:00:00 +0000",
				"120 123 4567",
				"1 + 1234567 = 1234568",
				"1+1234567890",
				"m=+123.456789000",
				"clause 252.227-7013",
				"+1 2 3",
			},
		},
		{
			// Addresses that name no host and numbers that read as versions are
			// left out; see hostIPv4.
			ID:       "ipv4",
			Pattern:  `\b\d{1,3}(?:\.\d{1,3}){3,7}\b`,
			Severity: guard.Low, Verdict: guard.Redact,
			Validators: []match.Validator{hostIPv4},
			Match: []string{
				"from 192.168.1.17:52110",
				"client=203.0.113.9 status=200",
				"10.0.0.12",
			},
			NoMatch: []string{
				"version 1.2.3.4",
				"RFC 5280, Section 4.2.1.10",
				"8.8.8.8",
				"Chrome/120.0.0.0",
				"256.1.1.20",
				"1.2.3.4.5.60.7",
				"127.0.0.1 0.0.0.0 255.255.255.255 10.0.0.0/8",
				"v10.20.30.40",
				"1.234.5678.90",
			},
		},
	}
}

// cards matches what is laid out like a card number of a brand that exists, and
// a fraction that only ends like one, to be rejected.
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
	return `\b(?:\d{1,9}\.)?(?:` + sixteen + `|` + fifteen + `|` + fourteen + `)\b`
}()

// noFraction accepts text without a point in it.
var noFraction = match.Validator{Name: "no-fraction", Accept: func(text []byte) bool {
	return !bytes.Contains(text, []byte("."))
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

// mailbox rejects what only looks like an address: pinned versions of packages,
// names of images for dense screens, and the user of git over SSH.
var mailbox = match.Validator{Name: "mailbox", Accept: func(text []byte) bool {
	local, domain, _ := bytes.Cut(text, []byte("@"))
	if string(local) == "git" {
		return false
	}
	domain = bytes.ToLower(domain)
	first, _, _ := bytes.Cut(bytes.TrimPrefix(domain, []byte("v")), []byte("."))
	number := len(first) > 0
	for _, b := range first {
		number = number && '0' <= b && b <= '9'
	}
	switch string(domain[bytes.LastIndexByte(domain, '.')+1:]) {
	case "png", "jpg", "jpeg", "gif", "svg", "webp":
		return false
	}
	return !number
}}

// ssn accepts a Social Security number that may have been issued: no part is
// all zeros, and the first is neither 666 nor above 899.
var ssn = match.Validator{Name: "ssn", Accept: func(text []byte) bool {
	digits := make([]byte, 0, 16)
	for _, b := range text {
		if '0' <= b && b <= '9' {
			digits = append(digits, b)
		}
	}
	if len(digits) != 9 {
		return false
	}
	area, middle, serial := string(digits[:3]), string(digits[3:5]), string(digits[5:])
	return area != "000" && area != "666" && area[0] != '9' && middle != "00" && serial != "0000"
}}

// phoneDigits accepts what has as many digits as a number to call.
var phoneDigits = match.Validator{Name: "phone-digits", Accept: func(text []byte) bool {
	n := 0
	for _, b := range text {
		if '0' <= b && b <= '9' {
			n++
		}
	}
	return 8 <= n && n <= 16
}}

// hostIPv4 accepts the address of one host that is not this one. A number that
// ends in .0 is a network's, or the version of a browser. One whose parts are
// all below 32 is taken for a version, a section or an object identifier, unless
// it begins with 10, as the addresses of private networks do: of the public
// addresses, one in 4096 is like that.
var hostIPv4 = match.Validator{Name: "host-ipv4", Accept: func(text []byte) bool {
	b, ok := ipv4(text)
	if !ok || b[0] == 0 || b[3] == 0 || b[0] == 127 || b == [4]byte{255, 255, 255, 255} {
		return false
	}
	return b[0] == 10 || max(b[0], b[1], b[2], b[3]) >= 32
}}

// ipv4 reads an address as package netip does: four numbers up to 255, without
// zeros in front.
func ipv4(text []byte) (b [4]byte, ok bool) {
	n := 0
	for part := range bytes.SplitSeq(text, []byte(".")) {
		if n == len(b) || len(part) == 0 || len(part) > 3 || len(part) > 1 && part[0] == '0' {
			return b, false
		}
		value := 0
		for _, c := range part {
			value = 10*value + int(c-'0')
		}
		if value > 255 {
			return b, false
		}
		b[n] = byte(value)
		n++
	}
	return b, n == len(b)
}
