package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what clients send in testdata/sent")

// TestWhatClientsSend keeps the requests of each client, so that a new version
// of one shows what it does differently; and the gateway accepts each.
func TestWhatClientsSend(t *testing.T) {
	g := serve(t, withCassettes(t, strict, "cassettes"))
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			var sent bytes.Buffer
			for _, stream := range []bool{false, true} {
				_, seen := askThrough(t, g, c, scenarios[0].asks, stream)
				for _, e := range seen {
					if e.Status != http.StatusOK {
						t.Errorf("%s: status %d: %s", mode(stream), e.Status, e.Answer)
					}
					fmt.Fprintf(&sent, "# %s\n%s\n", mode(stream), transcript(e))
				}
			}
			file := filepath.Join("testdata", "sent", c.name+".golden")
			if *update {
				if err := os.WriteFile(file, sent.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), sent.String()); diff != "" {
				t.Errorf("the client sends other than in %s (-want +got; -update rewrites it):\n%s", file, diff)
			}
		})
	}
}

// transcript renders a request, but for what tells of the machine, the
// client's version or the length, and what node's own HTTP adds.
func transcript(e exchange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", e.Method, e.Path)
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		switch name {
		case "User-Agent", "Content-Length", "X-Stainless-Arch", "X-Stainless-Os",
			"X-Stainless-Package-Version", "X-Stainless-Runtime-Version",
			"Accept-Language", "Connection", "Sec-Fetch-Mode":
		default:
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(e.Header[name], ", "))
		}
	}
	return fmt.Sprintf("%s\n%s\n", b.String(), e.Body)
}

// TestAnthropicVersions asks as older and as newer Anthropic clients do: they
// differ in the version and in the header that brings the key. The answer is
// the same; a version that is not known is refused in the protocol.
func TestAnthropicVersions(t *testing.T) {
	g := serve(t, withCassettes(t, strict, "cassettes"))
	const asks = `{"model":"claude-opus-5-5","max_tokens":64,"messages":[{"role":"user","content":[{"type":"text","text":"What does a stoplog do?"}]}]}`
	var first string
	for _, version := range []string{"2023-06-01", "2026-10-21"} {
		for name, value := range map[string]string{"x-api-key": madeUpKey, "authorization": "Bearer " + madeUpKey} {
			status, body := post(t, g.url+"/anthropic/v1/messages", asks, map[string]string{"anthropic-version": version, name: value})
			if status != http.StatusOK {
				t.Errorf("version %s, key in %s: status %d: %s", version, name, status, body)
			}
			if first == "" {
				first = body
			}
			if body != first {
				t.Errorf("version %s, key in %s: answer %s, but before it was %s", version, name, body, first)
			}
		}
	}
	status, body := post(t, g.url+"/anthropic/v1/messages", asks, map[string]string{"anthropic-version": "2023-01-01", "x-api-key": madeUpKey})
	if status != http.StatusBadRequest || !strings.Contains(body, `"invalid_request_error"`) {
		t.Errorf("version 2023-01-01: status %d: %s", status, body)
	}
}

// TestUsageUnasked shows that usage, which the gateway asks the provider for on
// its own account, does not reach a client that did not ask for it.
func TestUsageUnasked(t *testing.T) {
	g := serve(t, withCassettes(t, strict, "cassettes"))
	const asks = `{"model":"gpt-4o-mini-2024-07-18","stream":true,"messages":[{"role":"user","content":"What does a stoplog do?"}]`
	for options, want := range map[string]bool{
		`}`: false,
		`,"stream_options":{"include_usage":false}}`: false,
		`,"stream_options":{"include_usage":true}}`:  true,
	} {
		status, body := post(t, g.url+"/openai/v1/chat/completions", asks+options, map[string]string{"authorization": "Bearer " + madeUpKey})
		if status != http.StatusOK || !strings.HasSuffix(body, "\n\ndata: [DONE]\n\n") {
			t.Fatalf("%s: status %d: %s", options, status, body)
		}
		if got := strings.Contains(body, `"completion_tokens":41`); got != want {
			t.Errorf("%s: usage reached the client: %v, want %v", options, got, want)
		}
	}
}

// post sends a JSON body with a plain client and returns the answer whole.
func post(t *testing.T, url, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%v after %s", err, answer)
	}
	return res.StatusCode, string(answer)
}
