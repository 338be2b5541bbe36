package yamltree

import (
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
)

// A Shape is what one kind of mapping may hold.
type Shape struct {
	What string   // in messages: "a step"
	Path string   // where such a mapping stands in the file: "steps"
	Keys []string // in the order of the documentation
}

// Shapes are those of one kind of file.
type Shapes []*Shape

// Members gives those members of a mapping that its shape knows, each key once,
// and reports the others; flawed says that something is reported.
func (r *Reader) Members(n Node, s *Shape, all Shapes) (known []Member, flawed bool) {
	if !r.Is(n, Mapping, s.What) {
		return nil, true
	}
	before := len(r.List)
	known = make([]Member, 0, len(n.Members))
	for _, m := range r.Unique(n.Members) {
		if slices.Contains(s.Keys, m.Key) {
			known = append(known, m)
			continue
		}
		r.unknown(m, s, all)
	}
	return known, n.Flawed || len(r.List) > before
}

// Unique leaves out the members whose key stood before, and reports them.
func (r *Reader) Unique(members []Member) []Member {
	first := firstOf(members)
	once := make([]Member, 0, len(members))
	for i, m := range members {
		if at := first(m.Key); at != i {
			r.Errorf(m.Span, "keep one", "key %q is set twice, first on line %d", m.Key, members[at].Span.Line)
			continue
		}
		once = append(once, m)
	}
	return once
}

// firstOf gives the index of the first member of a key: by looking, where they
// are few, which is nearly always; else by a map, so that many stay linear.
func firstOf(members []Member) func(string) int {
	if len(members) <= 16 {
		return func(key string) int {
			return slices.IndexFunc(members, func(m Member) bool { return m.Key == key })
		}
	}
	index := make(map[string]int, len(members))
	for i, m := range members {
		if _, ok := index[m.Key]; !ok {
			index[m.Key] = i
		}
	}
	return func(key string) int { return index[key] }
}

// unknown reports a key that the shape does not have: misspelt, in the wrong
// place, or neither.
func (r *Reader) unknown(m Member, s *Shape, all Shapes) {
	hint := "the keys here are " + strings.Join(s.Keys, ", ")
	for _, other := range all {
		if slices.Contains(other.Keys, m.Key) {
			r.Errorf(m.Span, hint, "%q does not belong in %s: it is a key of %s", m.Key, s.What, other.Path)
			return
		}
	}
	if near := diag.Suggest(m.Key, s.Keys); near != "" {
		hint = DidYouMean(near) + " " + hint
	}
	r.Errorf(m.Span, hint, "unknown key %q in %s", m.Key, s.What)
}

// DidYouMean is the beginning of a hint.
func DidYouMean(name string) string { return `did you mean "` + name + `"?` }

// Is says whether the node is of the kind that is wanted, and reports it if not.
func (r *Reader) Is(n Node, want Kind, what string) bool {
	if n.Kind == want || n.Kind == Broken {
		return n.Kind == want
	}
	hint := ""
	if want == String && (n.Kind == Number || n.Kind == Boolean) {
		hint = "quote it"
	}
	r.Errorf(n.Span, hint, "%s must be %s, not %s", what, want, n.Kind)
	return false
}
