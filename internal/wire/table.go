package wire

import (
	"embed"
	"fmt"
	"strings"
)

// Kind says what a field is, and so what happens to it.
type Kind uint8

const (
	Unknown  Kind = iota // no table names it: screened whole, or as a channel below a stream
	Text                 // screened as a channel
	JSON                 // a JSON document, in a string or as it is: its decoded projection is a channel
	ID                   // printable ASCII without quotes, at most maxID bytes; screened whole
	Enum                 // letters, digits, spaces and _.:-/, at most maxEnum bytes; screened whole
	Number               // a JSON number; screened whole
	Opaque               // passes untouched where it is base64 (or what its role says)
	Copy                 // repeats the frame's text in pieces; dropped where they differ or the text changed
	Alt                  // an alternative to a Copy: screened whole; a finding drops the Copy
	Bytes                // the bytes of a Copy or Alt, as numbers
	Inner                // a structure whose place is noted
	Deltas               // a structure in which unknown strings are channels, cut like their siblings
	Embedded             // no table says so: an opaque field that holds a file of text, in base64
)

var kindNames = [...]string{"unknown", "text", "json", "id", "enum", "number", "opaque", "copy", "alt", "bytes", "inner", "deltas", "embedded"}

func (k Kind) String() string { return kindNames[k] }

// A node is one place in a format's documents.
type node struct {
	path     string // as the table writes it; "" for the root
	key      string // the last member name of path
	kind     Kind
	channel  string // its role: the channel of a text, or what it is read for
	why      string // of an opaque field: why nobody looks at it
	members  map[string]*node
	order    int   // among its parent's members, for duplicates
	slot     int   // its number in its table
	slots    int   // of the root: how many nodes there are
	elem     *node // of an array
	rest     *node // any member or element not named
	parent   *node
	isStream bool // the node or one above it is of kind Deltas
	isList   bool // a text whose place may hold an array, which is noted
}

//go:generate go test -run ^TestFieldsPage$ . -update

//go:embed fields/*.txt
var fieldFiles embed.FS

// A table is what a format's documents of one type look like.
type table struct {
	names []string // of what it describes; of a part of other tables, with a +
	root  *node
	named []row // in the order of the file
	place int   // among the tables of the file
}

// A row is a line of a table.
type row struct {
	*node
	part *table // what it uses, if that is what it does
	in   string // the place of the part's texts, for their roles; empty if they have none
}

// loadTables reads a file of fields/. A line `== NAME…` starts a table; others
// are `PATH KIND [ROLE]`, where PATH joins member names with dots, `[]` stands
// for the elements of an array, a last `**` for everything below that is not
// named and `.` for the document. A `#` starts a comment; behind an opaque field
// it is the reason why nobody looks at it, and must be there.
//
// `PATH use NAME [PLACE]` takes in the rows of the table `+NAME` above, below
// PATH. With a PLACE (`.` is none) the role of their texts is their path in it.
// `PATH list` notes the array that may stand in the place of a text.
func loadTables(file string) map[string]*table {
	src, err := fieldFiles.ReadFile("fields/" + file)
	if err != nil {
		panic(err)
	}
	tables := map[string]*table{}
	var t *table
	for i, line := range strings.Split(string(src), "\n") {
		line, why, _ := strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "==" && len(f) > 1:
			t = &table{names: f[1:], root: &node{}, place: len(tables)}
			for _, name := range t.names {
				if tables[name] != nil {
					panic(fmt.Sprintf("fields/%s:%d: a second table %s", file, i+1, name))
				}
				tables[name] = t
			}
		case t == nil || len(f) < 2 || !t.line(f, strings.TrimSpace(why), tables):
			panic(fmt.Sprintf("fields/%s:%d: cannot read %q", file, i+1, line))
		}
	}
	for _, t := range tables {
		if t.root.slots == 0 {
			t.inherit()
		}
	}
	return tables
}

// line takes one line of a table.
func (t *table) line(f []string, why string, tables map[string]*table) bool {
	switch {
	case f[1] == "list" && len(f) == 2:
		t.root.find(f[0]).isList = true
		return true
	case f[1] == "use" && len(f) <= 4 && len(f) >= 3 && tables["+"+f[2]] != nil:
		r := row{node: t.root.find(f[0]), part: tables["+"+f[2]]}
		if len(f) == 4 {
			r.in = f[3]
		}
		t.named = append(t.named, r)
		return r.node.use(r.part, r.in)
	case len(f) > 3:
		return false
	}
	return t.add(f, why)
}

func (t *table) add(f []string, why string) bool {
	n := t.root.find(f[0])
	if n.kind != Unknown {
		return false // named twice
	}
	for k, name := range kindNames {
		if name == f[1] {
			n.kind = Kind(k)
		}
	}
	if len(f) == 3 {
		n.channel = f[2]
	}
	t.named = append(t.named, row{node: n})
	n.why = why
	return n.kind != Unknown && (n.kind != Opaque || why != "")
}

// use takes in the rows of a part. Its texts are in a place, or have none.
func (n *node) use(part *table, in string) bool {
	for _, r := range part.named {
		at := n.find(r.path)
		place := ""
		if in != "" {
			place = strings.TrimPrefix(in+"."+r.path, "..")
		}
		if r.part != nil {
			if r.in != "" {
				place = r.in
			}
			if !at.use(r.part, place) {
				return false
			}
			continue
		}
		if at.kind != Unknown {
			return false
		}
		at.kind, at.channel, at.why, at.isList = r.kind, r.channel, r.why, r.isList
		if (at.kind == Text || at.kind == JSON) && at.channel == "" {
			at.channel = place
		}
	}
	return true
}

// find makes the node of a path.
func (n *node) find(path string) *node {
	if path == "." {
		return n
	}
	for part := range strings.SplitSeq(path, ".") {
		depth := 0
		for strings.HasSuffix(part, "[]") {
			part = strings.TrimSuffix(part, "[]")
			depth++
		}
		if part == "**" {
			n.rest = &node{path: join(n.path, part), key: part, parent: n}
			n.rest.rest, n.rest.elem = n.rest, n.rest
			return n.rest
		}
		next := n.members[part]
		if next == nil {
			if len(n.members) == 64 {
				panic("fields: more than 64 members in " + n.path)
			}
			next = &node{key: part, path: join(n.path, part), parent: n, order: len(n.members)}
			if n.members == nil {
				n.members = map[string]*node{}
			}
			n.members[part] = next
		}
		for n = next; depth > 0; depth-- {
			if n.elem == nil {
				n.elem = &node{key: n.key, path: n.path + "[]", parent: n}
			}
			n = n.elem
		}
	}
	return n
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

// inherit numbers the nodes of a table and tells those below a stream.
func (t *table) inherit() { t.root.slots = t.root.inherit(0) }

func (n *node) inherit(slot int) int {
	n.slot = slot
	slot++
	n.isStream = n.kind == Deltas || n.parent != nil && n.parent.isStream
	for _, m := range n.members {
		slot = m.inherit(slot)
	}
	if n.elem != nil && n.elem != n {
		slot = n.elem.inherit(slot)
	}
	if n.rest != nil && n.rest != n {
		slot = n.rest.inherit(slot)
	}
	return slot
}
