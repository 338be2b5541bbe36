package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxDepth is how deep a document may nest.
const maxDepth = 512

// A leaf is a string, a number, or a member name that no table names. Literals
// (true, false, null) carry no text and are no leaves, but for the nodes that
// a table notes.
type leaf struct {
	node    *node // nil where no table names it
	kind    Kind
	from    int // the token's place in the document, quotes included
	to      int
	idx     [4]int32 // positions in the arrays on the way, outermost first
	depth   uint8    // how many of them
	token   byte     // '"' a string, '0' a number, 'n' null, 't' true or false, 'k' a member name, '{' a structure
	escaped bool     // a string with a backslash in it
	stream  bool     // below Deltas
	path    string   // of what no table names: where it is, by names that a table knows; of a string below Deltas by its own, which may say anything
}

// A scanner finds the leaves of a document. It accepts what RFC 8259 accepts,
// but for a member that comes twice in an object: of those, clients read
// whichever they like.
type scanner struct {
	doc    []byte
	at     int
	leaves []leaf
	idx    [4]int32
	depth  uint8
	level  int
	after  []*node  // by slot: the member that came behind a node, the last time
	known  string   // the last place on the way that a table names
	trail  []string // names on the way from there
}

type span struct{ from, to int }

var (
	errEnd      = errors.New("the document ends too early")
	errNoObject = errors.New("the document is not an object")
)

// scan reads one document, which must be all of doc, and says what each of its
// leaves is. They are the scanner's until its next scan.
func (s *scanner) scan(doc []byte, root *node) ([]leaf, error) {
	if len(s.after) <= root.slots {
		s.after = make([]*node, root.slots+1)
	}
	*s = scanner{doc: doc, leaves: s.leaves[:0], after: s.after, trail: s.trail[:0]}
	s.space()
	if err := s.value(root, false); err != nil {
		return nil, err
	}
	if s.space(); s.at != len(doc) {
		return nil, s.bad("text after the document")
	}
	fit(doc, s.leaves)
	return s.leaves, nil
}

func (s *scanner) bad(what string) error {
	return fmt.Errorf("byte %d: %s", s.at, what)
}

