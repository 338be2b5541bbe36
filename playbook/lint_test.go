package playbook

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stoplog/stoplog/internal/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// lintFile checks a file of a folder as a project whose root is the folder. A
// secret is put in here, so that none stands in a file of this repository.
func lintFile(t testing.TB, folder, name string) (*Playbook, Findings) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("@TOKEN@"), []byte("ghp_"+"x7Jk2Qp9Lm4Rt6Vw8Yz1Bc3Df5Gh0Ns2Aa4E"))
	return Lint(name, data, Options{
		Tree:  os.DirFS(folder),
		Known: func(p Pin) bool { return strings.HasPrefix(p.Name, "claude-sonnet-4") },
	})
}

func playbooksIn(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no playbooks in %s: %v", folder, err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files
}

// Nothing is said against the playbooks of testdata/ok, not even a warning.
func TestOK(t *testing.T) {
	for _, file := range playbooksIn(t, "testdata/ok") {
		t.Run(file, func(t *testing.T) {
			_, found := lintFile(t, "testdata/ok", file)
			for _, f := range found {
				t.Errorf("%s: %s (%s)", f.Severity, f.Diagnostic, f.Check)
			}
		})
	}
}

// render writes findings as lint shows them.
func render(t *testing.T, found Findings) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, f := range found {
		fmt.Fprintf(&out, "%s %s\n", f.Severity, f.Check)
		if err := (diag.List{f.Diagnostic}).WriteText(&out); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(out.Bytes(), []byte("x7Jk2Qp9")) {
		t.Errorf("what was found is shown:\n%s", out.Bytes())
	}
	return out.Bytes()
}

// Each playbook of testdata/err gets the findings of its .out. A file's name
// begins with the check that it is about.
func TestErr(t *testing.T) {
	covered := map[string]bool{}
	for _, file := range playbooksIn(t, "testdata/err") {
		t.Run(file, func(t *testing.T) {
			_, found := lintFile(t, "testdata/err", file)
			about, _, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), ".")
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Check == about }) {
				t.Errorf("check %s says nothing", about)
			}
			for _, f := range found {
				covered[f.Check] = true
				if f.Line < 1 || f.Col < 1 {
					t.Errorf("a finding without a place: %+v", f)
				}
			}
			golden := filepath.Join("testdata/err", strings.TrimSuffix(file, ".yaml")+".out")
			got := render(t, found)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	for _, c := range Checks {
		if !covered[c.ID] {
			t.Errorf("no playbook of testdata/err meets check %s", c.ID)
		}
	}
}

// A secret in a prompt is found there, and neither its line nor the mistake
// beside it repeats it.
func TestSecretInAPrompt(t *testing.T) {
	token := "ghp_" + "x7Jk2Qp9Lm4Rt6Vw8Yz1Bc3Df5Gh0Ns2Aa4E"
	tree := fstest.MapFS{
		"prompts/gate@v1.md": {Data: []byte("---\nmodel: claude-sonnet-4-5@20250929\ninputs: {log: string}\n---\nUse " + token + " and {{" + token + "}}\n")},
	}
	const text = "playbook: p\nsteps:\n  - {id: a, type: agent, model: claude-sonnet-4-5@20250929, prompt_ref: gate.md@v1}\n"
	_, found := Lint("p.yaml", []byte(text), Options{Tree: tree})
	secrets := 0
	for _, f := range found {
		if f.Check == secretCheck.ID {
			secrets++
			if f.File != "prompts/gate@v1.md" || f.Line != 5 {
				t.Errorf("the secret is said to be at %s", f.Pos)
			}
		}
		if strings.Contains(fmt.Sprint(f), token) {
			t.Errorf("what was found is shown: %+v", f)
		}
	}
	if secrets == 0 {
		t.Errorf("nothing is found: %v", found)
	}
}

// Every check says what it is about, and has an id of its own.
func TestChecksAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks {
		if c.ID == "" || c.Summary == "" || len(c.Explain) < 80 || seen[c.ID] {
			t.Errorf("check %q: summary %q, explanation of %d bytes, seen %v", c.ID, c.Summary, len(c.Explain), seen[c.ID])
		}
		seen[c.ID] = true
		if got, ok := Lookup(c.ID); !ok || got != c {
			t.Errorf("check %q is not found by its id", c.ID)
		}
		if c.run == nil && c != syntaxCheck {
			t.Errorf("check %q checks nothing", c.ID)
		}
	}
	if _, ok := Lookup("none"); ok {
		t.Error("a check that is not there is found")
	}
}

// Whatever stands in a file, lint ends, and each finding has a place in a file
// that it read.
func FuzzLint(f *testing.F) {
	for _, folder := range []string{"testdata/ok", "testdata/err"} {
		for _, file := range playbooksIn(f, folder) {
			data, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	tree := os.DirFS("testdata/ok")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8<<10 {
			return
		}
		_, found := Lint("fuzz.yaml", data, Options{Tree: tree})
		lines := bytes.Count(bytes.ReplaceAll(data, []byte("\r"), []byte("\n")), []byte("\n")) + 1
		for _, f := range found {
			if f.Line < 1 || f.Col < 1 || f.File == "fuzz.yaml" && f.Line > lines || f.Message == "" {
				t.Errorf("a finding without a place: %+v", f)
			}
			if _, ok := Lookup(f.Check); !ok {
				t.Errorf("there is no check %q", f.Check)
			}
		}
	})
}
