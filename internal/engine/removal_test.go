package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callSites are the places on which a governed run rests: where the evaluator and
// the guards are asked, where a call passes the door, and where what must be in
// the journal is put there first. For each stands the test that fails when it is
// taken out; that was tried by hand for every line. Whoever moves a place moves
// its line, and tries again.
var callSites = []struct{ what, file, source, pkg, test string }{
	{"a step is judged", "../run/loop.go", "\treturn []Effect{s.evaluate(0)}\n\tcase Ending:", "../run", "TestTranscripts"},
	{"a pause is judged", "../run/loop.go", "\treturn []Effect{s.evaluate(s.Pauses + 1)}", "../run", "TestTranscripts"},
	{"the evaluator is asked", "perform.go", "return t.agent.Evaluator.Evaluate(ctx, h)", ".", "TestStepInQuestion"},
	{"it is the profile's", "../agent/agent.go", "Evaluator: p.Evaluator, Screen", "../agent", "TestTurnPassesTheDoor"},
	{"last words are judged", "perform.go", "message = t.agent.Screen(t.ctx, message)", ".", "TestScreenedFarewell"},
	{"they are judged by the profile", "../agent/agent.go", "Screen: p.screen,", "../agent", "TestLastWordsAreJudged"},
	{"they are judged by its guards", "../agent/agent.go", "guard.NewChain(guard.Options{Allowed: p.Allowed}, p.Output...)", "../agent", "TestLastWordsAreJudged"},
	{"the model is asked through the door", "../agent/agent.go", "Transport: a.door}", "../agent", "TestTurnPassesTheDoor"},
	{"calls are ruled on", "../agent/model.go", "s.Judge(govern.Call{", "../agent", "TestTurnPassesTheDoor"},
	{"calls run through the door", "../agent/agent.go", "session.Call(ctx, govern.Call{", "../agent", "TestTurnPassesTheDoor"},
	{"with the approval that they need", "../agent/agent.go", "if approval, err = s.approval(ctx, c); err != nil {", "../agent", "TestTurnPassesTheDoor"},
	{"and only where somebody gave one", "perform.go", "Approved: w.Ruling == run.Gated,", "../agent", "TestTurnPassesTheDoor"},
	{"approvals bind to the profile in force", "../agent/agent.go", "ProfileDigest: p.digest, Expire:", "../agent", "TestTurnPassesTheDoor"},

	{"nothing runs that was not approved", "../../govern/session.go", "return s.refuse(c, d)", "../../govern", "TestSessionRefuses"},
	{"an approval is of this call", "../../govern/session.go", "&& a.Digest == need.Digest {", "../../govern", "TestApprovalBinds"},
	{"the door's fence comes first", "../../govern/session.go", "s.cfg.Fence.Begin(ctx, start)", "../../govern", "TestSessionTells"},
	{"and hears of the end", "../../govern/session.go", "s.cfg.Fence.Done(context.WithoutCancel(ctx), start, r)", "../../govern", "TestSessionTells"},
	{"there is a fence where one is needed", "../../govern/session.go", "if cfg.Fence == nil && (", "../../govern", "TestOpenSession"},
	{"what a tool says is judged", "../../govern/session.go", "s.screen(ctx, c, out)", "../../govern", "TestResultScreened"},
	{"verdicts on it are recorded before it is told", "../../govern/session.go", "s.keep(c, decisions)", "../../govern", "TestSessionTells"},

	{"what an effect needs is durable first", "perform.go", "if demand.Fence || demand.After > t.durable {", ".", "TestRecordedBeforeItShows"},
	{"what it hangs on", "perform.go", "demand.After = max(demand.After, eff.Needs().After)", ".", "TestReleasedOnceItIsWritten"},
	{"and its own start", "perform.go", "demand.Fence = demand.Fence || eff.Needs().Fence", ".", "TestRunAgainIsFenced"},
	{"nothing is written behind a hole", "record.go", "l.failed = err", ".", "TestNothingBehindAHole"},
	{"the log ends where the row says", "load.go", "if tail != t.row.Tail {", ".", "TestAlteredLog"},
	{"a wish to cancel is heard", "ask.go", "t.happen(run.Cancelled{Stamp: now(), By: row.CancelBy})", ".", "TestCancel"},

	{"a question is put", "ask.go", "_, err := approval.Ask(ctx, tx, t.lease, request)", ".", "TestApproved"},
	{"who started the run does not decide", "ask.go", "request.NotBy = t.row.Starter", ".", "TestSecondPerson"},
	{"a decision is about what would go on", "ask.go", "seen.Bound = would == asked && would == row.Digest", ".", "TestProfileChanged"},
	{"it is used in the write that goes on", "ask.go", "approval.Take(ctx, tx, t.lease, row.ID, asked, subject)", ".", "TestLateClick"},
	{"silence is a no", "ask.go", "case taken.State == journal.QuestionPending || taken.State == journal.QuestionExpired:", ".", "TestNotApproved"},
	{"a person decides of what was shown", "../approval/approval.go", "case q.Digest != d.Digest:", "../approval", "TestDecideRefuses"},
	{"a second person, where one must", "../approval/approval.go", "case q.NotBy == d.By:", "../approval", "TestDecideRefuses"},
	{"what is taken is bound", "../approval/approval.go", "Bound: would == asked && would == q.Digest}", "../approval", "TestTake"},

	{"a verdict on a request waits for the disk", "../requestlog/requestlog.go", "wait := slices.ContainsFunc(records, acted)", "../requestlog", "TestVerdictIsDurable"},
	{"and says what was not kept before it", "../requestlog/requestlog.go", "if err := p.Err(); err != nil {", "../requestlog", "TestNotKept"},
}

// TestCallSites keeps the list true: each place and each test is there.
func TestCallSites(t *testing.T) {
	tests := map[string]string{} // by package
	for _, s := range callSites {
		if _, ok := tests[s.pkg]; !ok {
			files, err := filepath.Glob(filepath.Join(s.pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				tests[s.pkg] += source(t, f)
			}
		}
		if n := strings.Count(source(t, s.file), s.source); n != 1 {
			t.Errorf("%s: %q stands %d times in %s", s.what, s.source, n, s.file)
		}
		if !strings.Contains(tests[s.pkg], "\nfunc "+s.test+"(t *testing.T) {") {
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
