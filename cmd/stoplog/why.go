package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
)

type whyCommand struct {
	runFlags
	JSON bool `help:"Give the account as JSON."`
}

func (*whyCommand) Help() string {
	return `Gives account of a run: what ran, what each evaluation said, who decided what, and why it stopped.

Signals that said ok are left out; those in shadow say what they would have done. With --json nothing is left out.

` + journalHelp + `

Examples:

    stoplog why run_01kc
    stoplog why run_01kc --json | jq '.entries[].signals[]? | select(.would)'

Exit codes: 0, 1 there is no such run, 2 usage.`
}

func (c *whyCommand) Run(w *world) error {
	ctx := context.Background()
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	ref, err := c.find(ctx, store)
	if err != nil {
		return err
	}
	row, err := store.Run(ctx, ref)
	if err != nil {
		return err
	}
	read := chat.AccountOf
	if row.Kind == journal.PlaybookRun {
		read = flow.AccountOf
	}
	a, err := read(ctx, store, ref)
	if err != nil {
		return err
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(a)
	}
	_, err = w.stdout.Write(account(a))
	return err
}

// account writes an account for people, a line for each entry, under its step.
func account(a chat.Account) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s is %s", a.Run, a.Status)
	if a.Reason != "" {
		fmt.Fprintf(&out, " (%s)", diag.Line(a.Reason))
	}
	fmt.Fprintf(&out, ", profile %s\n", diag.Line(a.Profile))
	if a.Spend.Requests+a.Spend.Open > 0 {
		fmt.Fprintf(&out, "it took %s\n", a.Spend)
	}
	step := 0
	for _, e := range a.Entries {
		if e.Step != 0 && e.Step != step {
			step = e.Step
			fmt.Fprintf(&out, "step %d\n", step)
		}
		fmt.Fprintf(&out, "  %s  %s\n", e.At.Format(time.TimeOnly), diag.Line(e.Text))
		for _, s := range e.Signals {
			if line := spokenSignal(s); line != "" {
				fmt.Fprintf(&out, "            %s\n", diag.Line(line))
			}
		}
	}
	if a.Purged {
		out.WriteString("  what came then has been purged\n")
	}
	if a.Message != "" {
		fmt.Fprintf(&out, "%s\n", tame(a.Message))
	}
	return out.Bytes()
}

// spokenSignal says what a signal said, unless that is ok.
func spokenSignal(s chat.Signal) string {
	if s.Result == "ok" || s.Result == "not_built" {
		return ""
	}
	parts := []string{s.Signal + ": " + s.Result}
	if s.Would != "" {
		parts[0] = s.Signal + ": " + s.Would + ", in shadow"
	}
	if s.Limit != 0 {
		parts = append(parts, fmt.Sprintf("%v of %v", s.Value, s.Limit))
	}
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	if s.Error != "" {
		parts = append(parts, "it could not judge: "+s.Error)
	}
	return strings.Join(parts, "; ")
}
