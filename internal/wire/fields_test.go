package wire

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/wire-fields.md anew")

const fieldsPage = "../../docs/wire-fields.md"

// TestFieldsPage keeps the page of the fields as the tables have them.
func TestFieldsPage(t *testing.T) {
	page := writeFieldsPage()
	if *update {
		if err := os.WriteFile(fieldsPage, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page) {
		t.Error("docs/wire-fields.md is not what the tables say: run go generate ./internal/wire")
	}
}

// kindMeanings say what happens to a field of each kind, for the page.
var kindMeanings = [...]string{
	Unknown:  "no table names it: screened, and what is found is replaced",
	Text:     "screened as a channel: what the field says over all events is one text",
	JSON:     "a JSON document, in a string or as it is: its keys, strings and numbers, decoded, are a channel",
	ID:       "at most 512 printable characters; screened whole, and a finding refuses the event",
	Enum:     "at most 128 letters, digits, spaces and `_ . : - /`; screened whole, and a finding refuses the event",
	Number:   "a JSON number; screened whole, and a finding refuses the event",
	Opaque:   "passes untouched if it is base64 (or, where the role says so, a number or a `data:` URL); else it is as one that no table names",
	Copy:     "repeats the event's text in pieces: dropped where it differs from it, or where the text changed",
	Alt:      "an alternative to a copy: screened whole, and a finding drops the copies",
	Bytes:    "the bytes of a copy or an alternative, as numbers",
	Inner:    "a structure, or a literal, whose place is noted; a text in its place is as one that no table names",
	Embedded: "an opaque field that holds a file of text in base64, by its media type: decoded, screened, and encoded again",
	Deltas:   "a structure whose fields are cut into deltas: those in it that no table names are channels too",
}

func writeFieldsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Written by go generate ./internal/wire from internal/wire/fields; do not edit. -->

# The fields of the wire formats

Each field of each document that passes through Stoplog has a kind, which says what happens to it. A field that is not on this page is screened
all the same. A member name is compared without minding its case, as some clients do; a member that comes twice in an object refuses the document.

## Kinds

| kind | what happens |
|---|---|
`)
	for k, meaning := range kindMeanings {
		fmt.Fprintf(&b, "| %s | %s |\n", Kind(k), meaning)
	}
	b.WriteString("\n## Opaque fields\n\nNobody looks at these. A test pins the list.\n\n| format | document | field | why |\n|---|---|---|---|\n")
	formats := all
	for _, f := range formats {
		for _, t := range inOrder(f) {
			for _, n := range t.named {
				if n.part == nil && n.kind == Opaque {
					fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", f.Name(), t.title(), n.path, n.why)
				}
			}
		}
	}
	for _, f := range formats {
		fmt.Fprintf(&b, "\n## %s\n\nThe role is what Stoplog reads the field for, or the channel that it is part of.\n", f.Name())
		for _, t := range inOrder(f) {
			fmt.Fprintf(&b, "\n### %s\n\n| field | kind | role |\n|---|---|---|\n", t.title())
			for _, n := range t.named {
				if n.part != nil {
					fmt.Fprintf(&b, "| `%s` | as %s | |\n", cmp.Or(n.path, "."), n.part.title())
					continue
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", cmp.Or(n.path, "."), n.kind, n.channel)
			}
		}
	}
	return b.Bytes()
}

func inOrder(f *Format) []*table {
	return slices.Compact(slices.SortedFunc(maps.Values(f.tables), func(a, b *table) int { return cmp.Compare(a.place, b.place) }))
}

// title is what a page calls a table.
func (t *table) title() string {
	if part, ok := strings.CutPrefix(t.names[0], "+"); ok {
		return "the " + part + " in others"
	}
	return strings.Join(t.names, ", ")
}

// TestTablesAreComplete: an opaque field has a reason, a kind its meaning.
func TestTablesAreComplete(t *testing.T) {
	for _, f := range all {
		for _, tb := range f.tables {
			for _, n := range tb.named {
				if n.part != nil {
					continue
				}
				if kindMeanings[n.kind] == "" || n.kind == Opaque && !strings.Contains(n.why, " ") {
					t.Errorf("%s %s: %s is %s, because %q", f.Name(), tb.title(), n.path, n.kind, n.why)
				}
			}
		}
	}
	bad := table{root: &node{}}
	if bad.add([]string{"a", "opaque"}, "") || bad.add([]string{"b", "nokind"}, "") || !bad.add([]string{"c", "text"}, "") || bad.add([]string{"c", "id"}, "") {
		t.Error("a table takes what it should not")
	}
}
