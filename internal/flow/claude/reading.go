package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/sandbox"
)

// Evidence is all that is known of a run of the program.
type Evidence struct {
	Pin    string   // the model, NAME-DATE
	Tools  []string // that it may have
	Events []Event
	// Garbled is what it wrote that is no event; empty if there is none.
	Garbled string
	Process sandbox.Result
	Gate    Gate
	// MaxTokens is the cap.
	MaxTokens int64
	// Idle says that it was ended because nothing came of it for too long.
	Idle bool
	// Check says what is wrong with an answer; nil if it fits.
	Check func(answer json.RawMessage) error
}

// Gate is what the gate saw.
type Gate struct {
	// Tokens is what all calls took. Exceeded says that it was more than the cap, or
	// that there was another call to be when nothing was left.
	Tokens   int64
	Exceeded bool
	// Asked and Served are the models of the questions and of the answers.
	Asked, Served []string
	// Stopped is what policy said of the first call that it stopped.
	Stopped *Stopped
}

// Stopped is a call that was stopped by policy.
type Stopped struct{ Status, Guard, Rule, Reason string }

// Reading is what Evidence comes to.
type Reading struct {
	State  steps.Standing
	Reason string          // in a sentence; empty if it passed
	Output json.RawMessage // the answer, if it passed
	// Repairable says that everything is well but the answer itself.
	Repairable bool
}

