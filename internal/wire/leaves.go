package wire

import (
	"bytes"
	"fmt"

	"github.com/stoplog/stoplog/guard"
)

// Longest texts of fields that clients act on.
const (
	maxID   = 512
	maxEnum = 128
)

// content is what a leaf says: the text of a string, the digits of a number.
// It is good until the next call.
func (j *judgement) content(doc []byte, l *leaf) []byte {
	b := doc[l.from:l.to]
	if l.token == '0' {
		return b
	}
	b = b[1 : len(b)-1]
	if l.escaped {
		j.buf = unescape(j.buf[:0], b)
		return j.buf
	}
	return b
}

// said is what a leaf adds to a channel: the text of a string, or a document
// that stands there as it is. It is good until the next call.
func (j *judgement) said(doc []byte, l *leaf) []byte {
	switch {
	case l.token == '"':
		return j.content(doc, l)
	case l.kind == JSON:
		return doc[l.from:l.to]
	}
	return nil
}

// whole screens a leaf that is no channel, and returns the splice that a
// finding in it asks for.
func (j *judgement) whole(doc []byte, l *leaf) (splice, error) {
	if l.token != '"' && l.token != '0' && l.token != 'k' {
		return splice{}, nil
	}
	switch l.kind {
	case Embedded:
		return j.embedded(doc, l)
	case ID, Enum, Number:
		said := doc[l.from:l.to]
		before := j.field(l.node)
		if before.node == l.node && bytes.Equal(before.said, said) {
			return splice{}, nil
		}
		text := j.content(doc, l)
		if l.token == '"' && !grammatical(l.kind, text) {
			return splice{}, &errRefused{what: fmt.Sprintf("the field %s of the answer is malformed", l.node.path)}
		}
		if r := j.screen(l.node.path, text); r.stop != nil || r.edits != nil {
			return splice{}, refusal(l.node.path, r)
		}
		before.node, before.said = l.node, append(before.said[:0], said...)
		return splice{}, nil
	}
	text := j.content(doc, l)
	r := j.screen(l.path, text)
	if r.stop != nil {
		return splice{}, refusal("a field that is not known", r)
	}
	if r.edits == nil {
		return splice{}, nil
	}
	if l.token == '0' {
		return splice{l.from, l.to, quote(nil, r.edits[0].text)}, nil
	}
	raw := doc[l.from+1 : l.to-1]
	return splice{l.from + 1, l.to - 1, appendEdited(nil, raw, false, 0, 0, int64(len(text)), r.edits)}, nil
}

// field is what is known of a field from the frame before.
func (j *judgement) field(n *node) *field {
	for len(j.fields) <= n.slot {
		j.fields = append(j.fields, field{})
	}
	return &j.fields[n.slot]
}

// refusal is the error of a field that clients act on and that has a finding.
func refusal(field string, r screened) error {
	stop := r.stop
	if stop == nil {
		stop = &guard.Stop{Verdict: guard.Deny, Guard: r.guard, Rule: r.rule}
	}
	return &errRefused{what: fmt.Sprintf("the field %s of the answer was withheld", field), stop: stop}
}

// grammatical reports whether a text is one that clients may act on.
func grammatical(k Kind, text []byte) bool {
	if k == Enum {
		return len(text) <= maxEnum && bytes.IndexFunc(text, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == ':' || r == '-' || r == '/' || r == ' ')
		}) < 0
	}
	return len(text) <= maxID && bytes.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}

// find is the index of the first leaf that plays a role and is not null, or -1.
func find(leaves []leaf, role string) int {
	for i := range leaves {
		if l := &leaves[i]; l.node != nil && l.node.channel == role && l.token != 'n' {
			return i
		}
	}
	return -1
}

// elements appends where the structures stand that play a role.
func elements(spans []span, leaves []leaf, role string) []span {
	for i := range leaves {
		if l := &leaves[i]; l.token == '{' && l.node.channel == role {
			spans = append(spans, span{l.from, l.to})
		}
	}
	return spans
}
