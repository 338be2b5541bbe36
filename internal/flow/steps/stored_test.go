package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// sample is an event as it lies on disks.
type sample struct {
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload"`
}

// TestStored reads what was stored by the first version of each form, and writes it
// as it was. The samples stay for ever: -update adds those of kinds that have none.
func TestStored(t *testing.T) {
	const file = "testdata/stored/v1.jsonl"
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range bytes.Lines(b) {
		var s sample
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		have[s.Kind] = true
		e, err := Unmarshal(s.Kind, start, s.Payload)
		if err != nil {
			t.Errorf("%s: %v", s.Kind, err)
			continue
		}
		if kind, again, err := Marshal(e); err != nil || kind != s.Kind || !bytes.Equal(again, s.Payload) {
			t.Errorf("%s was\n%s\nand is\n%s (%v)", s.Kind, s.Payload, again, err)
		}
	}
	for kind := range kinds {
		if !have[kind] && !*update {
			t.Errorf("there is no sample of %s", kind)
		}
	}
	if *update {
		addSamples(t, file, have)
	}
}

// addSamples adds an event of each kind that has no sample, from the transcripts.
func addSamples(t *testing.T, file string, have map[string]bool) {
	t.Helper()
	var out []string
	names, err := fs.Glob(os.DirFS("testdata"), "*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r := &rehearsal{t: t, clock: start}
		r.play(string(text))
		for _, e := range r.events {
			if have[e.Kind()] {
				continue
			}
			have[e.Kind()] = true
			kind, payload, err := Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(sample{kind, payload})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(line)+"\n")
		}
	}
	slices.Sort(out)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Join(out, "")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a newer program wrote, what nobody wrote and what has a member too many is not
// read.
func TestNotStored(t *testing.T) {
	for payload, kind := range map[string]string{
		`{"v":2,"by":"w"}`:             "claimed",
		`{"by":"w"}`:                   "claimed",
		`{"v":1,"by":"w","more":true}`: "claimed",
		`{"v":1}`:                      "unheard_of",
		`[]`:                           "claimed",
	} {
		if e, err := Unmarshal(kind, start, []byte(payload)); err == nil {
			t.Errorf("%s %s was read as %+v", kind, payload, e)
		}
	}
}
