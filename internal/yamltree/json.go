package yamltree

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// JSON gives a value as JSON, its members in the order of the file; nil after a
// report of what JSON has no form for.
func (r *Reader) JSON(n Node, what string) json.RawMessage {
	before := len(r.List)
	var out bytes.Buffer
	r.json(&out, n, what)
	if len(r.List) > before || broken(n) {
		return nil
	}
	return out.Bytes()
}

func (r *Reader) json(out *bytes.Buffer, n Node, what string) {
	switch n.Kind {
	case Null:
		out.WriteString("null")
	case Boolean:
		out.WriteString(map[bool]string{true: "true", false: "false"}[n.Text[0] == 't' || n.Text[0] == 'T'])
	case Number:
		if !jsonNumber.MatchString(n.Text) {
			r.Errorf(n.Span, "write it in decimal digits", "a number of %s that JSON does not have: %s", what, n.Text)
			return
		}
		out.WriteString(n.Text)
	case String:
		r.jsonString(out, n.Text)
	case List:
		out.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				out.WriteByte(',')
			}
			r.json(out, item, what)
		}
		out.WriteByte(']')
	case Mapping:
		out.WriteByte('{')
		for i, m := range r.Unique(n.Members) {
			if i > 0 {
				out.WriteByte(',')
			}
			r.jsonString(out, m.Key)
			out.WriteByte(':')
			r.json(out, m.Value, what)
		}
		out.WriteByte('}')
	case Broken:
	}
}

func (*Reader) jsonString(out *bytes.Buffer, s string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string
	}
	out.Truncate(out.Len() - 1) // the line feed
}

// broken says whether a part of a value was reported and left out.
func broken(n Node) bool {
	for _, m := range n.Members {
		if broken(m.Value) {
			return true
		}
	}
	return n.Kind == Broken || n.Flawed || slices.ContainsFunc(n.Items, broken)
}
