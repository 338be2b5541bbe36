package stoplog_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each guarantee in ARCHITECTURE.md names its tests; they are there.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, f := range readHouse(t, os.DirFS(".")).files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test {
				tests[fn.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 10 {
		t.Fatalf("the page names %d tests", len(named))
	}
	for _, n := range named {
		if !tests[n[1]] {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is not there", n[1])
		}
	}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, "# ") && !strings.Contains(body, "`Test") {
			t.Errorf("the guarantee %q names no test", title)
		}
	}
}

// Each fault in docs/faults.md names its tests, or what would have to exist for
// there to be one; the tests are in the packages that are named before them, and a
// transcript is a file.
func TestFaultsNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{} // "package TestName"
	for _, f := range readHouse(t, os.DirFS(".")).files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test {
				tests[path.Dir(f.path)+" "+fn.Name.Name] = true
			}
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(columns) != 3 || columns[0] == " report" {
			continue
		}
		rows++
		pkg, named := "", 0
		for _, q := range quoted.FindAllStringSubmatch(columns[2], -1) {
			if !strings.HasPrefix(q[1], "Test") {
				pkg = q[1]
				continue
			}
			named++
			test, transcript, _ := strings.Cut(q[1], "/")
			if !tests[pkg+" "+test] {
				t.Errorf("%s: %s has no %s", columns[0], pkg, test)
			}
			if transcript == "" {
				continue
			}
			if files, err := filepath.Glob(filepath.Join(pkg, "testdata", transcript+".txt*")); err != nil || len(files) != 1 {
				t.Errorf("%s: %s has no transcript %s (%v)", columns[0], pkg, transcript, err)
			}
		}
		if _, why, _ := strings.Cut(columns[2], "not reached: "); named == 0 && why == "" {
			t.Errorf("%s: names no test, and not what is missing", columns[0])
		}
	}
	if rows < 40 {
		t.Fatalf("the page has %d faults", rows)
	}
}
