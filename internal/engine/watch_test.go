package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// talkative streams an answer of some length, calls a tool, and streams another.
func talkative() *script {
	sc := &script{}
	sc.answer = func(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
		var b strings.Builder
		for i := range 300 {
			piece := fmt.Sprintf("s%d-%d ", c.Step, i)
			show("content", piece)
			b.WriteString(piece)
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return nil
			}
		}
		a := run.Answer{Text: b.String()}
		if c.Step == 1 {
			a.Calls = []run.Call{free("read_file"), fenced("run_command")}
		}
		return run.ModelAnswered{Answer: a}
	}
	sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
		time.Sleep(time.Duration(c.Call) * 10 * time.Millisecond) // calls at the same time end in a known order
		return engine.ToolResult{Text: "result of " + c.Tool}
	}
	return sc
}

// same is a run's journal as far as it must be the same however the run was
// watched: kinds and payloads, less ids, times, digests and segment boundaries.
func (w *world) same(ref journal.Ref) []string {
	w.Helper()
	var all []string
	var text map[string]string
	var last run.ModelStarted
	flush := func() {
		for _, channel := range []string{"content"} {
			if text[channel] != "" {
				all = append(all, fmt.Sprintf("text %d/%d %s: %s", last.Step, last.Attempt, channel, text[channel]))
			}
		}
		text = map[string]string{}
	}
	for r, err := range w.s.Events(w.ctx, ref, 0) {
		if err != nil {
			w.Fatal(err)
		}
		if r.Kind == journal.TextReleased {
			var s journal.Released
			if err := r.Decode(&s); err != nil {
				w.Fatal(err)
			}
			text[s.Channel] += s.Text
			continue
		}
		flush()
		var payload map[string]any
		if err := r.Decode(&payload); err != nil {
			w.Fatal(err)
		}
		maps.DeleteFunc(payload, func(k string, _ any) bool {
			return k == "id" || k == "digest" || k == "expires" || k == "by" || k == "list" || k == "parent"
		})
		b, err := json.Marshal(payload)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, r.Kind+" "+string(b))
		if r.Kind == (run.ModelStarted{}).Kind() {
			last = run.ModelStarted{Step: int(payload["step"].(float64)), Attempt: int(payload["attempt"].(float64))}
		}
	}
	return all
}

// traced has a script say in what order text was released and steps were judged,
// and when.
func traced(sc *script) (trace func() []string) {
	var mu sync.Mutex
	var all []string
	began := time.Now()
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprintf("%v ", time.Since(began).Round(100*time.Millisecond))+fmt.Sprintf(format, args...))
	}
	answer := sc.answer
	sc.answer = func(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
		say("asked in step %d", c.Step)
		defer say("released the answer of step %d", c.Step)
		return answer(ctx, c, show)
	}
	sc.judge = func(h signal.History) signal.Evaluation {
		say("judged step %d", h.Steps)
		return signal.Evaluation{}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// Watched or not, by one who keeps up, stalls, or leaves: the same journal, the
// evaluator asked as often, and as late, and the run takes as long.
func TestWatchingChangesNothing(t *testing.T) {
	type result struct {
		journal, trace []string
		took           time.Duration
	}
	results := map[string]result{}
	for name, watch := range map[string]func(w *world, e *engine.Engine, ref journal.Ref){
		"nobody": func(*world, *engine.Engine, journal.Ref) {},
		"one who keeps up": func(w *world, e *engine.Engine, ref journal.Ref) {
			for _, err := range e.Watch(w.ctx, ref, 0) {
				if err != nil {
					w.Error(err)
				}
			}
		},
		"one who stalls": func(w *world, e *engine.Engine, ref journal.Ref) {
			for _, err := range e.Watch(w.ctx, ref, 0) {
				if err != nil {
					w.Error(err)
				}
				time.Sleep(10 * time.Second)
			}
		},
		"one who leaves": func(w *world, e *engine.Engine, ref journal.Ref) {
			n := 0
			for range e.Watch(w.ctx, ref, 0) {
				if n++; n == 7 {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sc := talkative()
				trace := traced(sc)
				e := w.engine(sc)
				began := time.Now()
				ref := w.start(e)
				done := make(chan struct{})
				go func() {
					defer close(done)
					watch(w, e, ref)
				}()
				row := w.comesTo(ref, journal.Completed)
				<-done
				w.whole(ref)
				results[name] = result{w.same(ref), trace(), row.Ended.Sub(began)}
			})
		})
	}
	for name, r := range results {
		if d := cmp.Diff(results["nobody"].journal, r.journal); d != "" {
			t.Errorf("%s: the journal differs (-nobody +watched):\n%s", name, d)
		}
		if d := cmp.Diff([]string{
			"0s asked in step 1", "3s released the answer of step 1", "3s judged step 1",
			"3s asked in step 2", "6s released the answer of step 2", "6s judged step 2",
		}, r.trace); d != "" {
			t.Errorf("%s: what was done (-want +got):\n%s", name, d)
		}
		if r.took > results["nobody"].took+100*time.Millisecond {
			t.Errorf("%s: it took %v, and %v unwatched", name, r.took, results["nobody"].took)
		}
	}
	if len(results["nobody"].journal) < 10 {
		t.Errorf("the journal is %v", results["nobody"].journal)
	}
}

// seen is what somebody watched: the text of each model call, the kinds of events,
// and the last number.
type seen struct {
	text  map[string]string // by "step/attempt channel"
	kinds []string
	last  uint64
	live  int // pieces that came before they were in the journal
}

