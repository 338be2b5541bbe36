package flow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callSites are the places on which a playbook's run rests: where guards, the
// evaluator and people are asked, and where what must be on record is put there
// first. For each stands the test that fails when it is taken out. Whoever moves a
// place moves its line, and tries again.
var callSites = []struct{ what, file, source, pkg, test string }{
	{"what a step says is judged", "output.go", "out, step := f.Write(nil, p)", ".", "TestOutputIsScreened"},
	{"by the profile's guards", "output.go", "guard.NewChain(guard.Options{}, w.hold.profile.Guards...)", ".", "TestOutputIsScreened"},
	{"a deny ends the step", "command.go", "r.State, r.Reason = steps.Blocked, run.ReasonGuardDenied", ".", "TestOutputIsDenied"},
	{"last words and previews are judged", "perform.go", "guard.NewChain(guard.Options{}, guards...)", ".", "TestPreviewIsScreened"},
	{"an attempt is judged", "steps/decide.go", "worst := e.Evaluation().Worst()", "steps", "TestTranscripts"},
	{"the evaluator is asked", "perform.go", "return t.profile.Evaluator.Evaluate(ctx, h)", ".", "TestEvaluatorHalts"},
	{"nothing goes on without one", "perform.go", "return halt(\"the profile has none\")", ".", "TestNoEvaluator"},
	{"what an effect needs is durable first", "perform.go", "if demand.Fence || demand.After > t.durable {", ".", "TestKilledAtEveryAppend"},
	{"what is irreversible waits for a person", "perform.go", "why := t.forbidden(eff.Step)", ".", "TestUndeclared"},
	{"what destroys says so", "command.go", "if why := w.destroys(spec.Argv); why != \"\" {", ".", "TestUndeclared"},
	{"a program has the step's scope", "command.go", "Scope: sandboxScope(scopeOf(scope), w.hold.row.Workdir)", ".", "TestInOrder"},
	{"a question is put", "ask.go", "_, err := approval.Ask(ctx, tx, t.lease, q.request)", ".", "TestPause"},
	{"who started the run does not decide", "ask.go", "r.NotBy = t.row.Starter", ".", "TestSecondPerson"},
	{"a decision is about what would go on", "ask.go", "Bound: would == [32]byte(asked) && would == row.Digest}", ".", "TestPauseBinds"},
	{"it is used in the write that goes on", "ask.go", "approval.Take(ctx, tx, t.lease, row.ID, [32]byte(asked), subject)", ".", "TestPauseBinds"},
	{"silence is a no", "ask.go", "case taken.State == journal.QuestionPending || taken.State == journal.QuestionExpired:", ".", "TestPauseDenied"},
	{"only approvers approve", "../approval/approval.go", "mayApprove(q, d)", ".", "TestPause"},
	{"a wish to cancel is heard", "hold.go", "t.happen(steps.RunCancelled{Stamp: now(), By: row.CancelBy})", ".", "TestCancel"},
	{"the log ends where the row says", "hold.go", "if tail != t.row.Tail {", ".", "TestAlteredLog"},
	{"and is followed link by link", "hold.go", "tail.Follow(t.store.Key(), r)", ".", "TestAlteredLog"},
	{"an observer that is silent has failed", "observe.go", "seen.Verdict, seen.Why = steps.ObserverFailed, valid(broke.Error())", ".", "TestObserverFails"},
}

// TestCallSites keeps the list true: each place and each test is there.
func TestCallSites(t *testing.T) {
	for _, s := range callSites {
		if n := strings.Count(source(t, s.file), s.source); n != 1 {
			t.Errorf("%s: %q stands %d times in %s", s.what, s.source, n, s.file)
		}
		files, err := filepath.Glob(filepath.Join(s.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		tests := ""
		for _, f := range files {
			tests += source(t, f)
		}
		if !strings.Contains(tests, "\nfunc "+s.test+"(t *testing.T) {") {
			t.Errorf("%s: %s has no %s", s.what, s.pkg, s.test)
		}
	}
}

func source(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
