package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/internal/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// files gives the sample configurations of a folder of testdata.
func files(t testing.TB, folder string) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/" + folder + "/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatalf("no sample configurations in %s: %v", folder, err)
	}
	return all
}

// golden compares got with the file beside the sample, or rewrites it.
func golden(t *testing.T, sample string, got []byte) {
	t.Helper()
	file := strings.TrimSuffix(sample, ".yaml") + ".out"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-update rewrites it):\n%s", file, diff)
	}
}

// TestOK reads each good sample and shows what is then in force.
func TestOK(t *testing.T) {
	for _, file := range files(t, "ok") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, []byte(printed(t, c)+c.Warnings.Error()+"\n"))
			samePrinted(t, c)
		})
	}
}

// TestErr reads each bad sample and shows all that is said of it.
func TestErr(t *testing.T) {
	for _, file := range files(t, "err") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Load(file)
			var list diag.List
			if !errors.As(err, &list) {
				t.Fatalf("got the error %v, want a list of diagnostics", err)
			}
			var out bytes.Buffer
			if err := list.WriteText(&out); err != nil {
				t.Fatal(err)
			}
			golden(t, file, out.Bytes())
		})
	}
}

func printed(t *testing.T, c *Config) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteYAML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// whatIsSaid compares configurations by what they say, not by where it was written.
var whatIsSaid = cmp.Options{
	cmpopts.IgnoreFields(Config{}, "File", "Warnings"),
	cmpopts.IgnoreFields(Key{}, "At"),
	cmpopts.IgnoreFields(Judge{}, "At"),
	cmpopts.IgnoreFields(Pack{}, "places"),
	cmpopts.IgnoreFields(match.Validator{}, "Accept"),
	cmpopts.EquateEmpty(),
}

// samePrinted says that the printed configuration, read again, is the same.
func samePrinted(t *testing.T, c *Config) {
	t.Helper()
	text := printed(t, c)
	again, err := Parse("printed.yaml", []byte(text))
	if err != nil {
		t.Fatalf("what was printed is refused: %v\n%s", err, text)
	}
	if diff := cmp.Diff(c, again, whatIsSaid); diff != "" {
		t.Errorf("what was printed means something else:\n%s\n%s", diff, text)
	}
}

// TestBuiltinIsPinned pins what governs where nobody has written anything.
func TestBuiltinIsPinned(t *testing.T) {
	const want = `version: 1
listen: "127.0.0.1:4180"
require_keys: false
max_body_bytes: 33554432
upstreams:
  openai:
    protocol: openai
    base_url: https://api.openai.com/v1
    zone: external
    timeouts: {connect: "10s", header: "10m", idle: "5m"}
    retries: 2
  anthropic:
    protocol: anthropic
    base_url: https://api.anthropic.com
    zone: external
    timeouts: {connect: "10s", header: "10m", idle: "5m"}
    retries: 2
guards:
  secrets: {rules: [secrets, credentials], verdict: redact}
  pii: {rules: [pii], verdict: redact}
  disclosure: {rules: [disclosure], verdict: redact}
  injection: {rules: [injection]}
profiles:
  default:
    upstream: [openai, anthropic]
    models: ["*"]
    input: {secrets: reversible, injection: shadow}
    output: {secrets: enforce, pii: shadow, disclosure: shadow}
    max_hold_bytes: 1048576
    capture: redacted
    data_class: internal
    ceilings: {local: secret, private: personal, external: internal}
    tools: {read_file: allow, list_dir: allow, run_command: require_approval}
    enforced_signals: [classification_violation, cost_budget, goal_drift, loop_detect]
    limits: {max_iterations: 20, timeout_seconds: 600, stall_limit: 3, malformed_limit: 3, tool_error_limit: 5}
    approvals: {expire: "24h", second_person: false}
gateway: {openai: [default], anthropic: [default]}
`
	if diff := cmp.Diff(want, printed(t, Builtin())); diff != "" {
		t.Error(diff)
	}
	samePrinted(t, Builtin())
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Builtin(), c); diff != "" {
		t.Errorf("no file is not what is built in:\n%s", diff)
	}
	c, err = Parse("minimal.yaml", []byte("version: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Builtin(), c, whatIsSaid); diff != "" {
		t.Errorf("a file that says nothing changes what is built in:\n%s", diff)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("a file that says nothing is warned of: %v", c.Warnings)
	}
}

