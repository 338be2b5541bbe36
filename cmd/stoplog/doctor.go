package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/stoplog/stoplog/internal/sandbox"
)

type doctorCommand struct {
	JSON bool `help:"Give the result as JSON."`
}

func (*doctorCommand) Help() string {
	return `It runs a program in the sandbox that does what it must not, and says of each part whether the kernel refused it. Steps of playbooks and the commands of agents run only where all of them hold; nothing falls back to less. docs/sandbox.md says what each part is for.

Try it as the user that is to run playbooks: what root may make, an ordinary user may not be allowed to.

Examples:

    stoplog doctor
    stoplog doctor --json | jq -e .sandbox.holds

Exit codes: 0 if everything holds, 1 if something does not.`
}

// health is what a machine can do for Stoplog.
type health struct {
	Sandbox sandbox.Report `json:"sandbox"`
}

func (c *doctorCommand) Run(w *world) error {
	h := health{sandbox.Check(context.Background())}
	if c.JSON {
		if err := json.NewEncoder(w.stdout).Encode(h); err != nil {
			return err
		}
	} else if err := h.print(w); err != nil {
		return err
	}
	if !h.Sandbox.Holds {
		broken := h.Sandbox.Parts[slices.IndexFunc(h.Sandbox.Parts, func(p sandbox.Part) bool { return !p.Holds })]
		return failf(exitError, "the sandbox does not hold here, for %s: %s", h.Sandbox.User, broken.Name).
			hint("see docs/sandbox.md for what each part needs")
	}
	return nil
}

func (h health) print(w *world) error {
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "sandbox\tfor %s\n", h.Sandbox.User)
	for _, p := range h.Sandbox.Parts {
		answer := "holds"
		if !p.Holds {
			answer = "FAILS"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", p.Name, answer, p.Detail)
	}
	return t.Flush()
}
