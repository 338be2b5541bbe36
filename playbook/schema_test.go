package playbook

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// generated compares a page of docs with what it is generated from.
func generated(t *testing.T, file string, want []byte) {
	t.Helper()
	file = filepath.Join("..", "docs", file)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the program goes by: run go test ./playbook -update", file)
	}
}

func TestReference(t *testing.T) { generated(t, "playbook-reference.md", []byte(Reference())) }

func TestEditorSchema(t *testing.T) { generated(t, "playbook.schema.json", EditorSchema()) }

// asJSON gives a file of YAML as the JSON that an editor would check.
func asJSON(t *testing.T, file string) json.RawMessage {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &yamltree.Reader{File: file, What: "a playbook", Limits: yamltree.Limits{Bytes: MaxBytes, Depth: 32}}
	text := r.JSON(r.Read(data), "the file")
	if len(r.List) > 0 {
		t.Fatal(r.List)
	}
	return text
}

// An editor finds nothing in what lint lets pass, and finds what is misspelt,
// misplaced, missing or of the wrong kind.
func TestEditorSchemaJudges(t *testing.T) {
	v, err := (&prompt.Schema{JSON: EditorSchema()}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range playbooksIn(t, "testdata/ok") {
		if err := v.Validate(asJSON(t, filepath.Join("testdata/ok", file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, file := range []string{
		"model-required.yaml", "prompt-required.yaml", "scope-required.yaml",
		"caps-required.yaml", "output-required.yaml", "verdict-mapped.none.yaml", "reason-required.yaml",
	} {
		if err := v.Validate(asJSON(t, filepath.Join("testdata/err", file))); err == nil {
			t.Errorf("%s passes", file)
		}
	}
	for _, text := range []string{
		`{"playbook": "a", "steps": [{"id": "a", "type": "run", "run": "./a"}], "stauts": "active"}`,
		`{"playbook": "a", "steps": [{"id": "a", "type": "run", "run": "./a", "reason": "of a pause"}]}`,
		`{"playbook": "a", "steps": [{"id": "a", "type": "claud"}]}`,
		`{"playbook": "a", "steps": [{"id": "a", "type": "run", "run": "./a", "retry": {"attempts": 3.7}}]}`,
		`{"playbook": "a", "steps": [{"id": "a", "type": "run", "run": "./a", "effect": "reversible"}]}`,
		`{"playbook": "a", "steps": []}`,
		`{"steps": [{"id": "a", "type": "run", "run": "./a"}]}`,
	} {
		if err := v.Validate([]byte(text)); err == nil {
			t.Errorf("%s passes", text)
		}
	}
}

// Every key that the parser knows is in a table, and does something: the file
// that has each key once has each of them.
func TestEverythingHasEveryKey(t *testing.T) {
	var seen func(any, map[string]bool)
	seen = func(v any, keys map[string]bool) {
		switch v := v.(type) {
		case map[string]any:
			for k, in := range v {
				keys[k] = true
				seen(in, keys)
			}
		case []any:
			for _, in := range v {
				seen(in, keys)
			}
		}
	}
	keys := map[string]bool{}
	for _, file := range playbooksIn(t, "testdata/ok") {
		var v any
		if err := json.Unmarshal(asJSON(t, filepath.Join("testdata/ok", file)), &v); err != nil {
			t.Fatal(err)
		}
		seen(v, keys)
	}
	for _, shape := range tables {
		for _, k := range shape.Keys {
			if !keys[k] {
				t.Errorf("no playbook of testdata/ok has %s's %s", shape.What, k)
			}
		}
	}
}
