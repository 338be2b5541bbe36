package engine_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// questions are those that a run has open.
func (w *world) questions(ref journal.Ref) []journal.Question {
	w.Helper()
	qs, err := w.s.Questions(w.ctx, journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run, State: journal.QuestionPending})
	if err != nil {
		w.Fatal(err)
	}
	return qs
}

func decision(q journal.Question, state journal.QuestionState) approval.Decision {
	return approval.Decision{ID: q.ID, Digest: q.Digest, State: state, By: "bea", Text: "because"}
}

// decide answers the only open question of a run.
func (w *world) decide(e *engine.Engine, ref journal.Ref, state journal.QuestionState) {
	w.Helper()
	qs := w.questions(ref)
	if len(qs) != 1 {
		w.Fatalf("%d questions are open", len(qs))
	}
	if _, err := e.Decide(w.ctx, ref.Tenant, decision(qs[0], state)); err != nil {
		w.Fatal(err)
	}
}

func TestApproved(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("a"), gated("b")))}
		e := w.engine(sc)
		ref := w.start(e)
		row := w.comesTo(ref, journal.WaitingApproval)
		if got := strings.Join(sc.called, ";"); got != "a {}" || row.Owner != "" {
			w.Errorf("while it waits, called %s, owner %q", got, row.Owner)
		}
		q := w.questions(ref)[0]
		if q.Subject != "step 1, call 2: b" || q.About != "call" || !row.WakeAt.Equal(q.Expires) {
			w.Errorf("it asks %+v, and wakes at %v", q, row.WakeAt)
		}
		time.Sleep(time.Minute)
		w.decide(e, ref, journal.QuestionApproved)
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
		if got := strings.Join(sc.called, ";"); got != `a {};b {"path":"x"}` {
			w.Errorf("called %s", got)
		}
	})
}

func TestNotApproved(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(w *world, e *engine.Engine, ref journal.Ref)
		status journal.Status
		reason string
	}{
		"denied": {func(w *world, e *engine.Engine, ref journal.Ref) {
			w.decide(e, ref, journal.QuestionDenied)
		}, journal.Completed, "completed"},
		"nobody in time": {func(w *world, e *engine.Engine, ref journal.Ref) {
			time.Sleep(11 * time.Minute)
		}, journal.Blocked, "approval_expired"},
		"the row was altered, and then approved": {func(w *world, e *engine.Engine, ref journal.Ref) {
			w.exec(`UPDATE questions SET digest = zeroblob(32)`)
			w.decide(e, ref, journal.QuestionApproved)
		}, journal.Completed, "completed"},
		"approved behind the desk, with a digest of its own": {func(w *world, e *engine.Engine, ref journal.Ref) {
			w.exec(`UPDATE questions SET digest = randomblob(32), state = 'approved', decider = 'eve', decided_at = asked_at`)
			e.Wake(w.ctx, ref)
		}, journal.Completed, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := &script{answer: steps(calls(gated("b")))}
				sc.agent.Expire = 10 * time.Minute
				e := w.engine(sc)
				ref := w.start(e)
				w.comesTo(ref, journal.WaitingApproval)
				c.decide(w, e, ref)
				if row := w.comesTo(ref, c.status); row.Reason != c.reason {
					w.Errorf("it ended with %s", row.Reason)
				}
				w.whole(ref)
				if len(sc.called) != 0 {
					w.Errorf("called %v", sc.called)
				}
			})
		})
	}
}

// exec alters the file behind everybody's back.
func (w *world) exec(query string) {
	w.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		w.Fatal(err)
	}
}

// A profile that has changed while a person thought lets nothing run that was
// approved under the old one.
func TestProfileChanged(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("b")))}
		sc.agent.ProfileDigest = "old"
		first := w.engine(sc)
		ref := w.start(first)
		w.comesTo(ref, journal.WaitingApproval)
		w.close(first)
		sc.agent.ProfileDigest = "new"
		w.decide(w.engine(sc), ref, journal.QuestionApproved)
		w.comesTo(ref, journal.Completed)
		if got := w.whole(ref).Past; len(sc.called) != 0 || got.Len() != 1 {
			w.Errorf("called %v", sc.called)
		}
	})
}

// Decided by a process that has no engine, the run goes on within a tick of one
// that has.
func TestDecidedElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("b")))}
		e := w.engine(sc)
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		decided := time.Now()
		if _, err := engine.Decide(w.ctx, w.s, nil, ref.Tenant, decision(w.questions(ref)[0], journal.QuestionApproved)); err != nil {
			w.Fatal(err)
		}
		row := w.comesTo(ref, journal.Completed)
		if took := row.Ended.Sub(decided); took > 4*time.Second {
			w.Errorf("it went on after %v", took)
		}
		w.whole(ref)
	})
}

