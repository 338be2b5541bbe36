package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/agent"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/signal"
)

// openHouse makes the agents of a configuration file, and the function that closes
// what they use. What passes the door is recorded beside the journal, in the file
// of serve.
func openHouse(w *world, file string, store *sqlite.Store) (house, func() error, error) {
	conf, err := loadConfig(file, w)
	if err != nil {
		return nil, nil, err
	}
	records, err := govern.OpenRecordFile(filepath.Join(filepath.Dir(store.Path()), "requests.jsonl"))
	if err != nil {
		return nil, nil, failf(exitError, "%w", err)
	}
	door, err := openDoor(conf, w.getenv, store.Key().Fingerprints(), records.Append)
	if err != nil {
		return nil, nil, errors.Join(failf(exitUsage, "%w", err), records.Close())
	}
	agents, err := agentsBehind(w, door, conf, store)
	if err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	return agents, records.Close, nil
}

// agentsBehind makes the agents of a configuration, which ask through the door and
// work in this folder.
func agentsBehind(w *world, door *govern.Transport, conf *config.Config, store *sqlite.Store) (*agent.Agents, error) {
	workdir, err := filepath.Abs(".")
	if err == nil {
		workdir, err = filepath.EvalSymlinks(workdir)
	}
	if err != nil {
		return nil, failf(exitError, "find this folder: %w", err)
	}
	evaluator, err := signal.New(signal.Options{})
	if err != nil {
		return nil, err
	}
	if missing := evaluator.NotBuilt(); len(missing) > 0 {
		w.voice.sayf("these signals are not built yet and judge nothing: %s", strings.Join(missing, ", "))
	}
	profiles, err := agentProfiles(conf, evaluator)
	if err != nil {
		return nil, err
	}
	return agent.New(door, store, workdir, profiles...)
}

// agentProfiles are the profiles that can run agents, the default one first.
func agentProfiles(conf *config.Config, evaluator *signal.Evaluator) ([]agent.Profile, error) {
	var all []agent.Profile
	for _, p := range conf.Profiles {
		effective, err := effective(conf, p)
		if err != nil {
			return nil, err
		}
		made := agent.Profile{
			Name: p.Name, Model: p.Model, Capture: journal.Capture(p.Capture), Evaluator: evaluator, Effective: effective,
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

// effective is a profile in force, with the guards that it uses.
func effective(conf *config.Config, p config.Profile) (json.RawMessage, error) {
	guards := map[string]config.Guard{}
	for _, use := range slices.Concat(p.Input, p.Output) {
		guards[use.Guard], _ = conf.Guard(use.Guard)
	}
	return json.Marshal(struct {
		Profile config.Profile
		Guards  map[string]config.Guard
	}{p, guards})
}
