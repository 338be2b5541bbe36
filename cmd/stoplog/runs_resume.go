package main

import (
	"context"
	"errors"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	loop "github.com/stoplog/stoplog/internal/run"
)

type runsResumeCommand struct {
	runFlags
	Config  string  `placeholder:"FILE" help:"The configuration, in place of the one that would be found."`
	Retry   bool    `xor:"choice" help:"Of a call in doubt: run it again."`
	Done    *string `xor:"choice" placeholder:"TEXT" help:"Of a call in doubt: it has taken effect, and this is its result."`
	Abandon bool    `xor:"choice" help:"Of a call in doubt: end the run."`
	Call    int     `placeholder:"N" help:"Which call of the step, or which step of a playbook by its number, where several are in doubt."`
	By      string  `placeholder:"NAME" help:"Who says so; without it, the user of this process."`
	JSON    bool    `help:"Give the events as JSON, one a line."`
}

func (*runsResumeCommand) Help() string {
	return `Goes on with a run: one that was decided, or that nobody has in hand. What comes is shown as by stoplog chat, from where the run paused.

A call that was started and whose end was lost is in doubt: it may have taken effect, and is never run again by itself. Look at what became of it, and say so with --retry, --done or --abandon.

` + journalHelp + `

Examples:

    stoplog runs resume run_01kc
    stoplog runs resume run_01kc --done "deployed, see the release page"

Exit codes: 0 the run completed, 1 error, or it failed or was cancelled, 2 usage, 3 blocked by policy, 4 it waits for a person, 5 out of budget or time.`
}

func (c *runsResumeCommand) Run(w *world) error {
	ctx := context.Background()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	ref, err := c.find(ctx, store)
	var row journal.Run
	if err == nil {
		row, err = store.Run(ctx, ref)
	}
	if cerr := store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if row.Kind == journal.PlaybookRun {
		return c.playbook(ctx, w, ref, by)
	}
	server, hangUp, err := reach(ctx, w, c.journalFlags, c.Config)
	if err != nil {
		return err
	}
	defer hangUp()
	if body, doubt := c.resolution(by); doubt {
		if _, err := server.Resolve(ctx, string(ref.Run), body); err != nil {
			return refused(err)
		}
	} else if c.Call != 0 {
		return failf(exitUsage, "--call says which call is in doubt: say what became of it too").hint("see `stoplog runs resume --help`")
	}
	t := &talk{w: w, server: server, by: by, json: c.JSON, ask: isTerminal(w.stdin), narrator: narrator{w: w, tame: isTerminal(w.stdout)}}
	d, err := t.goOn(ctx, string(ref.Run), chat.Position{})
	if err != nil {
		return refused(err)
	}
	return endOf(w, d)
}

// playbook goes on with a playbook's run, here.
func (c *runsResumeCommand) playbook(ctx context.Context, w *world, ref journal.Ref, by string) error {
	h, err := c.share(ctx, w, c.Config)
	if err != nil {
		return err
	}
	return errors.Join(c.play(ctx, &play{w: w, host: h, by: by, json: c.JSON}, ref), h.close())
}

func (c *runsResumeCommand) play(ctx context.Context, p *play, ref journal.Ref) error {
	items, err := flow.Items(ctx, p.host.store, ref)
	if err != nil {
		return err
	}
	body, doubt := c.resolution(p.by)
	switch {
	case doubt:
		r := engine.Resolution{Step: c.Call, By: p.by, Text: body.Text}
		if err := r.Choice.UnmarshalText([]byte(body.Choice)); err != nil {
			return err
		}
		err = p.host.engine.Resolve(ctx, ref, r)
	default:
		err = conductor{Engine: p.host.engine}.Resume(ctx, ref)
	}
	if err != nil {
		return refused(err)
	}
	return p.see(ctx, ref, beforePause(items))
}

// resolution is what is said of a call in doubt; false if nothing is.
func (c *runsResumeCommand) resolution(by string) (api.ResolveRequest, bool) {
	body := api.ResolveRequest{Call: c.Call, By: by}
	switch {
	case c.Retry:
		body.Choice = loop.Retry.String()
	case c.Done != nil:
		body.Choice, body.Text = loop.TakeAsDone.String(), *c.Done
	case c.Abandon:
		body.Choice = loop.Abandon.String()
	default:
		return body, false
	}
	return body, true
}
