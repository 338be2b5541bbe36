package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
)

// A mortal store is one whose process stops at a moment of the test's choosing:
// stalled, it does nothing until it is let go on, like a process that was stopped.
type mortal struct {
	journal.Store
	mu      sync.Mutex
	stalled chan struct{} // nil: it goes on
}

func (m *mortal) stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = make(chan struct{})
}

func (m *mortal) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled != nil {
		close(m.stalled)
		m.stalled = nil
	}
}

func (m *mortal) wait() {
	m.mu.Lock()
	c := m.stalled
	m.mu.Unlock()
	if c != nil {
		<-c
	}
}

func (m *mortal) Update(ctx context.Context, fn func(context.Context, journal.Tx) error) error {
	m.wait()
	return m.Store.Update(ctx, fn)
}

// mortal makes an engine whose process can be stopped. A test that stops it lets
// it go on before its end.
func (w *world) mortal(agents engine.Agents) (*engine.Engine, *mortal) {
	m := &mortal{}
	e := w.engine(agents, func(o *engine.Options) { m.Store, o.Store = o.Store, m })
	w.Cleanup(m.goOn) // before the engine is closed
	return e, m
}

// A worker that dies while a model answers is noticed within Lease + Tick, and the
// model is asked again by another; the text it had shown is superseded, its spend
// an estimate.
func TestWorkerDies(t *testing.T) {
	inWorld(t, func(w *world) {
		asked := make(chan struct{})
		dying := &script{answer: func(ctx context.Context, _ engine.ModelCall, show engine.Show) run.Event {
			show("content", strings.Repeat("half an answer ", 1000))
			close(asked)
			<-ctx.Done()
			return nil
		}}
		e, m := w.mortal(dying)
		ref := w.start(e)
		<-asked
		synctest.Wait()
		m.stall()
		died := time.Now()

		sc := &script{answer: steps()}
		w.engine(sc)
		row := w.comesTo(ref, journal.Completed)
		if took := row.Ended.Sub(died); took > 18*time.Second+100*time.Millisecond || took < 11*time.Second {
			w.Errorf("it went on after %v", took)
		}
		s := w.whole(ref)
		if want := int64(15 * 1000 / 4); s.Usage.Output < want || !s.Usage.Estimated || s.Step.Attempt != 2 {
			w.Errorf("attempt %d, usage %+v", s.Step.Attempt, s.Usage)
		}

		// The one that was stopped goes on, and cannot write a byte.
		m.goOn()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := w.whole(ref); got.Events != s.Events {
			w.Errorf("there were %d events, and are %d", s.Events, got.Events)
		}
	})
}

// A worker that has lost its run cuts off what it had under way, within a tick of
// its own going on.
func TestLostRunIsCutOff(t *testing.T) {
	inWorld(t, func(w *world) {
		began, cut := make(chan struct{}), make(chan time.Time, 1)
		sc := &script{answer: steps(calls(fenced("run_command")))}
		sc.call = func(ctx context.Context, _ engine.ToolCall) engine.ToolResult {
			close(began)
			<-ctx.Done()
			cut <- time.Now()
			return engine.ToolResult{Text: "cut off"}
		}
		e, m := w.mortal(sc)
		ref := w.start(e)
		<-began
		m.stall()
		other := w.engine(&script{answer: steps()})
		w.comesTo(ref, journal.WaitingDecision)
		m.goOn()
		went := time.Now()
		if took := (<-cut).Sub(went); took > 4*time.Second {
			w.Errorf("it was cut off after %v", took)
		}
		if err := other.Resolve(w.ctx, ref, engine.Resolution{Choice: run.Abandon, By: "ann"}); err != nil {
			w.Error(err)
		}
		w.comesTo(ref, journal.Cancelled)
		w.whole(ref)
	})
}

