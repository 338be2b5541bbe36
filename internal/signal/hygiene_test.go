package signal_test

import (
	"fmt"
	"testing"

	. "github.com/stoplog/stoplog/internal/signal"
)

// steps makes a history of one step for each list of calls.
func steps(calls ...[]Call) History {
	h := History{Steps: len(calls)}
	for i, c := range calls {
		h.Recent = append(h.Recent, Step{Number: i + 1, Calls: c})
	}
	h.Recent = h.Recent[max(0, len(h.Recent)-Window):]
	return h
}

func ok(tool, args string) Call  { return Call{Tool: tool, Args: args, Ran: true} }
func failed(tool string) Call    { return Call{Tool: tool, Ran: true, Failed: true} }
func refused(tool string) Call   { return Call{Tool: tool, Result: "refused"} }
func poll(tool string) Call      { return Call{Tool: tool, Ran: true, Poller: true} }
func round(calls ...Call) []Call { return calls }
func times(n int, c []Call) (r [][]Call) {
	for range n {
		r = append(r, c)
	}
	return r
}

func TestHygiene(t *testing.T) {
	distinct := func(n int) (r [][]Call) {
		for i := range n {
			r = append(r, round(ok("read", fmt.Sprint(i))))
		}
		return r
	}
	for name, c := range map[string]struct {
		signal  string
		history History
		stepCap int
		result  Result
		value   float64
	}{
		"cap: below":            {"step_cap", steps(distinct(19)...), 0, OK, 19},
		"cap: reached":          {"step_cap", steps(distinct(20)...), 0, Halt, 20},
		"cap: past the window":  {"step_cap", steps(distinct(500)...), 0, Halt, 500},
		"cap: coding, below":    {"step_cap", steps(distinct(49)...), CodingStepCap, OK, 49},
		"cap: coding, reached":  {"step_cap", steps(distinct(50)...), CodingStepCap, Halt, 50},
		"repeat: no step":       {"action_repeat", History{}, 0, OK, 0},
		"repeat: twice":         {"action_repeat", steps(times(2, round(ok("a", "1")))...), 0, OK, 2},
		"repeat: three times":   {"action_repeat", steps(times(3, round(ok("a", "1")))...), 0, Halt, 3},
		"repeat: in one step":   {"action_repeat", steps(round(ok("a", "1"), ok("a", "1"), ok("a", "1"))), 0, Halt, 3},
		"repeat: with others":   {"action_repeat", steps(round(ok("a", "1"), ok("b", "1")), round(ok("a", "1"), ok("b", "2")), round(ok("a", "1"), ok("b", "3"))), 0, Halt, 3},
		"repeat: other args":    {"action_repeat", steps(round(ok("a", "1")), round(ok("a", "2")), round(ok("a", "3"))), 0, OK, 1},
		"repeat: other tools":   {"action_repeat", steps(round(ok("a", "1")), round(ok("b", "1")), round(ok("c", "1"))), 0, OK, 1},
		"repeat: left off":      {"action_repeat", steps(append(times(3, round(ok("a", "1"))), round(ok("b", "1")))...), 0, OK, 1},
		"repeat: pollers may":   {"action_repeat", steps(times(9, round(poll("status")))...), 0, OK, 0},
		"streak: none":          {"tool_failure_streak", steps(distinct(3)...), 0, OK, 0},
		"streak: two":           {"tool_failure_streak", steps(times(2, round(failed("a")))...), 0, OK, 2},
		"streak: three":         {"tool_failure_streak", steps(times(3, round(failed("a")))...), 0, Halt, 3},
		"streak: in one step":   {"tool_failure_streak", steps(round(failed("a"), failed("b"), failed("c"))), 0, Halt, 3},
		"streak: broken":        {"tool_failure_streak", steps(round(failed("a")), round(failed("a")), round(ok("b", "")), round(failed("a"))), 0, OK, 1},
		"streak: denied is no":  {"tool_failure_streak", steps(times(5, round(refused("a")))...), 0, OK, 0},
		"streak: denied within": {"tool_failure_streak", steps(round(failed("a")), round(refused("b")), round(failed("a")), round(failed("a"))), 0, Halt, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(t, newEvaluator(t, Options{StepCap: c.stepCap}).Evaluate(t.Context(), c.history), c.signal)
			if r.Result != c.result || r.Value != c.value {
				t.Errorf("%s = %s at %v of %v (%s), want %s at %v", c.signal, r.Result, r.Value, r.Limit, r.Note, c.result, c.value)
			}
			if (r.Note != "") != (c.result == Halt) {
				t.Errorf("note %q on %s", r.Note, r.Result)
			}
			if c.result == Halt && r.Would() != "would_halt" {
				t.Errorf("would %q, want would_halt: these signals record", r.Would())
			}
		})
	}
}
