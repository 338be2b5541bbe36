package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLibrary runs the program of docs/library.md, which has the official SDKs
// governed in its own process, against a provider on loopback that says a secret
// in both protocols; and the page has that program, letter by letter.
func TestLibrary(t *testing.T) {
	source, err := os.ReadFile("library/main.go")
	page, err2 := os.ReadFile("../docs/library.md")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(source)+"```\n") {
		t.Error("docs/library.md does not have library/main.go as it is")
	}

	p := &provider{}
	server := httptest.NewServer(p)
	defer server.Close()
	dir := t.TempDir()
	asks := exec.Command(libraryProgram)
	asks.Dir = dir
	asks.Env = append(os.Environ(), "OPENAI_URL="+server.URL+"/v1", "OPENAI_KEY="+madeUpKey, "ANTHROPIC_URL="+server.URL, "ANTHROPIC_KEY="+madeUpKey)
	said, err := asks.CombinedOutput()
	const line = "Clone it with the token [redacted:github-pat] over https.\n"
	if err != nil || string(said) != line+line {
		t.Errorf("it says, with %v:\n%s", err, said)
	}
	if !strings.Contains(string(page), "\n"+line+line) {
		t.Error("docs/library.md has other output")
	}
	if want := "/v1/chat/completions Bearer " + madeUpKey + "\n/v1/messages " + madeUpKey + "\n"; p.asked() != want {
		t.Errorf("the provider was asked\n%swant\n%s", p.asked(), want)
	}
	records, err := os.ReadFile(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(records), `"rule":"github-pat"`); n != 2 {
		t.Errorf("%d findings of the token are recorded:\n%s", n, records)
	}
	for _, never := range []string{githubToken[4:12], madeUpKey} {
		if strings.Contains(string(records), never) {
			t.Errorf("%q is recorded", never)
		}
	}
	count(t)
}

// provider says a secret, streamed in OpenAI's protocol and whole in Anthropic's.
type provider struct {
	mu   sync.Mutex
	seen strings.Builder // a path and a key for each question
}

func (p *provider) asked() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fmt.Fprintln(&p.seen, r.URL.Path, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	p.mu.Unlock()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/v1/messages" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Clone it with the token %s over https."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":8,"output_tokens":30}}`, githubToken)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range []string{"Clone it with the token ", githubToken[:9], githubToken[9:], " over https."} {
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", piece)
	}
	io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}