// A call that may have taken effect when its worker died is a person's to resolve.
func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		with   engine.Resolution
		status journal.Status
		calls  int
		told   string // what the model was told of the call
	}{
		"retry":   {engine.Resolution{Choice: run.Retry, By: "ann"}, journal.Completed, 2, "ok"},
		"done":    {engine.Resolution{Choice: run.TakeAsDone, By: "ann", Text: "it is done"}, journal.Completed, 1, "it is done"},
		"abandon": {engine.Resolution{Choice: run.Abandon, By: "ann"}, journal.Cancelled, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				began := make(chan struct{}, 1)
				sc := &script{answer: steps(calls(free("read_file"), fenced("run_command")))}
				died := false
				sc.call = func(ctx context.Context, c engine.ToolCall) engine.ToolResult {
					if c.Tool == "run_command" && !died {
						died = true
						began <- struct{}{}
						<-ctx.Done()
					}
					return engine.ToolResult{Text: "ok"}
				}
				e, m := w.mortal(sc)
				ref := w.start(e)
				<-began
				synctest.Wait()
				m.stall()
				other := w.engine(sc)
				w.comesTo(ref, journal.WaitingDecision)
				w.whole(ref)

				var rejected *run.Rejection
				if err := other.Resolve(w.ctx, ref, engine.Resolution{Step: 1, Call: 1, Choice: run.Retry, By: "ann"}); !errors.As(err, &rejected) {
					w.Errorf("resolved a call that is not in doubt: %v", err)
				}
				w.comesTo(ref, journal.WaitingDecision)
				synctest.Wait()
				if err := other.Resolve(w.ctx, ref, c.with); err != nil {
					w.Fatal(err)
				}
				w.comesTo(ref, c.status)
				m.goOn()
				s := w.whole(ref)
				n := 0
				for _, call := range sc.called {
					if strings.HasPrefix(call, "run_command") {
						n++
					}
				}
				if n != c.calls {
					w.Errorf("it was called %d times, want %d", n, c.calls)
				}
				for step := range s.Past.Backward() {
					if got := step.Work[1].Result.Text; got != c.told {
						w.Errorf("the model was told %q, want %q", got, c.told)
					}
				}
			})
		})
	}
}

// An engine that is closed lets a tool call end, breaks a model call off, and
// gives its runs up at once for another to go on with.
func TestClose(t *testing.T) {
	t.Run("a tool call ends", func(t *testing.T) {
		inWorld(t, func(w *world) {
			began := make(chan struct{})
			sc := &script{answer: steps(calls(fenced("run_command")))}
			sc.call = func(ctx context.Context, _ engine.ToolCall) engine.ToolResult {
				close(began)
				select {
				case <-time.After(time.Minute):
					return engine.ToolResult{Text: "ended"}
				case <-ctx.Done():
					return engine.ToolResult{Text: "cut off", Failed: true}
				}
			}
			e := w.engine(sc)
			ref := w.start(e)
			<-began
			w.close(e)
			if row := w.comesTo(ref, journal.Queued); row.Owner != "" {
				w.Errorf("it is held by %q", row.Owner)
			}
			closed := time.Now()
			w.engine(sc)
			row := w.comesTo(ref, journal.Completed)
			if took := row.Ended.Sub(closed); took > time.Second {
				w.Errorf("it went on after %v", took)
			}
			for step := range w.whole(ref).Past.Backward() {
				if got := step.Work[0].Result.Text; got != "ended" || len(sc.called) != 1 {
					w.Errorf("the call came to %q, and was made %d times", got, len(sc.called))
				}
			}
		})
	})
	t.Run("a model call is broken off", func(t *testing.T) {
		inWorld(t, func(w *world) {
			asked := make(chan struct{})
			e := w.engine(&script{answer: func(ctx context.Context, _ engine.ModelCall, _ engine.Show) run.Event {
				close(asked)
				<-ctx.Done()
				return run.ModelFailed{Error: "broken off"}
			}})
			ref := w.start(e)
			<-asked
			w.close(e)
			w.comesTo(ref, journal.Queued)
			w.engine(&script{answer: steps()})
			w.comesTo(ref, journal.Completed)
			if s := w.whole(ref); s.Step.Attempt != 2 || s.Step.Failures != 0 {
				w.Errorf("attempt %d, failures %d", s.Step.Attempt, s.Step.Failures)
			}
		})
	})
	t.Run("in a hurry, a tool call is cut off", func(t *testing.T) {
		inWorld(t, func(w *world) {
			began := make(chan struct{})
			sc := &script{answer: steps(calls(fenced("run_command")))}
			sc.call = func(ctx context.Context, _ engine.ToolCall) engine.ToolResult {
				close(began)
				<-ctx.Done()
				return engine.ToolResult{}
			}
			e := w.engine(sc)
			ref := w.start(e)
			<-began
			ctx, cancel := context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			if err := e.Close(ctx); err != nil {
				w.Error(err)
			}
			w.engine(sc)
			w.comesTo(ref, journal.WaitingDecision)
			if _, err := e.Start(w.ctx, engine.Task{}); err == nil {
				w.Error("a closed engine started a run")
			}
		})
	})
}

