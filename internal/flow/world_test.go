package flow_test

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
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/internal/signal"
)

// A world is a journal, and hosts of playbooks on it whose programs and models do
// as a test says.
type world struct {
	*testing.T
	ctx   context.Context
	store *sqlite.Store

	// program is what running a program does; nil: as builtin.
	program func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error)
	// judge is what a model says; nil: nobody may be asked.
	judge func(ctx context.Context, q flow.Inquiry) flow.Judgement
	// evaluate judges histories; nil: all is well.
	evaluate func(h signal.History) signal.Evaluation
	// turn is an agent; nil: there are none.
	turn *turns
	// change changes a host's options.
	change func(*flow.Options)
	// second: a second person must decide.
	second bool
	// verdict is what becomes of secrets in what steps say; zero: they are redacted.
	verdict guard.Verdict
	// noEvaluator: the profile has none.
	noEvaluator bool

	mu    sync.Mutex
	ran   []string       // programs, in order
	specs []sandbox.Spec // that they were run with
	asked []flow.Inquiry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	var err error
	if w.store, err = sqlite.Open(w.ctx, filepath.Join(t.TempDir(), "stoplog.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// builtin are the programs that every world has: say WORDS…, complain WORDS…, and
// exit CODE.
func builtin(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
	r := sandbox.Result{End: sandbox.Exited}
	words := strings.Join(s.Argv[1:], " ")
	switch filepath.Base(s.Argv[0]) {
	case "say":
		fmt.Fprintln(s.Stdout, words)
	case "complain":
		fmt.Fprintln(s.Stderr, words)
		r.Exit = 1
	case "exit":
		if _, err := fmt.Sscan(words, &r.Exit); err != nil {
			return r, err
		}
	default:
		return r, fmt.Errorf("there is no program %s", s.Argv[0])
	}
	return r, nil
}

func (w *world) run(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
	w.mu.Lock()
	w.ran = append(w.ran, strings.Join(s.Argv, " "))
	w.specs = append(w.specs, s)
	w.mu.Unlock()
	if w.program != nil {
		return w.program(ctx, s)
	}
	return builtin(ctx, s)
}

// Judge implements [flow.Judge].
func (w *world) Judge(ctx context.Context, q flow.Inquiry) flow.Judgement {
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	if w.judge == nil {
		return flow.Judgement{State: steps.Failed, Reason: "nobody may be asked"}
	}
	return w.judge(ctx, q)
}

// says is a judgement with a verdict.
func says(verdict string) flow.Judgement {
	out, err := json.Marshal(map[string]string{"verdict": verdict})
	if err != nil {
		panic(err) // a map of strings always has a form
	}
	return flow.Judgement{State: steps.Passed, Output: out, Served: "claude-sonnet-4-5-20250929", Usage: signal.Usage{Input: 90, Output: 10}}
}

// Evaluate implements [engine.Evaluator].
func (w *world) Evaluate(_ context.Context, h signal.History) signal.Evaluation {
	if w.evaluate == nil {
		return signal.Evaluation{}
	}
	return w.evaluate(h)
}

func (w *world) profile(name string) (flow.Profile, error) {
	if name != "" && name != "default" {
		return flow.Profile{}, fmt.Errorf("there is no profile %q", name)
	}
	verdict := guard.Redact
	if w.verdict != guard.Allow {
		verdict = w.verdict
	}
	secrets, err := secretsGuard(verdict)
	if err != nil {
		return flow.Profile{}, err
	}
	p := flow.Profile{
		Name: "default", Digest: "d", Evaluator: w, Expire: time.Hour, SecondPerson: w.second,
		Guards: []guard.Member{{Guard: secrets, Mode: guard.Enforce}},
	}
	if w.noEvaluator {
		p.Evaluator = nil
	}
	if w.turn != nil {
		p.Turn = func(text string, row journal.Run) (engine.Task, error) {
			return engine.Task{
				Tenant: row.Tenant, Run: row.Run, Parent: row.Parent, Profile: "default", Starter: row.Starter, Text: text,
			}, nil
		}
	}
	return p, nil
}

// secretsGuard redacts the secrets that the built-in rules know.
func secretsGuard(verdict guard.Verdict) (guard.Guard, error) {
	selected, err := rules.Select("github-pat")
	if err != nil {
		return nil, err
	}
	return match.Compile(selected, match.Options{Name: "secrets", Verdict: verdict})
}

// turns is an agent that says one thing, after a person's approval if gated.
type turns struct {
	w     *world
	gated bool
	says  string
}

func (t *turns) Agent(context.Context, journal.Run) (engine.Agent, error) {
	return engine.Agent{Model: t, Tools: t, Evaluator: t.w, Expire: time.Hour}, nil
}

func (t *turns) Messages(engine.ModelCall, int) ([]json.RawMessage, error) { return nil, nil }

func (t *turns) Ask(_ context.Context, c engine.ModelCall, _ engine.Show) run.Event {
	if t.gated && c.Step == 1 {
		return run.ModelAnswered{Answer: run.Answer{Calls: []run.Call{{Tool: "write", Args: `{}`, Ruling: run.Gated}}}}
	}
	return run.ModelAnswered{Answer: run.Answer{Text: t.says, Usage: signal.Usage{Input: 5, Output: 5}}}
}

func (t *turns) Call(context.Context, engine.ToolCall) engine.ToolResult {
	return engine.ToolResult{Text: "done"}
}

// host is a host of playbooks on an engine of its own.
type host struct {
	*flow.Host
	engine *engine.Engine
}

// host makes a host. Its engine is closed with the test.
func (w *world) host() host {
	w.Helper()
	return w.hostOn(w.store)
}

func (w *world) hostOn(store journal.Store) host {
	w.Helper()
	o := flow.Options{Store: store, Profiles: w.profile, Run: w.run, Judge: w}
	if w.change != nil {
		w.change(&o)
	}
	h, err := flow.New(o)
	if err != nil {
		w.Fatal(err)
	}
	agents := w.turn
	if agents == nil {
		agents = &turns{w: w}
	}
	e, err := engine.New(engine.Options{
		Store: store, Agents: agents, Others: map[journal.RunKind]engine.Other{journal.PlaybookRun: h},
		Host: "here", Lease: 500 * time.Millisecond, Tick: 50 * time.Millisecond,
	})
	if err != nil {
		w.Fatal(err)
	}
	h.Attach(e)
	w.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			w.Error(err)
		}
	})
	return host{h, e}
}

