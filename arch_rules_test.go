package stoplog_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A room is what a package may import: rooms of this module and modules of
// others. The zero room may use the standard library alone.
type room struct {
	rooms   []string
	modules []string
}

// checkImports: every package has a room in the plan, every room a package, and
// a package imports only what the plan lets it.
func checkImports(h *house, plan map[string]room) (bad []string) {
	built := map[string]bool{}
	for _, f := range h.files {
		dir := path.Dir(f.path)
		built[dir] = true
		r, planned := plan[dir]
		if !planned {
			if h.first(f) {
				bad = append(bad, fmt.Sprintf("%s: package %s has no entry in the plan", f.path, dir))
			}
			continue
		}
		for _, imp := range f.ast.Imports {
			target := importPath(imp)
			if why := forbidden(f, dir, target, r); why != "" {
				bad = append(bad, fmt.Sprintf("%s: %s imports %s: %s", h.at(imp), dir, target, why))
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(plan)) {
		if !built[dir] {
			bad = append(bad, fmt.Sprintf("plan: %s has an entry and no package", dir))
		}
	}
	return bad
}

// forbidden says why a file of a room may not import target; empty if it may.
func forbidden(f file, dir, target string, r room) string {
	if own, ok := strings.CutPrefix(target, modulePath); ok && (own == "" || own[0] == '/') {
		own = strings.TrimPrefix(own, "/")
		switch {
		case f.test && !strings.HasPrefix(own, "cmd/"), own == dir, slices.Contains(r.rooms, own):
			return ""
		}
		return "not a room below it in the plan"
	}
	if !strings.Contains(strings.SplitN(target, "/", 2)[0], ".") {
		return "" // the standard library
	}
	allowed := r.modules
	if f.test {
		allowed = slices.Concat(allowed, testModules)
	}
	for _, m := range allowed {
		if target == m || strings.HasPrefix(target, m+"/") {
			return ""
		}
	}
	if len(r.modules) == 0 {
		return "this room uses the standard library alone"
	}
	return "not a module of this room in the plan"
}

// door is the only room that may build a way out of the process.
const door = "internal/dial"

// starters are the only rooms that may start another program: a model's or a
// playbook's, and the one that prints a secret.
var starters = []string{"internal/sandbox", "internal/secret", "internal/tool"}

var doors = []string{door}

// ways are the names that build a way out, by the package that has them, and
// the rooms that may name them.
var ways = map[string]struct {
	names *regexp.Regexp
	rooms []string
}{
	"net/http":          {regexp.MustCompile(`^(Client|Transport|DefaultClient|DefaultTransport|Get|Head|Post|PostForm)$`), doors},
	"net":               {regexp.MustCompile(`^Dial`), doors},
	"crypto/tls":        {regexp.MustCompile(`^(Dial.*|Client)$`), doors},
	"net/http/httputil": {regexp.MustCompile(`^(ReverseProxy|NewSingleHostReverseProxy|(New)?(Proxy)?ClientConn)$`), doors},
	"os/exec":           {regexp.MustCompile(`^(Cmd|Command|CommandContext)$`), starters},
	"os":                {regexp.MustCompile(`^StartProcess$`), starters},
	"syscall":           {regexp.MustCompile(`^(StartProcess|ForkExec|Exec)$`), starters},
}

// closedPackages dial on their own, or hand out clients: no part of them is for
// the product.
var closedPackages = []string{"log/syslog", "net/http/httptest", "net/rpc", "net/rpc/jsonrpc", "net/smtp"}

// checkOneDoor: outside the room that may, and tests aside, no file names a way
// out, as a value or as a type, under whatever name its package was imported.
func checkOneDoor(h *house, _ map[string]room) (bad []string) {
	for _, f := range h.files {
		if f.test {
			continue
		}
		dir := path.Dir(f.path)
		names := map[string]string{} // a package's name in this file → its path
		for _, imp := range f.ast.Imports {
			target := importPath(imp)
			if slices.Contains(closedPackages, target) && dir != door {
				bad = append(bad, fmt.Sprintf("%s: imports %s: only tests and %s may", h.at(imp), target, door))
			}
			way, ok := ways[target]
			if !ok || slices.Contains(way.rooms, dir) {
				continue
			}
			name := path.Base(target)
			if imp.Name != nil {
				name = imp.Name.Name
			}
			if name == "." {
				bad = append(bad, fmt.Sprintf("%s: dot import of %s hides what it names", h.at(imp), target))
				continue
			}
			names[name] = target
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if target := names[pkg.Name]; target != "" && ways[target].names.MatchString(sel.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: names %s.%s: only %s may", h.at(sel), target, sel.Sel.Name, strings.Join(ways[target].rooms, ", ")))
			}
			return true
		})
	}
	return bad
}

// buckets are names that say nothing, so that everything ends up under them.
var buckets = []string{
	"base", "common", "commons", "core", "helper", "helpers", "lib", "libs", "manager", "managers",
	"misc", "shared", "stuff", "type", "types", "util", "utils", "utilities",
}

var wordEnd = regexp.MustCompile(`[_\-.]`)

// bucket returns the bucket that a name is or ends in, or has as a word.
func bucket(name string) string {
	for _, word := range wordEnd.Split(strings.ToLower(name), -1) {
		if slices.Contains(buckets, word) {
			return word
		}
		for _, tail := range []string{"util", "utils", "helpers", "common", "manager"} {
			if strings.HasSuffix(word, tail) {
				return tail
			}
		}
	}
	return ""
}

// checkNames: no package and no file is named for being a bucket.
func checkNames(h *house, _ map[string]room) (bad []string) {
	for _, f := range h.files {
		if h.first(f) {
			for _, dir := range strings.Split(path.Dir(f.path), "/") {
				if b := bucket(dir); b != "" {
					bad = append(bad, fmt.Sprintf("%s: folder %s is a bucket (%s): name what it is for", f.path, dir, b))
				}
			}
		}
		if b := bucket(f.ast.Name.Name); b != "" {
			bad = append(bad, fmt.Sprintf("%s: package %s is a bucket (%s): name what it is for", h.at(f.ast.Name), f.ast.Name.Name, b))
		}
		if b := bucket(strings.TrimSuffix(path.Base(f.path), ".go")); b != "" {
			bad = append(bad, fmt.Sprintf("%s: the file is a bucket (%s): name its one idea", f.path, b))
		}
	}
	return bad
}

// The size ratchet: both numbers may only go down.
const (
	maxFileLines = 500
	maxFuncLines = 100
)

// longMark opens the comment, above a file's package clause, that says why the
// file is longer than maxFileLines.
const longMark = "//stoplog:long "

// checkSize: no file and no function, tests aside, grew past the ratchet.
// Functions have no exemption, but a table is not one: a function that does
// nothing but return a literal.
func checkSize(h *house, _ map[string]room) (bad []string) {
	for _, f := range h.files {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		if f.lines > maxFileLines && !saysWhyLong(f.ast) {
			bad = append(bad, fmt.Sprintf("%s: %d lines, above %d: split it by idea, or say why not at the top (%sWHY)", f.path, f.lines, maxFileLines, longMark))
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || isTable(fn) {
				continue
			}
			if n := h.line(fn.End()) - h.line(fn.Pos()) + 1; n > maxFuncLines {
				bad = append(bad, fmt.Sprintf("%s: %s has %d lines, above %d: a function fits a screen", h.at(fn), fn.Name.Name, n, maxFuncLines))
			}
		}
	}
	return bad
}

func isTable(fn *ast.FuncDecl) bool {
	if fn.Body == nil || len(fn.Body.List) != 1 {
		return false
	}
	ret, ok := fn.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	_, ok = ret.Results[0].(*ast.CompositeLit)
	return ok
}

func saysWhyLong(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() < f.Package && len(c.Text) > len(longMark)+20 && strings.HasPrefix(c.Text, longMark) {
				return true
			}
		}
	}
	return false
}

