package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The real-input tests hold one thing: what comes out is what went in, byte for
// byte, but for the spans that the report names.

// TestGuardLogs filters every log of this machine that can be read.
func TestGuardLogs(t *testing.T) {
	const most = 4 << 20 // of each
	files, total := 0, 0
	_ = filepath.WalkDir("/var/log", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what this user may not read is left out
		}
		in := readUpTo(name, most)
		if len(in) == 0 {
			return nil
		}
		files, total = files+1, total+len(in)
		checkGuarded(t, name, in)
		return nil
	})
	if files == 0 {
		t.Skip("/var/log has nothing to read")
	}
	t.Logf("%d logs, %d bytes", files, total)
}

// TestGuardBuildLog filters what the go command prints of a build.
func TestGuardBuildLog(t *testing.T) {
	log, err := exec.Command("go", "build", "-a", "-n", "net/http").CombinedOutput()
	if err != nil {
		t.Fatalf("go build -n: %v\n%s", err, log)
	}
	t.Logf("%d bytes", len(log))
	checkGuarded(t, "go build -n", log)
}

// TestGuardGoSource filters every fourth file of Go's own source, a few at a time,
// up to 30 MB.
func TestGuardGoSource(t *testing.T) {
	if testing.Short() {
		t.Skip("filters 30 MB")
	}
	const most, batch = 30 << 20, 1 << 20
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	var in []byte
	files, total, findings := 0, 0, 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if files++; files%4 != 0 {
			return nil
		}
		file, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		in = append(in, file...)
		total += len(file)
		if len(in) >= batch {
			findings += checkGuarded(t, "the files up to "+name, in)
			in = in[:0]
		}
		if total >= most {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	findings += checkGuarded(t, "the last files", in)
	if findings == 0 {
		t.Error("nothing was found, so nothing was shown")
	}
	t.Logf("%d bytes, %d findings", total, findings)
}

func readUpTo(name string, most int64) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return data
}

// checkGuarded filters in, and compares what comes out with what applying the
// report to it gives. It returns the number of findings.
func checkGuarded(t *testing.T, name string, in []byte) int {
	t.Helper()
	reportFile := filepath.Join(t.TempDir(), "report.ndjson")
	var out, talk bytes.Buffer
	code := run([]string{"guard", "--report", reportFile}, bytes.NewReader(in), &out, &talk, os.Getenv)
	if code != exitDone || talk.Len() > 0 {
		t.Fatalf("%s: exit %d, said %s", name, code, talk.String())
	}
	lines, err := os.ReadFile(reportFile)
	if err != nil {
		t.Fatal(err)
	}
	var found []finding
	for dec := json.NewDecoder(bytes.NewReader(lines)); dec.More(); {
		var f finding
		if err := dec.Decode(&f); err != nil {
			t.Fatalf("%s: the report: %v", name, err)
		}
		found = append(found, f)
	}
	if want := redact(in, found); !bytes.Equal(out.Bytes(), want) {
		at := 0
		for at < min(out.Len(), len(want)) && out.Bytes()[at] == want[at] {
			at++
		}
		t.Errorf("%s: %d bytes in, %d out, want %d; they differ at byte %d", name, len(in), out.Len(), len(want), at)
	}
	return len(found)
}

// redact does what a chain does, from its definition: findings that overlap are
// one span, and each span gives way to the name of the rule that starts it.
func redact(text []byte, found []finding) []byte {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b finding) int { return int(a.Start - b.Start) })
	var out []byte
	at := int64(0)
	for i := 0; i < len(found); {
		rule, start, end := found[i].Rule, found[i].Start, found[i].End
		for i++; i < len(found) && found[i].Start < end; i++ {
			end = max(end, found[i].End)
		}
		out = append(out, text[at:start]...)
		out = append(out, "[redacted:"+rule+"]"...)
		at = end
	}
	return append(out, text[at:]...)
}
