package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/internal/agent"
	"github.com/stoplog/stoplog/internal/allowance"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/keep"
	"github.com/stoplog/stoplog/internal/notify"
	"github.com/stoplog/stoplog/internal/requestlog"
	loop "github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// A home is a house over a configuration: its door, its agents, and the log of
// what passes the door, in the journal.
type home struct {
	*agent.Agents
	door *govern.Transport
	log  *requestlog.Log
	// answers are those that wait for a person.
	answers *keep.Answers
	book    *allowance.Book
	purse   *budget.Purse
	tapes   *cassette.Recorder // nil where nothing is recorded
	flow    *flow.Host
	// outbox keeps tickets; nil: there are none.
	outbox *notify.Outbox
}

// Playbooks is the host of playbooks.
func (h home) Playbooks() *flow.Host { return h.flow }

// Withheld are the answers that wait for a person.
func (h home) Withheld() *keep.Answers { return h.answers }

// close closes what the home has open, once nothing passes its door.
func (h home) close() error {
	h.book.Close()
	err := h.door.Close()
	if h.outbox != nil {
		ctx, stop := context.WithTimeout(context.Background(), closeIn)
		h.outbox.Close(ctx)
		stop()
	}
	if h.tapes != nil {
		h.tapes.Close()
	}
	if h.purse != nil {
		err = errors.Join(err, h.purse.Close())
	}
	return err
}

// Envelopes are the budgets that hold here.
func (h home) Envelopes() []budget.Envelope {
	if h.purse == nil {
		return nil
	}
	return h.purse.Envelopes()
}

// Hold says under whose name requests are held in the journal.
func (h home) Hold(w journal.Worker) { h.log.Hold(w) }

// openHouse makes the agents of a configuration that is found, or named.
func openHouse(w *world, file string, store *sqlite.Store) (house, func() error, error) {
	conf, err := loadConfig(file, w)
	if err != nil {
		return nil, nil, err
	}
	h, err := openHome(w, conf, store, nil)
	if err != nil {
		return nil, nil, err
	}
	return h, h.close, nil
}

// openHome makes a configuration's door and its agents, which work in this folder.
// tapes, unless it is nil, makes what hears the upstreams.
func openHome(w *world, conf *config.Config, store *sqlite.Store, tapes func(key []byte) (*cassette.Recorder, error)) (home, error) {
	workdir, err := filepath.Abs(".")
	if err == nil {
		workdir, err = filepath.EvalSymlinks(workdir)
	}
	if err != nil {
		return home{}, failf(exitError, "find this folder: %w", err)
	}
	found, err := conf.ReadSecrets(w.getenv)
	if err != nil {
		return home{}, failf(exitUsage, "%w", err)
	}
	way := &lateDoor{}
	guards, err := compileGuards(conf, found, way, store.Key().Fingerprints())
	if err != nil {
		return home{}, failf(exitUsage, "%w", err)
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		return home{}, err
	}
	if missing := evaluator.NotBuilt(); len(missing) > 0 {
		w.voice.sayf("these signals are not built yet and judge nothing: %s", strings.Join(missing, ", "))
	}
	h := home{log: requestlog.New(store)}
	if tapes != nil {
		if h.tapes, err = tapes(store.Key().Fingerprints()); err != nil {
			return home{}, failf(exitError, "%w", err)
		}
	}
	if h.book, err = allowance.Open(context.Background(), store, journal.DefaultTenant); err != nil {
		return home{}, failf(exitError, "%w", err)
	}
	if h.purse, err = openPurse(w, conf, store); err != nil {
		h.book.Close()
		return home{}, err
	}
	profiles, err := agentProfiles(conf, guards, h.book, h.purse)
	if err != nil {
		h.book.Close()
		return home{}, errors.Join(err, h.purse.Close())
	}
	h.answers = answers(conf, store, h.log)
	kept := govern.Config{Record: h.log.Record, Values: values(store), Approvals: h.answers, Purse: h.purse}
	if h.door, err = openDoor(conf, found, guards, h.book, kept, h.tapes); err != nil {
		h.book.Close()
		return home{}, errors.Join(failf(exitUsage, "%w", err), h.purse.Close())
	}
	way.door = h.door
	if h.Agents, err = agent.New(h.door, store, workdir, withCanaries(profiles, store.Key().Fingerprints())...); err != nil {
		return home{}, errors.Join(err, h.close())
	}
	if h.outbox, err = openTickets(w, conf, store); err == nil {
		h.flow, err = openPlaybooks(w, store, h.Agents, h.door, tickets{h.outbox})
	}
	if err != nil {
		return home{}, errors.Join(err, h.close())
	}
	return h, nil
}

