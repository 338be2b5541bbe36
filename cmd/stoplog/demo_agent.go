package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/agent"
	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/requestlog"
	loop "github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// agentModel is the model of the demo's agent, as its cassette knows it.
const agentModel = "demo-agent"

// The demo's agent: two turns over a journal of its own, in a folder of its own.
type agentDemo struct {
	First    chat.Done  `json:"first"`
	Second   chat.Done  `json:"second"`
	Approved bool       `json:"approved"` // the command of the first turn
	Verified []verified `json:"verified"`
}

// agentStage is where the agent works.
type agentStage struct {
	dir    string
	host   *host
	client *api.Client
	hangUp func()
}

// agentStage makes a folder with a secret in it, a journal, and an engine whose
// model is the cassette.
func (s *stage) agentStage(ctx context.Context) (_ *agentStage, err error) {
	a := &agentStage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.dir, err = os.MkdirTemp("", "stoplog-demo-"); err != nil {
		return a, err
	}
	if a.dir, err = filepath.EvalSymlinks(a.dir); err != nil {
		return a, err
	}
	work := filepath.Join(a.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return a, err
	}
	secret, err := exampleToken()
	if err != nil {
		return a, err
	}
	settings := "REGION=eu-west-1\nREPLICAS=3\nTOKEN=" + secret + "\n"
	if err := os.WriteFile(filepath.Join(work, "deploy.env"), []byte(settings), 0o600); err != nil {
		return a, err
	}
	path := filepath.Join(a.dir, "stoplog.db")
	if a.host, err = openHost(ctx, path, nil, false, func(store *sqlite.Store) (house, func() error, error) {
		h, err := s.agentHome(store, work)
		if err != nil {
			return nil, nil, err
		}
		return h, h.door.Close, nil
	}); err != nil {
		return a, err
	}
	way := dial.Socket(socketOf(path))
	a.client, a.hangUp = &api.Client{Transport: way}, way.CloseIdleConnections
	return a, nil
}

// agentHome is a profile that redacts secrets in what the model is sent, reads
// files freely and asks before it runs a command.
func (s *stage) agentHome(store *sqlite.Store, workdir string) (home, error) {
	key := store.Key().Fingerprints()
	secrets := guard.Member{Guard: demoGuard("secrets", key, guard.Redact, "secrets", "credentials")}
	h := home{log: requestlog.New(store)}
	var err error
	if h.door, err = govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "demo", Protocol: govern.OpenAI, BaseURL: "http://cassette.invalid/v1", Transport: s.tap.door}},
		Profiles: []govern.Profile{{
			Name: "default", Upstreams: []string{"demo"}, Models: []string{agentModel},
			Input: []guard.Member{secrets}, Output: []guard.Member{secrets},
			Tools: map[string]govern.ToolRule{"read_file": govern.ToolAllow, "list_dir": govern.ToolAllow, "run_command": govern.ToolRequireApproval},
		}},
		Record: h.log.Record,
	}); err != nil {
		return home{}, err
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		return home{}, err
	}
	h.Agents, err = agent.New(h.door, store, workdir, agent.Profile{
		Name: "default", Protocol: govern.OpenAI, Model: agentModel, Limits: loop.Limits{Stall: 3},
		Evaluator: evaluator, Output: []guard.Member{secrets}, Effective: json.RawMessage(`{"demo":1}`),
	})
	return h, err
}

var githubToken = regexp.MustCompile(`ghp_[0-9A-Za-z]{36}`)

// exampleToken is a made-up token: an example of the rule that is to find it.
func exampleToken() (string, error) {
	rs, err := rules.Select("github-pat")
	if err != nil {
		return "", err
	}
	for _, text := range rs[0].Match {
		if token := githubToken.FindString(text); token != "" {
			return token, nil
		}
	}
	return "", errors.New("the rule github-pat has no example of a token")
}

func (a *agentStage) close() error {
	var errs []error
	if a.hangUp != nil {
		a.hangUp()
	}
	if a.host != nil {
		errs = append(errs, a.host.close())
	}
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}

// agents shows the agent's two turns, and what is left of them.
func (c *demoCommand) agents(ctx context.Context, w *world, s *stage, p *printer) (d agentDemo, err error) {
	a, err := s.agentStage(ctx)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, a.close()) }()

	p.heading("5  An agent reads a file with a secret in it, and asks before it runs a command.")
	p.printf("   you    What is in deploy.env?\n")
	if d.First, err = a.say(ctx, p, api.ChatRequest{Message: "What is in deploy.env?", By: "you"}); err != nil {
		return d, err
	}
	for d.First.Reason == chat.ReasonApproval {
		if d.Approved, err = c.decide(ctx, w, p, a, d.First.Approvals[0]); err != nil {
			return d, err
		}
		if d.First, err = a.say(ctx, p, api.ChatRequest{Resume: d.First.Run}); err != nil {
			return d, err
		}
	}
	p.heading("6  It reads the same file again and again, until it is stopped.")
	p.printf("   you    Look again, please.\n")
	if d.Second, err = a.say(ctx, p, api.ChatRequest{Session: d.First.Session, Message: "Look again, please.", By: "you"}); err != nil {
		return d, err
	}
	p.printf("   run    %s (%s): %s\n", d.Second.Status, d.Second.Reason, plain(d.Second.Message))
	return d, a.account(ctx, p, &d)
}