// A decision that comes while the run still works on something else is taken
// then, not lost.
func TestDecidedWhileWorking(t *testing.T) {
	for name, elsewhere := range map[string]bool{"here": false, "by another process": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := &script{answer: steps(calls(free("slow"), gated("b")))}
				sc.call = func(ctx context.Context, c engine.ToolCall) engine.ToolResult {
					if c.Tool == "slow" {
						time.Sleep(time.Minute)
					}
					return engine.ToolResult{Text: "ok"}
				}
				e := w.engine(sc)
				ref := w.start(e)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if elsewhere {
					if _, err := engine.Decide(w.ctx, w.s, nil, ref.Tenant, decision(w.questions(ref)[0], journal.QuestionApproved)); err != nil {
						w.Fatal(err)
					}
				} else {
					w.decide(e, ref, journal.QuestionApproved)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := strings.Join(sc.called, ";"); got != `slow {};b {"path":"x"}` {
					w.Errorf("with the slow one under way, called %s", got)
				}
				w.comesTo(ref, journal.Completed)
				w.whole(ref)
			})
		})
	}
}

func TestSecondPerson(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("b")))}
		sc.agent.SecondPerson = true
		e := w.engine(sc)
		ref := w.start(e, func(t *engine.Task) { t.Starter = "bea" })
		w.comesTo(ref, journal.WaitingApproval)
		_, err := e.Decide(w.ctx, ref.Tenant, decision(w.questions(ref)[0], journal.QuestionApproved))
		if !errors.Is(err, approval.ErrSecondPerson) {
			w.Errorf("who started it decided: %v", err)
		}
	})
}

// A run that is taken up by another host behind a pause has its siblings: the call
// that ran is not run again, and has its result.
func TestSiblingsOverHosts(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("a"), gated("b"), fenced("c")))}
		first := w.engine(sc)
		ref := w.start(first)
		w.comesTo(ref, journal.WaitingApproval)
		w.close(first)
		w.decide(w.engine(sc), ref, journal.QuestionApproved)
		w.comesTo(ref, journal.Completed)
		s := w.whole(ref)
		counts := map[string]int{}
		for _, c := range sc.called {
			counts[c[:1]]++
		}
		if counts["a"] != 1 || counts["b"] != 1 || counts["c"] != 1 {
			w.Errorf("called %v", sc.called)
		}
		for step := range s.Past.Backward() {
			for _, work := range step.Work {
				if work.Result.Text != "result of "+work.Tool {
					w.Errorf("the model was told of %s: %q", work.Tool, work.Result.Text)
				}
			}
		}
	})
}

// Two gated calls are two questions, whose answers are not confused.
func TestParallelQuestions(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("a"), gated("b"), gated("c")))}
		e := w.engine(sc)
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		qs := w.questions(ref)
		if len(qs) != 3 {
			w.Fatalf("%d questions", len(qs))
		}
		for _, q := range qs { // the newest first
			state := journal.QuestionApproved
			if strings.HasSuffix(q.Subject, ": b") {
				state = journal.QuestionDenied
			}
			if _, err := e.Decide(w.ctx, ref.Tenant, decision(q, state)); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
		}
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
		if len(sc.called) != 2 || strings.Contains(strings.Join(sc.called, ";"), "b ") {
			w.Errorf("called %v", sc.called)
		}
	})
}

func TestReply(t *testing.T) {
	inWorld(t, func(w *world) {
		ask := run.Call{Tool: "ask_user", Args: `{"question":"which one?"}`, Ruling: run.AskUser}
		sc := &script{answer: steps(calls(ask))}
		e := w.engine(sc)
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingInput)
		w.decide(e, ref, journal.QuestionAnswered)
		w.comesTo(ref, journal.Completed)
		s := w.whole(ref)
		for step := range s.Past.Backward() {
			if got := step.Work[0].Result; got != (run.Result{Kind: run.Returned, Text: "because"}) {
				w.Errorf("the model was told %+v", got)
			}
		}
	})
}

// The evaluator puts the run before a person, who lets it go on or does not.
func TestStepInQuestion(t *testing.T) {
	for state, want := range map[journal.QuestionState]string{
		journal.QuestionApproved: "completed completed", journal.QuestionDenied: "blocked approval_denied",
	} {
		t.Run(string(state), func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := &script{answer: steps(calls(free("a")))}
				sc.judge = func(h signal.History) signal.Evaluation {
					r := signal.Report{Signal: "goal_drift", Mode: signal.Enforce, Judgement: signal.Judgement{Result: signal.OK}}
					if h.Steps == 1 && h.Pause == 0 {
						r.Result = signal.RequireApproval
					}
					return signal.Evaluation{Reports: []signal.Report{r}}
				}
				e := w.engine(sc)
				ref := w.start(e)
				w.comesTo(ref, journal.WaitingApproval)
				if q := w.questions(ref)[0]; !strings.Contains(string(q.Shown), "goal_drift") {
					w.Errorf("it shows %s", q.Shown)
				}
				w.decide(e, ref, state)
				status, reason, _ := strings.Cut(want, " ")
				if row := w.comesTo(ref, journal.Status(status)); row.Reason != reason {
					w.Errorf("it ended with %s", row.Reason)
				}
				w.whole(ref)
			})
		})
	}
}

