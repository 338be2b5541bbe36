package stoplog_test

import (
	"go/ast"
	"os"
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
