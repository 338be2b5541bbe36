package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

func TestTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("read_file"), free("list_dir")))}
		e := w.engine(sc)
		ref := w.start(e)
		row := w.comesTo(ref, journal.Completed)
		s := w.whole(ref)
		if s.Step.Answer.Text != "all done" || s.Usage.Input != 20 || row.Reason != "completed" || row.Owner != "" {
			w.Errorf("it came to %q, %+v, row %+v", s.Step.Answer.Text, s.Usage, row)
		}
		const want = `created
claimed
messages_added
model_started
model_answered
call_started
call_started
call_finished
call_finished
step_evaluated
messages_added
model_started
text_released
model_answered
step_evaluated
ended
`
		if d := cmp.Diff(want, w.tell(ref)); d != "" {
			w.Errorf("(-want +got):\n%s", d)
		}
	})
}

// What the model was sent can be read back, word for word, for every step.
func TestMessagesAreRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("read_file")), calls(free("list_dir")))}
		ref := w.start(w.engine(sc))
		w.comesTo(ref, journal.Completed)
		var last journal.Messages
		parts := 0
		for r, err := range w.s.Events(w.ctx, ref, 0) {
			if err != nil {
				w.Fatal(err)
			}
			if r.Kind == journal.MessagesAdded {
				parts++
				if err := r.Decode(&last); err != nil {
					w.Fatal(err)
				}
			}
		}
		all, err := journal.ReadMessages(w.ctx, w.s, w.s.Key(), ref, last.List)
		if err != nil {
			w.Fatal(err)
		}
		got := ""
		for _, m := range all {
			got += string(m) + "\n"
		}
		const want = `{"content":"do it","role":"user"}
{"content":"let me see","role":"assistant"}
{"content":"result of read_file","role":"tool"}
{"content":"let me see","role":"assistant"}
{"content":"result of list_dir","role":"tool"}
`
		if d := cmp.Diff(want, got); d != "" || parts != 3 || len(last.New) != 2 {
			w.Errorf("%d parts, %d messages in the last (-want +got):\n%s", parts, len(last.New), d)
		}
	})
}

// Before an effect begins, what it hangs on is in the journal, for anybody to read.
func TestRecordedBeforeItShows(t *testing.T) {
	inWorld(t, func(w *world) {
		seen := map[string]string{}
		look := func(what string, c journal.Ref) {
			lines := strings.Split(strings.TrimSpace(w.tell(c)), "\n")
			seen[what] = strings.Join(lines[max(0, len(lines)-3):], " ")
		}
		sc := &script{}
		sc.answer = func(_ context.Context, c engine.ModelCall, show engine.Show) run.Event {
			look(fmt.Sprintf("ask %d", c.Step), c.Run.Ref)
			switch c.Step {
			case 1:
				return calls(fenced("run_command"))
			case 2:
				return calls(gated("write_file"))
			}
			return says(show, "done")
		}
		sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
			look(c.Tool, c.Run.Ref)
			return engine.ToolResult{Text: "ok"}
		}
		e := w.engine(sc)
		ref := w.start(e)
		w.comesTo(ref, journal.WaitingApproval)
		look("waiting", ref)
		w.decide(e, ref, journal.QuestionApproved)
		w.comesTo(ref, journal.Completed)
		look("completed", ref)
		w.whole(ref)
		want := map[string]string{
			"ask 1":       "claimed messages_added model_started",
			"run_command": "model_started model_answered call_started",
			"ask 2":       "step_evaluated messages_added model_started",
			"waiting":     "model_answered asked step_evaluated",
			"write_file":  "decided claimed call_started",
			"ask 3":       "step_evaluated messages_added model_started",
			"completed":   "model_answered step_evaluated ended",
		}
		if d := cmp.Diff(want, seen); d != "" {
			w.Errorf("the end of the journal when it began (-want +got):\n%s", d)
		}
	})
}

