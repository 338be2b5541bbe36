package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withholding is a gateway that asks a person before an answer may have one kind
// of token, and takes another kind out.
const withholding = `version: 1
seal: {key: "file:SEAL"}
upstreams:
  openai:    {protocol: openai, cassettes: ["CASSETTES/openai-*.cassette", "CASSETTES/responses-*.cassette"], pace: none, zone: local}
  anthropic: {protocol: anthropic, cassettes: ["CASSETTES/anthropic-*.cassette"], pace: none, zone: local}
guards:
  tokens:  {rules: [github-pat], verdict: require_approval}
  secrets: {rules: [stripe-access-token], verdict: redact}
profiles:
  default:
    extends: builtin
    upstream: [openai, anthropic]
    models: ["*"]
    output: {tokens: enforce, secrets: enforce}
gateway: {openai: default, anthropic: default}
`

var approvalID = regexp.MustCompile(`"approval":"(apr_[0-9a-z]{26})"`)

// TestWithheld has each client ask for an answer that is withheld. It ends as an
// answer that was stopped; a person approves; and the client that asks the same
// again has all of it but what is redacted, as has whoever fetches it.
func TestWithheld(t *testing.T) {
	seal := filepath.Join(t.TempDir(), "stoplog.seal")
	if said, err := exec.Command(program, "seal-key", "--to", seal).CombinedOutput(); err != nil {
		t.Fatalf("stoplog seal-key: %v\n%s", err, said)
	}
	g := serve(t, withCassettes(t, strings.ReplaceAll(withholding, "SEAL", seal), "cassettes"))
	stopped := map[string]string{"openai": "content_filter", "responses": "content_filter", "anthropic": "refusal"}
	ended := map[string]string{"openai": "stop", "responses": "completed", "anthropic": "end_turn"}
	for _, c := range clients {
		for _, stream := range []bool{false, true} {
			t.Run(c.name+"/"+mode(stream), func(t *testing.T) {
				q := question{Text: "How do I clone the repository and charge a card?", Stream: stream}
				first, seen := askWith(t, g, c, q)
				if len(seen) != 1 {
					t.Fatalf("the client asked %d times", len(seen))
				}
				c.sees(t, first, answer{
					Text: "Clone it with the token ", Finish: stopped[c.format], Input: 17, Output: 88,
					Policy: &policy{Status: "guardrail_approval_required", Guard: "tokens", Rule: "github-pat"},
				})
				told := approvalID.FindSubmatch(seen[0].Answer)
				if told == nil || strings.Contains(string(seen[0].Answer), githubToken[4:12]) {
					t.Fatalf("on the wire:\n%s", seen[0].Answer)
				}
				id := string(told[1])
				approve(t, g, id)

				q.Headers = map[string]string{"Stoplog-Approval": id}
				second, again := askWith(t, g, c, q)
				c.sees(t, second, answer{
					Text:   "Clone it with the token " + githubToken + " over https.\nFor the card use [redacted:stripe-access-token]; it works at once. Both go into the keychain.",
					Finish: ended[c.format], Input: 17, Output: 88,
					Policy: &policy{Status: "redacted", Guard: "secrets", Rule: "stripe-access-token"},
				})
				status, fetched := fetch(t, g.url+"/v1/approvals/"+id+"/answer", seen[0].Header)
				if status != http.StatusOK || fetched != string(again[0].Answer) {
					t.Errorf("GET …/answer: status %d, not what the client was sent again:\n%s", status, fetched)
				}
				if !t.Failed() {
					checks.Add(1)
				}
			})
		}
	}
}

// sees compares what a client tells its user with what it should, but for what no
// two runs have alike.
func (c client) sees(t *testing.T, got, want answer) {
	t.Helper()
	got.Deltas = 0
	if got.Policy != nil {
		got.Policy.Run = ""
	}
	if c.own {
		want.Policy = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client sees (-want +got):\n%s", diff)
	}
}

// approve says yes to what an approval shows, as a person with a browser does.
func approve(t *testing.T, g *gateway, id string) {
	t.Helper()
	url := g.url + "/v1/approvals/" + id
	status, text := fetch(t, url, nil)
	var asked struct{ Digest string }
	if err := json.Unmarshal([]byte(text), &asked); err != nil || status != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v: %s", url, status, err, text)
	}
	if status, text := post(t, url+"/approve", `{"digest":"`+asked.Digest+`","by":"bea"}`, nil); status != http.StatusOK {
		t.Fatalf("approve %s: status %d: %s", id, status, text)
	}
}

// fetch reads an address with the keys of a client's request.
func fetch(t *testing.T, url string, keys http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if value := keys.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