// TestEncodings reads one configuration as various editors save it, and the
// places of a mistake in it.
func TestEncodings(t *testing.T) {
	const ok, wrong = "version: 1\nlisten: localhost:1\n", "version: 1\n\nlistn: localhost:1\n"
	for name, save := range map[string]func(string) string{
		"LF":             func(s string) string { return s },
		"CRLF":           func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"CR":             func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"BOM":            func(s string) string { return "\ufeff" + s },
		"no last LF":     func(s string) string { return strings.TrimSuffix(s, "\n") },
		"space at end":   func(s string) string { return strings.ReplaceAll(s, "\n", "  \t\n") },
		"document start": func(s string) string { return "---" + strings.Replace(s, "version", "\nversion", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("f", []byte(save(ok)))
			if err != nil {
				t.Fatal(err)
			}
			if c.Listen != "localhost:1" {
				t.Errorf("listen is %q", c.Listen)
			}
			line := 3
			if name == "document start" {
				line = 4
			}
			_, err = Parse("f", []byte(save(wrong)))
			var list diag.List
			if !errors.As(err, &list) || len(list) != 1 || list[0].Line != line || list[0].Col != 1 {
				t.Errorf("got %v, want one error at %d:1", err, line)
			}
		})
	}
}

func TestBytesThatAreNoText(t *testing.T) {
	for data, want := range map[string]string{
		"version: 1\nlisten: \xff\n":                `f:2:9: byte 0xff is not UTF-8; save it as UTF-8`,
		"\xff\xfev\x00":                             `f:1:1: the file is in UTF-16; save it as UTF-8`,
		"\xfe\xff\x00v":                             `f:1:1: the file is in UTF-16; save it as UTF-8`,
		"version: 1\x00\n":                          `f:1:11: control character U+0000`,
		"# größe\x1b[31m\nversion: 1\n":             `f:1:8: control character U+001B`,
		"version: 1\n" + strings.Repeat("#", 1<<16): `f:1:1: the file has 65547 bytes, want at most 65536`,
	} {
		if _, err := Parse("f", []byte(data)); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", data, err, want)
		}
	}
}

func TestListen(t *testing.T) {
	for listen, ok := range map[string]bool{
		"127.0.0.1:4180":        true,
		"127.8.9.1:0":           true,
		"localhost:4180":        true,
		"[::1]:4180":            true,
		"[::ffff:127.0.0.1]:80": true,
		"0.0.0.0:4180":          true,
		":4180":                 true,
		"[::]:4180":             true,
		"192.168.1.5:4180":      true,
		"example.com:4180":      true,
		"localhost.:4180":       true,
		"127.0.0.1":             false,
		"127.0.0.1:http":        false,
		"127.0.0.1:65536":       false,
		"127.0.0.1:-1":          false,
		"unix:/run/stoplog":     false,
	} {
		c, err := Parse("f", []byte("version: 1\nlisten: \""+listen+"\"\n"))
		if (err == nil) != ok {
			t.Errorf("%s: error %v, want ok %v", listen, err, ok)
		} else if ok && c.Listen != listen {
			t.Errorf("listen is %q, want %q", c.Listen, listen)
		}
		if ok && c.KeysRequired() != slices.Contains([]string{"0.0.0.0:4180", ":4180", "[::]:4180", "192.168.1.5:4180", "example.com:4180", "localhost.:4180"}, listen) {
			t.Errorf("%s: keys are required: %v", listen, c.KeysRequired())
		}
	}
}

// TestNoErrorShowsAKey plants a key wherever a person may put one.
func TestNoErrorShowsAKey(t *testing.T) {
	const key = "sk-not-shown-0123456789"
	for _, file := range []string{"testdata/err/judges.yaml", "testdata/err/key.yaml", "testdata/err/reach.yaml", "testdata/err/store.yaml", "testdata/err/syntax-secret.yaml"} {
		_, err := Load(file)
		var list diag.List
		if !errors.As(err, &list) {
			t.Fatalf("%s: got %v, want a list", file, err)
		}
		var out bytes.Buffer
		if err := errors.Join(list.WriteText(&out), list.WriteJSON(&out)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String()+err.Error(), key) {
			t.Errorf("%s: the key is shown:\n%s", file, out.String())
		}
	}
}

// FuzzParse: whatever the bytes, the program does not fail, every complaint has
// a place in the file, and what is accepted can be printed and read again.
func FuzzParse(f *testing.F) {
	for _, file := range append(files(f, "ok"), files(f, "err")...) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("testdata/ok/fuzz.yaml", data)
		if err == nil {
			samePrinted(t, c)
			return
		}
		var list diag.List
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("got %v, want a list of diagnostics", err)
		}
		lines := len(strings.FieldsFunc(string(data)+"x", func(r rune) bool { return r == '\n' || r == '\r' }))
		lines += bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r"))
		for _, d := range list {
			if d.File == "" || d.Line < 1 || d.Line > lines || d.Col < 1 || d.Col > len(data)+1 || d.Message == "" {
				t.Errorf("a diagnostic without a place: %+v", d)
			}
		}
	})
}
