package llm_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/llm"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// TestTranscripts reads testdata/*.txtar: what a provider answers, through the
// door, and what the loop is told of it. In the comment, `protocol:` says whose
// answer it is, `guard:` the verdict of the guard of secrets, if there is one,
// `ask:` what a user says, `status:` and `header:` are the answer's; @KEY@ is a
// key that the guard finds. The answer is cut into single bytes too: what the
// loop is told is the same.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(ar.Files) != 2 || ar.Files[0].Name != "answer" || ar.Files[1].Name != "told" {
				t.Fatal("want the files answer and told")
			}
			answer := strings.ReplaceAll(string(ar.Files[0].Data), "@KEY@", key)
			s := parse(t, strings.ReplaceAll(string(ar.Comment), "@KEY@", key))
			got := s.tell(t, answer)
			if bytewise := s.tell(t, strings.Split(answer, "")...); bytewise != got {
				t.Errorf("in single bytes:\n%s\nat once:\n%s", bytewise, got)
			}
			if *update {
				ar.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(ar.Files[1].Data); got != want {
				t.Errorf("told:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A scene is how a transcript is played.
type scene struct {
	protocol, guard, ask string
	status               int
	header               http.Header
}

func parse(t *testing.T, comment string) scene {
	t.Helper()
	s := scene{protocol: govern.OpenAI, ask: "hello", status: 200, header: kind("text/event-stream")}
	for line := range strings.Lines(comment) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "protocol":
			s.protocol = value
		case "guard":
			s.guard = value
		case "ask":
			s.ask = value
		case "status":
			var err error
			if s.status, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
			s.header.Set("Content-Type", "application/json")
		case "header":
			name, value, _ := strings.Cut(value, ": ")
			s.header.Set(name, value)
		}
	}
	return s
}

func (s scene) tell(t *testing.T, pieces ...string) string {
	t.Helper()
	up := answers(s.status, s.header, pieces...)
	c := &llm.Client{Protocol: s.protocol, Transport: door(t, s.protocol, up, secrets(t, s.guard)...)}
	return told(t.Context(), c, llm.Request{Model: "m", Messages: []llm.Message{llm.User{Text: s.ask}}})
}
