package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// streamCase is a fault that another system shipped, as a text and its cuts.
type streamCase struct {
	ID     string
	Deltas []string
	Never  []string // must not leave
	Keep   []string // must leave, in redact
}

// TestGuardCases puts every known fault through the command, at its own cuts,
// byte by byte, whole, and as ndjson: the same text comes out, and the same
// report.
func TestGuardCases(t *testing.T) {
	f, err := os.Open("../../../shared/cases/stream.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared beside the repository")
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a key that this test made up"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for dec := json.NewDecoder(f); dec.More(); cases++ {
		var c streamCase
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		for _, verdict := range []string{"redact", "deny"} {
			t.Run(c.ID+"/"+verdict, func(t *testing.T) {
				args := []string{"guard", "--verdict", verdict, "--key", key}
				text := strings.Join(c.Deltas, "")
				want := guarded(t, args, strings.NewReader(text))
				if verdict == "redact" {
					want.check(t, c)
				}
				for _, never := range c.Never {
					if strings.Contains(want.text, never) {
						t.Errorf("out %q, which has %q", want.text, never)
					}
				}
				for name, in := range map[string]io.Reader{
					"own cuts":     &pieces{slices.Clone(c.Deltas)},
					"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
				} {
					if got := guarded(t, args, in); got != want {
						t.Errorf("%s: %+v, whole: %+v", name, got, want)
					}
				}
				if got := guardedNDJSON(t, args, c.Deltas); got != want {
					t.Errorf("ndjson: %+v, text: %+v", got, want)
				}
			})
		}
	}
	if cases == 0 {
		t.Error("no case was read")
	}
}

// outcome is what a person has of a run of the command.
type outcome struct {
	code       int
	text, talk string
	report     string
}

func (o outcome) check(t *testing.T, c streamCase) {
	t.Helper()
	if o.code != exitDone || o.talk != "" {
		t.Errorf("exit %d, said %q", o.code, o.talk)
	}
	for _, keep := range c.Keep {
		if !strings.Contains(o.text, keep) {
			t.Errorf("out %q, which lacks %q", o.text, keep)
		}
	}
}

func guarded(t *testing.T, args []string, in io.Reader) (o outcome) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report")
	var out, talk bytes.Buffer
	o.code = run(append(args[:len(args):len(args)], "--report", name), in, &out, &talk, os.Getenv)
	lines, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	o.text, o.talk, o.report = out.String(), talk.String(), string(lines)
	return o
}

// guardedNDJSON runs the command with a line for each delta, checks that it
// answers each, and joins the answers.
func guardedNDJSON(t *testing.T, args, deltas []string) outcome {
	t.Helper()
	var in bytes.Buffer
	for _, d := range deltas {
		if err := newEncoder(&in).Encode(map[string]string{"text": d}); err != nil {
			t.Fatal(err)
		}
	}
	o := guarded(t, append(args[:len(args):len(args)], "--format", "ndjson"), &in)
	var text strings.Builder
	answers := 0
	for lines := bufio.NewScanner(strings.NewReader(o.text)); lines.Scan(); answers++ {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Done != (answers == len(deltas)) {
			t.Errorf("answer %d of %d is done: %v", answers, len(deltas), r.Done)
		}
		text.WriteString(r.Text)
	}
	o.text = text.String()
	return o
}

// pieces is a reader that gives one piece a call.
type pieces struct{ rest []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}
