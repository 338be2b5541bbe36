package yamltree

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stoplog/stoplog/internal/diag"
)

func read(text string) (*Reader, Node) {
	r := &Reader{File: "f.yaml", What: "a file", Limits: Limits{Bytes: 1 << 20, Depth: 16}}
	return r, r.Read([]byte(text))
}

// show spells a tree with its places.
func show(n Node) string {
	at := fmt.Sprintf("@%d:%d", n.Span.Line, n.Span.Col)
	switch n.Kind {
	case List:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = show(item)
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case Mapping:
		parts := make([]string, len(n.Members))
		for i, m := range n.Members {
			parts[i] = fmt.Sprintf("%s@%d:%d=%s", m.Key, m.Span.Line, m.Span.Col, show(m.Value))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	case String:
		return fmt.Sprintf("%q%s", n.Text, at)
	}
	return n.Kind.String() + " " + n.Text + at
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: [x, 'y z']\n":       `{a@1:1=a number 1@1:4 b@2:1=["x"@2:5 "y z"@2:8]@2:4}@1:1`,
		"- a: true\n  b: ~\n- c\n":    `[{a@1:3=true or false true@1:6 b@2:3=nothing ~@2:6}@1:3 "c"@3:3]@1:1`,
		"größe: {ä: \"\\u00e9\"}\n":   `{größe@1:1={ä@1:9="é"@1:12}@1:8}@1:1`,
		"a: |\n  x\n  y\n":            `{a@1:1="x\ny\n"@1:4}@1:1`,
		"a: 3.7\nb: 007\nc: 0x1f\n":   `{a@1:1=a number 3.7@1:4 b@2:1=a number 007@2:4 c@3:1=a number 0x1f@3:4}@1:1`,
		"":                            `nothing @1:1`,
		"# a comment\n":               `nothing @1:1`,
		"\ufeffa: 1\r\nb: 2\r\n":      `{a@1:1=a number 1@1:4 b@2:1=a number 2@2:4}@1:1`,
		"a: yes\nb: no\nc: 'true'\n":  `{a@1:1="yes"@1:4 b@2:1="no"@2:4 c@3:1="true"@3:4}@1:1`,
		"a: {b: {c: [1, {d: e}]}}\n":  `{a@1:1={b@1:5={c@1:9=[a number 1@1:13 {d@1:17="e"@1:20}@1:16]@1:12}@1:8}@1:4}@1:1`,
		"a:\n  - b\n  -\n    c: d\n":  `{a@1:1=["b"@2:5 {c@4:5="d"@4:8}@4:5]@2:3}@1:1`,
		"a: >-\n  one\n  two\nb: c\n": `{a@1:1="one two"@1:4 b@4:1="c"@4:4}@1:1`,
	} {
		r, n := read(text)
		if got := show(n); got != want || len(r.List) > 0 {
			t.Errorf("%q: %s %v\nwant %s", text, got, r.List, want)
		}
	}
}

// What two readers could take for two things is refused, with its place.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\nb: 2\n":              "f.yaml:2:1: a second document; a file is one; keep one",
		"a: &x 1\n":                      "f.yaml:1:4: an anchor; they are not supported here; write the value where it is used",
		"a: *x\n":                        "f.yaml:1:4: an alias; they are not supported here; write the value in its place",
		"<<: {a: 1}\n":                   "f.yaml:1:1: a merge key; they are not supported here; write the keys out",
		"a: !!int 3\n":                   "f.yaml:1:4: a tag; they are not supported here; remove it",
		"? a\n: b\n":                     "f.yaml:1:1: an explicit key; they are not supported here; write key: value",
		"1: a\n":                         "f.yaml:1:1: a key must be a string, not a number; quote it if it is meant as a name",
		"%YAML 1.1\n---\na: 1\n":         "f.yaml:1:1: a YAML directive; remove the line",
		"a:\n\tb: 1\n":                   "f.yaml:2:1: a tab in the indentation; indent with spaces",
		"a: x\x00y\n":                    "f.yaml:1:5: control character U+0000",
		"a: \xff\n":                      "f.yaml:1:4: byte 0xff is not UTF-8; save it as UTF-8",
		"a: x \u202e y\n":                "f.yaml:1:6: U+202E turns the direction of what is shown: the file would read other than it is; remove it",
		"\xff\xfea\x00":                  "f.yaml:1:1: the file is in UTF-16; save it as UTF-8",
		strings.Repeat("[", 40):          "f.yaml:1:17: nested more than 16 levels deep",
		strings.Repeat("a: ", 5000):      "f.yaml:1:6145: more than 4096 values and signs on one line",
		strings.Repeat("---\n", 40):      "f.yaml:17:1: a file is one document",
		"[" + strings.Repeat("a,", 9999): "f.yaml:1:1003: more than 500 items in brackets",
		strings.Repeat("a: 1\n", 2000):   "f.yaml:1001:1: more than 1000 keys in one mapping",
		strings.Repeat("a", 2<<20):       "f.yaml:1:1: the file has 2097152 bytes, want at most 1048576",
	} {
		r, _ := read(text)
		if len(r.List) == 0 || r.List[0].String() != want {
			t.Errorf("%.40q: %v\nwant %s", text, r.List, want)
		}
	}
}

