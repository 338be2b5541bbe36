package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
)

type runsCommand struct {
	List   runsListCommand   `cmd:"" help:"List runs, the newest first."`
	Show   runsShowCommand   `cmd:"" help:"Show a run, and what it showed."`
	Resume runsResumeCommand `cmd:"" help:"Go on with a run, or say what became of a call in doubt."`
	Cancel runsCancelCommand `cmd:"" help:"End a run."`
}

func (*runsCommand) Help() string {
	return `A run is one governed piece of work, such as a turn of a conversation. It is named by its id, or by the beginning of one.

` + journalHelp
}

type runsListCommand struct {
	journalFlags
	Status  string `placeholder:"STATUS" help:"Those that stand so: queued, running, waiting_approval, waiting_input, waiting_decision, completed, blocked, failed or cancelled."`
	Session string `placeholder:"ID" help:"Those of a conversation."`
	Kind    string `placeholder:"KIND" help:"Those of a kind: turn (of a conversation), playbook, or request (to the gateway, or of a turn to its model)."`
	Limit   int    `default:"20" help:"At most so many."`
	JSON    bool   `help:"Give each run as JSON, one a line."`
}

func (*runsListCommand) Help() string {
	return `Lists runs, the newest first: id, kind, status, reason, profile, and when it was made.

Examples:

    stoplog runs list --status waiting_approval
    stoplog runs list --kind request --limit 5
    stoplog runs list --json | jq -r .id

Exit codes: 0, 1 the journal can't be read, 2 usage.`
}

func (c *runsListCommand) Run(w *world) error {
	ctx := context.Background()
	if st := journal.Status(c.Status); st != "" && !st.Known() {
		return failf(exitUsage, "--status: unknown status %q", c.Status)
	}
	if k := journal.RunKind(c.Kind); k != "" && k != journal.TurnRun && k != journal.RequestRun && k != journal.PlaybookRun {
		return failf(exitUsage, "--kind: unknown kind %q: want turn, playbook or request", c.Kind)
	}
	if c.Limit < 1 {
		return failf(exitUsage, "--limit: want 1 or more")
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := store.Runs(ctx, journal.RunQuery{
		Tenant: journal.DefaultTenant, Status: journal.Status(c.Status), Session: journal.ID(c.Session),
		Kind: journal.RunKind(c.Kind), Limit: c.Limit,
	})
	if err != nil {
		return err
	}
	enc := newEncoder(w.stdout)
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if row.Kind == journal.AllowancesRun {
			continue // no piece of work: stoplog allow --list shows it
		}
		if c.JSON {
			if err := enc.Encode(api.RunOf(row)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Run, row.Kind, row.Status, orDash(row.Reason), orDash(diag.Line(row.Profile)), row.Created.Format(time.RFC3339))
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// runFlags are those of commands about one run.
type runFlags struct {
	journalFlags
	ID string `arg:"" name:"run" help:"The run: its id, or the beginning of one."`
}

// find returns the run that is meant.
func (f runFlags) find(ctx context.Context, s journal.Reader) (journal.Ref, error) {
	if _, err := journal.Partial(journal.RunPrefix, f.ID); err != nil {
		return journal.Ref{}, failf(exitUsage, "%w", err)
	}
	ref, err := chat.Find(ctx, s, journal.DefaultTenant, f.ID)
	if err != nil {
		return ref, refused(err)
	}
	return ref, nil
}

type runsShowCommand struct {
	runFlags
	JSON bool `help:"Give the run and its events as JSON, one a line."`
}

func (*runsShowCommand) Help() string {
	return `Shows a run as it stands: its row, and the events that its readers saw, in order. See stoplog why for what was decided of it.

Examples:

    stoplog runs show run_01kc
    stoplog runs show run_01kc --json | jq 'select(.event == "tool")'

Exit codes: 0, 1 there is no such run, 2 usage.`
}

func (c *runsShowCommand) Run(w *world) error {
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
	read := chat.Items
	if row.Kind == journal.PlaybookRun {
		read = flow.Items
	}
	items, err := read(ctx, store, ref)
	if err != nil {
		return err
	}
	spend, err := chat.SpendOf(ctx, store, ref)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeShown(w, row, spend, items)
	}
	if err := showRow(w, row, spend); err != nil {
		return err
	}
	n := narrator{w: w, tame: true, all: true}
	for _, item := range items {
		if err := n.show(item.Event); err != nil {
			return err
		}
	}
	return n.end()
}

func showRow(w *world, row journal.Run, spend chat.Spend) error {
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, f := range [][2]string{
		{"run", string(row.Run)}, {"kind", string(row.Kind)}, {"session", string(row.Session)}, {"profile", row.Profile},
		{"starter", row.Starter}, {"status", string(row.Status)}, {"reason", row.Reason},
		{"created", row.Created.Format(time.RFC3339)}, {"took", spend.String()}, {"events", fmt.Sprint(row.Tail.Seq)}, {"head", row.Tail.Link.String()},
	} {
		if f[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", f[0], diag.Line(f[1]))
		}
	}
	fmt.Fprintln(table)
	return table.Flush()
}

func writeShown(w *world, row journal.Run, spend chat.Spend, items []chat.Item) error {
	enc := newEncoder(w.stdout)
	shown := api.RunOf(row)
	shown.Spend = &spend
	if err := enc.Encode(shown); err != nil {
		return err
	}
	for _, item := range items {
		if err := writeItem(enc, item); err != nil {
			return err
		}
	}
	return nil
}

// writeItem writes an event as a line of JSON: its id, its name, its data.
func writeItem(enc *json.Encoder, item chat.Item) error {
	line := struct {
		ID    string     `json:"id,omitempty"`
		Event string     `json:"event"`
		Data  chat.Event `json:"data"`
	}{Event: item.Event.Name(), Data: item.Event}
	if !item.At.IsZero() {
		line.ID = item.At.String()
	}
	return enc.Encode(line)
}

type runsCancelCommand struct {
	runFlags
	By   string `placeholder:"NAME" help:"Who ends it; without it, the user of this process."`
	JSON bool   `help:"Give the run as JSON."`
}

func (*runsCancelCommand) Help() string {
	return `Asks for the end of a run. The wish is on record when the command ends; whoever advances the run, or takes it up next, ends it. What it had under way is cut off.

Examples:

    stoplog runs cancel run_01kc

Exit codes: 0 it will end, 1 it had ended already, 2 usage.`
}

func (c *runsCancelCommand) Run(w *world) error {
	ctx := context.Background()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	ref, err := c.find(ctx, store)
	if err != nil {
		return err
	}
	if server, ok := dialServer(ctx, store.Path()); ok {
		defer server.hangUp()
		if _, err := server.Cancel(ctx, string(ref.Run), by); err != nil {
			return refused(err)
		}
	} else {
		err := store.Update(ctx, func(ctx context.Context, tx journal.Tx) error { return tx.AskCancel(ctx, ref, by) })
		if err != nil {
			return refused(err)
		}
		nobody(w, ref.Run)
	}
	if !c.JSON {
		return nil
	}
	row, err := store.Run(ctx, ref)
	return errors.Join(err, newEncoder(w.stdout).Encode(api.RunOf(row)))
}
