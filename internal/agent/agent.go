// Package agent is a profile at work in the loop: what the engine acts through.
// It binds three rooms that do not know each other:
//
//	engine ──► Model ──► llm ──► govern.Transport     every model call
//	       ──► Tools ──► govern.Session ──► tool      every tool call
//	       ──► Evaluator, Screen                      the step's judge, the last words
//
// # Laws
//
// There is no second way: a run's model is asked through the door, under the
// run's own profile, and its tools are called through a session.
//
// What the rules make of a call is decided once, when the answer is in, and is
// part of the answer's event. At the tool's own door the session decides again,
// and an approval counts there only if it is of the very call that would run.
//
// The same state asks the same: a request is built from the run's state and the
// session's earlier turns, and from nothing else.
package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// Profile is what a run of the loop needs to know of a profile beside what the
// door knows.
type Profile struct {
	Name     string
	Protocol string // of the upstream that its model is asked at
	Model    string
	System   string
	// Output judges what a run says at its end in stoplog's own words.
	Output []guard.Member
	Limits run.Limits
	// Enforced are the signals that have a say; nil is signal.DefaultEnforced.
	Enforced     []string
	Expire       time.Duration // of a question to a person; 0 is a day
	SecondPerson bool
	// Effective is the whole profile as it is printed, a JSON object: decisions
	// bind to its digest.
	Effective json.RawMessage
}

// Agents are the profiles of a configuration. It is an [engine.Agents].
type Agents struct {
	door     *govern.Transport
	store    journal.Reader
	profiles map[string]*worker
}

// New makes agents of profiles. It fails if one of them cannot work; one without
// a model may, and its runs are refused.
func New(door *govern.Transport, store journal.Reader, profiles ...Profile) (*Agents, error) {
	a := &Agents{door: door, store: store, profiles: map[string]*worker{}}
	for _, p := range profiles {
		w, err := a.worker(p)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", p.Name, err)
		}
		a.profiles[p.Name] = w
	}
	return a, nil
}

// worker is a profile at work. It is engine.Model and engine.Tools at once, for
// every run of the profile.
type worker struct {
	Profile
	door      *govern.Transport
	store     journal.Reader
	client    llm.Client
	evaluator *signal.Evaluator
	screen    *guard.Chain
	digest    string
}

func (a *Agents) worker(p Profile) (*worker, error) {
	evaluator, err := signal.New(signal.Options{Enforced: p.Enforced})
	if err != nil {
		return nil, err
	}
	canonical := jsontext.Value(append([]byte(nil), p.Effective...))
	if err := canonical.Canonicalize(); err != nil {
		return nil, fmt.Errorf("the effective profile is not a JSON document: %w", err)
	}
	digest := sha256.Sum256(canonical)
	w := &worker{
		Profile: p, door: a.door, store: a.store,
		client:    llm.Client{Protocol: p.Protocol, Transport: a.door},
		evaluator: evaluator,
		screen:    guard.NewChain(guard.Options{}, p.Output...),
		digest:    hex.EncodeToString(digest[:]),
	}
	if p.Model == "" {
		return w, nil
	}
	// What is wrong with the tool rules is found out now, not in a run.
	_, closeSession, err := w.session(journal.Run{})
	if err != nil {
		return nil, err
	}
	closeSession()
	return w, nil
}

// ErrNoModel says that a profile names no model, so that nobody can talk to it.
var ErrNoModel = errors.New("the profile names no model")

// Task is what a run of a profile begins with, beside what is said.
func (a *Agents) Task(profile string) (engine.Task, error) {
	w := a.profiles[profile]
	switch {
	case w == nil:
		return engine.Task{}, fmt.Errorf("there is no profile %q", profile)
	case w.Model == "":
		return engine.Task{}, fmt.Errorf("profile %s: %w", profile, ErrNoModel)
	}
	return engine.Task{Profile: profile, ProfileDigest: w.digest, Limits: w.Limits}, nil
}

// Agent implements [engine.Agents].
func (a *Agents) Agent(_ context.Context, r journal.Run) (engine.Agent, error) {
	w := a.profiles[r.Profile]
	if w == nil {
		return engine.Agent{}, fmt.Errorf("there is no profile %q any more", r.Profile)
	}
	if w.Model == "" {
		return engine.Agent{}, fmt.Errorf("profile %s: %w", r.Profile, ErrNoModel)
	}
	return engine.Agent{
		Model: w, Tools: w, Evaluator: w.evaluator, Screen: w.say,
		ProfileDigest: w.digest, Expire: w.Expire, SecondPerson: w.SecondPerson,
	}, nil
}

// say screens stoplog's own last words: they may name what a model named.
func (w *worker) say(ctx context.Context, text string) string {
	f := guard.NewFilter(w.screen.Open(ctx, guard.Channel{Name: "message", Role: "assistant"}))
	out, _ := f.Write(nil, []byte(text))
	out, step := f.Close(out)
	if step.Stop != nil {
		return "Stopped. The words that say why were withheld by " + step.Stop.Rule + "."
	}
	return string(out)
}
