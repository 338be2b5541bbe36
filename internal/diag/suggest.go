package diag

import (
	"strings"
	"unicode/utf8"
)

// Suggest gives the candidate nearest to word, or "" if none is near enough to
// have been meant. Near is a number of edits (a rune inserted, removed, changed,
// or swapped with its neighbour; case counts for nothing) of at most a third of
// the word's runes, and at least 1. Of equally near candidates the first wins.
func Suggest(word string, candidates []string) string {
	word = strings.ToLower(word)
	runes := utf8.RuneCountInString(word)
	if runes > 64 { // nobody's name; and the work is quadratic
		return ""
	}
	best, most := "", max(1, runes/3)+1
	for _, c := range candidates {
		if d := edits([]rune(word), []rune(strings.ToLower(c))); d < most && d < runes {
			best, most = c, d
		}
	}
	return best
}

// edits is the optimal string alignment distance of a and b.
func edits(a, b []rune) int {
	// Rows i-2, i-1 and i of the table whose cell (i, j) is the distance of
	// a[:i] and b[:j].
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		two, one, row = one, row, two
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := one[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(one[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
