package flow_test

import (
	"testing"

	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// A playbook calls another, with its own inputs and from the files as they were;
// what that declares as outputs comes back; a pause in it is a pause of this one.
func TestCall(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
-- pb.yaml --
playbook: outer
steps:
  - {id: gate, type: playbook, playbook: gates/inner.yaml, with: {what: '"deploy"', n: 2 + 1}}
  - {id: after, type: run, run: [say, {expr: 'steps["gate"].outputs.word'}]}
-- gates/inner.yaml --
playbook: inner
inputs: {what: string, n: integer}
outputs: {word: 'steps["work"].stdout.trim()'}
steps:
  - {id: confirm, type: pause, reason: inner pause}
  - {id: work, type: run, run: [say, {expr: inputs.what}, {expr: inputs.n}], effect: irreversible}
`)
	s := w.comesTo(ref, journal.WaitingApproval)
	w.expect(s, "gate waiting, after pending")
	part := journal.Ref{Tenant: ref.Tenant, Run: journal.ID(s.Steps[0].Run)}
	if row, err := w.store.Run(t.Context(), ref); err != nil || row.Owner != "" {
		t.Errorf("a run whose part waits is held by %q: %v", row.Owner, err)
	}
	if err := w.decide(h, part, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	w.expect(w.comesTo(ref, journal.Completed), "gate passed, after passed")
	if got := w.programs(); got != "say deploy 3; say deploy 3" {
		t.Errorf("it ran %q", got)
	}
}

// A no in a part is a no to the whole.
func TestCallDenied(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
-- pb.yaml --
playbook: outer
steps:
  - {id: gate, type: playbook, playbook: inner.yaml, on_fail: continue}
  - {id: after, type: run, run: say after}
-- inner.yaml --
playbook: inner
steps:
  - {id: confirm, type: pause, reason: inner pause}
`)
	s := w.comesTo(ref, journal.WaitingApproval)
	if err := w.decide(h, journal.Ref{Tenant: ref.Tenant, Run: journal.ID(s.Steps[0].Run)}, journal.QuestionDenied, "bea"); err != nil {
		t.Fatal(err)
	}
	s = w.comesTo(ref, journal.Blocked)
	w.expect(s, "gate blocked, after skipped")
	if s.Then.Reason != run.ReasonApprovalDenied {
		t.Errorf("the reason is %s", s.Then.Reason)
	}
}

const agentFiles = `
-- pb.yaml --
playbook: p
steps:
  - id: review
    type: agent
    model: claude-sonnet-4-5@20250929
    prompt_ref: review.md@v1
    with: {what: '"the plan"'}
    scope: {can_read: [], can_write: [], can_run: []}
    max_latency_seconds: 60
    max_tokens_per_run: 1000
    output: {type: object, required: [grade], properties: {grade: {type: integer}}}
  - {id: after, type: run, when: 'steps["review"].output.grade > 3', run: say good}
-- prompts/review@v1.md --
---
model: claude-sonnet-4-5@20250929
inputs: {what: string}
---
Review {{what}}.
`

// An agent is a turn of its own: what it asks a person, the run waits for; what it
// says must have the form that the step wants.
func TestAgent(t *testing.T) {
	w := newWorld(t)
	w.turn = &turns{w: w, gated: true, says: `{"grade": 5}`}
	h := w.host()
	ref := w.start(h, agentFiles)
	s := w.comesTo(ref, journal.WaitingApproval)
	w.expect(s, "review waiting, after pending")
	part := journal.Ref{Tenant: ref.Tenant, Run: journal.ID(s.Steps[0].Run)}
	if row, err := w.store.Run(t.Context(), part); err != nil || row.Parent != ref.Run {
		t.Errorf("the agent's run is a part of %q: %v", row.Parent, err)
	}
	if err := w.decide(h, part, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	s = w.comesTo(ref, journal.Completed)
	w.expect(s, "review passed, after passed")
	if s.Usage.Input != 5 {
		t.Errorf("it took %+v", s.Usage)
	}
}

func TestAgentMalformed(t *testing.T) {
	w := newWorld(t)
	w.turn = &turns{w: w, says: "I would say five."}
	s := w.comesTo(w.start(w.host(), agentFiles), journal.Failed)
	w.expect(s, "review failed_schema, after skipped")
}

// A part that ends does not answer for a person: a pause beside it goes on waiting.
func TestPartEndsBesidePause(t *testing.T) {
	w := newWorld(t)
	h := w.host()
	ref := w.start(h, `
-- pb.yaml --
playbook: outer
steps:
  - {id: confirm, type: pause, reason: go on, needs: []}
  - {id: part, type: playbook, playbook: inner.yaml, needs: []}
  - {id: deploy, type: run, run: say deployed, effect: irreversible, needs: [confirm, part]}
-- inner.yaml --
playbook: inner
steps:
  - {id: ask, type: pause, reason: the part asks}
`)
	s := w.comesTo(ref, journal.WaitingApproval)
	part := journal.Ref{Tenant: ref.Tenant, Run: journal.ID(s.Steps[1].Run)}
	if err := w.decide(h, part, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	w.comesTo(part, journal.Completed)
	for s.Steps[1].Came == "" || s.Phase != steps.Resting { // until the run knows, and rests again
		row, err := w.store.Run(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = flow.StateOf(t.Context(), w.store, ref); err != nil || row.Status.Terminal() {
			t.Fatalf("the run is %s: %v", row.Status, err)
		}
	}
	w.expect(s, "confirm waiting, part passed, deploy pending")
	if err := w.decide(h, ref, journal.QuestionApproved, "bea"); err != nil {
		t.Fatal(err)
	}
	w.expect(w.comesTo(ref, journal.Completed), "confirm passed, part passed, deploy passed")
}
