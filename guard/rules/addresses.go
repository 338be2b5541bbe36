package rules

import (
	"bytes"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// addresses are those of machines, which may be a person's.
func addresses() []match.Rule {
	return []match.Rule{
		{
			// Addresses that name no host and numbers that read as versions are
			// left out; see hostIPv4.
			ID:       "ipv4",
			Pattern:  `\b\d{1,3}(?:\.\d{1,3}){3,7}(?:\.\d{1,9}\b|-[A-Za-z]|\b)`,
			Severity: guard.Low, Verdict: guard.Redact,
			Validators: []match.Validator{hostIPv4},
			Match: []string{
				"from 192.168.1.17:52110",
				"client=93.184.216.34 status=200",
				"10.0.0.12",
			},
			NoMatch: []string{
				"version 1.2.3.4",
				"RFC 5280, Section 4.2.1.10",
				"8.8.8.8",
				"Chrome/120.0.0.0",
				"256.1.1.20",
				"doi 10.1.1.80.1979",
				"v8@10.2.154.26-node.26",
				"netmask 255.255.255.240, group 239.1.1.40",
				"1.2.3.4.5.60.7",
				"127.0.0.1 0.0.0.0 255.255.255.255 10.0.0.0/8",
				"v10.20.30.40",
				"1.234.5678.90",
				"192.0.2.44, 198.51.100.7 and 203.0.113.9",
			},
		},
		{
			// What is given to hosts: global and unique local addresses, and those of
			// a link. What stands for an example is none.
			ID:       "ipv6",
			Pattern:  `(?i)\b(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]):(?:[0-9a-f]{0,4}:){1,6}(?:[0-9a-f]{1,4}\b(?::\b)?)?`,
			Severity: guard.Low, Verdict: guard.Redact,
			Validators: []match.Validator{hostIPv6},
			Match: []string{
				"from [2a02:8109:9a40:1f3c:d1e4:5b6a:7c8d:9e0f]:443",
				"addr 2606:4700::6810:84e5 up",
				"fe80::1c2d:3eff:fe4f:5a6b%eth0",
				"fd12:3456:789a:1::1",
			},
			NoMatch: []string{
				"2001:db8::1 and 3fff::1 stand for examples",
				"::1 and ::",
				"at 2024:10:11 12:30:45",
				"2a:bc:de:f0:12:34 is of a network card",
				"face::Detector, fade::In and fd00::",
				"2a02:8109:9a40:1f3c:d1e4:5b6a:7c8d",
				"2a02::8109::1",
			},
		},
	}
}

// hostIPv4 accepts the address of one host that is not this one, nor a mask or a
// group. A number that ends in .0 is a network's, or the version of a browser. One
// whose parts are
// all below 32 is taken for a version, a section or an object identifier, unless
// it begins with 10, as the addresses of private networks do: of the public
// addresses, one in 4096 is like that.
var hostIPv4 = match.Validator{Name: "host-ipv4", Accept: func(text []byte) bool {
	b, ok := ipv4(text)
	if !ok || b[0] == 0 || b[3] == 0 || b[0] == 127 || b[0] >= 224 || example[[3]byte(b[:3])] {
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

// example are the networks that stand for examples: RFC 5737.
var example = map[[3]byte]bool{{192, 0, 2}: true, {198, 51, 100}: true, {203, 0, 113}: true}

// hostIPv6 accepts the address of one host that may be somewhere: eight groups,
// or fewer with one gap in them, and a last part that is not zero. The networks
// of RFC 3849 and RFC 9637 stand for examples.
var hostIPv6 = match.Validator{Name: "host-ipv6", Accept: func(text []byte) bool {
	groups, gaps, zero := 0, 0, true
	for i := 0; i < len(text); {
		switch {
		case text[i] != ':':
			for zero = true; i < len(text) && text[i] != ':'; i++ {
				zero = zero && text[i] == '0'
			}
			groups++
		case i+1 < len(text) && text[i+1] == ':':
			gaps++
			zero = true
			i += 2
		default:
			i++
		}
	}
	if text[len(text)-1] == ':' && !bytes.HasSuffix(text, []byte("::")) {
		return false
	}
	low := bytes.ToLower(text)
	if bytes.HasPrefix(low, []byte("2001:db8:")) || bytes.HasPrefix(low, []byte("2001:0db8:")) || bytes.HasPrefix(low, []byte("3fff:")) {
		return false
	}
	return !zero && (groups == 8 && gaps == 0 || groups < 8 && gaps == 1)
}}
