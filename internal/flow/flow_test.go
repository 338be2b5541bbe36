package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/internal/signal"
	"github.com/stoplog/stoplog/playbook"
)

// Steps run in order; what one says, later ones use, as one argument whatever is in
// it; inputs have types.
func TestInOrder(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
playbook: greet
inputs:
  who: string
  times: {type: integer, default: 2}
outputs: {greeting: 'steps["first"].outputs.word'}
steps:
  - id: first
    type: run
    run: [say, {expr: 'inputs.who + "; rm x"'}]
    outputs:
      word: steps["first"].stdout.trim()
      n: inputs.times + 1
    effect: read
  - id: second
    type: run
    when: steps["first"].outputs.n == 3 && steps["first"].exit_code == 0
    run: [say, {expr: 'steps["first"].outputs.word'}, {expr: 'steps["first"].outputs.n'}]
    env: {WHO: {expr: inputs.who}, CI: "true"}
    scope: {can_read: ["in/**"], can_write: ["tmp/**"], can_run: [./x], can_reach: ["a.example:443"]}
  - id: third
    type: run
    when: steps["second"].stdout.contains("nobody")
    run: say third
`, "who=ann")
	s := w.comesTo(ref, journal.Completed)
	w.expect(s, "first passed, second passed, third skipped")
	if got := w.programs(); got != "say ann; rm x; say ann; rm x 3" {
		t.Errorf("it ran %q", got)
	}
	spec := w.specs[1]
	if len(spec.Argv) != 3 || spec.Argv[1] != "ann; rm x" {
		t.Errorf("the words are %q", spec.Argv)
	}
	if sc := spec.Scope; sc.Root != "/work" || strings.Join(append(append(sc.Read, sc.Write...), append(sc.Run, sc.Hosts...)...), " ") != "in/** tmp/** ./x a.example:443" {
		t.Errorf("the scope is %+v", sc)
	}
	env := strings.Join(spec.Env, " ")
	if !strings.Contains(env, "WHO=ann CI=true") || strings.Contains(env, "HOME=") {
		t.Errorf("the environment is %s", env)
	}
}

// With needs steps run side by side: two that wait for each other come to their end.
func TestSideBySide(t *testing.T) {
	w := newWorld(t)
	met := make(chan struct{}, 2)
	both := make(chan struct{})
	w.program = func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		met <- struct{}{}
		if len(met) == 2 {
			close(both)
		}
		select {
		case <-both:
			return sandbox.Result{End: sandbox.Exited}, nil
		case <-ctx.Done():
			return sandbox.Result{End: sandbox.Cancelled}, nil
		}
	}
	ref := w.start(w.host(), `
playbook: pair
steps:
  - {id: a, type: run, run: say a, needs: []}
  - {id: b, type: run, run: say b, needs: []}
`)
	w.expect(w.comesTo(ref, journal.Completed), "a passed, b passed")
}

// Every way in which a program can end has its state.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  sandbox.Result
		err  error
		want string
		as   journal.Status
		why  run.Reason
	}{
		"code":     {end: sandbox.Result{End: sandbox.Exited, Exit: 3}, want: "a failed, b skipped", as: journal.Failed, why: "step_failed"},
		"signal":   {end: sandbox.Result{End: sandbox.Signalled, Signal: 9}, want: "a failed, b skipped", as: journal.Failed, why: "step_failed"},
		"time":     {end: sandbox.Result{End: sandbox.TimedOut}, want: "a failed_timeout, b skipped", as: journal.Failed, why: "timeout"},
		"flood":    {end: sandbox.Result{End: sandbox.Flooded}, want: "a failed, b skipped", as: journal.Failed, why: "step_failed"},
		"left":     {end: sandbox.Result{End: sandbox.Exited, Left: 2}, want: "a failed, b skipped", as: journal.Failed, why: "step_failed"},
		"refused":  {err: &sandbox.RefusedError{Part: "landlock", Err: errors.ErrUnsupported}, want: "a blocked, b skipped", as: journal.Blocked, why: "sandbox_refused"},
		"no such":  {err: errors.New("no such program"), want: "a failed, b skipped", as: journal.Failed, why: "step_failed"},
		"all well": {end: sandbox.Result{End: sandbox.Exited}, want: "a passed, b passed", as: journal.Completed, why: "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.program = func(context.Context, sandbox.Spec) (sandbox.Result, error) { return c.end, c.err }
			ref := w.start(w.host(), "playbook: p\nsteps:\n  - {id: a, type: run, run: say a}\n  - {id: b, type: run, run: say b}\n")
			s := w.comesTo(ref, c.as)
			w.expect(s, c.want)
			if s.Then.Reason != c.why {
				t.Errorf("the reason is %s, want %s", s.Then.Reason, c.why)
			}
		})
	}
}

// What a step says is screened before anybody sees it: the journal, and later steps.
func TestOutputIsScreened(t *testing.T) {
	w := newWorld(t)
	secret := "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36]
	w.program = func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		if s.Argv[0] == "leak" {
			for _, part := range []string{"token " + secret[:7], secret[7:20], secret[20:] + " ok\n"} {
				if _, err := s.Stdout.Write([]byte(part)); err != nil {
					return sandbox.Result{}, err
				}
			}
		}
		return sandbox.Result{End: sandbox.Exited}, nil
	}
	ref := w.start(w.host(), `
playbook: p
steps:
  - {id: a, type: run, run: leak, outputs: {said: 'steps["a"].stdout'}}
  - {id: b, type: run, run: [use, {expr: 'steps["a"].outputs.said'}]}
`)
	w.comesTo(ref, journal.Completed)
	for rec, err := range w.store.Events(t.Context(), ref, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(rec.Payload), secret[7:20]) {
			t.Errorf("event %d (%s) has a part of the secret", rec.Seq, rec.Kind)
		}
	}
	if got := w.specs[1].Argv[1]; !strings.HasPrefix(got, "token ") || !strings.HasSuffix(got, " ok\n") || strings.Contains(got, secret[7:20]) {
		t.Errorf("the next step got %q", got)
	}
}

// A pause holds no worker; what it shows is what the decision binds to; a yes lets
// what is irreversible run.
func TestPause(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
playbook: p
inputs: {target: string}
steps:
  - {id: plan, type: run, run: say three files, effect: read}
  - id: confirm
    type: pause
    reason: production deploy
    show: {plan: 'steps["plan"].stdout.trim()'}
    preview: say would change three files
    approvers: [bea]
    expire: 2h
  - {id: deploy, type: run, run: say deployed, effect: irreversible}
`, "target=prod")
	w.comesTo(ref, journal.WaitingApproval)
	row, err := w.store.Run(t.Context(), ref)
	if err != nil || row.Owner != "" {
		t.Errorf("a run that waits is held by %q: %v", row.Owner, err)
	}
	var shown struct {
		Reason, Preview, Playbook string
		Inputs, Shown             map[string]string
		Approvers                 []string
	}
	if err := json.Unmarshal(w.question(ref).Shown, &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Reason != "production deploy" || shown.Preview != "would change three files\n" || shown.Inputs["target"] != "prod" || shown.Shown["plan"] != "three files" {
		t.Errorf("it shows %+v", shown)
	}
	if err := w.decide(h, ref, journal.QuestionApproved, "cas"); !errors.Is(err, approval.ErrNotApprover) {
		t.Errorf("somebody else approved it: %v", err)
	}
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	s := w.comesTo(ref, journal.Completed)
	w.expect(s, "plan passed, confirm passed, deploy passed")
	if got := w.programs(); got != "say three files; say would change three files; say deployed" {
		t.Errorf("it ran %q", got)
	}
}