// A step of read-only tools takes at most 2 commits, one with a fenced write 3.
func TestCommits(t *testing.T) {
	for name, c := range map[string]struct {
		call run.Call
		most int64
	}{"read-only": {free("read_file"), 2}, "fenced": {fenced("run_command"), 3}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const n = 10
				var answers []run.Event
				for range n {
					answers = append(answers, calls(c.call))
				}
				sc := &script{answer: steps(answers...)}
				sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
					time.Sleep(100 * time.Millisecond) // longer than a commit lets itself wait
					return engine.ToolResult{Text: fmt.Sprint("result of step ", c.Step)}
				}
				var s *sqlite.Store
				e := w.engine(sc, func(o *engine.Options) { s = o.Store.(*sqlite.Store) })
				before := s.Stats().Commits
				ref := w.start(e)
				w.comesTo(ref, journal.Completed)
				// Beside the steps: the run is made, the last answer, the end.
				if got := s.Stats().Commits - before; got > n*c.most+4 {
					w.Errorf("%d commits for %d steps", got, n)
				}
			})
		})
	}
}

func TestModelIsAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		var asked []time.Time
		sc := &script{}
		sc.answer = func(_ context.Context, c engine.ModelCall, show engine.Show) run.Event {
			asked = append(asked, time.Now())
			if c.Attempt < 3 {
				return run.ModelFailed{Error: "overloaded", Retryable: true}
			}
			return says(show, "done")
		}
		ref := w.start(w.engine(sc))
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
		if len(asked) != 3 {
			w.Fatalf("asked %d times", len(asked))
		}
		if a, b := asked[1].Sub(asked[0]), asked[2].Sub(asked[1]); a < 250*time.Millisecond || b < 500*time.Millisecond || a > 2*time.Second {
			w.Errorf("left it alone for %v and %v", a, b)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	for name, sc := range map[string]*script{
		"a model that never ends": {answer: func(ctx context.Context, _ engine.ModelCall, show engine.Show) run.Event {
			show("content", "so far")
			<-ctx.Done()
			return run.ModelFailed{Error: "cut off"}
		}},
		"a tool that hangs": {
			answer: steps(calls(fenced("run_command"))),
			call: func(ctx context.Context, _ engine.ToolCall) engine.ToolResult {
				<-ctx.Done()
				return engine.ToolResult{Text: "cut off", Failed: true}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				began := time.Now()
				ref := w.start(w.engine(sc), func(t *engine.Task) { t.Limits = run.Limits{Timeout: time.Minute} })
				row := w.comesTo(ref, journal.Failed)
				if took := row.Ended.Sub(began); row.Reason != "timeout" || took < time.Minute || took > time.Minute+time.Second {
					w.Errorf("it ended with %s after %v", row.Reason, took)
				}
				if s := w.whole(ref); !strings.HasPrefix(s.Message, "Stopped: the time limit of 1m was reached.") {
					w.Errorf("it said %q", s.Message)
				}
			})
		})
	}
}

func TestBugsEndTheirRunAlone(t *testing.T) {
	for name, sc := range map[string]*script{
		"in a model": {answer: func(context.Context, engine.ModelCall, engine.Show) run.Event { panic("a bug") }},
		"in a tool":  {answer: steps(calls(free("t"))), call: func(context.Context, engine.ToolCall) engine.ToolResult { panic("a bug") }},
		"an answer that is none": {answer: func(context.Context, engine.ModelCall, engine.Show) run.Event {
			return run.Claimed{}
		}},
		"an answer that comes to nothing": {answer: func(context.Context, engine.ModelCall, engine.Show) run.Event {
			return nil
		}},
		"a question that cannot be shown": {answer: steps(calls(fenced("run_command"), run.Call{Tool: "b", Args: `{"a":1,"a":2}`, Ruling: run.Gated}))},
		"text that is not UTF-8": {answer: func(context.Context, engine.ModelCall, engine.Show) run.Event {
			return run.ModelAnswered{Answer: run.Answer{Text: "\xff"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				fine := &script{answer: steps()}
				e := w.engine(agents{"bad": sc, "default": fine})
				bad, good := w.start(e, func(t *engine.Task) { t.Profile = "bad" }), w.start(e)
				w.comesTo(good, journal.Completed)
				if row := w.comesTo(bad, journal.Failed); row.Reason != "internal_error" {
					w.Errorf("it ended with %s", row.Reason)
				}
				w.whole(bad)
				if slices.Contains(sc.called, "run_command {}") {
					w.Error("it ran a call beside a question that could not be asked")
				}
			})
		})
	}
}

