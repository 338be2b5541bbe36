package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

const examples = "../../examples/cassettes/"

// example is one of the project's own cassettes and what is in it.
type example struct {
	file, model string
	paths       []string
	finds       []string // the rules that find something in the answer, in order
	cut         bool
}

var exampleList = []example{
	{"clean", "demo-clean", []string{chat, messages}, nil, false},
	{"cut", "demo-cut", []string{chat, messages}, []string{"url-credentials"}, true},
	{"denied", "demo-denied", []string{chat, messages}, []string{"us-ssn", "credit-card"}, false},
	{"secrets-anthropic", "demo-secrets", []string{messages}, leaked, false},
	{"secrets-openai", "demo-secrets", []string{chat}, leaked, false},
	{"tool", "demo-tool", []string{chat, messages}, []string{"openai-api-key", "stripe-access-token"}, false},
}

var leaked = []string{"anthropic-api-key", "aws-access-token", "github-pat", "authorization-header", "url-credentials"}

// TestExamples asks each example streamed and not, and reads the answers as a
// client would: they are in the provider's form, say the same, and hold what
// they are there to show.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "*.cassette")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range exampleList {
		want = append(want, examples+e.file+".cassette")
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Fatalf("the examples are not those that are tested:\n%s", diff)
	}
	c, err := Open(files...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exampleList {
		for _, path := range e.paths {
			t.Run(e.file+path, func(t *testing.T) { testExample(t, c, e, path) })
		}
	}
	resp, err := c.RoundTrip(request(t, http.MethodGet, "/v1/models", ""))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the list of models: %v, %v", resp, err)
	}
	if unused := c.Unused(); len(unused) > 0 {
		t.Errorf("nobody asked for %s", unused)
	}
}

func testExample(t *testing.T, c *Cassette, e example, path string) {
	stream := exchangeOf(t, c, path, fmt.Sprintf(`{"model":%q,"stream":true}`, e.model), "text/event-stream; charset=utf-8", e.cut)
	body := exchangeOf(t, c, path, fmt.Sprintf(`{"model":%q}`, e.model), "application/json", e.cut)
	streamed, whole := readStream(t, path, stream, e.cut), readBodyOf(t, path, body, e.cut)
	deltas := streamed.deltas
	streamed.deltas = nil
	switch {
	case e.cut && (streamed.Text == "" || !strings.HasPrefix(whole.Text, streamed.Text)):
		t.Errorf("streamed before the cut:\n%s\nis not the beginning of what comes unstreamed:\n%s", streamed.Text, whole.Text)
	case !e.cut && !cmp.Equal(whole, streamed, cmp.AllowUnexported(said{})):
		t.Errorf("-unstreamed +streamed:\n%s", cmp.Diff(whole, streamed, cmp.AllowUnexported(said{})))
	}

	found, secrets := find(t, streamed.Thought+"\n"+streamed.Text+"\n"+streamed.Args)
	if !slices.Equal(found, e.finds) {
		t.Errorf("the rules find %q, want %q, in:\n%s\n%s", found, e.finds, streamed.Text, streamed.Args)
	}
	for i, secret := range secrets {
		if !isExample(t, found[i], secret) {
			t.Errorf("%s: the secret is not from the rule's own examples", found[i])
		}
		if slices.ContainsFunc(deltas, func(d string) bool { return strings.Contains(d, secret) }) {
			t.Errorf("%s: one delta holds the whole secret", found[i])
		}
	}
}

// exchangeOf gives the bytes of an answer, cut off or not.
func exchangeOf(t *testing.T, c *Cassette, path, body, contentType string, cut bool) []byte {
	t.Helper()
	resp, err := c.RoundTrip(request(t, http.MethodPost, path, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != contentType {
		t.Fatalf("status %d, content type %q", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	data, err := io.ReadAll(resp.Body)
	if cut != errors.Is(err, io.ErrUnexpectedEOF) || !cut && err != nil {
		t.Fatalf("the answer ends with the error %v, cut is %v", err, cut)
	}
	return data
}

var everyRule = sync.OnceValues(func() (*match.Engine, error) {
	all, err := rules.Select(rules.Names()...)
	if err != nil {
		return nil, err
	}
	return match.Compile(all, match.Options{Name: "all"})
})

// find gives the rules that find something in the text, and the found.
func find(t *testing.T, text string) (ids, found []string) {
	t.Helper()
	engine, err := everyRule()
	if err != nil {
		t.Fatal(err)
	}
	screen := engine.Open(t.Context(), guard.Channel{})
	early, err := screen.Write([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	findings := slices.Clone(early.Findings)
	late, err := screen.Close()
	if err != nil {
		t.Fatal(err)
	}
	end := int64(0) // overlapping findings have the name of the first
	for _, f := range append(findings, late.Findings...) {
		if f.Start >= end {
			ids, found, end = append(ids, f.Rule), append(found, text[f.Start:f.End]), f.End
		}
	}
	return ids, found
}

func isExample(t *testing.T, id, secret string) bool {
	t.Helper()
	selected, err := rules.Select(id)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(selected[0].Match, func(text string) bool { return strings.Contains(text, secret) })
}

// TestExamplesHoldNoSecretWhole: a scanner of source code, or a person's grep,
// finds none on a line of these files: secrets are cut in unstreamed bodies too.
func TestExamplesHoldNoSecretWhole(t *testing.T) {
	for _, e := range exampleList {
		data, err := os.ReadFile(examples + e.file + ".cassette")
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			ids, found := find(t, string(line))
			for j, id := range ids {
				if isExample(t, id, found[j]) {
					t.Errorf("%s.cassette:%d: %s", e.file, i+1, id)
				}
			}
		}
	}
}

// projection gives a JSON document's strings and keys, as guards see them.
func projection(t *testing.T, document string) string {
	t.Helper()
	if document == "" {
		return ""
	}
	var b strings.Builder
	for d := json.NewDecoder(strings.NewReader(document)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in the arguments %s", err, document)
		}
		fmt.Fprintf(&b, "%v\n", token)
	}
}
