package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/diag"
)

// word is a guard that finds one word, and fails at the word "crash".
type word struct {
	text    string
	verdict guard.Verdict
}

func (w word) Name() string                                     { return "words" }
func (w word) Open(context.Context, guard.Channel) guard.Screen { return &wordScreen{word: w} }

type wordScreen struct {
	word
	read    []byte
	settled int
}

func (s *wordScreen) Write(p []byte) (pr guard.Progress, err error) {
	s.read = append(s.read, p...)
	for {
		i := bytes.Index(s.read[s.settled:], []byte(s.text))
		if i < 0 {
			break
		}
		start := int64(s.settled + i)
		s.settled += i + len(s.text)
		pr.Findings = append(pr.Findings, guard.Finding{
			Guard: "words", Rule: "word", Start: start, End: int64(s.settled), Verdict: s.verdict, Fingerprint: "0123456789abcdef",
		})
	}
	if bytes.Contains(s.read, []byte("crash")) {
		err = errors.New("met its match")
	}
	held := min(len(s.text)-1, len(s.read)-s.settled)
	for !strings.HasPrefix(s.text, string(s.read[len(s.read)-held:])) {
		held--
	}
	s.settled = len(s.read) - held
	pr.Settled = int64(s.settled)
	return pr, err
}

func (s *wordScreen) Close() (guard.Progress, error) {
	return guard.Progress{Settled: int64(len(s.read))}, nil
}

func wordFilter(v guard.Verdict) *guard.Filter {
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: word{"hush", v}})
	return guard.NewFilter(chain.Open(context.Background(), guard.Channel{Name: "stdin"}))
}

func TestFilterText(t *testing.T) {
	const found = `{"guard":"words","rule":"word","start":4,"end":8,"verdict":"`
	tests := []struct {
		name, in string
		verdict  guard.Verdict
		out, rep string
		code     int
		message  string
	}{
		{"nothing", "", guard.Redact, "", "", 0, ""},
		{"clean", "a b c", guard.Redact, "a b c", "", 0, ""},
		{"held at the end", "a hus", guard.Redact, "a hus", "", 0, ""},
		{"any bytes", "\x00\xff\xe2\x82 hush\xe2", guard.Redact, "\x00\xff\xe2\x82 [redacted:word]\xe2",
			`{"guard":"words","rule":"word","start":5,"end":9,"verdict":"redact","fingerprint":"0123456789abcdef"}` + "\n", 0, ""},
		{"redact", "say hush!", guard.Redact, "say [redacted:word]!", found + `redact","fingerprint":"0123456789abcdef"}` + "\n", 0, ""},
		{"allow", "say hush!", guard.Allow, "say hush!", found + `allow","fingerprint":"0123456789abcdef"}` + "\n", 0, ""},
		{"deny", "say hush!", guard.Deny, "say ", found + `deny","fingerprint":"0123456789abcdef"}` + "\n", exitBlocked,
			"stdin: stopped at byte 4 by rule word"},
		{"a guard fails", "say crash", guard.Redact, "say cras",
			`{"guard":"words","rule":"guard_failed","start":8,"end":8,"verdict":"deny","fingerprint":""}` + "\n", exitBlocked,
			"stdin: stopped at byte 8: the guard failed: met its match"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, rep bytes.Buffer
			err := filterText(strings.NewReader(test.in), &out, wordFilter(test.verdict), report{w: &rep})
			checkOutcome(t, err, test.code, test.message)
			if out.String() != test.out {
				t.Errorf("out %q, want %q", out.String(), test.out)
			}
			if rep.String() != test.rep {
				t.Errorf("report %q, want %q", rep.String(), test.rep)
			}
		})
	}
}

func checkOutcome(t *testing.T, err error, code int, message string) {
	t.Helper()
	var said bytes.Buffer
	got := exitDone
	if err != nil {
		got = voice{&said}.fail(err)
	}
	if got != code || message != "" && !strings.Contains(said.String(), message) {
		t.Errorf("exit %d, said %q; want %d, %q", got, said.String(), code, message)
	}
}

