package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/config"
)

// TestBuiltinFile holds the file that init writes to what is built in.
func TestBuiltinFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stoplog.yaml")
	if err := os.WriteFile(file, builtinFile, 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var want, got bytes.Buffer
	if err := config.Builtin().WriteYAML(&want); err != nil {
		t.Fatal(err)
	}
	if err := conf.WriteYAML(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-built in +written):\n%s", diff)
	}
}
