// Package gitleaks has the rules of gitleaks, as rules of package match.
//
// The data are those of gitleaks v8.30.1 (MIT, see LICENSE), in data.go. Its
// detector is not used: it looks at a file, at lines and at commits, and needs
// all of the text. What becomes of a rule's parts:
//
//   - The pattern is taken as it is. The group that gitleaks takes for the secret
//     is what is redacted; where there is none, it is the match.
//   - The entropy floor is a validator, and so are the allow lists that look at
//     the secret, its stop words, and those that gitleaks has for all rules.
//   - Allow lists by path, commit or line are left out: a stream has neither of
//     the first two, and the last would hold each match to the end of its line. So
//     are allow lists on a match of which only a part is held.
//   - A keyword that must be somewhere in the file is no condition here, since it
//     may come later. All patterns but a few contain theirs; those are mended.
//   - A rule with a path and a pattern is taken for any text.
//   - A rule that only looks at a path is left out, by name.
//
// Some patterns find the right files and would redact the wrong text, or hold
// far too much of any text. They are mended, each for a reason (mends.go).
package gitleaks

//go:generate go mod download github.com/zricethezav/gitleaks/v8@v8.30.1
//go:generate go run gen.go

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// Source is where the data are from.
const Source = "github.com/zricethezav/gitleaks/v8@v8.30.1"

// entry is a rule in the words of gitleaks.
type entry struct {
	id, description string
	regex           string
	group           int // of the secret; 0: the first that is not empty
	path            string
	entropy         float64
	keywords        []string
	allow           []allowlist
}

// allowlist says what is no secret. Its parts are alternatives unless condition
// is AND.
type allowlist struct {
	target    string // of regexes: match or line; empty for the secret
	condition string
	paths     []string
	regexes   []string
	stopwords []string
}

// LeftOut are the rules of gitleaks that [Rules] does not have, and why.
var LeftOut = map[string]string{
	"pkcs12-file": "it looks at the name of a file, and a stream has none",
}

// secretGroup names the group that is redacted.
const secretGroup = "secret"

// Rules returns all rules that have a pattern, mended. They have no examples of
// their own; [Examples] makes some.
func Rules() []match.Rule { return slices.Clone(all()) }

var all = sync.OnceValue(func() []match.Rule {
	var out []match.Rule
	for _, e := range source {
		if LeftOut[e.id] != "" {
			continue
		}
		parts := []entry{e}
		if m, ok := mends[e.id]; ok {
			parts = m.apply(e)
		}
		for _, p := range parts {
			out = append(out, p.rule())
		}
	}
	return out
})

// rule is the entry in the words of package match.
func (e entry) rule() match.Rule {
	r := match.Rule{ID: e.id, Pattern: e.regex, Severity: guard.High, Verdict: guard.Redact}
	if named, ok := name(e.regex, max(e.group, 1)); ok {
		r.Pattern, r.Group = named, secretGroup
	}
	if e.entropy > 0 {
		r.Validators = append(r.Validators, above(e.entropy))
	}
	r.Validators = append(r.Validators, notEverywhere)
	for _, a := range e.allow {
		if v, ok := a.validator("allow list of " + e.id); ok {
			r.Validators = append(r.Validators, v)
		}
	}
	return r
}

// name gives the n-th capturing group of a pattern the name of the secret's, if
// there are so many.
func name(pattern string, n int) (string, bool) {
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
			if strings.HasPrefix(pattern[i:], "[:") {
				i += strings.Index(pattern[i:], ":]") + 1
				class = true
			}
		case c == '[':
			class = true
			for i+1 < len(pattern) && (pattern[i+1] == '^' || pattern[i+1] == ']') {
				i++
			}
		case c == '(' && pattern[i+1] != '?':
			if n--; n == 0 {
				return pattern[:i+1] + "?P<" + secretGroup + ">" + pattern[i+1:], true
			}
		}
	}
	return pattern, false
}

// above accepts text of more than floor bits of entropy a byte, as gitleaks
// does; match.Entropy takes the floor in.
func above(floor float64) match.Validator {
	v := match.Entropy(math.Nextafter(floor, math.Inf(1)))
	v.Name = "entropy(> " + strconv.FormatFloat(floor, 'g', -1, 64) + ")"
	return v
}

// notEverywhere rejects what gitleaks never takes for a secret.
var notEverywhere, _ = everywhere.validator("allow list of all")

// validator rejects what the list allows. ok is false if the list looks at what
// a validator does not see.
func (a allowlist) validator(name string) (v match.Validator, ok bool) {
	if a.condition == "AND" || a.target != "" || len(a.regexes)+len(a.stopwords) == 0 {
		return v, false
	}
	pattern := sync.OnceValue(func() *regexp.Regexp {
		if len(a.regexes) == 0 {
			return nil
		}
		return regexp.MustCompile(fmt.Sprintf("(?:%s)", strings.Join(a.regexes, ")|(?:")))
	})
	words := match.Without(a.stopwords...)
	return match.Validator{Name: name, Accept: func(text []byte) bool {
		if re := pattern(); re != nil && re.Match(text) {
			return false
		}
		return words.Accept(text)
	}}, true
}
