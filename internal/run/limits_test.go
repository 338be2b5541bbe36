package run

import (
	"strings"
	"testing"
	"time"
)

func TestCycles(t *testing.T) {
	for _, c := range []struct {
		rounds string // a letter a step; - is a step that can be part of no stall
		times  int
		want   bool
	}{
		{"", 3, false},
		{"aa", 3, false},
		{"aaa", 3, true},
		{"baaa", 3, true},
		{"aaab", 3, false},
		{"aabaa", 3, false},
		{"a-aa", 3, false},
		{"---", 3, false},
		{"ababab", 3, true},
		{"babab", 3, false},
		{"-bababa", 3, true},
		{"ab-abab", 3, false},
		{"abcabcabc", 3, true},
		{"abcabcab", 3, false},
		{"abcdabcdabcd", 3, true},
		{"abcdeabcdeabcde", 3, false}, // a period of five
		{"abcdabcd", 2, true},
		{"aa", 2, true},
	} {
		k := Streaks{}
		for _, r := range c.rounds {
			k.Rounds = append(k.Rounds, strings.Trim(string(r), "-"))
		}
		k.Rounds = k.Rounds[max(0, len(k.Rounds)-maxPeriod*c.times):]
		if got := k.cycles(c.times); got != c.want {
			t.Errorf("%q, %d times over: %v, want %v", c.rounds, c.times, got, c.want)
		}
	}
}

// TestRoundIsWhatWasDoneAndSeen: two steps are the same round when calls,
// arguments and results are, and not else.
func TestRoundIsWhatWasDoneAndSeen(t *testing.T) {
	step := func(tool, args, text string, kind ResultKind) Step {
		return Step{Work: []Work{{Call: Call{ID: "any", Tool: tool, Args: args}, Result: Result{kind, text}}}}
	}
	base := step("read", `{"a":1,"b":[2]}`, "x", Returned)
	for name, c := range map[string]struct {
		step Step
		same bool
	}{
		"itself":             {base, true},
		"otherwise written":  {step("read", ` {"b": [2], "a": 1}`, "x", Returned), true},
		"another tool":       {step("write", `{"a":1,"b":[2]}`, "x", Returned), false},
		"other arguments":    {step("read", `{"a":1,"b":[3]}`, "x", Returned), false},
		"a longer number":    {step("read", `{"a":1.0,"b":[2]}`, "x", Returned), false},
		"two documents":      {step("read", `{"a":1,"b":[2]}{}`, "x", Returned), false},
		"another result":     {step("read", `{"a":1,"b":[2]}`, "y", Returned), false},
		"the same as error":  {step("read", `{"a":1,"b":[2]}`, "x", Errored), false},
		"quotes moved about": {step("read", `{"a":1,"b":[2]}" "x`, "", Returned), false},
	} {
		if same := c.step.round() == base.round(); same != c.same {
			t.Errorf("%s: same round: %v, want %v", name, same, c.same)
		}
	}
	poller := step("read", `{}`, "x", Returned)
	poller.Work[0].Poller = true
	for name, s := range map[string]Step{"poller": poller, "no call": {}} {
		if s.round() != "" {
			t.Errorf("%s: is a round", name)
		}
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		failures, jitter int
		want             time.Duration
	}{
		{1, 0, 250 * time.Millisecond},
		{1, 500, 375 * time.Millisecond},
		{2, 0, 500 * time.Millisecond},
		{6, 0, 8 * time.Second},
		{7, 0, 15 * time.Second},
		{1000, 0, 15 * time.Second},
	} {
		if got := backoff(c.failures, c.jitter); got != c.want {
			t.Errorf("after %d failures, by chance %d: %s, want %s", c.failures, c.jitter, got, c.want)
		}
	}
	for failures := 1; failures < 100; failures++ {
		if d := backoff(failures, 999); d <= 0 || d > 30*time.Second {
			t.Errorf("after %d failures: %s", failures, d)
		}
	}
}

// TestDefaultLimits pins them: they are the contract of a run whose profile says
// nothing.
func TestDefaultLimits(t *testing.T) {
	want := Limits{MaxIterations: 20, Timeout: 600 * time.Second, Stall: 3, Malformed: 3, ToolErrors: 5, ModelAttempts: 3}
	if got := (Limits{}).orDefault(); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
}