func TestCancel(t *testing.T) {
	slow := func() *script {
		return &script{answer: func(ctx context.Context, _ engine.ModelCall, _ engine.Show) run.Event {
			<-ctx.Done()
			return run.ModelFailed{Error: "cut off"}
		}}
	}
	for name, c := range map[string]struct {
		sc     *script
		before journal.Status
		cancel func(w *world, e *engine.Engine, ref journal.Ref) error
		within time.Duration
	}{
		"here, under way": {slow(), journal.Running, func(w *world, e *engine.Engine, ref journal.Ref) error {
			return e.Cancel(w.ctx, ref, "ann")
		}, 100 * time.Millisecond},
		"by another process, under way": {slow(), journal.Running, func(w *world, e *engine.Engine, ref journal.Ref) error {
			return w.engine(slow()).Cancel(w.ctx, ref, "ann")
		}, 4 * time.Second},
		"by another process, waiting": {&script{answer: steps(calls(gated("b")))}, journal.WaitingApproval, func(w *world, e *engine.Engine, ref journal.Ref) error {
			return w.engine(slow()).Cancel(w.ctx, ref, "ann")
		}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				e := w.engine(c.sc)
				ref := w.start(e)
				w.comesTo(ref, c.before)
				synctest.Wait()
				asked := time.Now()
				if err := c.cancel(w, e, ref); err != nil {
					w.Fatal(err)
				}
				row := w.comesTo(ref, journal.Cancelled)
				if took := row.Ended.Sub(asked); row.Reason != "cancelled" || took > c.within {
					w.Errorf("it ended with %s after %v", row.Reason, took)
				}
				if s := w.whole(ref); !strings.HasPrefix(s.Message, "Stopped: ann cancelled the run.") {
					w.Errorf("it said %q", s.Message)
				}
				var settled *journal.SettledError
				if err := e.Cancel(w.ctx, ref, "bea"); !errors.As(err, &settled) {
					w.Errorf("cancelled again: %v", err)
				}
			})
		})
	}
}

// An answer that a guard withheld is released once a person lets it.
func TestWithheld(t *testing.T) {
	for _, c := range []struct {
		keeps  bool
		state  journal.QuestionState
		status journal.Status
		text   string
	}{
		{true, journal.QuestionApproved, journal.Completed, "the secret is out"},
		{true, journal.QuestionDenied, journal.Blocked, "the "},
		{false, "", journal.Failed, ""},
	} {
		t.Run(fmt.Sprintf("kept %v %s", c.keeps, c.state), func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := &script{answer: func(_ context.Context, _ engine.ModelCall, show engine.Show) run.Event {
					show("content", "the ")
					return run.ModelWithheld{Guard: "secrets", Rule: "r", Text: "the "}
				}}
				var a engine.Agents = sc
				if c.keeps {
					a = keeping{sc}
				}
				e := w.engine(a)
				ref := w.start(e)
				if c.keeps {
					w.comesTo(ref, journal.WaitingApproval)
					w.decide(e, ref, c.state)
				}
				w.comesTo(ref, c.status)
				if s := w.whole(ref); s.Step.Answer.Text != c.text && c.keeps {
					w.Errorf("it came to %q", s.Step.Answer.Text)
				}
				// Shown before and behind the pause, in two tenures, it is one text.
				got := seen{text: map[string]string{}}
				for n, err := range e.Watch(w.ctx, ref, 0) {
					if err != nil {
						w.Fatal(err)
					}
					got.see(w, n)
				}
				if got.text["1/1 content"] != c.text && c.keeps {
					w.Errorf("it showed %q", got.text["1/1 content"])
				}
			})
		})
	}
}

// keeping is a script whose model keeps what its guards withhold.
type keeping struct{ *script }

func (k keeping) Agent(ctx context.Context, r journal.Run) (engine.Agent, error) {
	a, err := k.script.Agent(ctx, r)
	a.Model = k
	return a, err
}

func (keeping) Withheld(engine.ModelCall, run.About) ([]byte, json.RawMessage, error) {
	return []byte("secret is out"), json.RawMessage(`[{"guard":"secrets"}]`), nil
}

func (keeping) Release(_ context.Context, _ engine.ModelCall, show engine.Show) (run.Answer, error) {
	show("content", "secret is out")
	return run.Answer{Text: "the secret is out"}, nil
}