func (s *seen) see(w *world, n engine.Notice) {
	w.Helper()
	switch n := n.(type) {
	case engine.Happened:
		s.kinds = append(s.kinds, n.Event.Kind())
		s.last = n.Seq
	case engine.Superseded:
		s.kinds = append(s.kinds, fmt.Sprintf("superseded %d/%d", n.Step, n.Attempt))
	case engine.Shown:
		key := fmt.Sprintf("%d/%d %s", n.Step, n.Attempt, n.Channel)
		if int64(len(s.text[key])) != n.Start {
			w.Errorf("%s: text from %d, and there are %d bytes", key, n.Start, len(s.text[key]))
		}
		s.text[key] += n.Text
		if n.Seq == 0 {
			s.live++
		} else {
			s.last = n.Seq
		}
	}
}

func answers() map[string]string {
	want := map[string]string{}
	for step := 1; step <= 2; step++ {
		for i := range 300 {
			want[fmt.Sprintf("%d/1 content", step)] += fmt.Sprintf("s%d-%d ", step, i)
		}
	}
	return want
}

var turnKinds = []string{
	"created", "claimed", "model_started", "model_answered", "call_started", "call_started", "call_finished", "call_finished",
	"step_evaluated", "model_started", "model_answered", "step_evaluated", "ended",
}

// Text comes as it is released where the run is advanced, and from the journal
// elsewhere; whole, and once.
func TestWatch(t *testing.T) {
	for name, elsewhere := range map[string]bool{"here": false, "in another process": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				e := w.engine(talkative())
				watching := e
				if elsewhere {
					watching = w.engine(talkative())
				}
				ref := w.start(e)
				got := seen{text: map[string]string{}}
				for n, err := range watching.Watch(w.ctx, ref, 0) {
					if err != nil {
						w.Fatal(err)
					}
					got.see(w, n)
				}
				if d := cmp.Diff(answers(), got.text) + cmp.Diff(turnKinds, got.kinds); d != "" {
					w.Errorf("(-want +got):\n%s", d)
				}
				if (got.live > 500) == elsewhere || elsewhere && got.live > 0 {
					w.Errorf("%d pieces came before they were in the journal", got.live)
				}
				if row := w.comesTo(ref, journal.Completed); got.last != row.Tail.Seq {
					w.Errorf("the last number is %d, want %d", got.last, row.Tail.Seq)
				}
			})
		})
	}
}

// Whoever leaves and comes back with the last number, at any moment and in any
// process, has seen everything in the end, once each.
func TestWatchFromANumber(t *testing.T) {
	inWorld(t, func(w *world) {
		e := w.engine(talkative())
		elsewhere := w.engine(talkative())
		ref := w.start(e)
		got := seen{text: map[string]string{}}
		for visit := 0; ; visit++ {
			n, done := 0, true
			in := []*engine.Engine{e, elsewhere}[visit%2]
			for notice, err := range in.Watch(w.ctx, ref, got.last) {
				if err != nil {
					w.Fatal(err)
				}
				if shown, ok := notice.(engine.Shown); ok {
					// What was shown without a number comes again; its start says where it goes.
					key := fmt.Sprintf("%d/%d %s", shown.Step, shown.Attempt, shown.Channel)
					if shown.Start > int64(len(got.text[key])) {
						w.Fatalf("%s: text from %d, and there are %d bytes", key, shown.Start, len(got.text[key]))
					}
					got.text[key] = got.text[key][:shown.Start]
				}
				got.see(w, notice)
				if n++; n == 5+visit {
					done = false
					break
				}
			}
			if done {
				break
			}
		}
		if d := cmp.Diff(answers(), got.text) + cmp.Diff(turnKinds, got.kinds); d != "" {
			w.Errorf("(-want +got):\n%s", d)
		}
	})
}

// Text of an attempt that was lost is said to be superseded, to whoever had seen
// it and to whoever comes later.
func TestSuperseded(t *testing.T) {
	inWorld(t, func(w *world) {
		asked := make(chan struct{})
		e, m := w.mortal(&script{answer: func(ctx context.Context, _ engine.ModelCall, show engine.Show) run.Event {
			show("content", strings.Repeat("half an answer ", 500))
			close(asked)
			<-ctx.Done()
			return nil
		}})
		ref := w.start(e)
		<-asked
		synctest.Wait()
		m.stall()
		other := w.engine(&script{answer: steps()})
		w.comesTo(ref, journal.Completed)
		got := seen{text: map[string]string{}}
		for n, err := range other.Watch(w.ctx, ref, 0) {
			if err != nil {
				w.Fatal(err)
			}
			got.see(w, n)
		}
		want := []string{"created", "claimed", "model_started", "claimed", "superseded 1/1", "model_started", "model_answered", "step_evaluated", "ended"}
		if d := cmp.Diff(want, got.kinds); d != "" || got.text["1/2 content"] != "all done" {
			w.Errorf("%v (-want +got):\n%s", got.text, d)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		e := w.engine(&script{answer: steps(calls(gated("b")))})
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		var last error
		waits := false
		for n, err := range e.Watch(ctx, ref, 0) {
			last = err
			if h, ok := n.(engine.Happened); ok {
				waits = h.State.Status() == run.StatusWaitingApproval
			}
		}
		if !errors.Is(last, context.DeadlineExceeded) || !waits {
			w.Errorf("it ended with %v, waiting %v", last, waits)
		}
		for _, err := range e.Watch(w.ctx, journal.Ref{Tenant: "t", Run: ref.Run}, 0) {
			if !errors.Is(err, journal.ErrNotFound) {
				w.Errorf("another tenant's run: %v", err)
			}
		}
	})
}
