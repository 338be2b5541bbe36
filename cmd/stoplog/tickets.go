package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/notify"
	"github.com/stoplog/stoplog/internal/sandbox"
)

// tickets is an outbox as playbooks see it.
type tickets struct{ *notify.Outbox }

// File implements [flow.Tickets].
func (t tickets) File(_ context.Context, f flow.Ticket) (string, bool, error) {
	return t.Outbox.File(notify.Ticket{
		Digest: f.Digest, Playbook: f.Playbook, Step: f.Step, Kind: f.Kind, Run: string(f.Run.Run), What: f.What, Detail: f.Detail, At: f.At,
	})
}

// openTickets opens the outbox beside a journal. Where the configuration names no
// sink, tickets are files in a folder there.
func openTickets(w *world, conf *config.Config, store *sqlite.Store) (*notify.Outbox, error) {
	sinks, err := ticketSinks(w, conf, store)
	if err != nil {
		return nil, err
	}
	ids := journal.NewIDs(time.Now, rand.Reader)
	return notify.New(notify.Options{
		Dir: outboxOf(store.Path()), Sinks: sinks,
		NewID: func() (string, error) {
			id, err := ids.New(journal.TicketPrefix)
			return string(id), err
		},
	})
}

// outboxOf is where the tickets of a journal are kept.
func outboxOf(path string) string { return path + ".outbox" }

func ticketSinks(w *world, conf *config.Config, store *sqlite.Store) (sinks []notify.Sink, err error) {
	t := conf.Tickets
	found, err := conf.ReadSecrets(w.getenv)
	if err != nil {
		return nil, failf(exitUsage, "%w", err)
	}
	if t.Folder != "" {
		sinks = append(sinks, notify.Folder{Dir: t.Folder})
	}
	if g := t.GitHub; g != nil {
		way := dial.Transport(dial.Options{Allow: []string{g.API}, EnvironmentProxy: true})
		sinks = append(sinks, notify.GitHub{API: g.API, Repo: g.Repo, Token: found.GitHub, Way: way})
	}
	if t.Webhook != nil {
		way := dial.Transport(dial.Options{Allow: []string{found.WebhookURL}, EnvironmentProxy: true})
		sinks = append(sinks, notify.Webhook{URL: found.WebhookURL, Secret: found.Webhook, Way: way})
	}
	if len(t.Command) > 0 {
		root, err := realPath(filepath.Dir(conf.File))
		if err != nil {
			return nil, failf(exitUsage, "find the folder of the command of tickets: %w", err)
		}
		sinks = append(sinks, notify.Command{Argv: t.Command, Run: func(ctx context.Context, argv []string, in io.Reader, out io.Writer) error {
			return runSink(ctx, root, keptPlaces(w, store), argv, in, out)
		}})
	}
	if len(sinks) == 0 {
		sinks = append(sinks, notify.Folder{Dir: filepath.Join(filepath.Dir(store.Path()), "tickets")})
	}
	return sinks, nil
}

// runSink runs the command that takes tickets: in the sandbox, where it may read and
// run what lies beside the configuration, and reaches nothing.
func runSink(ctx context.Context, root string, deny, argv []string, in io.Reader, out io.Writer) error {
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Argv: argv, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, Stdin: in, Stdout: out,
		Scope:  sandbox.Scope{Root: root, Read: []string{"**"}, Write: []string{"tickets/**"}, Run: []string{"**"}},
		Deny:   deny,
		Limits: sandbox.Limits{Wall: time.Minute, Output: 1 << 20},
	})
	if err == nil && !r.Passed() {
		err = fmt.Errorf("%s %s with code %d", argv[0], r.End, r.Exit)
	}
	return err
}
