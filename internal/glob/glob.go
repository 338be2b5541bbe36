// Package glob matches names against patterns in which a `*` stands for any
// characters, and nothing else is special: names of models, tools and labels.
package glob

import "strings"

// Match reports whether a `*` for any characters makes pattern into s.
func Match(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok || len(parts) == 1 {
		return ok && s == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] { // the first place is as good as any later one
		if _, s, ok = strings.Cut(s, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(s, parts[last])
}
