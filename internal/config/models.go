package config

import "strings"

// AllowsModel says whether a caller may name the model: whether one of the
// profile's Models matches all of it. A `*` stands for any run of characters, a
// slash included; every other character for itself, case and all.
func (p Profile) AllowsModel(model string) bool {
	for _, pattern := range p.Models {
		if matches(pattern, model) {
			return true
		}
	}
	return false
}

// matches finds each piece of the pattern at the earliest place that is left for
// it, which is right for all but the last: that one must be at the end.
func matches(pattern, s string) bool {
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, pieces[0])
	if !ok {
		return false
	}
	last := len(pieces) - 1
	for _, piece := range pieces[1:last] {
		if _, s, ok = strings.Cut(s, piece); !ok {
			return false
		}
	}
	return strings.HasSuffix(s, pieces[last])
}