// A run whose profile this process does not know is left for one that does; it can
// be cancelled all the same.
func TestUnknownProfile(t *testing.T) {
	inWorld(t, func(w *world) {
		e := w.engine(agents{}, func(o *engine.Options) { o.Profiles = []string{"other"} })
		ref, other := w.start(e), w.start(e)
		var why error
		for _, err := range e.Watch(w.ctx, ref, 0) {
			why = err
		}
		if why == nil || !strings.Contains(why.Error(), "there is no such profile") {
			w.Errorf("whoever watches is told %v", why)
		}
		w.comesTo(ref, journal.Queued)
		if err := e.Cancel(w.ctx, other, "ann"); err != nil {
			w.Error(err)
		}
		w.comesTo(other, journal.Cancelled)
		w.whole(other)
		w.engine(halfMade{}, func(o *engine.Options) { o.Profiles = []string{"other"} }).Wake(w.ctx, ref)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.comesTo(ref, journal.Queued)
		w.engine(&script{answer: steps()})
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
	})
}

// halfMade makes agents that nobody evaluates.
type halfMade struct{}

func (halfMade) Agent(context.Context, journal.Run) (engine.Agent, error) {
	sc := &script{answer: steps()}
	return engine.Agent{Model: sc, Tools: sc}, nil
}

// A turn names what the turn before it in the session has written down of what was
// said, and adds the rest.
func TestMessagesOfASession(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &remembering{script: &script{answer: steps(calls(free("read_file")))}}
		e := w.engine(sc)
		var last journal.Ref
		for turn := range 4 {
			last = w.start(e, func(t *engine.Task) {
				t.Session = "ses_01k44tn5c0abcdefghjkmnpqrs"
				t.Text = fmt.Sprint("task ", turn)
			})
			w.comesTo(last, journal.Completed)
		}
		var first journal.Messages
		for r, err := range w.s.Events(w.ctx, last, 0) {
			if err != nil {
				w.Fatal(err)
			}
			if r.Kind == journal.MessagesAdded {
				if err := r.Decode(&first); err != nil {
					w.Fatal(err)
				}
				break
			}
		}
		if len(first.New) != 2 || first.Run == "" {
			w.Errorf("the last turn wrote %d messages behind those of %q", len(first.New), first.Run)
		}
		all, err := journal.ReadMessages(w.ctx, w.s, w.s.Key(), last, first.List)
		got := fmt.Sprintf("%s", all)
		const want = `["task 0" "the answer" "task 1" "the answer" "task 2" "the answer" "task 3"]`
		if err != nil || got != want {
			w.Errorf("it was sent %s, %v; want %s", got, err, want)
		}
	})
}

// remembering tells the model of the turns before.
type remembering struct {
	*script
	tasks []string
}

func (m *remembering) Agent(ctx context.Context, r journal.Run) (engine.Agent, error) {
	a, err := m.script.Agent(ctx, r)
	a.Model = m
	return a, err
}

func (m *remembering) Messages(c engine.ModelCall, from int) ([]json.RawMessage, error) {
	if from > 0 {
		return m.script.Messages(c, from)
	}
	m.tasks = append(m.tasks, c.State.Task)
	var all []json.RawMessage
	for i, task := range m.tasks {
		if i > 0 {
			all = append(all, json.RawMessage(`"the answer"`))
		}
		all = append(all, json.RawMessage(fmt.Sprintf("%q", task)))
	}
	return all, nil
}