func (s *scanner) space() {
	for s.at < len(s.doc) {
		switch s.doc[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// value reads a value at n, or in a place that no table names if n is nil.
func (s *scanner) value(n *node, stream bool) error {
	if s.at >= len(s.doc) {
		return errEnd
	}
	if n != nil {
		stream = n.isStream
	}
	from := s.at
	switch c := s.doc[s.at]; {
	case c == '"':
		escaped, err := s.str()
		if err == nil {
			s.leaf(n, from, '"', escaped, stream)
		}
		return err
	case c == '{' || c == '[':
		return s.structure(n, stream)
	case c == '-' || c >= '0' && c <= '9':
		if err := s.number(); err != nil {
			return err
		}
		s.leaf(n, from, '0', false, stream)
		return nil
	}
	for _, lit := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.doc[s.at:], []byte(lit)) {
			s.at += len(lit)
			if n != nil && n.kind != Unknown {
				s.leaf(n, from, lit[0], false, stream)
			}
			return nil
		}
	}
	return s.bad("not a JSON value")
}

// structure reads an object or an array.
func (s *scanner) structure(n *node, stream bool) error {
	if s.level++; s.level > maxDepth {
		return s.bad(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	defer func() { s.level-- }()
	at := len(s.leaves)
	noted := n != nil && (n.kind == Inner || n.kind == Deltas || n.kind == JSON || n.isList)
	if noted {
		if s.leaf(n, s.at, '{', false, stream); n.isList {
			s.leaves[at].kind = Inner
		}
	}
	var err error
	if s.doc[s.at] == '{' {
		err = s.object(n, stream)
	} else {
		err = s.array(n, stream)
	}
	if noted {
		s.leaves[at].to = s.at
	}
	if n != nil && n.kind == JSON { // judged as a whole
		s.leaves = s.leaves[:at+1]
	}
	return err
}

func (s *scanner) object(n *node, stream bool) error {
	s.at++
	var seen uint64 // members that the table names, by their order
	var names nameSet
	before := n // the member before, or the object
	for first := true; ; first = false {
		s.space()
		if s.at >= len(s.doc) {
			return errEnd
		}
		if c := s.doc[s.at]; c == '}' && first {
			s.at++
			return nil
		} else if c != '"' {
			return s.bad("a member name is missing")
		}
		from := s.at
		escaped, err := s.str()
		if err != nil {
			return err
		}
		key := span{from, s.at}
		child := s.member(n, before, key, escaped)
		if child != nil {
			before = child
		}
		switch {
		case child != nil && child != n.rest:
			if seen&(1<<child.order) != 0 {
				return s.bad(fmt.Sprintf("member %q comes twice", child.key))
			}
			seen |= 1 << child.order
		case names.twice(s.doc[from+1:s.at-1], escaped):
			return s.bad("a member comes twice")
		default:
			s.leaves = append(s.leaves, leaf{from: from, to: s.at, token: 'k', escaped: escaped, idx: s.idx, depth: s.depth, path: s.place(n, false)})
		}
		if s.space(); s.at >= len(s.doc) {
			return errEnd
		} else if s.doc[s.at] != ':' {
			return s.bad("a colon is missing")
		}
		s.at++
		s.space()
		if child == nil {
			s.enter(n, key)
		}
		err = s.value(child, stream)
		if child == nil {
			s.trail = s.trail[:len(s.trail)-1]
		}
		if err != nil {
			return err
		}
		if s.space(); s.at >= len(s.doc) {
			return errEnd
		}
		switch s.doc[s.at] {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.bad("a comma is missing")
		}
	}
}

// member is the node of a member of n, nil if no table names it. Documents of
// one stream have their members in one order, so the one that came after the
// member before is tried first.
func (s *scanner) member(n, before *node, key span, escaped bool) *node {
	if n == nil {
		return nil
	}
	name := s.doc[key.from+1 : key.to-1]
	if m := s.after[before.slot]; m != nil && m.key == string(name) && m.parent == n {
		return m
	}
	m := n.member(name, escaped)
	if m != nil && m != n.rest {
		s.after[before.slot] = m
	}
	return m
}

func (n *node) member(name []byte, escaped bool) *node {
	if escaped {
		name = unescape(nil, name)
	}
	if m := n.members[string(name)]; m != nil {
		return m
	}
	for known, m := range n.members { // as clients do that do not mind the case
		if strings.EqualFold(known, string(name)) {
			return m
		}
	}
	return n.rest
}

// A nameSet holds the names of an object's members that no table knows.
type nameSet struct {
	few  [][]byte
	many map[string]struct{}
}

// twice adds a name and reports whether it was there.
func (s *nameSet) twice(name []byte, escaped bool) bool {
	const few = 16
	if escaped {
		name = unescape(nil, name)
	}
	if s.many == nil && len(s.few) < few {
		for _, n := range s.few {
			if bytes.Equal(n, name) {
				return true
			}
		}
		s.few = append(s.few, name)
		return false
	}
	if s.many == nil {
		s.many = map[string]struct{}{}
		for _, n := range s.few {
			s.many[string(n)] = struct{}{}
		}
	}
	_, had := s.many[string(name)]
	s.many[string(name)] = struct{}{}
	return had
}

// enter notes the way into what no table names.
func (s *scanner) enter(n *node, key span) {
	if n != nil {
		s.known = n.path
	}
	s.trail = append(s.trail, string(s.doc[key.from+1:key.to-1]))
}

// place says where the scanner is, for what no table names.
func (s *scanner) place(n *node, stream bool) string {
	switch {
	case n != nil:
		return join(n.path, "*")
	case stream:
		return join(s.known, strings.Join(s.trail, "."))
	}
	return join(s.known, "*")
}

func (s *scanner) array(n *node, stream bool) error {
	s.at++
	var elem *node
	if n != nil {
		elem = n.elem
	}
	d := s.depth
	if s.space(); s.at < len(s.doc) && s.doc[s.at] == ']' {
		s.at++
		return nil
	}
	if int(d) < len(s.idx) {
		s.depth++
		defer func() { s.depth, s.idx[d] = d, 0 }()
	}
	for i := int32(0); ; i++ {
		if int(d) < len(s.idx) {
			s.idx[d] = i
		}
		s.space()
		if err := s.value(elem, stream); err != nil {
			return err
		}
		if s.space(); s.at >= len(s.doc) {
			return errEnd
		}
		switch s.doc[s.at] {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.bad("a comma is missing")
		}
	}
}

// str reads a string and reports whether it has escapes.
func (s *scanner) str() (escaped bool, err error) {
	doc := s.doc
	for i := s.at + 1 + plainRun(doc[s.at+1:]); i < len(doc); i += 1 + plainRun(doc[i+1:]) {
		switch c := doc[i]; {
		case c == '"':
			s.at = i + 1
			return escaped, nil
		case c == '\\':
			escaped = true
			n := escapeLen(doc[i:])
			if n == 0 {
				s.at = i
				return false, s.bad("not an escape")
			}
			i += n - 1
		case c < ' ':
			s.at = i
			return false, s.bad("a control character in a string")
		}
	}
	s.at = len(doc)
	return false, errEnd
}

// number reads a number: -? (0 | [1-9][0-9]*) (\.[0-9]+)? ([eE][+-]?[0-9]+)?
func (s *scanner) number() error {
	digits := func() bool {
		from := s.at
		for s.at < len(s.doc) && s.doc[s.at] >= '0' && s.doc[s.at] <= '9' {
			s.at++
		}
		return s.at > from
	}
	one := func(set string) bool {
		if s.at < len(s.doc) && bytes.IndexByte([]byte(set), s.doc[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	one("-")
	if !one("0") && !digits() || one(".") && !digits() {
		return s.bad("not a number")
	}
	if one("eE") {
		one("+-")
		if !digits() {
			return s.bad("not a number")
		}
	}
	return nil
}

// leaf notes a token that ends where the scanner is.
func (s *scanner) leaf(n *node, from int, token byte, escaped, stream bool) {
	l := leaf{node: n, from: from, to: s.at, idx: s.idx, depth: s.depth, token: token, escaped: escaped, stream: stream}
	if n != nil {
		l.kind = n.kind
	}
	if l.kind == Unknown {
		l.path = s.place(n, stream && token == '"')
	}
	s.leaves = append(s.leaves, l)
}