// say says something to the agent, and shows what comes of it.
func (a *agentStage) say(ctx context.Context, p *printer, body api.ChatRequest) (done chat.Done, err error) {
	n := agentPrinter{p: p}
	for item, err := range a.client.Chat(ctx, body, chat.Position{}) {
		if err != nil {
			return done, err
		}
		if end, ok := item.Event.(chat.Done); ok {
			done = end
		}
		n.show(item.Event)
	}
	n.end()
	return done, nil
}

// decide asks the person at the terminal, or says yes by itself.
func (c *demoCommand) decide(ctx context.Context, w *world, p *printer, a *agentStage, q chat.Approval) (approved bool, err error) {
	p.printf("   asks   %s\n          digest %s…\n", plain(q.What), q.Digest[:16])
	if c.Yes || c.JSON || !isTerminal(w.stdin) {
		approved = true
		p.printf("          approved, since nobody is asked\n")
	} else {
		line, err := askLine(w, "          run it? [y/N] ")
		if err != nil {
			return false, err
		}
		approved = strings.EqualFold(strings.TrimSpace(line), "y")
	}
	state, reason := journal.QuestionDenied, "not in a demo"
	if approved {
		state, reason = journal.QuestionApproved, ""
	}
	_, err = a.client.Decide(ctx, q.ID, state, api.Decision{Digest: q.Digest, By: "you", Text: reason})
	return approved, err
}

// account shows the journal of the first turn, and that all chains are whole.
func (a *agentStage) account(ctx context.Context, p *printer, d *agentDemo) error {
	p.heading("7  What the journal has of it, and whether its chains are whole.")
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: journal.ID(d.First.Run)}
	told, err := chat.AccountOf(ctx, a.host.store, ref)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(account(told))) {
		p.printf("   %s", clipped(plain(line)))
	}
	refs, err := auditFlags{}.refs(ctx, a.host.store)
	if err != nil {
		return err
	}
	whole := 0
	for _, ref := range refs {
		rep, err := journal.Verify(ctx, a.host.store, ref, journal.Link{})
		if err != nil {
			return err
		}
		v := verified{Run: ref.Run, Whole: rep.Broken == nil, Events: rep.Events, Head: rep.Tail.Link.String()}
		if v.Whole {
			whole++
		}
		d.Verified = append(d.Verified, v)
	}
	p.printf("\n   audit verify: %d of %d chains are whole\n", whole, len(refs))
	return nil
}

// clipped is a line that fits a terminal.
func clipped(line string) string {
	const most = 110
	if r := []rune(strings.TrimSuffix(line, "\n")); len(r) > most {
		return string(r[:most-1]) + "…\n"
	}
	return line
}

// agentPrinter shows an agent's events, under who speaks.
type agentPrinter struct {
	p    *printer
	text bool // a line of the model's is open
}

func (n *agentPrinter) show(e chat.Event) {
	switch e := e.(type) {
	case chat.Delta:
		if !chat.Answers(e.Channel) {
			return
		}
		if !n.text {
			n.p.printf("   model  ")
			n.text = true
		}
		n.p.printf("%s", n.p.marked(e.Text))
	case chat.Tool:
		n.end()
		switch e.State {
		case chat.ToolDone, chat.ToolFailed, chat.ToolNotRun:
			n.p.printf("   tool   %s: %s\n", e.Tool, n.p.marked(strings.ReplaceAll(strings.TrimSpace(e.Result), "\n", " ⏎ ")))
		case chat.ToolHeld, chat.ToolDue:
			if e.Args == "" {
				return // it was shown when it was asked for
			}
			n.p.printf("   call   %s %s\n", e.Tool, n.p.marked(e.Args))
		}
	case chat.Step, chat.Done:
		n.end()
	}
}

func (n *agentPrinter) end() {
	if n.text {
		n.p.printf("\n")
		n.text = false
	}
}

// judge says whether the agent did what the demo says it does.
func (d agentDemo) judge() error {
	switch {
	case !d.First.Success:
		return fmt.Errorf("the agent's first turn ended as %s (%s): %s", d.First.Status, d.First.Reason, d.First.Message)
	case d.Second.Reason != "stalled":
		return fmt.Errorf("the agent's second turn ended as %s (%s), and should have stalled", d.Second.Status, d.Second.Reason)
	}
	for _, v := range d.Verified {
		if !v.Whole {
			return fmt.Errorf("the chain of %s is broken", v.Run)
		}
	}
	return nil
}