// values keep what placeholders stand for: sealed in the journal where it has a
// key, and else in this process.
func values(store *sqlite.Store) govern.Values {
	if !store.Seals() {
		return nil
	}
	return keep.Values{Store: store, Tenant: journal.DefaultTenant}
}

// answers keep what waits for a person.
func answers(conf *config.Config, store *sqlite.Store, log *requestlog.Log) *keep.Answers {
	return &keep.Answers{
		Store: store, Tenant: journal.DefaultTenant, IDs: journal.NewIDs(time.Now, rand.Reader), Leave: log.Leave,
		Expire: func(profile string) time.Duration {
			p, _ := conf.Profile(profile)
			return p.Approvals.Expire
		},
	}
}

// agentProfiles are the profiles that can run agents, the default one first.
func agentProfiles(conf *config.Config, guards map[string]guard.Guard, book *allowance.Book, purse *budget.Purse) ([]agent.Profile, error) {
	var all []agent.Profile
	for _, p := range conf.Profiles {
		evaluator, err := signal.New(signal.Options{Enforced: p.Signals, StepCap: p.Limits.MaxIterations, Budgets: levels(purse, p)})
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", p.Name, err)
		}
		effective, err := effective(conf, p)
		if err != nil {
			return nil, err
		}
		made := agent.Profile{
			Name: p.Name, Model: p.Model, System: p.System, Capture: journal.Capture(p.Capture),
			Evaluator: evaluator, Effective: effective, Output: members(guards, p.Output), Allowed: book.For(p.Name),
			Limits: loop.Limits{
				MaxIterations: p.Limits.MaxIterations, Timeout: p.Limits.Timeout, Stall: p.Limits.Stall,
				Malformed: p.Limits.Malformed, ToolErrors: p.Limits.ToolErrors,
			},
			Expire: p.Approvals.Expire, SecondPerson: p.Approvals.SecondPerson,
		}
		if len(p.Upstreams) > 0 {
			first, _ := conf.Upstream(p.Upstreams[0])
			made.Protocol = first.Protocol
		}
		if p.Name == "default" {
			all = slices.Insert(all, 0, made)
		} else {
			all = append(all, made)
		}
	}
	return all, nil
}

// withCanaries adds a word to each system prompt by which it is known where it is
// told. It is the same each time, so that providers who keep prompts ready find it.
func withCanaries(profiles []agent.Profile, key []byte) []agent.Profile {
	for i, p := range profiles {
		if p.System != "" {
			profiles[i].System += "\n\nReference of these instructions, which is told to nobody: " + disclosure.Canary(key, p.Name)
		}
	}
	return profiles
}

// effective is a profile in force, with the guards that it uses.
func effective(conf *config.Config, p config.Profile) (json.RawMessage, error) {
	guards := map[string]config.Guard{}
	for _, use := range slices.Concat(p.Input, p.Output) {
		guards[use.Guard], _ = conf.Guard(use.Guard)
	}
	packs := map[string]string{} // a rule file is in force as it reads now
	for _, own := range conf.Packs {
		packs[own.Name] = own.Digest
	}
	return json.Marshal(struct {
		Profile config.Profile
		Guards  map[string]config.Guard
		Packs   map[string]string `json:",omitempty"`
	}{p, guards, packs})
}
