package rules

import (
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// national are the numbers by which states know people.
func national() []match.Rule {
	return []match.Rule{
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
			ID: "us-ssn-labelled",
			Pattern: `(?i:\bssn|\bsocial[ _-]security[ _-](?:number|no|num|#))[\s"':=#.]{1,6}(?:is\s)?["']?` +
				`(?P<id>\d{3}[ -]?\d{2}[ -]?\d{4})\b`,
			Group:    "id",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{ssn},
			Match: []string{
				"ssn: 536228714",
				"Social Security number is 536 22 8714",
			},
			NoMatch: []string{
				"ssn: 000228714",
				"ssn: 5362287145",
				"SSN 078-05-1120",
			},
		},
		labelled("uk-nhs", `nhs`, `\d{3}[ -]?\d{3}[ -]?\d{4}`, nhs,
			[]string{"NHS number: 943 476 5919", "nhs_no=9434765919", "NHS no. 401-023-2137"},
			[]string{"NHS number: 943 476 5918", "call 943 476 5919", "the NHS has 9434765919 pounds", "NHS number: 94347659190"}),
		{
			// The letter says enough, with eight digits before it or seven. A fraction
			// of a second has both too, and is matched with its point to be rejected.
			ID:       "es-nif",
			Pattern:  `\b(?:\d{1,9}[.,])?(?:\d{8}-?[A-HJ-NP-TV-Z]|[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z])\b`,
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{noFraction, nif},
			Match: []string{
				"DNI 12345678Z",
				"NIE X1234567L",
				"NIF: 12345678-Z, NIE: Y-0000001-S",
			},
			NoMatch: []string{
				"12345678A",
				"X1234567Z",
				"112345678Z",
				"12345678Zz",
				"00000000T",
				"20241011T",
				"2026-11-30T22:34:23.19985059Z",
			},
		},
		labelled("pl-pesel", `pesel`, `\d{11}`, pesel,
			[]string{"PESEL: 44051401359", `"pesel": "02070803628"`},
			[]string{"PESEL: 44051401358", "44051401359", "PESEL: 44991401352"}),
		labelled("in-aadhaar", `(?:aadhaa?r|uidai|uid)`, `[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}`, aadhaar,
			[]string{"Aadhaar: 2341 2341 2346", "aadhar_no=234123412346", "Aadhaar number is 4987-6543-2102"},
			[]string{"Aadhaar: 2341 2341 2345", "2341 2341 2346", "Aadhaar: 1341 2341 2346", "uid=1000"}),
		labelled("au-tfn", `(?:tfn|tax[ _-]file[ _-](?:number|no))`, `\d{3}[ -]?\d{3}[ -]?\d{3}`, tfn,
			[]string{"TFN: 123 456 782", "tax file number 123456782", "tfn=876-543-210"},
			[]string{"TFN: 123 456 781", "123 456 782", "TFN: 1234567820", "tfn=000000000"}),
	}
}

// labelled is the rule for a number that is like too many others to be known
// without the word before it.
func labelled(id, word, number string, check match.Validator, yes, no []string) match.Rule {
	return match.Rule{
		ID: id,
		Pattern: `(?i:\b` + word + `)(?i:[ _-]?(?:numbers?|num|no|nr|id))?[\s"':=#.]{1,6}(?:is\s)?["']?` +
			`(?P<id>` + number + `)\b`,
		Group:    "id",
		Severity: guard.High, Verdict: guard.Redact,
		Validators: []match.Validator{check},
		Match:      yes, NoMatch: no,
	}
}

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
	switch string(digits) {
	case "078051120", "219099999": // printed on a card in a wallet, and in a leaflet
		return false
	}
	area, middle, serial := string(digits[:3]), string(digits[3:5]), string(digits[5:])
	return area != "000" && area != "666" && area[0] != '9' && middle != "00" && serial != "0000"
}}
