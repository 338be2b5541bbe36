package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineReader(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string // a text a line, and what the end adds
	}{
		{"plain", []string{`{"text":"a <b> & c"}`}, []string{"a <b> & c", ""}},
		{"spaces", []string{" {\t\"text\" :\r \"a\" } \r"}, []string{"a", ""}},
		{"empty text", []string{`{"text":""}`}, []string{"", ""}},
		{"escapes", []string{`{"te\u0078t":"\"\\\/\b\f\n\r\t\u00e9\u0000"}`}, []string{"\"\\/\b\f\n\r\té\x00", ""}},
		{"pair in a line", []string{`{"text":"\ud83d\ude00"}`}, []string{"😀", ""}},
		{"pair over two lines", []string{`{"text":"a\ud83d"}`, `{"text":"\ude00b"}`}, []string{"a", "😀b", ""}},
		{"pair over an empty line", []string{`{"text":"\uD83D"}`, `{"text":""}`, `{"text":"\uDE00"}`}, []string{"", "", "😀", ""}},
		{"first half, then text", []string{`{"text":"\ud83d"}`, `{"text":"b"}`}, []string{"", "\uFFFDb", ""}},
		{"first half, then the end", []string{`{"text":"a\ud83d"}`}, []string{"a", "\uFFFD"}},
		{"first half twice", []string{`{"text":"\ud83d\ud83d\ude00"}`}, []string{"\uFFFD😀", ""}},
		{"second half alone", []string{`{"text":"\ude00"}`}, []string{"\uFFFD", ""}},
		{"halves in the wrong order", []string{`{"text":"\ude00\ud83d"}`}, []string{"\uFFFD", "\uFFFD"}},
		{"U+FFFD itself", []string{`{"text":"\ud83d\ufffd"}`}, []string{"\uFFFD\uFFFD", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var r lineReader
			var got []string
			for _, line := range test.lines {
				text, bad := r.next(nil, []byte(line))
				if bad != nil {
					t.Fatalf("%s: column %d: %s", line, bad.col, bad.what)
				}
				got = append(got, string(text))
			}
			got = append(got, string(r.end(nil)))
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestLineReaderMistakes(t *testing.T) {
	const missing, member = " is missing", `a line has the member "text" and no other`
	tests := []struct {
		line string
		col  int
		what string
	}{
		{``, 1, `the line ends, and '{'` + missing},
		{`[]`, 1, `'{'` + missing},
		{`"text"`, 1, `'{'` + missing},
		{`{}`, 2, `'"'` + missing},
		{`{"text"}`, 8, `':'` + missing},
		{`{"text":null}`, 9, `'"'` + missing},
		{`{"text":"a"`, 12, `the line ends, and '}'` + missing},
		{`{"text":"a`, 11, `the line ends inside a string`},
		{`{"text":"a\`, 11, `the line ends inside an escape`},
		{`{"text":"a\u12`, 11, `the line ends inside an escape`},
		{`{"text":"a\x41"}`, 11, `"\\x" begins no escape of JSON`},
		{`{"text":"a\u12g4"}`, 11, `\u takes four hexadecimal digits`},
		{`{"Text":"a"}`, 2, member},
		{`{"text\ud83d":"a"}`, 2, member},
		{`{"text":"a","text":"b"}`, 12, member},
		{`{"text":"a"} x`, 14, `the object ends here, and the line goes on`},
		{`{"text":"größe` + "\xff" + `"}`, 15, `the line is not UTF-8`},
		{"{\"text\":\"a\x00\"}", 11, `a string has the control character U+0000: write it as an escape`},
	}
	for _, test := range tests {
		_, bad := new(lineReader).next(nil, []byte(test.line))
		if bad == nil {
			t.Errorf("%s: no mistake found, want column %d: %s", test.line, test.col, test.what)
		} else if bad.col != test.col || bad.what != test.what {
			t.Errorf("%s: column %d: %s, want column %d: %s", test.line, bad.col, bad.what, test.col, test.what)
		}
	}
}

// FuzzLineReader holds the reader against encoding/json, which takes more
// (other members, several of a name, bad UTF-8), and which reads a surrogate at a
// line's end as U+FFFD.
func FuzzLineReader(f *testing.F) {
	for _, seed := range []string{`{"text":"a"}`, `{"text":"\ud83d\ude00\n"}`, `{"text":"\ud83d"}`, `{"text":"a","x":1}`, "{\"text\":\"\xff\"}", `{"text":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var r lineReader
		got, bad := r.next(nil, line)
		got = r.end(got)
		var want struct {
			Text *string `json:"text"`
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		err := dec.Decode(&want)
		switch {
		case bad == nil && (err != nil || want.Text == nil || *want.Text != string(got)):
			t.Errorf("%q: got %q, want %v (%v)", line, got, want.Text, err)
		case bad == nil && !utf8.Valid(got):
			t.Errorf("%q: got %q, which is not UTF-8", line, got)
		case bad != nil && (bad.col < 1 || bad.col > utf8.RuneCount(line)+1):
			t.Errorf("%q: column %d is not in the line", line, bad.col)
		case bad != nil && err == nil && want.Text != nil && utf8.Valid(line) && !dec.More() &&
			strings.Count(string(line), `"`) == 4 && bytes.HasPrefix(line, []byte(`{"text":`)) && !bytes.Contains(line, []byte("\n")):
			t.Errorf("%q: %s, want %q", line, bad.what, *want.Text)
		}
	})
}
