package wire

import (
	"cmp"

	"github.com/stoplog/stoplog/guard"
)

// Calls are the rules for the tool calls that a model asks for in an answer. A
// call that they may stop is held until it is complete, whatever it says; what
// they stop, ends the answer there as a guard's verdict would.
type Calls interface {
	// MayStop reports whether some call of the tool would not be allowed.
	MayStop(tool string) bool
	// Judge says what becomes of a complete call: Allow, RequireApproval or Deny.
	// args are as the model wrote them, and may be no JSON.
	Judge(tool string, args []byte) guard.Verdict
}

// The names under which a call that the tool rules stopped is recorded.
const (
	GuardPolicy = "policy"
	RuleTools   = "tools"
)

// ruled reports whether a tool rule may stop a call. One whose name has not come
// yet may be of any tool.
func (j *judgement) ruled(tool string) bool {
	return j.side == guard.Response && j.calls != nil && (tool == "" || j.calls.MayStop(tool))
}

// leavesWhole reports whether a text leaves complete or not at all: a tool call
// that a guard or a tool rule may stop, and a quotation.
func (j *judgement) leavesWhole(kind guard.Kind, tool string) bool {
	return kind == guard.Document || kind == guard.ToolArgs && (j.holdsCalls() || j.ruled(tool))
}

// rule puts a complete call to the tool rules.
func (c *channel) rule() {
	v := c.judge.calls.Judge(c.info.Tool, c.args)
	c.args = nil
	if v == guard.Allow {
		return
	}
	c.judge.decide(c.name, guard.Decision{Mode: guard.Enforce, Finding: guard.Finding{
		Guard: GuardPolicy, Rule: RuleTools, End: c.read, Severity: guard.Medium, Verdict: v,
	}})
	c.stop = &guard.Stop{Verdict: v, Guard: GuardPolicy, Rule: RuleTools}
	c.judge.outcome.stopped(c.name, c.stop)
}

// ruleItem puts a complete call of a response to the tool rules: args are what its
// texts have kept. A call of the provider's own tools goes by the item's kind. It
// returns the stop, nil if there is none.
func (j *judgement) ruleItem(prefix, kind, tool string, args []byte) *guard.Stop {
	if tool = cmp.Or(tool, kind); !isCall(kind) || !j.ruled(tool) {
		return nil
	}
	c := &channel{name: prefix + "call", judge: j, info: guard.Channel{Tool: tool}, args: args, read: int64(len(args)), closed: true}
	c.rule()
	return c.stop
}
