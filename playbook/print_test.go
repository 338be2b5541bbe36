package playbook

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stoplog/stoplog/internal/diag"
)

// sameTree compares trees without places: a value that was not written differs
// from one that was.
var sameTree = cmp.Options{
	cmp.Transformer("written", func(s diag.Span) bool { return s.Line > 0 }),
	cmpopts.IgnoreFields(Playbook{}, "File", "Span", "lines"),
	cmp.AllowUnexported(Playbook{}, Step{}, Observer{}, Scope{}),
	cmpopts.IgnoreFields(Run{}, "Span"),
	cmpopts.EquateEmpty(),
}

// roundTrip prints a tree, parses what was printed, and prints again.
func roundTrip(t *testing.T, p *Playbook) {
	t.Helper()
	var first bytes.Buffer
	if err := Print(&first, p); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("printed.yaml", first.Bytes())
	if err != nil {
		t.Fatalf("what was printed does not parse: %v\n%s", err, first.Bytes())
	}
	if diff := cmp.Diff(p, again, sameTree); diff != "" {
		t.Fatalf("parse∘print∘parse is not parse (-parsed +printed):\n%s\n%s", diff, first.Bytes())
	}
	var second bytes.Buffer
	if err := Print(&second, again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("printed twice:\n%s\n%s", first.Bytes(), second.Bytes())
	}
}

func okFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/ok/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files in testdata/ok: %v", len(files), err)
	}
	return files
}

func TestPrint(t *testing.T) {
	for _, file := range okFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(file, data)
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, p)
		})
	}
}

func FuzzParse(f *testing.F) {
	errs, _ := filepath.Glob("testdata/err/*.yaml")
	for _, file := range append(okFiles(f), errs...) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 {
			return // the size is tried elsewhere; here it only costs time
		}
		p, err := Parse("fuzz.yaml", data)
		if err != nil {
			list, ok := asList(err)
			if !ok {
				t.Fatalf("the error is no list of diagnostics: %v", err)
			}
			for _, d := range list {
				if d.File != "fuzz.yaml" || d.Line < 1 || d.Col < 1 || d.Message == "" {
					t.Errorf("a diagnostic without a place: %+v", d)
				}
			}
			return
		}
		roundTrip(t, p)
	})
}
