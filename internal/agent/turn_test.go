package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/agent"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/signal"
)

// key is a made-up key that the rule aws-access-token finds.
const key = "AK" + "IA" + "2Q7XN4RZ6LTVWB3K"

// provider answers each request with the next of its answers, and keeps what it
// was asked.
type provider struct {
	mu      sync.Mutex
	answers []string // deltas, as JSON, a line each
	asked   []string
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.asked)
	p.asked = append(p.asked, string(body))
	if n >= len(p.answers) {
		return nil, fmt.Errorf("there is no answer %d", n+1)
	}
	var stream bytes.Buffer
	for delta := range strings.Lines(p.answers[n]) {
		fmt.Fprintf(&stream, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", strings.TrimSpace(delta))
	}
	stream.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(&stream), Request: r,
	}, nil
}

// world is one turn, governed: a real door, journal and folder, and a provider
// that says what the test has it say.
type world struct {
	*testing.T
	store    *sqlite.Store
	engine   *engine.Engine
	provider *provider
	ref      journal.Ref
}

// turn starts a turn under a profile in which secrets are redacted both ways,
// list_dir is denied, and read_file needs approval. The folder has a note with a
// key in it.
func turn(t *testing.T, task string, answers ...string) *world {
	t.Helper()
	w := &world{T: t, provider: &provider{answers: answers}}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note"), []byte("the key is "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	set, err := rules.Select("secrets")
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := match.Compile(set, match.Options{Name: "secrets", Verdict: guard.Redact})
	if err != nil {
		t.Fatal(err)
	}
	both := []guard.Member{{Guard: secrets, Mode: guard.Enforce}}
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid/v1", Transport: w.provider}},
		Profiles: []govern.Profile{{
			Name: "default", Upstreams: []string{"u"}, Models: []string{"m"}, Input: both, Output: both,
			Tools: map[string]govern.ToolRule{
				"read_file": govern.ToolRequireApproval, "list_dir": govern.ToolDeny,
			},
		}},
		Record: func(...govern.Record) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agent.New(door, w.store, dir, agent.Profile{
		Name: "default", Protocol: govern.OpenAI, Model: "m", Evaluator: evaluator, Output: both, Effective: json.RawMessage(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.engine, err = engine.New(engine.Options{Store: w.store, Agents: agents, Host: "here"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	first, err := agents.Task(chat.Start{Task: task, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if w.ref, err = w.engine.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	return w
}

// comesTo waits until the run has a status.
func (w *world) comesTo(status journal.Status) {
	w.Helper()
	for {
		row, err := w.store.Run(w.Context(), w.ref)
		if err != nil {
			w.Fatal(err)
		}
		if row.Status == status {
			return
		}
		if row.Status.Terminal() {
			w.Fatalf("the run is %s (%s), and was to be %s", row.Status, row.Reason, status)
		}
		if err := w.store.Await(w.Context(), w.ref, row.Tail.Seq); err != nil {
			w.Fatal(err)
		}
	}
}

// log is what the journal has of one kind of event, a payload a line.
func (w *world) log(kind string) string {
	w.Helper()
	var b strings.Builder
	for r, err := range w.store.Events(w.Context(), w.ref, 0) {
		if err != nil {
			w.Fatal(err)
		}
		if r.Kind == kind {
			fmt.Fprintf(&b, "%s\n", r.Payload)
		}
	}
	return b.String()
}

// A model is asked, calls and answers, and all of it passes the door: what it is
// sent, what it may call, what a tool says, and what it answers.
func TestTurnPassesTheDoor(t *testing.T) {
	w := turn(t, "what does the note say? My own key is "+key,
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"list_dir","arguments":"{\"path\":\".\"}"}}]}
{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"note\"}"}}]}`,
		`{"content":"It says `+key[:9]+`"}
{"content":"`+key[9:]+`, no more."}`)
	w.comesTo(journal.WaitingApproval)
	if ran := w.log("call_started"); ran != "" {
		t.Errorf("before anybody approved, these ran: %s", ran)
	}
	qs, err := w.store.Questions(t.Context(), journal.QuestionQuery{Tenant: w.ref.Tenant, Run: w.ref.Run, State: journal.QuestionPending})
	if err != nil || len(qs) != 1 || qs[0].Subject != "step 1, call 2: read_file" {
		t.Fatalf("it asks %+v, %v", qs, err)
	}
	d := approval.Decision{ID: qs[0].ID, Digest: qs[0].Digest, State: journal.QuestionApproved, By: "bea"}
	if _, err := w.engine.Decide(t.Context(), w.ref.Tenant, d); err != nil {
		t.Fatal(err)
	}
	w.comesTo(journal.Completed)

	const placeholder = "[redacted:aws-access-token]"
	if len(w.provider.asked) != 2 || !strings.Contains(w.provider.asked[0], placeholder) || strings.Contains(strings.Join(w.provider.asked, ""), key) {
		t.Errorf("the provider was sent %s", w.provider.asked)
	}
	if n := strings.Count(w.provider.asked[1], `"role":"user"`); n != 1 {
		t.Errorf("behind the pause the model was told of %d user turns", n)
	}
	if !strings.Contains(w.provider.asked[1], "refused by the tool rule for list_dir") {
		t.Errorf("of the denied call the model was told %s", w.provider.asked[1])
	}
	if got := w.log("call_finished"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the key is "+placeholder) {
		t.Errorf("the call came to %s", got)
	}
	if got := w.log("model_answered"); !strings.Contains(got, "It says "+placeholder+", no more.") {
		t.Errorf("the answers are %s", got)
	}
	if got := w.log("step_evaluated"); strings.Count(got, "\n") != 3 || strings.Count(got, `"not_built"`) < 3 {
		t.Errorf("the judgements are %s", got)
	}
}

// The words with which a run ends may name what somebody typed: they are judged
// like a model's.
func TestLastWordsAreJudged(t *testing.T) {
	w := turn(t, "read the note",
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"note\"}"}}]}`)
	w.comesTo(journal.WaitingApproval)
	if err := w.engine.Cancel(t.Context(), w.ref, key); err != nil {
		t.Fatal(err)
	}
	w.comesTo(journal.Cancelled)
	if got := w.log("ended"); !strings.Contains(got, "Stopped: [redacted:aws-access-token] cancelled the run.") {
		t.Errorf("it ended with %s", got)
	}
}
