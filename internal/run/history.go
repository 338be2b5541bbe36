package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/signal"
)

// history is the run as signals see it: the newest steps, and counts.
func (s State) history(pause int) signal.History {
	h := signal.History{Task: s.Task, Steps: s.Step.Number, Pause: pause, Usage: s.Usage}
	for step := range s.Steps() {
		if len(h.Recent) == signal.Window {
			break
		}
		h.Recent = append(h.Recent, step.seen())
	}
	slices.Reverse(h.Recent)
	return h
}

// seen is the step as signals see it.
func (s Step) seen() signal.Step {
	seen := signal.Step{Number: s.Number, Text: s.Answer.Text, Thought: s.Answer.Thought, Approved: s.Approved}
	for _, w := range s.Work {
		seen.Calls = append(seen.Calls, signal.Call{
			Tool:   w.Tool,
			Args:   w.Args,
			Result: w.Result.Text,
			Ran:    w.Ran,
			Failed: w.Result.Kind == Errored,
			Poller: w.Poller,
		})
	}
	return seen
}

// farewell is the last text of a run that was stopped: why, what ran, and that
// nothing more will. A run that has completed says nothing beside its answer.
func (s State) farewell() string {
	if !s.Then.stops() {
		return ""
	}
	total := 0
	var tools []string
	for _, t := range s.Ran {
		total += t.Calls
		tools = append(tools, fmt.Sprintf("%s ×%d", t.Tool, t.Calls))
	}
	ran := fmt.Sprintf("%d tool calls", total)
	if total == 1 {
		ran = "1 tool call"
	}
	if total > 0 {
		ran += " (" + strings.Join(tools, ", ") + ")"
	}
	return fmt.Sprintf("Stopped: %s. What ran: %s. Nothing further will run.", s.Then.Why, ran)
}
