package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// script is an agent that does as a test says. Steps are numbered from 1.
type script struct {
	mu sync.Mutex
	// answer says what the model does when it is asked.
	answer func(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event
	// call runs a tool.
	call func(ctx context.Context, c engine.ToolCall) engine.ToolResult
	// judge evaluates; nil: all is well.
	judge func(h signal.History) signal.Evaluation
	agent engine.Agent // its members beside these

	asked  []string // "step/attempt", in order
	called []string // "tool args", in order
}

func (s *script) Agent(context.Context, journal.Run) (engine.Agent, error) {
	a := s.agent
	a.Model, a.Tools, a.Evaluator = s, s, s
	return a, nil
}

func (s *script) Messages(c engine.ModelCall, from int) ([]json.RawMessage, error) {
	var all []json.RawMessage
	add := func(part int, v any) error {
		if part < from {
			return nil
		}
		b, err := json.Marshal(v)
		all = append(all, b)
		return err
	}
	if err := add(0, map[string]string{"role": "user", "content": c.State.Task}); err != nil {
		return nil, err
	}
	var behind []run.Step // those that the model was not told of, the newest first
	for step := range c.State.Past.Backward() {
		if step.Number < from {
			break
		}
		behind = append(behind, step)
	}
	for _, step := range slices.Backward(behind) {
		if err := add(step.Number, map[string]string{"role": "assistant", "content": step.Answer.Text}); err != nil {
			return nil, err
		}
		for _, w := range step.Work {
			if err := add(step.Number, map[string]string{"role": "tool", "content": w.Result.Text}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (s *script) Ask(ctx context.Context, c engine.ModelCall, show engine.Show) run.Event {
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%d/%d", c.Step, c.Attempt))
	s.mu.Unlock()
	return s.answer(ctx, c, show)
}

func (s *script) Call(ctx context.Context, c engine.ToolCall) engine.ToolResult {
	s.mu.Lock()
	s.called = append(s.called, c.Tool+" "+c.Args)
	s.mu.Unlock()
	if s.call == nil {
		return engine.ToolResult{Text: "result of " + c.Tool}
	}
	return s.call(ctx, c)
}

func (s *script) Evaluate(_ context.Context, h signal.History) signal.Evaluation {
	if s.judge == nil {
		return signal.Evaluation{}
	}
	return s.judge(h)
}

// says answers with words, shown in pieces.
func says(show engine.Show, pieces ...string) run.Event {
	for _, p := range pieces {
		show("content", p)
	}
	return run.ModelAnswered{Answer: run.Answer{Text: strings.Join(pieces, ""), Usage: signal.Usage{Input: 10, Output: 5}}}
}

// calls answers with calls.
func calls(all ...run.Call) run.Event {
	return run.ModelAnswered{Answer: run.Answer{Text: "let me see", Calls: all, Usage: signal.Usage{Input: 10, Output: 5}}}
}

func free(tool string) run.Call {
	return run.Call{ID: "c", Tool: tool, Args: `{}`, Ruling: run.Free, Repeatable: true}
}

func fenced(tool string) run.Call {
	return run.Call{ID: "c", Tool: tool, Args: `{}`, Ruling: run.Free}
}

func gated(tool string) run.Call {
	return run.Call{ID: "c", Tool: tool, Args: `{"path":"x"}`, Ruling: run.Gated}
}

// steps answers each step in turn; the last is final.
func steps(events ...run.Event) func(context.Context, engine.ModelCall, engine.Show) run.Event {
	return func(_ context.Context, c engine.ModelCall, show engine.Show) run.Event {
		if c.Step > len(events) {
			return says(show, "all ", "done")
		}
		return events[c.Step-1]
	}
}

// world is a store and the engines on it, in a bubble of its own time.
type world struct {
	*testing.T
	ctx  context.Context
	path string
	s    *sqlite.Store
}

// inWorld runs a test in a bubble, in which time passes when nothing else is to do.
func inWorld(t *testing.T, test func(w *world)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: context.Background(), path: filepath.Join(dir, "stoplog.db")}
		w.s = w.open(sqlite.Options{})
		test(w)
	})
}

func (w *world) open(o sqlite.Options) *sqlite.Store {
	w.Helper()
	s, err := sqlite.Open(w.ctx, w.path, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.Error(err)
		}
	})
	return s
}

// engine makes an engine on a store of its own, as another process has it.
func (w *world) engine(agents engine.Agents, change ...func(*engine.Options)) *engine.Engine {
	w.Helper()
	o := engine.Options{Store: w.open(sqlite.Options{}), Agents: agents, Host: "here"}
	for _, c := range change {
		c(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := e.Close(w.ctx); err != nil {
			w.Error(err)
		}
	})
	return e
}

func (w *world) start(e *engine.Engine, change ...func(*engine.Task)) journal.Ref {
	w.Helper()
	task := engine.Task{Profile: "default", Starter: "ann", Text: "do it"}
	for _, c := range change {
		c(&task)
	}
	ref, err := e.Start(w.ctx, task)
	if err != nil {
		w.Fatal(err)
	}
	return ref
}

// comesTo waits until the run's row has a status, and returns it.
func (w *world) comesTo(ref journal.Ref, status journal.Status) journal.Run {
	w.Helper()
	var after uint64
	for {
		r, err := w.s.Run(w.ctx, ref)
		if err != nil {
			w.Fatal(err)
		}
		if r.Status == status {
			return r
		}
		if r.Status.Terminal() {
			w.Fatalf("the run is %s (%s), and was to be %s\n%s", r.Status, r.Reason, status, w.tell(ref))
		}
		after = r.Tail.Seq
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		err = w.s.Await(ctx, ref, after)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.Fatal(err)
		}
	}
}

// tell is the run's log, a kind a line.
func (w *world) tell(ref journal.Ref) string {
	w.Helper()
	var b strings.Builder
	for r, err := range w.s.Events(w.ctx, ref, 0) {
		if err != nil {
			w.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", r.Kind)
	}
	return b.String()
}

// whole checks the chain, and that the run's log leads to the status on its row.
func (w *world) whole(ref journal.Ref) run.State {
	w.Helper()
	rep, err := journal.Verify(w.ctx, w.s, ref, journal.Link{})
	if err != nil || rep.Broken != nil {
		w.Errorf("run %s: %v, %v", ref, rep.Broken, err)
	}
	var s run.State
	for r, err := range w.s.Events(w.ctx, ref, 0) {
		if err != nil {
			w.Fatal(err)
		}
		if r.Kind == journal.MessagesAdded || r.Kind == journal.TextReleased {
			continue
		}
		e, err := run.Unmarshal(r.Kind, r.At, r.Payload)
		if err != nil {
			w.Fatal(err)
		}
		if err := run.Check(s, e); err != nil {
			w.Errorf("event %d: %v", r.Seq, err)
		}
		s = run.Apply(s, e)
	}
	row, err := w.s.Run(w.ctx, ref)
	if err != nil {
		w.Fatal(err)
	}
	if string(s.Status()) != string(row.Status) || row.Status.Terminal() && string(s.Reason()) != row.Reason {
		w.Errorf("the log comes to %s (%s), the row says %s (%s)", s.Status(), s.Reason(), row.Status, row.Reason)
	}
	return s
}
