package cassette

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/stoplog/stoplog/internal/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the golden files")

// TestReplay asks the cassettes of a transcript for what it says, in order, and
// writes down what comes.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			transcript, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, transcript)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(transcript)), string(txtar.Format(got))); diff != "" {
				t.Errorf("%s differs (-update rewrites it):\n%s", file, diff)
			}
		})
	}
}

// play gives the transcript with `want` and `unused` as they come.
func play(t *testing.T, transcript *txtar.Archive) *txtar.Archive {
	t.Helper()
	p := &parser{}
	for _, f := range transcript.Files {
		if strings.HasSuffix(f.Name, ".cassette") {
			p.parse(f.Name, f.Data)
		}
	}
	c, err := p.cassette()
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: transcript.Comment}
	var want bytes.Buffer
	for _, f := range transcript.Files {
		switch f.Name {
		case "requests":
			for line := range strings.Lines(string(f.Data)) {
				want.WriteString(ask(t, c, strings.TrimSuffix(line, "\n")))
			}
		case "want":
			f.Data = want.Bytes()
		case "unused":
			f.Data = []byte(strings.Join(append(c.Unused(), ""), "\n"))
		}
		got.Files = append(got.Files, f)
	}
	return got
}

// ask makes a request of a transcript's line and writes down the answer, a line
// for each piece.
func ask(t *testing.T, c *Cassette, line string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "> %s\n", line)
	method, rest, _ := strings.Cut(line, " ")
	path, body, _ := strings.Cut(rest, " ")
	resp, err := c.RoundTrip(request(t, method, path, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Fprintf(&b, "< %s%s\n", strings.TrimSpace(resp.Status), header(resp.Header))
	buf := make([]byte, 1<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			fmt.Fprintf(&b, "< %q\n", buf[:n])
		}
		if err != nil {
			fmt.Fprintf(&b, "< %v\n", err)
			return b.String()
		}
	}
}

func header(h http.Header) string {
	if h.Get("Content-Type") == "" {
		return ""
	}
	return ", " + h.Get("Content-Type")
}

func request(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://provider.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestErr parses each bad file and shows all that is said of it.
func TestErr(t *testing.T) {
	files, err := filepath.Glob("testdata/err/*.cassette")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Open(file)
			var list diag.List
			if !errors.As(err, &list) {
				t.Fatalf("got the error %v, want a list of diagnostics", err)
			}
			golden := strings.TrimSuffix(file, ".cassette") + ".out"
			if *update {
				if err := os.WriteFile(golden, []byte(list.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), list.Error()+"\n"); diff != "" {
				t.Errorf("%s differs (-update rewrites it):\n%s", golden, diff)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(); err == nil {
		t.Error("no files make a cassette")
	}
	if _, err := Open("testdata/nowhere.cassette"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
	_, err := Open("testdata/err/about.cassette", "testdata/err/source.cassette")
	var list diag.List
	if !errors.As(err, &list) || len(list) != 2 {
		t.Errorf("got %v, want what is wrong with either file", err)
	}
}

func TestParsePace(t *testing.T) {
	for word, want := range map[string]Pace{"none": None, "real": Real} {
		if got, err := ParsePace(word); err != nil || got != want {
			t.Errorf("%s: got %v, %v", word, got, err)
		}
	}
	if _, err := ParsePace("fast"); err == nil {
		t.Error("an unknown pace is accepted")
	}
}

// FuzzParse: whatever the bytes, the program does not fail, every complaint has
// a place, and what is accepted can be asked and read to its end.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/replay/*.txtar", "testdata/err/*.cassette"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
			for _, part := range txtar.Parse(data).Files {
				f.Add(part.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.cassette", data)
		if err != nil {
			var list diag.List
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("got %v, want a list of diagnostics", err)
			}
			for _, d := range list {
				if d.Line < 1 || d.Line > bytes.Count(data, []byte("\n"))+1 || d.Col < 1 || d.Message == "" {
					t.Errorf("a diagnostic without a place: %+v", d)
				}
			}
			return
		}
		for _, body := range []string{"", "{}", `{"model":"m","stream":true}`} {
			resp, err := c.RoundTrip(request(t, http.MethodPost, "/v1", body))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil && err != io.ErrUnexpectedEOF {
				t.Errorf("reading the body: %v", err)
			}
		}
	})
}