func reads(state steps.Standing, format string, args ...any) *Reading {
	return &Reading{State: state, Reason: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) *Reading { return reads(steps.Failed, format, args...) }

// conditions are what must hold for a run to pass, in the order in which they are
// asked: what we ended, what policy stopped, then what the program says of itself,
// and the answer last. Each returns nil if it holds.
var conditions = []func(Evidence) *Reading{
	notCut, notStopped, withinTokens, wellFormed, began, oneResult, success, exited, nothingDenied, noMoreTools, pinServed,
	nothingLeft,
}

// Read says what a run of the program came to. It is a function of the evidence
// alone, and passes only what nothing speaks against.
func Read(e Evidence) Reading {
	for _, holds := range conditions {
		if r := holds(e); r != nil {
			return *r
		}
	}
	return answer(e)
}

// notCut: it was not ended by us.
func notCut(e Evidence) *Reading {
	switch e.Process.End {
	case sandbox.Cancelled:
		return reads(steps.Cancelled, "it was cancelled")
	case sandbox.TimedOut:
		return reads(steps.FailedTimeout, "it took longer than it may")
	case sandbox.Flooded:
		return failed("it wrote more than it may")
	case sandbox.Killed:
		switch {
		case e.Idle:
			return reads(steps.FailedTimeout, "nothing came of it for too long")
		case e.Gate.Exceeded:
			return overTokens(e)
		}
		return failed("it was ended")
	}
	return nil
}

func overTokens(e Evidence) *Reading {
	return reads(steps.FailedBudget, "it took %d tokens of %d", e.Gate.Tokens, e.MaxTokens)
}

// notStopped: policy stopped no call of it.
func notStopped(e Evidence) *Reading {
	s := e.Gate.Stopped
	switch {
	case s == nil:
		return nil
	case s.Status == "budget_exceeded":
		return reads(steps.FailedBudget, "a budget is spent: %s", s.Reason)
	}
	return reads(steps.Blocked, "guard %s, rule %s: %s", s.Guard, s.Rule, s.Status)
}

// withinTokens: it took no more than it may, all calls together.
func withinTokens(e Evidence) *Reading {
	if e.Gate.Exceeded {
		return overTokens(e)
	}
	return nil
}

// wellFormed: all that it wrote is events.
func wellFormed(e Evidence) *Reading {
	if e.Garbled != "" {
		return failed("it wrote a line that is no event")
	}
	return nil
}

// began: the first thing that it says is how it was set up.
func began(e Evidence) *Reading {
	switch {
	case len(e.Events) == 0:
		return failed("it said nothing, and %s", ended(e.Process))
	case !slices.ContainsFunc(e.Events, func(ev Event) bool { return ev.is("system", "init") }):
		return failed("it did not say how it was set up")
	}
	return nil
}

// oneResult: there is one result, it is the first, and nothing was said after it.
func oneResult(e Evidence) *Reading {
	var found []Event
	for _, ev := range e.Events {
		switch {
		case ev.Type == "result":
			found = append(found, ev)
		case len(found) > 0 && (ev.Type == "assistant" || ev.Type == "user"):
			return failed("it went on after its result")
		}
	}
	switch {
	case len(found) == 0:
		return failed("it gave no result, and %s", ended(e.Process))
	case len(found) > 1:
		return failed("it gave %d results", len(found))
	case found[0].Index != nil && *found[0].Index != 0:
		return failed("a result of it is lost: the first that came has number %d", *found[0].Index)
	}
	return nil
}

// result is the result, once there is one.
func result(e Evidence) Event {
	return e.Events[slices.IndexFunc(e.Events, func(ev Event) bool { return ev.Type == "result" })]
}

// success: every member of the result says so.
func success(e Evidence) *Reading {
	r := result(e)
	switch {
	case r.Subtype == "error_max_budget_usd", r.TerminalReason == "budget_exhausted":
		return reads(steps.FailedBudget, "it ran out of its budget")
	case r.Subtype == "error_max_structured_output_retries", r.TerminalReason == "structured_output_retry_exhausted":
		return reads(steps.FailedSchema, "it found no answer that fits the schema")
	case r.Subtype != "success":
		return failed("its result is %s", printable(r.Subtype))
	case r.IsError && r.APIStatus != nil:
		return failed("its result is an error: status %d", *r.APIStatus)
	case r.IsError:
		return failed("its result is an error, though it says success")
	case r.TerminalReason != "" && r.TerminalReason != "completed":
		return failed("it ended for the reason %s", printable(r.TerminalReason))
	}
	return nil
}

// exited: it ended by itself, with 0.
func exited(e Evidence) *Reading {
	if e.Process.End != sandbox.Exited || e.Process.Exit != 0 {
		return failed("it %s, though its result is success", ended(e.Process))
	}
	return nil
}

func ended(p sandbox.Result) string {
	switch p.End {
	case sandbox.Exited:
		return fmt.Sprintf("exited with %d", p.Exit)
	case sandbox.Signalled:
		return fmt.Sprintf("was ended by signal %d", p.Signal)
	}
	return "was ended: " + p.End.String()
}

// nothingDenied: no tool that it wanted was denied. What it could not do, its
// answer knows nothing of.
func nothingDenied(e Evidence) *Reading {
	var tools []string
	for _, d := range result(e).Denials {
		tools = append(tools, printable(d.Tool))
	}
	for _, ev := range e.Events {
		if ev.is("system", "permission_denied") {
			tools = append(tools, printable(ev.Tool))
		}
	}
	if len(tools) > 0 {
		slices.Sort(tools)
		return failed("it was denied a tool that it wanted: %s", strings.Join(slices.Compact(tools), ", "))
	}
	return nil
}

// answerTool is the tool by which it gives its structured output.
const answerTool = "StructuredOutput"

// permissionMode is the one that it is started with: what is not allowed is denied.
const permissionMode = "dontAsk"

// noMoreTools: it was set up with what the scope gives, and nothing else.
func noMoreTools(e Evidence) *Reading {
	for _, ev := range e.Events {
		if !ev.is("system", "init") {
			continue
		}
		for _, tool := range ev.Tools {
			if tool != answerTool && !slices.Contains(e.Tools, tool) {
				return failed("it has a tool that the scope does not give: %s", printable(tool))
			}
		}
		if len(ev.Servers) > 0 {
			return failed("it has a server of tools: %s", printable(ev.Servers[0].Name))
		}
		if ev.PermissionMode != permissionMode {
			return failed("its permission mode is %s", printable(ev.PermissionMode))
		}
	}
	return nil
}

// pinServed: every name of a model that anybody says is the pin, and an answer of
// it passed the gate.
func pinServed(e Evidence) *Reading {
	names := slices.Concat(e.Gate.Asked, e.Gate.Served)
	for _, ev := range e.Events {
		switch {
		case ev.Type == "system" && strings.HasPrefix(ev.Subtype, "model_refusal_"):
			return failed("its model was changed, since the first refused")
		case ev.is("system", "init"):
			names = append(names, ev.Model)
		case ev.Type == "assistant" && ev.Message != nil && ev.Message.Model != synthetic:
			names = append(names, ev.Message.Model)
		}
	}
	for name, u := range result(e).ModelUsage {
		if !sameFamily(e.Pin, u.Canonical) {
			return failed("model %s served, and not %s", printable(u.Canonical), e.Pin)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if !sameModel(e.Pin, name) {
			return failed("model %s served, and not %s", printable(name), e.Pin)
		}
	}
	if len(e.Gate.Served) == 0 {
		return failed("no answer of a model is known")
	}
	return nil
}

// nothingLeft: no task of it goes on, and no process.
func nothingLeft(e Evidence) *Reading {
	open := map[string]bool{}
	for _, ev := range e.Events {
		switch {
		case ev.is("system", "task_started"):
			open[ev.Task] = true
		case ev.is("system", "task_notification"):
			if ev.Status != "" && ev.Status != "completed" {
				return failed("a task of it ended as %s", printable(ev.Status))
			}
			delete(open, ev.Task)
		case ev.is("system", "session_writes_lost"):
			return failed("it lost what it wrote")
		}
	}
	switch {
	case len(open) > 0:
		return failed("%d of its tasks had not ended", len(open))
	case e.Process.Left > 0:
		return failed("it left %d processes running", e.Process.Left)
	}
	return nil
}

// answer reads the structured output, and nothing else.
func answer(e Evidence) Reading {
	out := result(e).Structured
	if len(out) == 0 || string(out) == "null" {
		return Reading{State: steps.FailedSchema, Reason: "it gave no structured output", Repairable: true}
	}
	if err := e.Check(out); err != nil {
		return Reading{State: steps.FailedSchema, Reason: "its answer does not fit the schema: " + err.Error(), Repairable: true}
	}
	return Reading{State: steps.Passed, Output: out}
}

// printable is a word of the program's, fit for a sentence.
func printable(word string) string {
	const most = 60
	word = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > 0x7e {
			return '?'
		}
		return r
	}, word)
	if len(word) > most {
		word = word[:most] + "..."
	}
	if word == "" {
		return "(none)"
	}
	return word
}
