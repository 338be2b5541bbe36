package agent_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	"github.com/stoplog/stoplog/internal/keep"
	"github.com/stoplog/stoplog/internal/requestlog"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/seal"
	"github.com/stoplog/stoplog/internal/signal"
)

// withheldTurn starts a turn whose model says a key, of which a guard says that a
// person must approve it.
func withheldTurn(t *testing.T, sealed bool) *world {
	t.Helper()
	w := &world{T: t, provider: &provider{answers: []string{`{"content":"the key is "}` + "\n" + `{"content":"` + key[:9] + `"}` + "\n" + `{"content":"` + key[9:] + `, ann"}`}}}
	var options sqlite.Options
	if sealed {
		ring, err := seal.Parse([]byte(seal.NewKey()))
		if err != nil {
			t.Fatal(err)
		}
		options.Seal = ring
	}
	var err error
	if w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	set, err := rules.Select("secrets")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(set, match.Options{Name: "secrets", Verdict: guard.RequireApproval})
	if err != nil {
		t.Fatal(err)
	}
	log := requestlog.New(w.store)
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid/v1", Transport: w.provider}},
		Profiles:  []govern.Profile{{Name: "default", Upstreams: []string{"u"}, Models: []string{"m"}, Output: []guard.Member{{Guard: g}}}},
		Record:    log.Record,
		Approvals: &keep.Answers{Store: w.store, Tenant: journal.DefaultTenant, IDs: journal.NewIDs(time.Now, rand.Reader), Leave: log.Leave,
			Expire: func(string) time.Duration { return time.Hour }},
	})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agent.New(door, w.store, t.TempDir(), agent.Profile{
		Name: "default", Protocol: govern.OpenAI, Model: "m", Evaluator: evaluator, Effective: json.RawMessage(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.engine, err = engine.New(engine.Options{Store: w.store, Agents: agents, Host: "here"}); err != nil {
		t.Fatal(err)
	}
	log.Hold(w.engine.Worker())
	t.Cleanup(func() {
		if err := w.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	first, err := agents.Task(chat.Start{Task: "tell", By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if w.ref, err = w.engine.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	return w
}

// A withheld answer is a pause of its run: with a yes the run goes on with all of
// it, the model not asked again; with a no it is blocked, and the answer destroyed.
func TestWithheldAnswerPauses(t *testing.T) {
	for _, state := range []journal.QuestionState{journal.QuestionApproved, journal.QuestionDenied} {
		w := withheldTurn(t, true)
		w.comesTo(journal.WaitingApproval)
		list, err := w.store.Questions(t.Context(), journal.QuestionQuery{Tenant: w.ref.Tenant, Run: w.ref.Run})
		if err != nil || len(list) != 1 || list[0].About != run.AboutAnswer.String() {
			t.Fatalf("the questions are %+v, %v", list, err)
		}
		if _, err := approval.AnswerOf(t.Context(), w.store, w.ref); err != nil {
			t.Errorf("the answer is not kept: %v", err)
		}
		if _, err := w.engine.Decide(t.Context(), w.ref.Tenant, approval.Decision{ID: list[0].ID, Digest: list[0].Digest, State: state, By: "bea"}); err != nil {
			t.Fatal(err)
		}
		status, said := journal.Completed, "the key is "+key+", ann"
		if state == journal.QuestionDenied {
			status, said = journal.Blocked, "the key is "
		}
		w.comesTo(status)
		shown := ""
		for r, err := range w.store.Events(t.Context(), w.ref, 0) {
			if err != nil {
				t.Fatal(err)
			}
			var s journal.Released
			if r.Kind == journal.TextReleased && r.Decode(&s) == nil {
				shown += s.Text
			}
		}
		if !strings.HasPrefix(shown, said) || state == journal.QuestionDenied && strings.Contains(shown, key[:9]) {
			t.Errorf("%s: it showed %q, want %q", state, shown, said)
		}
		if n := len(w.provider.asked); n != 1 {
			t.Errorf("%s: the model was asked %d times", state, n)
		}
		if _, err := approval.AnswerOf(t.Context(), w.store, w.ref); (err == nil) != (state == journal.QuestionApproved) {
			t.Errorf("%s: of the kept answer: %v", state, err)
		}
	}
}

// Without a key nobody can let through what is not kept: the run is blocked.
func TestWithheldAnswerWithoutAKey(t *testing.T) {
	w := withheldTurn(t, false)
	w.comesTo(journal.Blocked)
	if row, err := w.store.Run(t.Context(), w.ref); err != nil || row.Reason != "guard_denied" {
		t.Errorf("the run is %s (%v), want guard_denied", row.Reason, err)
	}
}
