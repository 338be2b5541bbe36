package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/playbook"
)

type runCommand struct {
	journalFlags
	Config  string            `placeholder:"FILE" help:"The configuration, in place of the one that would be found."`
	Profile string            `placeholder:"NAME" help:"The profile that governs; without it, the default one."`
	Root    string            `placeholder:"DIR" help:"The folder that the playbook works in, where prompts and scopes begin (default: this folder, if the file is in it, else the file's own)."`
	Input   map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"What the playbook is given; once for each input."`
	From    string            `placeholder:"STEP" help:"Begin at a step: those before it are passed over, but for pauses."`
	DryRun  bool              `help:"Show the plan, the scopes, and what it may cost at most, and run nothing."`
	Report  []string          `placeholder:"FILE" help:"Write a report when it ends or waits: Markdown, or, to a file .xml, JUnit's."`
	By      string            `placeholder:"NAME" help:"Who starts it; without it, the user of this process."`
	JSON    bool              `help:"Give the events as JSON, one a line; of --dry-run the forecast."`
	Observe string            `placeholder:"RUN" help:"Start nothing: put what a recorded run has of its steps to their observers again."`
	File    string            `arg:"" help:"The playbook."`
}

func (*runCommand) Help() string {
	return `Runs a playbook: commands in a sandbox that has each step's scope, questions to models whose answers are checked, pauses for a person. A file that does not check is not run.

What the steps say and how they stand is talk, as it comes; how they ended is the result. At a terminal a pause is asked there; elsewhere the command ends with exit code 4, and the run goes on with stoplog approve or deny, and stoplog runs resume. A run whose process died goes on at the step that it was in, by a server that has the journal in hand, by the next stoplog run, or with stoplog runs resume; a step that may have taken effect is asked about first.

The run is made of the files as they are now: what becomes of them later does not change it. SIGINT ends the run, a second one the command.

` + journalHelp + `

Examples:

    stoplog run deploy.yaml --input target=staging
    stoplog run deploy.yaml --dry-run
    stoplog run deploy.yaml --report report.md --report junit.xml
    stoplog run deploy.yaml --json | jq -r 'select(.event == "step") | .data | "\(.id) \(.state)"'
    stoplog run deploy.yaml --observe run_01kc

Exit codes: 0 the run completed, 1 error, or a step broke or the run was cancelled, 2 usage, or a file that does not check, 3 blocked by policy, 4 it waits for a person, 5 out of budget or time.`
}

func (c *runCommand) Run(w *world) error {
	ctx := context.Background()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	request, closeRoot, err := c.request()
	if err != nil {
		return err
	}
	defer closeRoot()
	request.Starter = by
	if err := checkPlaybook(w, request); err != nil {
		return err
	}
	if c.DryRun {
		return c.foresee(w, request)
	}
	h, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	play := &play{w: w, host: h, by: by, json: c.JSON, reports: c.Report}
	if c.Observe != "" {
		err = play.observe(ctx, request, c.Observe)
	} else {
		err = play.start(ctx, request)
	}
	return errors.Join(err, h.close())
}

// open takes the journal in hand, or shares it with whoever has, so that the run
// goes on here.
func (c *runCommand) open(ctx context.Context, w *world) (*host, error) {
	return c.share(ctx, w, c.Config)
}

// request is what is to be run, from the folder that it works in. The folder is
// open until the returned function is called; no link leads out of it.
func (c *runCommand) request() (r flow.Request, closeRoot func() error, err error) {
	file, err := realPath(c.File)
	if err != nil {
		return r, nil, failf(exitUsage, "find the playbook: %w", err)
	}
	root, err := realPath(cmp.Or(c.Root, "."))
	if err != nil {
		return r, nil, failf(exitUsage, "find the folder: %w", err)
	}
	rel, err := filepath.Rel(root, file)
	if c.Root == "" && (err != nil || !filepath.IsLocal(rel)) {
		root, rel, err = filepath.Dir(file), filepath.Base(file), nil
	}
	if err != nil || !filepath.IsLocal(rel) {
		return r, nil, failf(exitUsage, "%s is not in the folder that it works in, %s", c.File, root).hint("name that folder with --root DIR")
	}
	tree, err := os.OpenRoot(root)
	if err != nil {
		return r, nil, failf(exitUsage, "open the folder: %w", err)
	}
	return flow.Request{
		Profile: c.Profile, Root: root, Tree: tree.FS(), File: filepath.ToSlash(rel), Inputs: c.Input, From: c.From,
	}, tree.Close, nil
}

// realPath is where a file or folder really is.
func realPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// checkPlaybook says what is wrong with a playbook and what it is given: with all
// that it calls.
func checkPlaybook(w *world, r flow.Request) error {
	created, err := flow.Prepare(r)
	if err == nil {
		return lint(w, r, created.Book)
	}
	var mistakes diag.List
	var input *flow.InputError
	switch {
	case errors.As(err, &mistakes):
		return failf(exitUsage, "%w", mistakes).hint("see `stoplog lint %s`", r.File)
	case errors.As(err, &input):
		var f *failure
		for line := range strings.Lines(input.Error()) {
			if f == nil {
				f = failf(exitUsage, "%s", strings.TrimSpace(line))
			} else {
				w.voice.sayf("%s", strings.TrimSpace(line))
			}
		}
		return f.hint("give inputs with --input NAME=VALUE")
	}
	return failf(exitUsage, "%w", err)
}

// lint runs the checks over a playbook and those that it calls. What a check only
// warns of is said, and no more.
func lint(w *world, r flow.Request, book steps.Book) error {
	prices := budget.List()
	var mistakes diag.List
	for _, f := range book.Files {
		if !strings.HasSuffix(f.Name, ".yaml") && !strings.HasSuffix(f.Name, ".yml") {
			continue // a prompt, which is looked at with who names it
		}
		_, found := playbook.Lint(f.Name, []byte(f.Text), playbook.Options{
			Tree: r.Tree, Path: f.Name, Known: func(p playbook.Pin) bool { _, ok := prices.Of(p.Sent()); return ok },
		})
		for _, finding := range found {
			if finding.Severity == playbook.Warning && f.Name == r.File {
				w.voice.sayf("%v (%s)", finding.Diagnostic, finding.Check)
			}
		}
		mistakes = append(mistakes, found.Errors()...)
	}
	if len(mistakes) == 0 {
		return nil
	}
	return failf(exitUsage, "%w", mistakes).hint("see `stoplog lint %s`", r.File)
}

// play is a run of a playbook under a person's eyes.
type play struct {
	w       *world
	host    *host
	by      string
	json    bool
	reports []string
}

// start starts a run, and sees it to its end or its rest.
func (p *play) start(ctx context.Context, r flow.Request) error {
	ref, err := p.host.flow.Start(ctx, r)
	if err != nil {
		return err
	}
	return p.see(ctx, ref, chat.Position{})
}

// see follows a run behind a place, asks what it asks, if somebody is there to be
// asked, and says how it ended.
func (p *play) see(ctx context.Context, ref journal.Ref, after chat.Position) error {
	ctx, stop := p.interruptible(ctx, ref)
	defer stop()
	show := newTeller(p.w, p.json)
	talk := p.talk()
	var done chat.Done
	for item, err := range flow.Follow(ctx, p.host.store, ref, after) {
		if err != nil {
			return err
		}
		if err := show.item(item); err != nil {
			return err
		}
		d, ok := item.Event.(chat.Done)
		if !ok {
			continue
		}
		done = d
		if !d.Waits() {
			break
		}
		moves, err := p.goesOn(ctx, ref, item.At, d)
		if err != nil {
			return err
		}
		if moves {
			continue
		}
		settled, err := p.ask(ctx, talk, d)
		if err != nil {
			return err
		}
		if !settled {
			break
		}
	}
	state, err := flow.StateOf(ctx, p.host.store, ref)
	if err != nil {
		return err
	}
	if err := errors.Join(show.end(flow.Steps(state)), p.report(ctx, ref, state)); err != nil {
		return err
	}
	return endOf(p.w, done)
}

// goesOn reports whether a run has gone on behind a pause, or is about to: what it
// waited for has come.
func (p *play) goesOn(ctx context.Context, ref journal.Ref, at chat.Position, d chat.Done) (bool, error) {
	row, err := p.host.store.Run(ctx, ref)
	if err != nil || row.Tail.Seq > at.Seq || row.CancelBy != "" {
		return err == nil, err
	}
	for _, a := range d.Approvals {
		q, err := p.host.store.Question(ctx, ref.Tenant, journal.ID(a.ID))
		if err != nil {
			return false, err
		}
		if q.State != journal.QuestionPending || !time.Now().Before(q.Expires) {
			return true, nil
		}
	}
	if len(d.Approvals)+len(d.InDoubt) > 0 {
		return false, nil
	}
	parts, err := p.host.store.Runs(ctx, journal.RunQuery{Tenant: ref.Tenant, Parent: ref.Run})
	for _, part := range parts {
		switch part.Status {
		case journal.WaitingApproval, journal.WaitingInput, journal.WaitingDecision:
			return false, err
		}
	}
	return err == nil, err
}

// ask asks what a run waits for. Where that is a part of it, the part's questions
// are asked.
func (p *play) ask(ctx context.Context, t *talk, d chat.Done) (bool, error) {
	if !isTerminal(p.w.stdin) || p.json || t == nil {
		return false, nil
	}
	if len(d.Approvals) == 0 && len(d.InDoubt) == 0 {
		asked, err := p.parts(ctx, journal.ID(d.Run))
		if err != nil {
			return false, err
		}
		d.Approvals = asked
	}
	return t.settle(ctx, d)
}

// parts are the open questions of the runs that a run waits for.
func (p *play) parts(ctx context.Context, run journal.ID) (all []chat.Approval, err error) {
	rows, err := p.host.store.Runs(ctx, journal.RunQuery{Tenant: journal.DefaultTenant, Parent: run})
	for _, row := range rows {
		qs, qerr := p.host.store.Questions(ctx, journal.QuestionQuery{Tenant: journal.DefaultTenant, Run: row.Run, State: journal.QuestionPending})
		err = errors.Join(err, qerr)
		for _, q := range qs {
			a := api.ApprovalOf(q)
			all = append(all, chat.Approval{ID: string(a.ID), Digest: a.Digest, What: a.What, Expires: a.Expires})
		}
		below, berr := p.parts(ctx, row.Run)
		all, err = append(all, below...), errors.Join(err, berr)
	}
	return all, err
}

// talk is a way to decide: through whoever answers on the journal's socket.
func (p *play) talk() *talk {
	path := socketOf(p.host.store.Path())
	if len(path) > maxSocketPath {
		return nil
	}
	return &talk{w: p.w, server: &api.Client{Transport: dial.Socket(path)}, by: p.by, ask: true, narrator: narrator{w: p.w}}
}

// interruptible turns a first SIGINT into the end of the run, and a second one into
// the end of waiting for it.
func (p *play) interruptible(ctx context.Context, ref journal.Ref) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		defer close(over)
		for wanted := false; ; wanted = true {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if wanted {
				cancel()
				return
			}
			p.w.voice.sayf("ending run %s", ref.Run)
			if err := p.host.engine.Cancel(ctx, ref, p.by); err != nil {
				p.w.voice.sayf("%v", err)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
		<-over
	}
}

// report writes the reports that are asked for.
func (p *play) report(ctx context.Context, ref journal.Ref, state steps.State) error {
	if len(p.reports) == 0 {
		return nil
	}
	row, err := p.host.store.Run(ctx, ref)
	if err != nil {
		return err
	}
	for _, name := range p.reports {
		write := flow.WriteMarkdown
		if strings.HasSuffix(strings.ToLower(name), ".xml") {
			write = flow.WriteJUnit
		}
		f, err := os.Create(name)
		if err != nil {
			return failf(exitError, "write a report: %w", err)
		}
		if err := errors.Join(write(f, row, state), f.Close()); err != nil {
			return failf(exitError, "write a report: %w", err)
		}
	}
	return nil
}

// beforePause is the place before a run's last pause; zero if there was none.
func beforePause(items []chat.Item) (at chat.Position) {
	var last chat.Position
	for _, item := range items {
		if d, ok := item.Event.(chat.Done); ok && d.Waits() {
			at = last
		}
		last = item.At
	}
	return at
}
