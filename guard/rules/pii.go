package rules

import (
	"bytes"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// gap is what people put between the groups of a long number.
const gap = `[ \x{A0}\x{202F}\x{2010}-\x{2013}-]`

// dash is a gap that is no space.
const dash = `[\x{2010}-\x{2013}-]`

// pii are data about people.
func pii() []match.Rule {
	return slices.Concat(contacts(), accounts(), addresses(), national())
}

// contacts are where a person can be reached.
func contacts() []match.Rule {
	return []match.Rule{
		{
			// The local part has no boundary in front: a match starts as far left
			// as its 64 letters reach, and no name escapes because an odd character
			// stands before it.
			ID:       "email",
			Pattern:  `[\p{L}\p{M}\p{N}._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,3}(?:xn--[a-z0-9-]{1,24}|[A-Za-z]{2,24})`,
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
				"getty@tty1.service",
				"npm install react@18.2.0-next.beta",
				"git clone git@github.com:acme/app.git",
				"golang.org/x/net@v0.55.0",
			},
		},
		{
			// Written for people: with a +, or in groups. Bare digits are not a
			// number to call.
			ID: "phone",
			Pattern: `\B\+[1-9]\d{9,14}(?:\.\d{1,12})?\b` +
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
				"+1234567891011.234 and m=+9000000000.000000000",
			},
		},
	}
}

// mailbox rejects what only looks like an address: pinned versions of packages,
// names of files and of units of systemd, and the user of git over SSH.
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
	case "png", "jpg", "jpeg", "gif", "svg", "webp",
		"service", "socket", "target", "timer", "mount", "slice", "scope",
		"js", "mjs", "cjs", "ts", "tsx", "jsx", "css", "json", "yaml", "yml", "html", "xml", "txt", "conf", "log", "version":
		return false
	}
	return !number
}}

// phoneDigits accepts what has as many digits as a number to call, and is no
// fraction: ten of them or more before the only point.
var phoneDigits = match.Validator{Name: "phone-digits", Accept: func(text []byte) bool {
	n := 0
	for i, b := range text {
		switch {
		case '0' <= b && b <= '9':
			n++
		case b == '.' && n >= 10 && n == i-1:
			return false
		}
	}
	return 8 <= n && n <= 16
}}