var tourHeading = regexp.MustCompile(`(?m)^# Package (\S+)$`)

// checkTour: doc.go has a heading `# Package DIR` for each package, and for no
// other folder, and holds no code.
func checkTour(h *house, _ map[string]room) (bad []string) {
	dirs := map[string]bool{}
	for _, f := range h.files {
		if !f.test {
			dirs[path.Dir(f.path)] = true
		}
	}
	delete(dirs, ".")
	i := slices.IndexFunc(h.files, func(f file) bool { return f.path == "doc.go" })
	if i < 0 {
		return []string{"doc.go: there is no tour"}
	}
	tour := h.files[i].ast
	if len(tour.Decls) > 0 {
		bad = append(bad, fmt.Sprintf("%s: the tour has code", h.at(tour.Decls[0])))
	}
	for _, m := range tourHeading.FindAllStringSubmatch(tour.Doc.Text(), -1) {
		if !dirs[m[1]] {
			bad = append(bad, fmt.Sprintf("doc.go: the tour names %s, and there is no such package", m[1]))
		}
		delete(dirs, m[1])
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		bad = append(bad, fmt.Sprintf("doc.go: the tour passes by package %s: add a heading `# Package %s`", dir, dir))
	}
	return bad
}

func importPath(imp *ast.ImportSpec) string { return strings.Trim(imp.Path.Value, "`\"") }

// first reports whether f is the first file of its folder, for what is said once
// a package.
func (h *house) first(f file) bool {
	i := slices.IndexFunc(h.files, func(g file) bool { return path.Dir(g.path) == path.Dir(f.path) })
	return h.files[i].path == f.path
}

func (h *house) line(p token.Pos) int { return h.fset.Position(p).Line }

func (h *house) at(n ast.Node) string {
	p := h.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
