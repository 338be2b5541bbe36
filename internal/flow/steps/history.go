package steps

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/internal/signal"
)

// history is the run as signals see it: its newest attempts, and counts.
func (s State) history() signal.History {
	return signal.History{Task: "playbook " + s.Book.Name, Steps: s.Ran, Recent: s.Past, Usage: s.Usage}
}

// seenText is how much of a step's output signals see.
const seenText = 4 << 10

// seen is the newest attempt at a step as signals see it: its work is a call, and
// what came of it is the result.
func (s State) seen(n int) signal.Step {
	p, step := s.Plan.step(n), s.Step(n)
	args, err := json.Marshal(struct {
		Step string `json:"step"`
	}{p.ID})
	if err != nil {
		args = nil // an id is a string: it always has a form
	}
	r := step.Result
	text := strings.TrimSpace(strings.Join([]string{string(r.State), r.Why, r.Text, string(r.Output), r.Stdout, r.Stderr}, "\n"))
	if len(text) > seenText {
		text = strings.ToValidUTF8(text[:seenText], "")
	}
	return signal.Step{
		Number: s.Ran, Approved: step.Approved,
		Calls: []signal.Call{{
			Tool: string(p.Type), Args: string(args), Result: text, Ran: true, Failed: r.State != Passed,
		}},
	}
}

// farewell is the last text of a run that was stopped: why, what ran, and that
// nothing more will. A run that has completed says nothing.
func (s State) farewell() string {
	if s.Then.Why == "" {
		return ""
	}
	ran := fmt.Sprintf("%d steps", s.Ran)
	if s.Ran == 1 {
		ran = "1 step"
	}
	var names []string
	for i, p := range s.Steps {
		if p.Started > 0 {
			names = append(names, fmt.Sprintf("%s ×%d", s.Plan.Steps[i].ID, p.Started))
		}
	}
	if len(names) > 0 {
		ran += " (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("Stopped: %s. What ran: %s. Nothing further will run.", s.Then.Why, ran)
}
