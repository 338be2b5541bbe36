package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// What docs/faults.md names, and the rooms' own tests do not tell of.

// A call that a person has run again is as fenced as it was the first time: its
// start is in the journal when it runs.
func TestRunAgainIsFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		began := make(chan struct{})
		var behind string // the journal when the call ran again
		sc := &script{answer: steps(calls(fenced("run_command")))}
		sc.call = func(ctx context.Context, c engine.ToolCall) engine.ToolResult {
			if len(sc.called) == 1 {
				close(began)
				<-ctx.Done()
				return engine.ToolResult{}
			}
			behind = w.tell(c.Run.Ref)
			return engine.ToolResult{Text: "ok"}
		}
		e, m := w.mortal(sc)
		ref := w.start(e)
		<-began
		m.stall()
		other := w.engine(sc)
		w.comesTo(ref, journal.WaitingDecision)
		if err := other.Resolve(w.ctx, ref, engine.Resolution{Choice: run.Retry, By: "ann"}); err != nil {
			w.Fatal(err)
		}
		w.comesTo(ref, journal.Completed)
		if !strings.HasSuffix(behind, "resolved\nclaimed\ncall_started\n") {
			w.Errorf("when the call ran again, the journal ended with\n%s", behind)
		}
	})
}

// Held back, approved, released: that it was approved is in the journal before a
// byte of it shows.
func TestReleasedOnceItIsWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		var behind string
		e := w.engine(releasing{keeping{&script{answer: func(_ context.Context, _ engine.ModelCall, show engine.Show) run.Event {
			show("content", "the ")
			return run.ModelWithheld{Guard: "secrets", Rule: "r", Text: "the "}
		}}}, func(ref journal.Ref) { behind = w.tell(ref) }})
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		w.decide(e, ref, journal.QuestionApproved)
		w.comesTo(ref, journal.Completed)
		if !strings.Contains(behind, "\ndecided\n") {
			w.Errorf("when the answer was released, the journal was\n%s", behind)
		}
	})
}

// releasing has somebody look when an answer is released.
type releasing struct {
	keeping
	look func(journal.Ref)
}

func (r releasing) Agent(ctx context.Context, row journal.Run) (engine.Agent, error) {
	a, err := r.keeping.Agent(ctx, row)
	a.Model = r
	return a, err
}

func (r releasing) Release(ctx context.Context, c engine.ModelCall, show engine.Show) (run.Answer, error) {
	r.look(c.Run.Ref)
	return r.keeping.Release(ctx, c, show)
}

// A decision is marked as used in the write that lets the run go on. What was
// decided of step 1 is nothing to step 2, which asks again, under another id; a
// late click for the first is told that it was decided.
func TestLateClick(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("b")), calls(gated("b")))}
		e := w.engine(sc)
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		first := w.questions(ref)[0]
		w.decide(e, ref, journal.QuestionApproved)
		synctest.Wait()
		w.comesTo(ref, journal.WaitingApproval)
		if q, err := w.s.Question(w.ctx, ref.Tenant, first.ID); err != nil || q.Used.IsZero() {
			w.Errorf("the decision that was taken is not marked as used: %+v, %v", q, err)
		}
		second := w.questions(ref)[0]
		if second.ID == first.ID || second.Digest == first.Digest {
			w.Errorf("step 2 asks as step 1 did: %+v", second)
		}
		if _, err := e.Decide(w.ctx, ref.Tenant, decision(first, journal.QuestionApproved)); err == nil {
			w.Error("a late click was taken")
		}
		e.Wake(w.ctx, ref) // nor does a wake-up answer for her
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(sc.called) != 1 || len(w.questions(ref)) != 1 {
			w.Errorf("after a late click, called %v, and %d questions are open", sc.called, len(w.questions(ref)))
		}
		w.whole(ref)
	})
}

// Nobody reads what a run shows: that it was stopped is on its row and in its log
// all the same, and no later text is.
func TestStoppedUnread(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: func(_ context.Context, _ engine.ModelCall, show engine.Show) run.Event {
			show("content", "It is ")
			return run.ModelWithheld{Deny: true, Guard: "pii", Rule: "ssn", Text: "It is "}
		}}
		e := w.engine(sc)
		ref := w.start(e)
		row := w.comesTo(ref, journal.Blocked)
		s := w.whole(ref)
		if row.Reason != "guard_denied" || len(sc.asked) != 1 || len(sc.called) != 0 || s.Step.Answer.Text != "It is " {
			w.Errorf("%s, asked %v, called %v, the answer is %q", row.Reason, sc.asked, sc.called, s.Step.Answer.Text)
		}
	})
}

// What nobody waited for could not be written: nothing is written behind it, and
// the run goes on from what there is.
func TestNothingBehindAHole(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("read_file")))}
		sc.call = func(context.Context, engine.ToolCall) engine.ToolResult {
			time.Sleep(time.Second) // its start is written meanwhile
			return engine.ToolResult{Text: "ok"}
		}
		e := w.engine(sc, func(o *engine.Options) { o.Store = &forgetful{Store: o.Store} })
		ref := w.start(e)
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
		if len(sc.called) != 2 {
			w.Errorf("the call whose start was lost was made %d times", len(sc.called))
		}
	})
}

// forgetful is a store whose first write that nobody waits for fails.
type forgetful struct {
	journal.Store
	failed bool
}

func (f *forgetful) Later(fn func(context.Context, journal.Tx) error) *journal.Pending {
	if f.failed {
		return f.Store.Later(fn)
	}
	f.failed = true
	return f.Store.Later(func(ctx context.Context, tx journal.Tx) error { return fn(ctx, full{tx}) })
}

// full is a transaction on a full disk.
type full struct{ journal.Tx }

func (full) Append(context.Context, journal.Lease, ...journal.Entry) (journal.Tail, error) {
	return journal.Tail{}, errors.New("no space left on device")
}
