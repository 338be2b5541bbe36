package journal_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/journal.md")

// TestJournalDoc keeps docs/journal.md what the sources say: the kinds of events,
// with what their types' comments say of them and the members of their stored
// forms, and the tables.
func TestJournalDoc(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(docHead)
	b.WriteString("\n## Kinds of events\n\nThe journal's own, and those of requests:\n\n")
	kindTable(t, &b, constKinds(t, "."))
	b.WriteString("\nThose of turns, which `internal/run` defines:\n\n")
	kindTable(t, &b, methodKinds(t, "../run"))
	b.WriteString("\n## Tables\n\nOf the SQLite file; `internal/journal/sqlite/migrations` has how they came to be.\n\n```sql\n")
	b.WriteString(tables(t))
	b.WriteString("```\n")

	const path = "../../docs/journal.md"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is not what the sources say (%v): go generate ./internal/journal", path, err)
	}
}

const docHead = "<!-- Written by go generate ./internal/journal; change the comments there instead. -->\n" + `
# The journal

A run is a row and a log. The log's events are numbered from 1 and never change;
a payload may go when its time has come, and then a tombstone stands in its place.

| column | what it holds |
|---|---|
| ` + "`tenant`, `run`" + ` | whose run it is, and which |
| ` + "`seq`" + ` | the event's number: what ` + "`Last-Event-ID`" + ` names |
| ` + "`at`" + ` | when, in microseconds |
| ` + "`kind`, `version`" + ` | what happened, and in which form the payload says so |
| ` + "`content`" + ` | what of people's and models' words the payload holds: 0 structure, 1 screened text, 2 raw text |
| ` + "`key_id`" + ` | the key that seals the payload; empty: it is plain |
| ` + "`payload`" + ` | JSON, members sorted, the version as member ` + "`v`" + `; text that packs well lies there deflated, behind a byte 1 |
| ` + "`digest`" + ` | HMAC-SHA-256 of the payload's JSON under the store's key; a large payload lies in ` + "`blobs`" + ` under it, once a tenant |
| ` + "`chain`" + ` | the event's link |

A link is SHA-256 over, in this order: the ten bytes ` + "`stoplog.v1`" + `; the link before (32 zero bytes before the
first event); tenant and run; seq; at; kind; digest. Strings have their length before them, in 4 bytes; integers are 8
bytes; all big-endian. The last link of a run stands on its row too, so a log that was cut at its end is found;
` + "`stoplog audit verify --expect LINK`" + ` finds one that was cut together with its row.
`

// kind is a row of the table of kinds.
type kind struct{ name, about, members string }

func kindTable(t *testing.T, b *bytes.Buffer, kinds []kind) {
	t.Helper()
	if len(kinds) == 0 {
		t.Fatal("no kinds were found in the sources")
	}
	b.WriteString("| kind | what it says | payload |\n|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", k.name, strings.ReplaceAll(k.about, "|", `\|`), k.members)
	}
}

// source is the syntax of a folder's Go files, without tests, in order.
func source(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// types are the struct types of a folder.
func types(files []*ast.File) map[string]*ast.StructType {
	structs := map[string]*ast.StructType{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					s := s.(*ast.TypeSpec)
					if st, ok := s.Type.(*ast.StructType); ok {
						structs[s.Name.Name] = st
					}
				}
			}
			return true
		})
	}
	return structs
}

// comments are the comments of a folder's types.
func comments(files []*ast.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					s := s.(*ast.TypeSpec)
					all[s.Name.Name] = g.Doc.Text() + s.Doc.Text()
				}
			}
		}
	}
	return all
}

// members lists the members of a stored form.
func members(st *ast.StructType) string {
	var names []string
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name != "v" {
			names = append(names, "`"+name+"`")
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// constKinds are the kinds that are string constants whose comment names the
// payload's type: "…: version 1, payload [Type], Content."
func constKinds(t *testing.T, dir string) (kinds []kind) {
	files := source(t, dir)
	structs := types(files)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			g, ok := n.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				return true
			}
			for _, s := range g.Specs {
				s := s.(*ast.ValueSpec)
				about := s.Doc.Text()
				if about == "" {
					about = g.Doc.Text()
				}
				about = sentence(s.Names[0].Name, about)
				_, typ, ok := strings.Cut(about, "payload [")
				typ, _, _ = strings.Cut(typ, "]")
				if !ok || len(s.Values) != 1 || structs[typ] == nil {
					continue
				}
				lit, isLit := s.Values[0].(*ast.BasicLit)
				if !isLit {
					continue
				}
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, kind{name, strings.NewReplacer("[", "", "]", "").Replace(about), members(structs[typ])})
			}
			return true
		})
	}
	return kinds
}

// methodKinds are the kinds that types say in a method Kind, in the order of the
// sources; the stored form of T is the type storedT.
func methodKinds(t *testing.T, dir string) (kinds []kind) {
	files := source(t, dir)
	structs, comments := types(files), comments(files)
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "Kind" || fn.Recv == nil || len(fn.Body.List) != 1 {
				continue
			}
			recv, isIdent := fn.Recv.List[0].Type.(*ast.Ident)
			ret, isReturn := fn.Body.List[0].(*ast.ReturnStmt)
			if !isIdent || !isReturn {
				continue
			}
			lit, isLit := ret.Results[0].(*ast.BasicLit)
			stored := structs["stored"+recv.Name]
			if !isLit || stored == nil {
				continue
			}
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, kind{name, sentence(recv.Name, comments[recv.Name]), members(stored)})
		}
	}
	return kinds
}

// sentence is a comment on one line, without the Go name that it begins with.
func sentence(name, text string) string {
	var p comment.Parser
	flat := strings.Join(strings.Fields(string((&comment.Printer{TextWidth: -1}).Text(p.Parse(text)))), " ")
	return strings.TrimPrefix(strings.TrimPrefix(flat, name+" "), "is ")
}

// tables are the statements of the migrations.
func tables(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("sqlite/migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, up, ok := strings.Cut(string(text), "-- +goose Up\n")
		if !ok {
			t.Fatalf("%s has no part that goes up", name)
		}
		b.WriteString(strings.TrimLeft(up, "\n"))
	}
	return b.String()
}
