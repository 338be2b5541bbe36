package wire

import "bytes"

// fit makes of each leaf that is not what its field is for one that no table
// names: a number where text belongs is no text, and what is no base64 is not
// opaque.
func fit(doc []byte, leaves []leaf) {
	for i := range leaves {
		switch l := &leaves[i]; {
		case l.kind == Opaque && l.token == '"' && embedded(doc, leaves, i):
			l.kind = Embedded
		case l.kind != Unknown && !fits(doc, leaves, i):
			*l = *l.unknown()
			l.node = nil
		}
	}
}

// unknown is the leaf as if no table named it. A text keeps the name of its
// role, which is the same streamed and not.
func (l *leaf) unknown() *leaf {
	u := *l
	u.kind, u.path = Unknown, l.node.path
	if l.kind == Text && l.node.channel != "" {
		u.path = l.node.channel
	}
	return &u
}

func fits(doc []byte, leaves []leaf, i int) bool {
	l := &leaves[i]
	if l.token != '"' && l.token != '0' {
		return true // says nothing, or only where something is
	}
	switch l.kind {
	case Text, JSON, Copy, Alt:
		return l.token == '"'
	case Number, Bytes:
		return l.token == '0'
	case Inner, Deltas:
		return false
	case Opaque:
		return opaque(doc, leaves, i)
	}
	return true
}

// opaque reports whether a leaf may pass without being looked at. That needs
// more than a table's word: an opaque string is base64.
func opaque(doc []byte, leaves []leaf, i int) bool {
	l := &leaves[i]
	if l.node.channel == "number" {
		return l.token == '0'
	}
	if l.token != '"' {
		return false
	}
	text := doc[l.from+1 : l.to-1]
	switch l.node.channel {
	case "data-url":
		head, data, ok := bytes.Cut(text, []byte(";base64,"))
		return ok && bytes.HasPrefix(head, []byte("data:")) && mediaType(head[len("data:"):]) && base64(data)
	case "source":
		return base64(text) && sibling(doc, leaves, i, "type") == "base64"
	}
	return base64(text)
}

// embedded reports whether a leaf holds a file of text in base64.
func embedded(doc []byte, leaves []leaf, i int) bool {
	text := doc[leaves[i].from+1 : leaves[i].to-1]
	switch leaves[i].node.channel {
	case "data-url":
		head, data, ok := bytes.Cut(text, []byte(";base64,"))
		head, _, _ = bytes.Cut(bytes.TrimPrefix(head, []byte("data:")), []byte(";"))
		return ok && !unreadable(bytes.ReplaceAll(head, []byte(`\/`), []byte("/"))) && base64(data)
	case "source":
		kind := sibling(doc, leaves, i, "media_type")
		return kind != "" && !unreadable([]byte(kind)) && base64(text)
	}
	return false
}

// base64 reports whether text is written in one of base64's alphabets.
func base64(text []byte) bool {
	for i, c := range text {
		slash := c == '\\' && i+1 < len(text) && text[i+1] == '/' // as some write it
		if !(slash || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// mediaType reports whether text is short and looks like image/png.
func mediaType(text []byte) bool {
	return len(text) <= 64 && bytes.Count(text, []byte("/")) == 1 && base64(bytes.ReplaceAll(text, []byte("."), nil))
}

// sibling is a member beside the member data of a source. It is looked for among
// its neighbours: a source has few members.
func sibling(doc []byte, leaves []leaf, i int, name string) string {
	const near = 8
	want := leaves[i].node.parent.members[name]
	for _, l := range leaves[max(0, i-near):min(len(leaves), i+near)] {
		if l.node == want && l.idx == leaves[i].idx && l.token == '"' {
			return string(doc[l.from+1 : l.to-1])
		}
	}
	return ""
}