// tree is the files of an archive; a text without a file is pb.yaml.
func tree(text string) fstest.MapFS {
	a := txtar.Parse([]byte(text))
	fs := fstest.MapFS{}
	if len(a.Files) == 0 {
		a.Files = []txtar.File{{Name: "pb.yaml", Data: []byte(text)}}
	}
	for _, f := range a.Files {
		fs[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return fs
}

// start starts the playbook pb.yaml of an archive; inputs are NAME=VALUE.
func (w *world) start(h host, text string, inputs ...string) journal.Ref {
	w.Helper()
	r := flow.Request{Starter: "ann", Root: "/work", Tree: tree(text), File: "pb.yaml", Inputs: map[string]string{}}
	for _, in := range inputs {
		name, value, _ := strings.Cut(in, "=")
		r.Inputs[name] = value
	}
	ref, err := h.Start(w.ctx, r)
	if err != nil {
		w.Fatal(err)
	}
	return ref
}

// comesTo waits until a run has a status, and returns its state. It fails the test
// if the run ends with another.
func (w *world) comesTo(ref journal.Ref, want journal.Status) steps.State {
	w.Helper()
	row := w.row(ref, want)
	s, err := flow.StateOf(w.ctx, w.store, ref)
	if err != nil {
		w.Fatal(err)
	}
	if row.Status != want {
		w.Fatalf("the run came to %s (%s), and not to %s: %s", row.Status, row.Reason, want, s.Message)
	}
	return s
}

func (w *world) row(ref journal.Ref, want journal.Status) journal.Run {
	w.Helper()
	ctx, stop := context.WithTimeout(w.ctx, 20*time.Second)
	defer stop()
	for {
		row, err := w.store.Run(ctx, ref)
		if err != nil {
			w.Fatal(err)
		}
		if row.Status == want || row.Status.Terminal() {
			return row
		}
		wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // a status may change without an event
		err = w.store.Await(wait, ref, row.Tail.Seq)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			w.Fatalf("the run is %s, and not %s: %v", row.Status, want, err)
		}
	}
}

// decide decides the only open question of a run.
func (w *world) decide(h host, ref journal.Ref, state journal.QuestionState, by string) error {
	w.Helper()
	q := w.question(ref)
	_, err := h.engine.Decide(w.ctx, ref.Tenant, approval.Decision{ID: q.ID, Digest: q.Digest, State: state, By: by, Text: "because"})
	return err
}

func (w *world) question(ref journal.Ref) journal.Question {
	w.Helper()
	qs, err := w.store.Questions(w.ctx, journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run, State: journal.QuestionPending})
	if err != nil || len(qs) != 1 {
		w.Fatalf("%d questions are open: %v", len(qs), err)
	}
	return qs[0]
}

// stands says where the steps of a run stand, as ID STATE, …
func stands(s steps.State) string {
	var all []string
	for _, p := range flow.Steps(s) {
		all = append(all, p.ID+" "+p.State)
	}
	return strings.Join(all, ", ")
}

// programs are those that ran, in order.
func (w *world) programs() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.ran, "; ")
}

func (w *world) inquiries() []flow.Inquiry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// expect fails the test if steps stand otherwise.
func (w *world) expect(s steps.State, want string) {
	w.Helper()
	if got := stands(s); got != want {
		w.Errorf("steps are\n\t%s\nwant\n\t%s\n%s", got, want, s.Message)
	}
}
