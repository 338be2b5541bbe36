package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const statesDoc = "../../docs/run-states.md"

// TestStatesDoc: docs/run-states.md says what the table says. go generate writes
// it.
func TestStatesDoc(t *testing.T) {
	want := drawStates()
	if *update {
		if err := os.WriteFile(statesDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(statesDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says: run go generate ./internal/run", statesDoc)
	}
}

// TestTableIsWhole: an event that may come at any time has a place in every
// phase that is not over, and a kind that the table names exists.
func TestTableIsWhole(t *testing.T) {
	for p := Ready; p < Ending; p++ {
		for _, kind := range []string{"cancelled", "internal_error"} {
			if !possible(p, kind) {
				t.Errorf("%s has no place in phase %s", kind, p)
			}
		}
	}
	for p := Ready; p < Over; p++ {
		if !possible(p, "claimed") && p != Waiting {
			t.Errorf("a run that is %s cannot be claimed", p)
		}
	}
	named := map[string]bool{}
	for _, row := range Transitions {
		named[row.On] = true
		if _, known := codecs[row.On]; !known {
			t.Errorf("the table names %q, which is no kind of event", row.On)
		}
	}
	for kind := range codecs {
		if !named[kind] {
			t.Errorf("%s has no place in any phase", kind)
		}
	}
}

func drawStates() string {
	var b strings.Builder
	b.WriteString("<!-- Written by go generate ./internal/run; change internal/run/table.go instead. -->\n\n")
	b.WriteString("# The states of a run\n\n")
	b.WriteString("A run is in one phase at a time. Events move it on; an event that has no place in\n")
	b.WriteString("the phase changes nothing. `internal/run/loop.go` is where it is decided.\n\n")

	b.WriteString("```mermaid\nstateDiagram-v2\n")
	arrows := map[[2]Phase][]string{}
	for _, row := range Transitions {
		for _, to := range row.To {
			arrow := [2]Phase{row.From, to}
			arrows[arrow] = append(arrows[arrow], row.On)
		}
	}
	b.WriteString("    [*] --> fresh\n")
	for _, arrow := range slices.SortedFunc(maps.Keys(arrows), func(a, b [2]Phase) int {
		return 100*(int(a[0])-int(b[0])) + int(a[1]) - int(b[1])
	}) {
		if arrow[0] != arrow[1] {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", arrow[0], arrow[1], strings.Join(arrows[arrow], ", "))
		}
	}
	b.WriteString("    over --> [*]\n```\n\n")

	b.WriteString("| phase | what it is | the host is to | status |\n|---|---|---|---|\n")
	for p := Fresh; p <= Over; p++ {
		said := phasesSaid[p]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p, said[0], said[1], said[2])
	}
	b.WriteString("\nA run that needs a worker and has none is `queued` in any phase, and the host is\nto claim it first. ")
	b.WriteString("What was under way when a worker was lost is lost with it:\nthe next `claimed` says so.\n\n")

	b.WriteString("| in phase | on event | to phase | |\n|---|---|---|---|\n")
	for _, row := range Transitions {
		to := make([]string, len(row.To))
		for i, p := range row.To {
			to[i] = p.String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.From, row.On, strings.Join(to, ", "), row.When)
	}

	b.WriteString("\nA call that a person denies, or a tool rule, ends nothing: the model is told and\ngoes on.\n\n")
	b.WriteString("| reason | status | |\n|---|---|---|\n")
	for _, e := range endings {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.reason, e.status, e.said)
	}
	return b.String()
}

// endings are all the ways in which a run can end. The transcripts go through
// each.
var endings = []struct {
	reason Reason
	status Status
	said   string
}{
	{ReasonCompleted, StatusCompleted, "the model has answered, and the evaluator let it"},
	{ReasonGuardDenied, StatusBlocked, "a guard denied the answer, or the request"},
	{ReasonApprovalDenied, StatusBlocked, "a person did not let the answer out, the request through, or the run go on"},
	{ReasonApprovalExpired, StatusBlocked, "nobody decided in time, about whatever it was"},
	{ReasonInputExpired, StatusBlocked, "nobody answered the model's question in time"},
	{"signal_loop_detect", StatusBlocked, "an enforced signal halted the run: signal_NAME, for each"},
	{"signal_error", StatusBlocked, "an enforced signal could not judge"},
	{ReasonMaxIterations, StatusBlocked, "max_iterations was reached; the answer is what the model could say then"},
	{ReasonStalled, StatusBlocked, "stall_limit was reached"},
	{ReasonToolErrors, StatusFailed, "tool_error_limit was reached"},
	{ReasonMalformedOutput, StatusFailed, "malformed_limit was reached"},
	{ReasonTimeout, StatusFailed, "timeout_seconds are up, not counting time in which it waited"},
	{ReasonBudgetExceeded, StatusFailed, "an envelope is spent"},
	{ReasonModelFailed, StatusFailed, "the provider gave no answer, or broke it off after some had been seen"},
	{ReasonAbandoned, StatusCancelled, "a person gave up on a call in doubt"},
	{ReasonCancelled, StatusCancelled, "somebody cancelled the run"},
	{ReasonInternalError, StatusFailed, "a bug, or a machine that fails"},
}

var phasesSaid = [Over + 1][3]string{
	Fresh:     {"nothing has happened", "–", "–"},
	Ready:     {"a model call is due", "call the model", "`running`"},
	Answering: {"a model call is under way", "–", "`running`"},
	Working:   {"the step has work", "run calls, ask people, release an answer", "`running`"},
	Pausing:   {"only people can go on", "evaluate the pause", "`running`"},
	Waiting:   {"it waits for people, without a worker", "wait", "`waiting_decision`, `waiting_approval` or `waiting_input`"},
	Judging:   {"the step is over", "cut off what is under way, evaluate the step", "`running`"},
	Ending:    {"the outcome is decided", "show it", "`running`"},
	Over:      {"the outcome shows", "–", "`completed`, `blocked`, `failed` or `cancelled`"},
}
