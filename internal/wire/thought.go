package wire

import (
	"bytes"
	"slices"
)

// A Thought is a block of thinking that its provider has signed, and that went out
// changed and without the signature. The provider takes back only what it signed.
type Thought struct {
	Shown               string // as it went out
	Original, Signature string
}

// remember notes the thought whose signature a frame holds, and which has changed.
func (s *Stream) remember(f *frame) {
	t := anthropicTables[string(payloadType(f.payload))]
	if t == nil || f.signs.original == nil {
		return
	}
	var sc scanner
	leaves, err := sc.scan(f.payload, t.root)
	if err != nil {
		return
	}
	i := find(leaves, "signature")
	if i < 0 || leaves[i].token != '"' {
		return
	}
	c := f.signs
	s.thoughts = append(s.thoughts, Thought{
		Shown:     string(appendEdited(nil, c.original, true, 0, 0, int64(len(c.original)), c.made)),
		Original:  string(c.original),
		Signature: string(s.content(f.payload, &leaves[i])),
	})
}

// Thoughts returns those that went out changed since its last call.
func (s *Stream) Thoughts() []Thought {
	t := s.thoughts
	s.thoughts = nil
	return t
}

// remember notes the thought of a block whose signature is withheld.
func (b *document) remember(leaves []leaf, signature *leaf) {
	i := find(leaves, "thinking")
	if i < 0 || leaves[i].token != '"' {
		return
	}
	l := &leaves[i]
	t := Thought{Original: string(b.content(b.doc, l)), Signature: string(b.content(b.doc, signature))}
	t.Shown = t.Original
	if k := slices.IndexFunc(b.splices, func(s splice) bool { return s.from == l.from+1 && s.to == l.to-1 }); k >= 0 {
		t.Shown = string(unescape(nil, b.splices[k].with))
	}
	b.thoughts = append(b.thoughts, t)
}

// recall puts thoughts back as their provider signed them: those of a request that
// have no signature and that recall knows. It returns the splices of that.
func (b *document) recall(known func(shown string) (Thought, bool)) (back []splice) {
	for i := range b.leaves {
		l := &b.leaves[i]
		if l.token != '"' || l.node == nil || l.node.path != "messages[].content[].thinking" {
			continue
		}
		signature := slices.IndexFunc(b.leaves, func(o leaf) bool {
			return o.node != nil && o.token == '"' && o.node.path == "messages[].content[].signature" && o.idx == l.idx
		})
		if signature >= 0 && !bytes.Equal(b.doc[b.leaves[signature].from:b.leaves[signature].to], []byte(`""`)) {
			continue
		}
		t, ok := known(string(b.content(b.doc, l)))
		if !ok {
			continue
		}
		signed := quote(nil, t.Signature)
		text := quote(nil, t.Original)
		if signature >= 0 {
			back = append(back, splice{b.leaves[signature].from, b.leaves[signature].to, signed})
		} else {
			text = append(append(text, `,"signature":`...), signed...)
		}
		back = append(back, splice{l.from, l.to, text})
	}
	return back
}
