package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

// workdir is a directory with one of everything, beside a file that must not
// be reached.
func workdir(t *testing.T) *Workdir {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "work")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(top, "outside"), []byte("out of reach"), 0o644),
		os.WriteFile(filepath.Join(dir, "hello"), []byte("hello, world\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "binary"), []byte("ELF\x00\x01"), 0o644),
		os.WriteFile(filepath.Join(dir, "latin1"), []byte("caf\xe9"), 0o644),
		os.WriteFile(filepath.Join(dir, "euros"), []byte(strings.Repeat("€", 10)), 0o644),
		os.WriteFile(filepath.Join(dir, "line\nbreak"), nil, 0o644),
		os.Symlink("hello", filepath.Join(dir, "inward")),
		os.Symlink("../outside", filepath.Join(dir, "upward")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")),
		os.Symlink("..", filepath.Join(dir, "parent")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := OpenWorkdir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// run calls a tool as a session does.
func run(t *testing.T, w *Workdir, name, args string) Output {
	t.Helper()
	return runOf(t, w.Tools(), name, args)
}

func runOf(t *testing.T, tools []Tool, name, args string) Output {
	t.Helper()
	set, err := NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := set.Lookup(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	in, err := r.Arguments(args)
	if err != nil {
		return failure("refused: %v", err)
	}
	out, err := r.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.ValidString(out.Text) {
		t.Errorf("%s %s: not UTF-8: %q", name, args, out.Text)
	}
	return out
}

// told is what of an output is to be shown, on one line.
func told(out Output) string {
	s := out.Text[out.Before:len(out.Text)-out.After] + out.Note
	if out.Failed {
		s = "failed: " + s
	}
	return s
}

func TestReadAndList(t *testing.T) {
	w := workdir(t)
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"path":"hello"}`, "hello, world\n"},
		{"read_file", `{"path":"inward"}`, "hello, world\n"},
		{"read_file", `{"path":"sub/../hello"}`, "hello, world\n"},
		{"read_file", `{"path":"empty"}`, ""},
		{"read_file", `{"path":"hello","offset":7}`, "world\n"},
		{"read_file", `{"path":"hello","offset":7,"limit":5}`, "world[cut: bytes 7 to 12 of 13; go on with offset 12]"},
		{"read_file", `{"path":"hello","offset":13}`, ""},
		{"read_file", `{"path":"hello","offset":14}`, "failed: the offset is behind the file's end, at byte 13"},
		{"read_file", `{"path":"euros","offset":1,"limit":7}`, "€€[cut: bytes 0 to 6 of 30; go on with offset 6]"},
		{"read_file", `{"path":"latin1"}`, "caf\ufffd"},
		{"read_file", `{"path":"binary"}`, "failed: it is a binary file of 5 bytes"},
		{"read_file", `{"path":"fifo"}`, "failed: it is not a regular file"},
		{"read_file", `{"path":"sub"}`, "failed: it is not a regular file"},
		{"read_file", `{"path":"."}`, "failed: it is not a regular file"},
		{"read_file", `{"path":"gone"}`, "failed: there is no such file or directory"},
		{"read_file", `{"path":"loop"}`, "failed: cannot open it: too many levels of symbolic links"},
		{"read_file", `{"path":"../outside"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"sub/../../outside"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"upward"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"parent/outside"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"absolute"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"/etc/passwd"}`, "failed: cannot open it: path escapes from parent"},
		{"read_file", `{"path":"hello\u0000"}`, "failed: cannot open it: invalid argument"},
		{"read_file", `{"path":""}`, "failed: refused: /path must have 1 character or more"},
		{"read_file", `{"path":"hello","limit":65537}`, "failed: refused: /limit must be at most 65536"},
		{"read_file", `{"path":"hello","offset":-1}`, "failed: refused: /offset must be at least 0"},
		{"list_dir", `{"path":"."}`, "absolute@\nbinary 5\nempty 0\neuros 30\nfifo\nhello 13\ninward@\nlatin1 4\n\"line\\nbreak\" 0\nloop@\nparent@\nsub/\nupward@\n"},
		{"list_dir", `{"path":"sub"}`, ""},
		{"list_dir", `{"path":"hello"}`, "failed: it is not a directory"},
		{"list_dir", `{"path":"fifo"}`, "failed: it is not a directory"},
		{"list_dir", `{"path":".."}`, "failed: cannot open it: path escapes from parent"},
		{"list_dir", `{"path":"parent"}`, "failed: cannot open it: path escapes from parent"},
	} {
		if got := told(run(t, w, c.tool, c.args)); got != c.want {
			t.Errorf("%s %s:\n got %q\nwant %q", c.tool, c.args, got, c.want)
		}
	}
}

func TestReadHugeFile(t *testing.T) {
	w := workdir(t)
	const size = 10 << 30
	name := filepath.Join(w.Path(), "huge")
	if err := os.WriteFile(name, []byte(strings.Repeat("0123456789abcdef", 16<<10)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, size); err != nil { // sparse
		t.Fatal(err)
	}
	out := run(t, w, "read_file", `{"path":"huge","offset":100000}`)
	shown := out.Text[out.Before : len(out.Text)-out.After]
	if len(shown) != MaxText || out.Before != contextBytes || out.After != contextBytes || !out.Cut || shown[:4] != "0123" {
		t.Errorf("shows %d bytes from %q, with %d before and %d after, cut: %v", len(shown), shown[:4], out.Before, out.After, out.Cut)
	}
	if want := fmt.Sprintf("[cut: bytes 100000 to 165536 of %d; go on with offset 165536]", size); out.Note != want {
		t.Errorf("notes %q, want %q", out.Note, want)
	}
}

// A directory of devices: none of them is read.
func TestReadDevices(t *testing.T) {
	w, err := OpenWorkdir("/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range []string{"zero", "null", "tty", "random"} {
		args, _ := json.Marshal(map[string]string{"path": name})
		if got := told(run(t, w, "read_file", string(args))); got != "failed: it is not a regular file" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestListManyEntries(t *testing.T) {
	w := workdir(t)
	for i := range maxEntries + 1 {
		if err := os.WriteFile(filepath.Join(w.Path(), "sub", fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := run(t, w, "list_dir", `{"path":"sub"}`)
	if n := strings.Count(out.Text, "\n"); n != maxEntries || out.Note != "[cut: the directory has more than these 1000 entries]" {
		t.Errorf("%d entries, %q", n, out.Note)
	}
}
