package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead reads secrets from each place, and says of what is none why, without
// saying what it was.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": " s-file \n", "empty": "\n", "two": "s-1\ns-2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"SET": "s-env\n", "BLANK": " ", "LINES": "s-1\ns-2"}
	for _, c := range []struct {
		source    Source
		want, err string
	}{
		{Source{Env: "SET"}, "s-env", ""},
		{Source{Env: "UNSET"}, "", "environment variable UNSET is not set"},
		{Source{Env: "BLANK"}, "", "environment variable BLANK is not set"},
		{Source{Env: "LINES"}, "", "environment variable LINES has more than one line"},
		{Source{File: filepath.Join(dir, "good")}, "s-file", ""},
		{Source{File: filepath.Join(dir, "empty")}, "", "must hold it, alone on one line"},
		{Source{File: filepath.Join(dir, "two")}, "", "must hold it, alone on one line"},
		{Source{File: filepath.Join(dir, "gone")}, "", "no such file"},
		{Source{Command: []string{"echo", " s-said "}}, "s-said", ""},
		{Source{Command: []string{"true"}}, "", "command true must print it, alone on one line"},
		{Source{Command: []string{"printf", "s-1\ns-2"}}, "", "command printf must print it, alone on one line"},
		{Source{Command: []string{"sh", "-c", "echo s-out; exit 3"}}, "", "command sh: exit status 3"},
		{Source{Command: []string{"no-such-program"}}, "", "command no-such-program: "},
	} {
		got, err := c.source.Read(func(name string) string { return env[name] })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: got %q, %v; want %q, %s", c.source, got, err, c.want, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "s-") {
			t.Errorf("%v: the error holds a secret: %v", c.source, err)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Source{
		"env:A_1":     {Env: "A_1"},
		"file:a b/c":  {File: "a b/c"},
		"env:":        {},
		"env:1A":      {},
		"env:A-B":     {},
		"file:":       {},
		"file:a\nb":   {},
		"s-not-shown": {},
		"":            {},
	} {
		got, err := Parse(text)
		if got.String() != want.String() || (err == nil) == want.IsZero() {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is written %q", text, got)
		}
		if err != nil && strings.Contains(err.Error(), "s-not-shown") {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}
