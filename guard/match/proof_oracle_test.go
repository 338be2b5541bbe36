package match_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard/match"
)

// whole looks at all of a text: by package regexp, and for each form of each value.
type whole struct {
	rules    []match.Rule
	patterns []*regexp.Regexp
	forms    [][]string // of the values
}

// A place is a finding, of the rule of that number or of a value, behind the rules.
type place struct{ start, end, number int }

// undone is a text with parts of it replaced, and where its bytes were.
type undone struct {
	text     string
	from, to []int
}

func (u undone) replace(re *regexp.Regexp, by func(string) string) (out undone) {
	add := func(s string, at, n int) {
		for i := range len(s) {
			first, last := at, at+n-1
			if len(s) == n {
				first, last = at+i, at+i
			}
			out.from, out.to = append(out.from, u.from[first]), append(out.to, u.to[last])
		}
		out.text += s
	}
	at := 0
	for _, m := range re.FindAllStringIndex(u.text, -1) {
		add(u.text[at:m[0]], at, m[0]-at)
		add(by(u.text[m[0]:m[1]]), m[0], m[1]-m[0])
		at = m[1]
	}
	add(u.text[at:], at, len(u.text)-at)
	return out
}

var (
	inDisguise = regexp.MustCompile("\x1b\\[[0-9]{1,4}(?:[;:][0-9]{0,4})*m(?:\x1b\\[K)?" +
		"|[" + nothing + like + "\ufe00-\ufe0f\uff01-\uff5e\U000e0000-\U000e01ef]")
	inJSON    = regexp.MustCompile(`\\(?:["\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})`)
	inPercent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
)

func bare(s string) string           { return standsFor[s] }
func fromJSON(s string) (out string) { json.Unmarshal([]byte(`"`+s+`"`), &out); return out }
func fromPercent(s string) string    { b, _ := hex.DecodeString(s[1:]); return string(b) }

// find looks for the rules that ask says, and for all values.
func (o *whole) find(text string, ask func(rule int, text string) bool) (found []place) {
	u := undone{text: text}
	for i := range len(text) {
		u.from, u.to = append(u.from, i), append(u.to, i+1)
	}
	u = u.replace(inDisguise, bare)
	for i, re := range o.patterns {
		if !ask(i, u.text) {
			continue
		}
		group := max(0, re.SubexpIndex(o.rules[i].Group))
		for _, m := range re.FindAllStringSubmatchIndex(u.text, -1) {
			from, to := m[2*group], m[2*group+1]
			if !slices.ContainsFunc(o.rules[i].Validators, func(v match.Validator) bool { return !v.Accept([]byte(u.text[from:to])) }) {
				found = append(found, place{u.from[from], u.to[to-1], i})
			}
		}
	}
	var values []place
	for _, r := range []undone{u, u.replace(inJSON, fromJSON), u.replace(inPercent, fromPercent)} {
		for i, forms := range o.forms {
			for _, form := range forms {
				for at := range len(r.text) {
					if strings.HasPrefix(r.text[at:], form) {
						values = append(values, place{r.from[at], r.to[at+len(form)-1], len(o.rules) + i})
					}
				}
			}
		}
	}
	slices.SortFunc(values, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), a.number-b.number)
	})
	covered := 0
	for _, v := range values {
		if v.end > covered {
			found, covered = append(found, v), v.end
		}
	}
	slices.SortStableFunc(found, func(a, b place) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.number, b.number)) })
	return found
}