// On a full disk the run stops before its next effect, whoever watches is told,
// and it goes on once there is room.
func TestFullDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.path = filepath.Join(w.TempDir(), "small.db")
		sc := &script{}
		asked := 0
		sc.answer = func(_ context.Context, c engine.ModelCall, show engine.Show) run.Event {
			asked = c.Step
			if c.Step > 60 {
				return says(show, "done")
			}
			a := calls(fenced("run_command")).(run.ModelAnswered)
			a.Answer.Text = noise(c.Step, 3000)
			return a
		}
		sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
			return engine.ToolResult{Text: fmt.Sprint("ran in step ", c.Step)}
		}
		small := w.open(sqlite.Options{MaxBytes: 200 << 10})
		e := w.engine(sc, func(o *engine.Options) { o.Store = small })
		ref := w.start(e, func(t *engine.Task) { t.Limits.MaxIterations = 100 })
		var why error
		for _, err := range e.Watch(w.ctx, ref, 0) {
			why = err
		}
		if !errors.Is(why, journal.ErrFull) {
			w.Fatalf("whoever watches is told %v", why)
		}
		synctest.Wait()
		w.s = w.open(sqlite.Options{})
		rep, err := journal.Verify(w.ctx, w.s, ref, journal.Link{})
		if err != nil || rep.Broken != nil {
			w.Errorf("%v, %v", rep.Broken, err)
		}
		// Each call that was made is in the journal as started: nothing ran that is not.
		if started := strings.Count(w.tell(ref), "call_started"); len(sc.called) != started || asked > started+1 || started == 0 {
			w.Errorf("%d calls were made, %d are in the journal, the model was asked in step %d", len(sc.called), started, asked)
		}
		w.close(e)
		w.engine(sc)
		r := w.rest(ref)
		if r.Status == journal.WaitingDecision { // the disk was full when a call had ended
			if err := w.engine(sc).Resolve(w.ctx, ref, engine.Resolution{Choice: run.TakeAsDone, By: "ann", Text: "ran"}); err != nil {
				w.Fatal(err)
			}
		}
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
		if len(sc.called) != 60 {
			w.Errorf("%d calls were made, want 60", len(sc.called))
		}
	})
}

// flaky is a store that drops a write which nobody waits for.
type flaky struct {
	journal.Store
	drop int // which one, from 1
	n    int
}

func (f *flaky) Later(fn func(context.Context, journal.Tx) error) *journal.Pending {
	if f.n++; f.n != f.drop {
		return f.Store.Later(fn)
	}
	p, settle := journal.NewPending()
	settle(journal.ErrFull)
	return p
}

// A write that nobody waited for, and that failed, is followed by no other: the
// journal has no hole, and the run goes on from where it is whole.
func TestNoHole(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("slow")), calls(free("slow")))}
		sc.call = func(context.Context, engine.ToolCall) engine.ToolResult {
			time.Sleep(time.Second)
			return engine.ToolResult{Text: "ok"}
		}
		f := &flaky{drop: 2}
		ref := w.start(w.engine(sc, func(o *engine.Options) { f.Store, o.Store = o.Store, f }))
		w.comesTo(ref, journal.Completed)
		if f.n < 3 {
			w.Errorf("%d writes were not waited for", f.n)
		}
		w.whole(ref)
	})
}