// The readers of one value give what is written, or nothing and a reason.
func TestScalars(t *testing.T) {
	r, n := read("i: 7\nf: 3.7\no: 007\nh: 0x1f\nt: \" x\"\ne: ''\nd: 1h30m\nn: 90\nb: True\nl: [a, a]\nw: gno\n")
	value := map[string]Node{}
	for _, m := range n.Members {
		value[m.Key] = m.Value
	}
	if got := r.Integer(value["i"], "i", 1, 10); got.Value != 7 || got.Span.Line != 1 {
		t.Errorf("integer %+v", got)
	}
	if got := r.Duration(value["d"], "d", time.Second, 2*time.Hour); got.Value != 90*time.Minute {
		t.Errorf("duration %+v", got)
	}
	if got := r.Flag(value["b"], "b"); !got.Value {
		t.Errorf("flag %+v", got)
	}
	if len(r.List) > 0 {
		t.Fatal(r.List)
	}
	r.Integer(value["f"], "f", 1, 10)
	r.Integer(value["o"], "o", 1, 10)
	r.Integer(value["h"], "h", 1, 100)
	r.Integer(value["i"], "i", 1, 6)
	r.Integer(value["t"], "t", 1, 6)
	r.Text(value["e"], "e")
	r.Text(value["i"], "i")
	r.Duration(value["n"], "n", time.Second, time.Hour)
	r.Duration(value["d"], "d", time.Second, time.Hour)
	r.OneOf(value["w"], "w", "go", "no-go")
	if got := r.Texts(value["l"], "l"); len(got.Value) != 1 {
		t.Errorf("list %+v", got)
	}
	want := `f.yaml:2:4: f must be a whole number, not 3.7; write it in decimal digits
f.yaml:3:4: o must be a whole number, not 007; write it in decimal digits
f.yaml:4:4: h must be a whole number, not 0x1f; write it in decimal digits
f.yaml:1:4: i is 7, want 1 to 6
f.yaml:5:4: t must be a number, not a string
f.yaml:6:4: e is empty
f.yaml:1:4: i must be a string, not a number; quote it
f.yaml:8:4: n has no unit: 90; write one such as 90s, 30m, 24h or 1h30m
f.yaml:7:4: d is 1h30m, want 1s to 1h
f.yaml:11:4: w cannot be "gno"; did you mean "go"? want one of go, no-go
f.yaml:10:8: l has "a" twice; keep one`
	if got := r.List.Error(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestJSON(t *testing.T) {
	r, n := read("{b: 1.50, a: [true, null, \"<é\\n\"], n: {}}\n")
	if got := string(r.JSON(n, "x")); got != `{"b":1.50,"a":[true,null,"<é\n"],"n":{}}` || len(r.List) > 0 {
		t.Errorf("%s %v", got, r.List)
	}
	for _, text := range []string{"a: .inf\n", "a: 0x10\n", "a: 1_000\n", "{a: 1, a: 2}\n", "a: {1: 2}\n"} {
		r, n := read(text)
		if got := r.JSON(n, "x"); got != nil || len(r.List) == 0 {
			t.Errorf("%s gives %s and %v", text, got, r.List)
		}
	}
}

// Place finds each rune of a scalar where it was written.
func TestPlace(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"a: one two\n":                       {"one": "1:4", "two": "1:8"},
		"a: 'it''s x'\n":                     {"it": "1:5", "s": "1:9", "x": "1:11"},
		"a: \"q\\\"\\u00e9\\n x\"\n":         {"q": "1:5", "é": "1:8", "x": "1:17"},
		"ä: ö x\n":                           {"ö": "1:4", "x": "1:6"},
		"a: |\n  one\n    two\n  three\n":    {"one": "2:3", "two": "3:5", "three": "4:3"},
		"a: >-\n  one\n  two\n":              {"one": "2:3", "two": "3:3"},
		"a: >-\n  one\n\n  two\n\n\n  six\n": {"one": "2:3", "two": "4:3", "six": "7:3"},
		"a: one\n  two\n  three\n":           {"one": "1:4", "two": "2:3", "three": "3:3"},
		"a: \"one\n  two\"\n":                {"one": "1:5", "two": "2:3"},
	} {
		r, n := read(text)
		v := n.Members[0].Value
		for word, at := range want {
			offset := strings.Index(v.Text, word)
			if offset < 0 {
				t.Fatalf("%q has no %q", v.Text, word)
			}
			got := Place(r.Lines(), v.Span, offset)
			if s := fmt.Sprintf("%d:%d", got.Line, got.Col); s != at {
				t.Errorf("%q: %q is at %s, want %s", text, word, s, at)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb: [x, 'y z']\n", "a: |\n  x\n", "a: >-\n  one\n\n  two\n", "a: \"x\\u00e9\\\n  y\"\n", "? a\n: b\n", "a: &x 1\nb: *x\n", "{a: {b: [c]}}", "---\n---\n",
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, offset int) {
		if len(text) > 16<<10 {
			return
		}
		r, n := read(text)
		lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
		inside := func(s diag.Span) error {
			if s.Line < 1 || s.Line > len(lines) || s.Col < 1 || s.Col > utf8.RuneCountInString(lines[s.Line-1])+2 {
				return errors.New("a place outside of the file")
			}
			return nil
		}
		for _, d := range r.List {
			if err := inside(d.Span); err != nil {
				t.Errorf("%v: %s", err, d)
			}
		}
		var visit func(Node)
		visit = func(n Node) {
			if n.Kind == String && len(n.Text) > 0 && offset >= 0 {
				if at := Place(r.Lines(), n.Span, offset%len(n.Text)); inside(at) != nil {
					t.Errorf("byte %d of %q is at %s", offset%len(n.Text), n.Text, at.Pos)
				}
			}
			for _, item := range n.Items {
				visit(item)
			}
			for _, m := range n.Members {
				visit(m.Value)
			}
		}
		visit(n)
		_ = r.JSON(n, "x")
	})
}
