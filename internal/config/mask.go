package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What a line of a configuration may hold that must not be shown: a key that is
// written out (as an upstream's or in a header of it), which is refused and would
// otherwise be quoted in the refusal,
// the credentials and the query of a URL, and the password of a database. Each
// pattern's group is hidden.
var masked = []*regexp.Regexp{
	regexp.MustCompile(`://(\S*)@`),
	regexp.MustCompile(`://[^\s?]*\?([^\s"']*)`),
	regexp.MustCompile(`(?i)\bpassword\s*=\s*(\S+)`),
	regexp.MustCompile(`(?i)(?:key|authorization|cookie|token|secret|password)(?:-[\w-]*)?["']?\s*:\s*(\S.*)`),
}

// reference is what follows `key:` where it is as it should be.
var reference = regexp.MustCompile(`^["']?(env:[A-Za-z_][A-Za-z0-9_]*|file:[^,"'{}\s]*)["']?\s*([,}#].*)?$`)

// maskSecrets replaces secrets by as many asterisks, so that columns still fit.
// It errs on the side of hiding: the line is only an illustration.
func maskSecrets(line string) string {
	for _, secret := range masked {
		for _, m := range secret.FindAllStringSubmatchIndex(line, -1) {
			from, to := m[2], m[3]
			if !reference.MatchString(line[from:to]) {
				line = line[:from] + stars(line[from:to]) + line[to:]
			}
		}
	}
	return line
}

func stars(s string) string { return strings.Repeat("*", utf8.RuneCountInString(s)) }