// rest waits until nothing goes on with the run by itself.
func (w *world) rest(ref journal.Ref) journal.Run {
	w.Helper()
	for range 100 {
		time.Sleep(time.Second)
		synctest.Wait()
		r, err := w.s.Run(w.ctx, ref)
		if err != nil {
			w.Fatal(err)
		}
		if r.Status != journal.Running && r.Status != journal.Queued {
			return r
		}
	}
	w.Fatal("it does not come to rest")
	return journal.Run{}
}

// noise is text that does not pack well.
func noise(seed, n int) string {
	var b strings.Builder
	for i := uint64(seed) + 1; b.Len() < n; i = i*6364136223846793005 + 1442695040888963407 {
		fmt.Fprintf(&b, "%x", i)
	}
	return b.String()[:n]
}

// A log that was altered behind the engine's back is no ground to act on: nothing
// runs that was slipped under an approval.
func TestAlteredLog(t *testing.T) {
	for name, alter := range map[string]string{
		"arguments behind an approval": `UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), '"path', '"hath') AS BLOB) WHERE kind = 'model_answered'`,
		"an event taken away":          `DELETE FROM events WHERE kind = 'step_evaluated'`,
		"an event and the row's end":   `UPDATE runs SET seq = seq - 1`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := &script{answer: steps(calls(gated("b")))}
				e := w.engine(sc)
				ref := w.start(e)
				w.comesTo(ref, journal.WaitingApproval)
				w.exec(alter)
				err := e.Resolve(w.ctx, ref, engine.Resolution{Choice: run.Abandon, By: "ann"})
				if !errors.Is(err, journal.ErrAltered) {
					w.Errorf("resolving says %v", err)
				}
				row := w.comesTo(ref, journal.Failed)
				if row.Reason != "internal_error" || len(sc.called) != 0 {
					w.Errorf("it ended with %s; called %v", row.Reason, sc.called)
				}
				_, err = e.Decide(w.ctx, ref.Tenant, decision(w.questions(ref)[0], journal.QuestionApproved))
				var settled *journal.SettledError
				if !errors.As(err, &settled) {
					w.Errorf("deciding says %v", err)
				}
			})
		})
	}
}

// Requests of a process that died are settled as abandoned; those of one that
// lives are left alone, however long they take.
func TestAbandonedRequests(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps()}
		open := func(e *engine.Engine, id byte) journal.Ref {
			ref := journal.Ref{Tenant: journal.DefaultTenant, Run: journal.ID(fmt.Sprintf("run_01k44tn5c0abcdefghjkmnpq%02d", id))}
			if err := w.s.Update(w.ctx, func(ctx context.Context, tx journal.Tx) error {
				if err := tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.RequestRun}); err != nil {
					return err
				}
				l, err := tx.Claim(ctx, ref, e.Worker(), 15*time.Second)
				if err != nil {
					return err
				}
				entry, err := journal.NewEntry(journal.RequestStarted, 1, journal.Structure, journal.Started{Mount: "openai", Model: "m"})
				if err != nil {
					return err
				}
				if _, err = tx.Append(ctx, l, entry); err != nil {
					return err
				}
				return tx.SetStatus(ctx, l, journal.Change{Status: journal.Running})
			}); err != nil {
				w.Fatal(err)
			}
			return ref
		}
		dead, m := w.mortal(sc)
		alive := w.engine(sc)
		theirs, ours := open(dead, 1), open(alive, 2)
		m.stall()
		if row := w.comesTo(theirs, journal.Failed); row.Reason != "abandoned" {
			w.Errorf("it ended with %s", row.Reason)
		}
		if got := w.tell(theirs); got != "started\nsettled\n" {
			w.Errorf("its journal is %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if row, err := w.s.Run(w.ctx, ours); err != nil || row.Status != journal.Running {
			w.Errorf("the other is %s, %v", row.Status, err)
		}
	})
}
