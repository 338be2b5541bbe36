package diag

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// samples has one diagnostic for each way in which a rendering can go wrong.
func samples() List {
	at := func(line, col, width int) Span { return Span{Pos{"stoplog.yaml", line, col}, width} }
	long := strings.Repeat("a", 200) + "HERE" + strings.Repeat("z", 200)
	return List{
		{Span: at(4, 1, 6), Message: `unknown key "gaurds"`, Hint: `did you mean "guards"?`, Source: "gaurds:"},
		{Span: at(12, 3, 0), Message: "a point has one caret", Source: "  x: 1"},
		{Span: at(7, 9, 4), Message: "columns count runes", Source: `größe: "wert"`},
		{Span: at(3, 2, 3), Message: "a tab stays a tab", Source: "\tkey: v"},
		{Span: at(5, 5, 99), Message: "a span ends with its line", Source: "key: value"},
		{Span: at(5, 11, 1), Message: "past the end of the line", Source: "key: value"},
		{Span: at(1, 201, 4), Message: "a long line is cut around the place", Source: long},
		{Span: at(2, 1, 1), Message: "control \x1b[31m characters\nare shown, not obeyed", Source: "a\x1b[2Jb\xff"},
		{Span: at(9, 6, 1), Message: "a line that may hold a secret is not shown", Hint: "write env:NAME"},
		{Span: Span{Pos: Pos{File: "gone.yaml"}}, Message: "the file as a whole"},
	}
}

func TestRenderings(t *testing.T) {
	list := samples()
	renderings := map[string]func(*bytes.Buffer) error{
		"lines.out": func(b *bytes.Buffer) error { b.WriteString(list.Error() + "\n"); return nil },
		"text.out":  func(b *bytes.Buffer) error { return list.WriteText(b) },
		"json.out":  func(b *bytes.Buffer) error { return list.WriteJSON(b) },
	}
	for name, render := range renderings {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := render(&got); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name), got.Bytes())
		})
	}
}

// golden compares got with a file of testdata, or rewrites the file.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
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
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update rewrites it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func TestWriteTextReportsTheWriter(t *testing.T) {
	broken := errors.New("disk full")
	if err := samples().WriteText(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestErr(t *testing.T) {
	if err := (List{}).Err(); err != nil {
		t.Errorf("an empty list is the error %v, want nil", err)
	}
	var list List
	if err := samples().Err(); !errors.As(err, &list) || len(list) != len(samples()) {
		t.Errorf("the list does not come back from its error: %v", err)
	}
}

func TestSort(t *testing.T) {
	at := func(file string, line, col int, m string) Diagnostic {
		return Diagnostic{Span: Span{Pos: Pos{file, line, col}}, Message: m}
	}
	list := List{at("b", 1, 1, "5"), at("a", 2, 1, "3"), at("a", 2, 1, "4"), at("a", 1, 9, "2"), at("a", 1, 2, "1")}
	list.Sort()
	var order strings.Builder
	for _, d := range list {
		order.WriteString(d.Message)
	}
	if order.String() != "12345" {
		t.Errorf("order %s, want 12345", order.String())
	}
}

func TestSuggest(t *testing.T) {
	keys := []string{"version", "listen", "upstreams", "guards", "profiles", "gateway"}
	for word, want := range map[string]string{
		"gaurds":                  "guards", // neighbours swapped
		"gards":                   "guards",
		"guardss":                 "guards",
		"Guards":                  "guards", // case alone
		"upstream":                "upstreams",
		"lisetn":                  "listen",
		"gatweays":                "gateway",
		"colour":                  "",
		"x":                       "",
		"":                        "",
		strings.Repeat("g", 5000): "",
	} {
		if got := Suggest(word, keys); got != want {
			t.Errorf("Suggest(%.20q) = %q, want %q", word, got, want)
		}
	}
	if got := Suggest("cat", []string{"bat", "rat", "CAT"}); got != "CAT" {
		t.Errorf("the nearest is %q, want CAT", got)
	}
	if got := Suggest("cat", []string{"bat", "rat"}); got != "bat" {
		t.Errorf("of equals %q won, want the first", got)
	}
}

func FuzzText(f *testing.F) {
	for _, d := range samples() {
		f.Add(d.Line, d.Col, d.Width, d.Message, d.Source)
	}
	f.Fuzz(func(t *testing.T, line, col, width int, message, source string) {
		d := Diagnostic{Span: Span{Pos{"f", line, col}, width}, Message: message, Source: source}
		text := d.text()
		if !utf8.ValidString(text) {
			t.Errorf("not UTF-8: %q", text)
		}
		if n := strings.Count(text, "\n"); n != 1 && n != 3 {
			t.Errorf("%d lines, want the message and perhaps the source and the caret:\n%s", n, text)
		}
		if n := strings.Count(d.String(), "\n"); n != 0 {
			t.Errorf("%d line feeds in %q, want none", n, d.String())
		}
	})
}
