package rules_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// streamCase is a fault that another system shipped, as text cut into deltas.
type streamCase struct {
	ID          string
	Deltas      []string
	Never, Keep []string
}

// streamCases reads the cases that are shared between projects, beside this
// repository.
func streamCases(t *testing.T) []streamCase {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "cases", "stream.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared cases are not beside this repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []streamCase
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c streamCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// members are the three packs as the built-in guards have them.
func members(t *testing.T, v guard.Verdict) []guard.Member {
	var out []guard.Member
	for name, packs := range map[string][]string{"secrets": {"secrets", "credentials"}, "pii": {"pii"}} {
		rs, err := rules.Select(packs...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := match.Compile(rs, match.Options{Name: name, Key: []byte("key of the tests"), Verdict: v})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, guard.Member{Guard: e})
	}
	return out
}

// TestStreamCases holds every shared case, at its own cuts, byte by byte and
// whole: nothing of what must never leave does, at any moment, the rest is kept,
// and the same text leaves each time. With deny, it ends where the first
// finding starts.
func TestStreamCases(t *testing.T) {
	cases := streamCases(t)
	for _, c := range cases {
		text := strings.Join(c.Deltas, "")
		var bytewise []string
		for i := range len(text) {
			bytewise = append(bytewise, text[i:i+1])
		}
		cuts := map[string][]string{"own": c.Deltas, "bytewise": bytewise, "whole": {text}}
		t.Run(c.ID, func(t *testing.T) {
			redacted, _ := play(t, members(t, guard.Redact), c, cuts)
			for _, keep := range c.Keep {
				if !strings.Contains(redacted, keep) {
					t.Errorf("redacted: %q is not in %q", keep, redacted)
				}
			}
			if strings.ContainsRune(redacted, '\ufffd') {
				t.Errorf("redacted: U+FFFD in %q", redacted)
			}
			denied, stop := play(t, members(t, guard.Deny), c, cuts)
			switch first := strings.Index(redacted, "[redacted:"); {
			case first < 0 && (denied != text || stop != nil):
				t.Errorf("denied: %q leaves, %+v", denied, stop)
			case first >= 0 && (denied != text[:first] || stop == nil || stop.At != int64(first)):
				t.Errorf("denied: %q leaves, %+v, want %q", denied, stop, text[:first])
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

// play runs a case in each of the cuts and returns what leaves, the same each
// time.
func play(t *testing.T, members []guard.Member, c streamCase, cuts map[string][]string) (string, *guard.Stop) {
	t.Helper()
	var first string
	var stop *guard.Stop
	for i, name := range slices.Sorted(maps.Keys(cuts)) {
		f := guard.NewFilter(guard.NewChain(guard.Options{}, members...).Open(t.Context(), guard.Channel{}))
		var out []byte
		check := func() {
			for _, never := range c.Never {
				if strings.Contains(string(out), never) {
					t.Fatalf("cut %s: %q has left in %q", name, never, out)
				}
			}
		}
		for _, delta := range cuts[name] {
			out, _ = f.Write(out, []byte(delta))
			check()
		}
		out, step := f.Close(out)
		check()
		if i == 0 {
			first, stop = string(out), step.Stop
		} else if string(out) != first {
			t.Fatalf("cut %s: %q leaves, in another %q", name, out, first)
		}
	}
	return first, stop
}