// A no ends the run, and silence is a no.
func TestPauseDenied(t *testing.T) {
	const pb = `
playbook: p
steps:
  - {id: confirm, type: pause, reason: deploy, on_fail: continue, expire: 1s}
  - {id: deploy, type: run, run: say deployed, effect: irreversible}
`
	for name, c := range map[string]struct {
		pb   string
		no   bool
		want run.Reason
	}{
		"denied":  {strings.Replace(pb, "1s", "1h", 1), true, run.ReasonApprovalDenied},
		"expired": {pb, false, run.ReasonApprovalExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.host()
			ref := w.start(h, c.pb)
			w.comesTo(ref, journal.WaitingApproval)
			if c.no {
				if err := w.decide(h, ref, journal.QuestionDenied, "bea"); err != nil {
					t.Fatal(err)
				}
			}
			s := w.comesTo(ref, journal.Blocked)
			w.expect(s, "confirm blocked, deploy skipped")
			if s.Then.Reason != c.want || w.programs() != "" {
				t.Errorf("it came to %s, and ran %q", s.Then.Reason, w.programs())
			}
		})
	}
}

// Where a second person must decide, whoever started the run cannot.
func TestSecondPerson(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, "playbook: p\nsteps:\n  - {id: confirm, type: pause, reason: deploy, second_person: true}\n")
	w.comesTo(ref, journal.WaitingApproval)
	if err := w.decide(h, ref, journal.QuestionApproved, "ann"); !errors.Is(err, approval.ErrSecondPerson) {
		t.Errorf("who started it approved it: %v", err)
	}
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	w.comesTo(ref, journal.Completed)
}

// What is irreversible does not run without a person's yes of this run, however the
// file came past its checks; and a command that destroys is not run by a step that
// does not say so.
func TestUndeclared(t *testing.T) {
	w := newWorld(t)
	w.change = func(o *flow.Options) {
		o.Destroys = playbook.Destroys
	}
	h := w.host()
	for name, pb := range map[string]string{
		"irreversible": "{id: a, type: run, run: say a, effect: irreversible}",
		"touches":      "{id: a, type: run, run: say a, touches: [money], effect: idempotent}",
		"destroys":     "{id: a, type: run, run: [rm, {expr: '\"-rf\"'}, x]}",
	} {
		t.Run(name, func(t *testing.T) {
			s := w.comesTo(w.start(h, "playbook: p\nsteps:\n  - "+pb+"\n"), journal.Blocked)
			w.expect(s, "a blocked")
			if s.Then.Reason != flow.ReasonUndeclared || w.programs() != "" {
				t.Errorf("it came to %s, and ran %q", s.Then.Reason, w.programs())
			}
		})
	}
}