// TestFilterTextAtOnce: what is settled is out before more is read.
func TestFilterTextAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- filterText(inR, outW, wordFilter(guard.Redact), report{}) }()
	for _, turn := range []struct{ in, out string }{
		{"a", "a"}, {" hus", " "}, {"e", "huse"}, {" hush", " [redacted:word]"},
	} {
		if _, err := io.WriteString(inW, turn.in); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(turn.out))
		if _, err := io.ReadFull(outR, got); err != nil || string(got) != turn.out {
			t.Fatalf("after %q: %q, %v; want %q", turn.in, got, err, turn.out)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestFilterTextFailures: when reading fails, what is held is decided; when the
// report or stdout fails, nothing that depends on it is shown.
func TestFilterTextFailures(t *testing.T) {
	gone := errors.New("gone")
	var out bytes.Buffer

	in := io.MultiReader(strings.NewReader("a hus"), iotest.ErrReader(gone))
	err := filterText(in, &out, wordFilter(guard.Redact), report{})
	checkOutcome(t, err, exitError, "stoplog: reading stdin: gone\n")
	if out.String() != "a hus" {
		t.Errorf("out %q: what was held is not decided", out.String())
	}

	out.Reset()
	err = filterText(strings.NewReader("say hush!"), &out, wordFilter(guard.Redact), report{w: failingWriter{gone}, name: "r.ndjson"})
	checkOutcome(t, err, exitError, "stoplog: writing the report r.ndjson: gone\n")
	if out.Len() > 0 {
		t.Errorf("out %q: it was shown before it was in the report", out.String())
	}

	err = filterText(strings.NewReader("say"), failingWriter{gone}, wordFilter(guard.Redact), report{})
	checkOutcome(t, err, exitError, "stoplog: writing stdout: gone\n")
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestFilterNDJSON(t *testing.T) {
	const finding = `{"guard":"words","rule":"word","start":2,"end":6,"verdict":`
	tests := []struct {
		name, in string
		verdict  guard.Verdict
		out, rep string
		code     int
		message  string
	}{
		{name: "nothing", verdict: guard.Redact, out: `{"done":true,"text":"","findings":[],"bytes":0}` + "\n"},
		{
			name: "redact over lines, and no line feed at the end", verdict: guard.Redact,
			in: `{"text":"a hu"}` + "\n" + `{"text":"sh <b> hu"}`,
			out: `{"text":"a ","findings":[]}
{"text":"[redacted:word] <b> ","findings":[` + finding + `"redact","fingerprint":"0123456789abcdef"}]}
{"done":true,"text":"hu","findings":[],"bytes":13}
`,
			rep: finding + `"redact","fingerprint":"0123456789abcdef"}` + "\n",
		},
		{
			name: "deny, and the rest is drained", verdict: guard.Deny,
			in: `{"text":"a "}` + "\n" + `{"text":"hush b"}` + "\n" + `{"text":"hush"}` + "\nno JSON\n",
			out: `{"text":"a ","findings":[]}
{"text":"","findings":[` + finding + `"deny","fingerprint":"0123456789abcdef"}],"blocked":{"rule":"word","start":2}}
{"text":"","findings":[]}
{"text":"","findings":[]}
{"done":true,"text":"","findings":[],"bytes":8}
`,
			rep:  finding + `"deny","fingerprint":"0123456789abcdef"}` + "\n",
			code: exitBlocked, message: "stoplog: stdin: stopped at byte 2 by rule word\n",
		},
		{
			name: "a line that is no JSON, after what is held", verdict: guard.Redact,
			in: `{"text":"a hu"}` + "\n" + `{"text":"é",}` + "\n" + `{"text":"b"}` + "\n",
			out: `{"text":"a ","findings":[]}
{"done":true,"text":"hu","findings":[],"bytes":4}
`,
			code: exitError, message: "stdin:2:12: a line has the member \"text\" and no other\n",
		},
		{
			name: "half a surrogate", verdict: guard.Redact,
			in: `{"text":"\ud83d"}` + "\n" + `{"text":"\ude00\ud83d"}` + "\n",
			out: `{"text":"","findings":[]}
{"text":"😀","findings":[]}
{"done":true,"text":"` + "\uFFFD" + `","findings":[],"bytes":7}
`,
		},
		{
			name: "a blank line", verdict: guard.Redact, in: "\n",
			out:  `{"done":true,"text":"","findings":[],"bytes":0}` + "\n",
			code: exitError, message: "stdin:1:1: the line ends, and '{' is missing\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, rep bytes.Buffer
			err := filterNDJSON(strings.NewReader(test.in), &out, wordFilter(test.verdict), report{w: &rep})
			checkOutcome(t, err, test.code, test.message)
			if out.String() != test.out {
				t.Errorf("out:\n%s\nwant:\n%s", out.String(), test.out)
			}
			if rep.String() != test.rep {
				t.Errorf("report:\n%s\nwant:\n%s", rep.String(), test.rep)
			}
		})
	}
}

// TestFilterNDJSONLongLine: a line longer than the reader's buffer is one line;
// one without an end is not held for ever.
func TestFilterNDJSONLongLine(t *testing.T) {
	long := strings.Repeat("ab ", pieceSize)
	var out bytes.Buffer
	err := filterNDJSON(strings.NewReader(`{"text":"`+long+`"}`), &out, wordFilter(guard.Redact), report{})
	checkOutcome(t, err, exitDone, "")
	if want := `{"text":"` + long + `","findings":[]}` + "\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%d bytes out, want a first line of %d", out.Len(), len(want))
	}

	endless := io.MultiReader(strings.NewReader(`{"text":"`), endlessReader{})
	err = filterNDJSON(endless, io.Discard, wordFilter(guard.Redact), report{})
	checkOutcome(t, err, exitError, "stoplog: reading line 1 of stdin: more than 67108864 bytes\n")
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestFilterNDJSONAnswersLineByLine: a line is answered before the next is read.
func TestFilterNDJSONAnswersLineByLine(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- filterNDJSON(inR, outW, wordFilter(guard.Redact), report{}) }()
	for range 3 {
		if _, err := io.WriteString(inW, `{"text":"a"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		const want = `{"text":"a","findings":[]}` + "\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(outR, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	inW.Close()
	outR.Close()
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, want that stdout is closed", err)
	}
}

// TestMistakeInALineIsNotShown: the line itself may hold a secret.
func TestMistakeInALineIsNotShown(t *testing.T) {
	err := filterNDJSON(strings.NewReader(`{"text":"hush"`), io.Discard, wordFilter(guard.Redact), report{})
	var list diag.List
	if !errors.As(err, &list) || len(list) != 1 || list[0].Source != "" {
		t.Errorf("%#v, want one diagnostic without its source line", err)
	}
}
