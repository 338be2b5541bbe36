package yamltree

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stoplog/stoplog/internal/diag"
)

// The readers of one value. Each reports what is wrong with it, in words that
// begin with what it is, and then gives a value that is not written.

// Text reads a string that is not empty and can be shown on one line.
func (r *Reader) Text(n Node, what string) At[string] {
	switch {
	case !r.Is(n, String, what):
	case strings.TrimSpace(n.Text) == "":
		r.Errorf(n.Span, "", "%s is empty", what)
	case strings.ContainsFunc(n.Text, func(c rune) bool { return !unicode.IsPrint(c) }):
		r.Errorf(n.Span, "", "%s has a line end or another character that does not print", what)
	default:
		return At[string]{n.Text, n.Span}
	}
	return At[string]{}
}

// Prose reads a text of one or more lines. Line ends at its end are the
// notation's, not the text's.
func (r *Reader) Prose(n Node, what string) At[string] {
	switch {
	case !r.Is(n, String, what):
	case strings.TrimSpace(n.Text) == "":
		r.Errorf(n.Span, "", "%s is empty", what)
	case strings.ContainsFunc(n.Text, unprintable):
		r.Errorf(n.Span, "", "%s has a control character", what)
	default:
		return At[string]{strings.TrimRight(n.Text, "\n"), n.Span}
	}
	return At[string]{}
}

// unprintable says of a rune that a text of several lines does not hold it.
func unprintable(c rune) bool {
	return c != '\n' && c != '\t' && unicode.IsControl(c) || c == '\ufeff' || Reorders(c)
}

// Texts reads a list of strings, which may be empty, each once.
func (r *Reader) Texts(n Node, what string) At[[]At[string]] {
	if !r.Is(n, List, what) {
		return At[[]At[string]]{}
	}
	all := At[[]At[string]]{Value: make([]At[string], 0, len(n.Items)), Span: n.Span}
	seen := make(map[string]bool, len(n.Items))
	for _, item := range n.Items {
		t := r.Text(item, "an item of "+what)
		if !t.Written() {
			continue
		}
		if seen[t.Value] {
			r.Errorf(t.Span, "keep one", "%s has %q twice", what, t.Value)
			continue
		}
		seen[t.Value] = true
		all.Value = append(all.Value, t)
	}
	return all
}

// OneOf reads one of some words.
func (r *Reader) OneOf(n Node, what string, words ...string) At[string] {
	t := r.Text(n, what)
	if !t.Written() || slices.Contains(words, t.Value) {
		return t
	}
	hint := "want one of " + strings.Join(words, ", ")
	if near := diag.Suggest(t.Value, words); near != "" {
		hint = DidYouMean(near) + " " + hint
	}
	r.Errorf(t.Span, hint, "%s cannot be %q", what, t.Value)
	return At[string]{}
}

var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// Integer reads a whole number in decimal. A fraction is not rounded, and digits
// after a zero are not taken for octal.
func (r *Reader) Integer(n Node, what string, least, most int64) At[int64] {
	if !r.Is(n, Number, what) {
		return At[int64]{}
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case err != nil || !decimal.MatchString(n.Text):
		r.Errorf(n.Span, "write it in decimal digits", "%s must be a whole number, not %s", what, n.Text)
	case v < least || v > most:
		r.Errorf(n.Span, "", "%s is %d, want %d to %d", what, v, least, most)
	default:
		return At[int64]{v, n.Span}
	}
	return At[int64]{}
}

// Flag reads true or false, of which YAML knows three spellings each.
func (r *Reader) Flag(n Node, what string) At[bool] {
	if !r.Is(n, Boolean, what) {
		return At[bool]{}
	}
	return At[bool]{strings.EqualFold(n.Text, "true"), n.Span}
}

// Duration reads a span of time in whole seconds.
func (r *Reader) Duration(n Node, what string, least, most time.Duration) At[time.Duration] {
	const form = "write one such as 90s, 30m, 24h or 1h30m"
	if n.Kind == Number {
		r.Errorf(n.Span, form, "%s has no unit: %s", what, n.Text)
		return At[time.Duration]{}
	}
	if !r.Is(n, String, what) {
		return At[time.Duration]{}
	}
	v, err := time.ParseDuration(n.Text)
	switch {
	case err != nil || v%time.Second != 0:
		r.Errorf(n.Span, form, "%s cannot be %q", what, n.Text)
	case v < least || v > most:
		r.Errorf(n.Span, "", "%s is %s, want %s to %s", what, n.Text, Short(least), Short(most))
	default:
		return At[time.Duration]{v, n.Span}
	}
	return At[time.Duration]{}
}

// Short spells a span of time in whole seconds without units that are zero:
// 1h30m, not 1h30m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