// A run that begins at a step passes over what comes before it, but not over pauses.
func TestFrom(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref, err := h.Start(t.Context(), flow.Request{
		Starter: "ann", Root: "/work", File: "pb.yaml", From: "deploy", Tree: tree(`
playbook: p
steps:
  - {id: build, type: run, run: say build}
  - {id: confirm, type: pause, reason: deploy}
  - {id: deploy, type: run, run: say deploy, effect: irreversible}
`)})
	if err != nil {
		t.Fatal(err)
	}
	w.comesTo(ref, journal.WaitingApproval)
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	w.expect(w.comesTo(ref, journal.Completed), "build skipped, confirm passed, deploy passed")
	if got := w.programs(); got != "say deploy" {
		t.Errorf("it ran %q", got)
	}
}

// The evaluator sees every attempt, and can stop the run.
func TestEvaluatorHalts(t *testing.T) {
	w := newWorld(t)
	w.evaluate = func(h signal.History) signal.Evaluation {
		r := signal.Report{Signal: "loop_detect", Mode: signal.Enforce, Judgement: signal.Judgement{Result: signal.OK}}
		if h.Steps == 2 && len(h.Recent) == 2 && h.Recent[1].Calls[0].Failed {
			r.Result = signal.Halt
		}
		return signal.Evaluation{Reports: []signal.Report{r}}
	}
	s := w.comesTo(w.start(w.host(), `
playbook: p
steps:
  - {id: a, type: run, run: say a}
  - {id: b, type: run, run: exit 1, on_fail: continue}
  - {id: c, type: run, run: say c}
`), journal.Blocked)
	w.expect(s, "a passed, b cancelled, c skipped")
	if s.Then.Reason != "signal_loop_detect" {
		t.Errorf("the reason is %s", s.Then.Reason)
	}
}

// A run is cancelled with all that it has under way, runs of its own included.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{})
	w.program = func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
		close(began)
		<-ctx.Done()
		return sandbox.Result{End: sandbox.Cancelled}, nil
	}
	h := w.host()
	ref := w.start(h, `
-- pb.yaml --
playbook: outer
steps:
  - {id: part, type: playbook, playbook: inner.yaml}
-- inner.yaml --
playbook: inner
steps:
  - {id: slow, type: run, run: sleep}
`)
	<-began
	if err := h.engine.Cancel(t.Context(), ref, "ann"); err != nil {
		t.Fatal(err)
	}
	s := w.comesTo(ref, journal.Cancelled)
	w.expect(s, "part cancelled")
	part := w.comesTo(journal.Ref{Tenant: ref.Tenant, Run: journal.ID(s.Steps[0].Run)}, journal.Cancelled)
	w.expect(part, "slow cancelled")
}

// A step that may have taken effect when its worker was lost is a person's to say.
func TestInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		choice run.Choice
		want   journal.Status
		stands string
		times  int
	}{
		"retry":   {run.Retry, journal.Completed, "write passed, next passed", 2},
		"done":    {run.TakeAsDone, journal.Completed, "write passed, next passed", 1},
		"abandon": {run.Abandon, journal.Cancelled, "write cancelled, next skipped", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			times := 0
			w.program = func(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
				if s.Argv[0] != "write" {
					return sandbox.Result{End: sandbox.Exited}, nil
				}
				if times++; times == 1 {
					return sandbox.Result{End: sandbox.Lost}, nil
				}
				return sandbox.Result{End: sandbox.Exited}, nil
			}
			h := w.host()
			ref := w.start(h, "playbook: p\nsteps:\n  - {id: write, type: run, run: write}\n  - {id: next, type: run, run: say next}\n")
			w.comesTo(ref, journal.WaitingDecision)
			if err := h.engine.Resolve(t.Context(), ref, engine.Resolution{Choice: c.choice, By: "bea"}); err != nil {
				t.Fatal(err)
			}
			w.expect(w.comesTo(ref, c.want), c.stands)
			if times != c.times {
				t.Errorf("it was begun %d times", times)
			}
		})
	}
}

// All that is wrong with what a run is given is said before it is made.
func TestInputs(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	_, err := h.Start(t.Context(), flow.Request{
		Root: "/work", File: "pb.yaml", Inputs: map[string]string{"n": "many", "deep": "yes", "other": "1", "env": "moon"}, Tree: tree(`
playbook: p
inputs:
  who: {type: string, description: whom to greet}
  n: integer
  deep: boolean
  env: {type: string, enum: [here, there]}
steps:
  - {id: a, type: run, run: say a}
`)})
	want := `input who (string) is missing: whom to greet
input n: "many" is no integer
input deep: "yes" is neither true nor false
input env: "moon" is not one of ["here" "there"]
input other: playbook p has none of that name`
	var bad *flow.InputError
	if !errors.As(err, &bad) || err.Error() != want {
		t.Errorf("it said\n%v\nwant\n%s", err, want)
	}
}
