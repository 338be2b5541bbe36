package flow_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/sandbox"
)

const token = "ghp_aB3dE5gH7jaB3dE5gH7jaB3dE5gH7jaB3dE5"

// What a guard denies of a step's words ends the step, and none of it is seen.
func TestOutputIsDenied(t *testing.T) {
	w := newWorld(t)
	w.verdict = guard.Deny
	ended := false
	w.program = func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		fmt.Fprintf(s.Stdout, "before %s after\n", token)
		<-ctx.Done() // it goes on until it is ended
		ended = true
		return sandbox.Result{End: sandbox.Cancelled}, nil
	}
	s := w.comesTo(w.start(w.host(), "playbook: p\nsteps:\n  - {id: a, type: run, run: leak, on_fail: continue}\n  - {id: b, type: run, run: leak}\n"), journal.Blocked)
	w.expect(s, "a blocked, b skipped")
	if out := s.Steps[0].Result.Stdout; s.Then.Reason != run.ReasonGuardDenied || !ended || strings.Contains(out, "after") || strings.Contains(out, token) {
		t.Errorf("it came to %s, and said %q", s.Then.Reason, out)
	}
}

// What a pause shows of a command is judged too.
func TestPreviewIsScreened(t *testing.T) {
	w := newWorld(t)
	w.program = func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		fmt.Fprintf(s.Stdout, "with %s\n", token)
		return sandbox.Result{End: sandbox.Exited}, nil
	}
	ref := w.start(w.host(), "playbook: p\nsteps:\n  - {id: a, type: pause, reason: r, preview: show}\n")
	w.comesTo(ref, journal.WaitingApproval)
	if shown := string(w.question(ref).Shown); strings.Contains(shown, token) || !strings.Contains(shown, `"preview":"with `) {
		t.Errorf("it shows %s", shown)
	}
}

// A profile without an evaluator runs nothing to its end.
func TestNoEvaluator(t *testing.T) {
	w := newWorld(t)
	w.noEvaluator = true
	s := w.comesTo(w.start(w.host(), "playbook: p\nsteps:\n  - {id: a, type: run, run: say a}\n  - {id: b, type: run, run: say b}\n"), journal.Blocked)
	if s.Then.Reason != "signal_error" || w.programs() != "say a" {
		t.Errorf("it came to %s, and ran %s", s.Then.Reason, w.programs())
	}
}

// A decision counts for what was shown, by digest, once: a click that comes late for
// one turn of a pause decides nothing of the next.
func TestPauseBinds(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
playbook: p
max_iterations: 1
steps:
  - {id: confirm, type: pause, reason: go on}
  - {id: work, type: run, run: exit 1, on_fail: {goto: confirm}}
`)
	w.comesTo(ref, journal.WaitingApproval)
	first := w.question(ref)
	wrong := first.Digest
	wrong[0]++
	if _, err := h.engine.Decide(t.Context(), ref.Tenant, approval.Decision{ID: first.ID, Digest: wrong, State: journal.QuestionApproved, By: "bea"}); !errors.Is(err, approval.ErrNotShown) {
		t.Errorf("what was not shown was decided: %v", err)
	}
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	second := first
	for second.ID == first.ID { // the next turn's
		qs, err := w.store.Questions(t.Context(), journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run, State: journal.QuestionPending})
		if err != nil {
			t.Fatal(err)
		}
		if len(qs) == 1 {
			second = qs[0]
		}
	}
	w.comesTo(ref, journal.WaitingApproval)
	var decided *journal.DecidedError
	if _, err := h.engine.Decide(t.Context(), ref.Tenant, approval.Decision{ID: first.ID, Digest: first.Digest, State: journal.QuestionApproved, By: "cas"}); !errors.As(err, &decided) {
		t.Errorf("a late click: %v", err)
	}
	if second.Digest == first.Digest {
		t.Error("both turns of the pause have one digest")
	}
	if err := w.decide(h, ref, journal.QuestionDenied, "bea"); err != nil {
		t.Fatal(err)
	}
	w.expect(w.comesTo(ref, journal.Blocked), "confirm blocked, work skipped")
}

// Many decide at once: one is first, and what waited for it runs once.
func TestDecidedByMany(t *testing.T) {
	w := newWorld(t)
	h, other := w.host(), w.host()
	ref := w.start(h, "playbook: p\nsteps:\n  - {id: confirm, type: pause, reason: r}\n  - {id: pay, type: run, run: say pay, effect: irreversible}\n")
	w.comesTo(ref, journal.WaitingApproval)
	q := w.question(ref)
	var wg sync.WaitGroup
	var mu sync.Mutex
	first := 0
	for i := range 30 {
		wg.Go(func() {
			e := h.engine
			if i%2 == 1 {
				e = other.engine
			}
			_, err := e.Decide(t.Context(), ref.Tenant, approval.Decision{ID: q.ID, Digest: q.Digest, State: journal.QuestionApproved, By: "bea"})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				first++
			}
		})
	}
	wg.Wait()
	w.expect(w.comesTo(ref, journal.Completed), "confirm passed, pay passed")
	if first != 1 || w.programs() != "say pay" {
		t.Errorf("%d were first, and it ran %q", first, w.programs())
	}
}

// Several hosts on one journal: each run is advanced by one of them at a time, and
// each step that is not safe to repeat runs once.
func TestManyRunsManyHosts(t *testing.T) {
	w := newWorld(t)
	hosts := []host{w.host(), w.host(), w.host()}
	var refs []journal.Ref
	for i := range 12 {
		refs = append(refs, w.start(hosts[i%3], fmt.Sprintf("playbook: p\nsteps:\n  - {id: a, type: run, run: say a %d}\n  - {id: b, type: run, run: say b %d}\n", i, i)))
	}
	for _, ref := range refs {
		w.expect(w.comesTo(ref, journal.Completed), "a passed, b passed")
	}
	seen := map[string]int{}
	for _, p := range strings.Split(w.programs(), "; ") {
		seen[p]++
	}
	if len(seen) != 24 {
		t.Errorf("%d programs ran", len(seen))
	}
	for p, n := range seen {
		if n != 1 {
			t.Errorf("%s ran %d times", p, n)
		}
	}
}

// A log that was altered is no ground to act on: the run has failed, and nothing of
// it runs.
func TestAlteredLog(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, "playbook: p\nsteps:\n  - {id: confirm, type: pause, reason: r}\n  - {id: pay, type: run, run: say pay, effect: irreversible}\n")
	w.comesTo(ref, journal.WaitingApproval)
	db, err := sql.Open("sqlite", w.store.Path()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE events SET at = at + 1 WHERE run = ? AND seq = 2`, ref.Run); err != nil {
		t.Fatal(err)
	}
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	row := w.row(ref, journal.Failed)
	if row.Status != journal.Failed || row.Reason != string(run.ReasonInternalError) || w.programs() != "" {
		t.Errorf("it came to %s (%s), and ran %q", row.Status, row.Reason, w.programs())
	}
}

