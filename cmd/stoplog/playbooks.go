package main

import (
	"context"
	"net"
	"net/http"

	"github.com/stoplog/stoplog/internal/agent"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/claude"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/playbook"
)

// openPlaybooks makes a host of playbooks under the profiles that there are. Its
// steps do not see what Stoplog keeps.
func openPlaybooks(w *world, store *sqlite.Store, agents *agent.Agents, door http.RoundTripper, t flow.Tickets) (*flow.Host, error) {
	deny := keptPlaces(w, store)
	reach := func(hosts []string) func(context.Context, string, string) (net.Conn, error) {
		return dial.Hosts(hosts...)
	}
	return flow.New(flow.Options{
		Store: store, Run: sandbox.Run, Deny: deny, Dial: dial.Hosts, Tickets: t, Destroys: playbook.Destroys,
		Judge:    &claude.Driver{Door: door, Deny: deny, Dial: reach},
		Profiles: func(name string) (flow.Profile, error) { return flowProfile(agents, name) },
	})
}

// keptPlaces are where Stoplog keeps what no program of a step may see: the state
// directory, and a journal that lies elsewhere, such as in a project's own folder.
func keptPlaces(w *world, store *sqlite.Store) []string {
	path := store.Path()
	places := []string{path, path + "-wal", path + "-shm", socketOf(path), socketOf(path) + ".lock", outboxOf(path)}
	if dir, err := stateDir(w.getenv); err == nil {
		places = append(places, dir)
	}
	return places
}

// flowProfile is a profile as playbooks see it.
func flowProfile(agents *agent.Agents, name string) (flow.Profile, error) {
	p, digest, err := agents.Profile(name)
	if err != nil {
		return flow.Profile{}, err
	}
	return flow.Profile{
		Name: p.Name, Digest: digest, Capture: p.Capture, Evaluator: p.Evaluator, Guards: p.Output,
		Expire: p.Expire, SecondPerson: p.SecondPerson,
		Turn: func(text string, row journal.Run) (engine.Task, error) {
			task, err := agents.Task(chat.Start{Tenant: row.Tenant, Profile: p.Name, By: row.Starter, Task: text})
			task.Run, task.Parent, task.Workdir = row.Run, row.Parent, row.Workdir
			return task, err
		},
	}, nil
}