// An evaluator that panics halts: what was not judged does not go on.
func TestEvaluatorPanics(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(free("a"))), judge: func(signal.History) signal.Evaluation { panic("a bug") }}
		ref := w.start(w.engine(sc))
		if row := w.comesTo(ref, journal.Blocked); row.Reason != "signal_error" {
			w.Errorf("it ended with %s", row.Reason)
		}
		if w.whole(ref); len(sc.asked) != 1 {
			w.Errorf("the model was asked %v", sc.asked)
		}
	})
}

// agents finds scripts by profile.
type agents map[string]*script

func (a agents) Agent(ctx context.Context, r journal.Run) (engine.Agent, error) {
	if a[r.Profile] == nil {
		return engine.Agent{}, errors.New("there is no such profile")
	}
	return a[r.Profile].Agent(ctx, r)
}

func TestScreenedFarewell(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: func(context.Context, engine.ModelCall, engine.Show) run.Event {
			return run.ModelFailed{Error: "no"}
		}}
		sc.agent.Screen = func(_ context.Context, text string) string { return strings.ReplaceAll(text, "answer", "[REDACTED]") }
		ref := w.start(w.engine(sc))
		w.comesTo(ref, journal.Failed)
		if s := w.whole(ref); !strings.Contains(s.Message, "gave no [REDACTED]") {
			w.Errorf("it said %q", s.Message)
		}
	})
}

func TestPlacement(t *testing.T) {
	inWorld(t, func(w *world) {
		sc := &script{answer: steps(calls(gated("t")))}
		here := w.engine(sc)
		ref := w.start(here, func(t *engine.Task) { t.Workdir = "/srv/app" })
		w.comesTo(ref, journal.WaitingApproval)
		w.close(here)
		there := w.engine(sc, func(o *engine.Options) { o.Host = "there" })
		w.decide(there, ref, journal.QuestionApproved)
		time.Sleep(time.Minute)
		synctest.Wait()
		if row, err := w.s.Run(w.ctx, ref); err != nil || row.Status != journal.WaitingApproval {
			w.Errorf("elsewhere it came to %s, %v", row.Status, err)
		}
		var placed *journal.PlacedError
		if err := there.Resume(w.ctx, ref); !errors.As(err, &placed) {
			w.Errorf("resumed elsewhere: %v", err)
		}
		w.engine(sc) // here again: its sweep finds the run
		w.comesTo(ref, journal.Completed)
		w.whole(ref)
	})
}

func (w *world) close(e *engine.Engine) {
	w.Helper()
	if err := e.Close(w.ctx); err != nil {
		w.Error(err)
	}
}

// A run that has grown long is taken up from a snapshot, and comes to the same.
func TestSnapshot(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 120
		gate := make(chan struct{})
		sc := &script{}
		sc.answer = func(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
			if c.Step == n && c.Attempt == 1 {
				close(gate)
				<-ctx.Done()
				return nil
			}
			if c.Step > n {
				return says(show, "done")
			}
			a := calls(free("read_file")).(run.ModelAnswered)
			a.Answer.Text = strings.Repeat(fmt.Sprintf("thought %d ", c.Step), 200)
			return a
		}
		sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
			return engine.ToolResult{Text: fmt.Sprint("result of ", c.Step)}
		}
		first := w.engine(sc)
		ref := w.start(first, func(t *engine.Task) { t.Limits = run.Limits{MaxIterations: 2 * n} })
		<-gate
		s, err := w.s.Snapshot(w.ctx, ref)
		if err != nil || s.Seq < 10 {
			w.Fatalf("the snapshot is at %d, %v", s.Seq, err)
		}
		w.close(first)
		w.engine(sc)
		w.comesTo(ref, journal.Completed)
		if s := w.whole(ref); s.Step.Number != n+1 || s.Past.Len() != n {
			w.Errorf("it came to step %d behind %d", s.Step.Number, s.Past.Len())
		}
	})
}