// A worker that dies is made up for by another, within its lease; what it had under
// way and may have done is a person's to say.
func TestWorkerDies(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{})
	var once sync.Once
	w.program = func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		if s.Argv[0] == "hang" {
			once.Do(func() { close(began) })
			<-ctx.Done()
			return sandbox.Result{End: sandbox.Cancelled}, nil
		}
		return builtin(ctx, s)
	}
	stalled := &stalling{Store: w.store, resume: make(chan struct{})}
	h := w.hostOn(stalled)
	ref := w.start(h, "playbook: p\nsteps:\n  - {id: a, type: run, run: hang}\n")
	<-began
	stalled.stall()
	defer stalled.goOn()
	w.host()
	began2 := time.Now()
	w.expect(w.comesTo(ref, journal.WaitingDecision), "a waiting")
	if took := time.Since(began2); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// stalling is a store whose process stops, like one that was suspended.
type stalling struct {
	journal.Store
	mu      sync.Mutex
	stopped bool
	resume  chan struct{}
}

func (s *stalling) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

func (s *stalling) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		close(s.resume)
		s.stopped = false
	}
}

func (s *stalling) Update(ctx context.Context, fn func(context.Context, journal.Tx) error) error {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		<-s.resume
	}
	return s.Store.Update(ctx, fn)
}

// The forecast bounds what a run may ask for: attempts, times that a goto leads back,
// handlers and parts among it.
func TestForecast(t *testing.T) {
	created, err := flow.Prepare(flow.Request{File: "pb.yaml", Tree: tree(`
-- pb.yaml --
playbook: outer
max_iterations: 2
steps:
  - {id: part, type: playbook, playbook: part.yaml, retry: {attempts: 2}}
  - {id: test, type: run, run: ./test, on_fail: {goto: part}}
-- part.yaml --
playbook: part
steps:
  - id: verdict
    type: claude
    model: claude-sonnet-4-5@20250929
    prompt_ref: p.md@v1
    scope: {can_read: [], can_write: [], can_run: []}
    max_latency_seconds: 10
    max_tokens_per_run: 1000
    retry: {attempts: 3}
    output: {type: object, required: [verdict], properties: {verdict: {enum: [go]}}}
    on_verdict: {go: continue}
-- prompts/p@v1.md --
---
model: claude-sonnet-4-5@20250929
---
Go?
`)})
	if err != nil {
		t.Fatal(err)
	}
	price := func(string) (float64, bool) { return 0.001, true }
	f, err := flow.Foresee(created, price)
	// 2 attempts × (1 + 2 times back) of the part, with 3 attempts each of 1,000 tokens.
	if err != nil || f.Tokens != 2*3*3*1000 || f.USD == nil || *f.USD != 18 {
		t.Errorf("at most %d tokens, $%v: %v", f.Tokens, f.USD, err)
	}
	if f, err = flow.Foresee(created, func(string) (float64, bool) { return 0, false }); err != nil || f.USD != nil {
		t.Errorf("a price that nobody knows came to %v: %v", f.USD, err)
	}
}
