package signal

import (
	"context"
	"fmt"
)

// The three hygiene signals see a run that goes round in circles. The limits of
// the loop contain such a run already, so these record, unless a profile
// enforces them.

// What step_cap is held against: the cap of the loop itself.
const (
	DefaultStepCap = 20
	CodingStepCap  = 50 // for coding profiles, whose runs are longer
)

const (
	repeatLimit = 3 // of action_repeat, in calls
	streakLimit = 3 // of tool_failure_streak, in calls
)

// stepCap halts a run that has taken as many steps as its limit.
type stepCap struct{ limit int }

func (stepCap) Name() string { return "step_cap" }

func (s stepCap) Judge(_ context.Context, h History) (Judgement, error) {
	return measure(h.Steps, s.limit, "the run has taken %d steps, of %d"), nil
}

// actionRepeat halts where an action of the newest step was asked for so often
// among the recent steps. An action is a tool with its arguments as written;
// its result has no part in it. Declared pollers may repeat.
type actionRepeat struct{}

func (actionRepeat) Name() string { return "action_repeat" }

func (actionRepeat) Judge(_ context.Context, h History) (Judgement, error) {
	type action struct{ tool, args string }
	times := map[action]int{}
	most := 0
	for i, s := range h.Recent {
		for _, c := range s.Calls {
			if c.Poller {
				continue
			}
			a := action{c.Tool, c.Args}
			times[a]++
			if i == len(h.Recent)-1 {
				most = max(most, times[a])
			}
		}
	}
	return measure(most, repeatLimit, "the same action was asked for %d times, limit %d"), nil
}

// toolFailureStreak halts when the newest calls that ran all failed. Calls that
// were refused or denied say nothing about the tools and do not count.
type toolFailureStreak struct{}

func (toolFailureStreak) Name() string { return "tool_failure_streak" }

func (toolFailureStreak) Judge(_ context.Context, h History) (Judgement, error) {
	streak := 0
	for _, s := range h.Recent {
		for _, c := range s.Calls {
			switch {
			case c.Failed:
				streak++
			case c.Ran:
				streak = 0
			}
		}
	}
	return measure(streak, streakLimit, "%d tool calls in a row failed, limit %d"), nil
}

// measure is the judgement of a count that may not reach its limit.
func measure(n, limit int, note string) Judgement {
	j := Judgement{Result: OK, Value: float64(n), Limit: float64(limit)}
	if n >= limit {
		j.Result = Halt
		j.Note = fmt.Sprintf(note, n, limit)
	}
	return j
}
