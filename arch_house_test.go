package stoplog_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
	"testing"
)

const modulePath = "github.com/stoplog/stoplog"

// A house is the Go source of a module, as the rules see it: every file, whatever
// its build tags, in order of path.
type house struct {
	fset  *token.FileSet
	files []file
}

type file struct {
	path  string // slashes, relative to the module
	ast   *ast.File
	lines int
	test  bool
}

// readHouse reads the module rooted at tree. Folders that the go command leaves
// out are left out, and so are modules nested in this one.
func readHouse(t *testing.T, tree fs.FS) *house {
	t.Helper()
	h := &house{fset: token.NewFileSet()}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "." {
				return nil
			}
			if base := d.Name(); base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
				return fs.SkipDir
			}
			if _, err := fs.Stat(tree, path.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(h.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		h.files = append(h.files, file{
			path:  name,
			ast:   parsed,
			lines: bytes.Count(src, []byte("\n")),
			test:  strings.HasSuffix(name, "_test.go"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
