// Package agent is a profile at work: what an engine needs to run turns under it.
//
//	            ┌──────────────── agent ────────────────┐
//	engine ───► │ Model      history ──► llm.Client ──► │ ──► the door ──► provider
//	            │ Tools      a call ──► govern.Session  │ ──► a tool
//	            │ Evaluator  internal/signal            │
//	            └───────────────────────────────────────┘
//
// It translates and decides nothing: the guards and the tool rules are the
// door's, what comes of their verdicts is the loop's.
//
// # Laws
//
// What the model is told is a function of the run's state, and of the turns
// before it in its session: asked again, or resumed elsewhere, it is told the
// same.
//
// What a call comes to under the tool rules is asked of the session when the
// model asks for the call, and again when it runs.
package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/llm"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/tool"
)

// Profile is what there is of a profile beside what the door knows of it.
type Profile struct {
	Name      string
	Protocol  string // of the upstream that its runs ask
	Model     string
	System    string // may be empty
	Limits    run.Limits
	Capture   journal.Capture
	Evaluator engine.Evaluator
	// Output judges stoplog's own last words, as it does the model's, and Allowed
	// is what people have allowed of what it may find there.
	Output  []guard.Member
	Allowed func() guard.Allowed
	// Expire is how long a question waits for a person; 0 is a day. SecondPerson:
	// whoever started a run may not decide what it asks.
	Expire       time.Duration
	SecondPerson bool
	// Effective is the profile in force, all of it: what its digest is of.
	Effective json.RawMessage
}

// Agents makes agents of profiles. It is safe for use by several goroutines.
type Agents struct {
	door     *govern.Transport
	store    journal.Reader
	workdir  string
	profiles []profile
}

// profile is a profile and what approvals bind to: SHA-256 of its RFC 8785 JSON.
type profile struct {
	Profile
	digest string
}

// New returns the agents of profiles, the first of which is the default one. New
// runs work in the folder workdir, an absolute path without symbolic links.
func New(door *govern.Transport, store journal.Reader, workdir string, profiles ...Profile) (*Agents, error) {
	a := &Agents{door: door, store: store, workdir: workdir}
	for _, p := range profiles {
		form := jsontext.Value(bytes.Clone(p.Effective))
		if err := form.Canonicalize(); err != nil {
			return nil, fmt.Errorf("digest profile %q: %w", p.Name, err)
		}
		a.profiles = append(a.profiles, profile{p, fmt.Sprintf("%x", sha256.Sum256(form))})
	}
	return a, nil
}

// Names are the profiles that the agents know.
func (a *Agents) Names() []string {
	var names []string
	for _, p := range a.profiles {
		names = append(names, p.Name)
	}
	return names
}

// Profile returns a profile, and its digest; an empty name is the default one's.
func (a *Agents) Profile(name string) (p Profile, digest string, err error) {
	found, err := a.profile(name)
	return found.Profile, found.digest, err
}

func (a *Agents) profile(name string) (profile, error) {
	for _, p := range a.profiles {
		if name == "" || p.Name == name {
			return p, nil
		}
	}
	return profile{}, fmt.Errorf("%w: %q", chat.ErrProfile, name)
}

// Task says with what a turn begins.
func (a *Agents) Task(s chat.Start) (engine.Task, error) {
	p, err := a.profile(s.Profile)
	if err != nil {
		return engine.Task{}, err
	}
	if p.Model == "" {
		return engine.Task{}, fmt.Errorf("profile %q: %w", p.Name, chat.ErrNoModel)
	}
	return engine.Task{
		Tenant: s.Tenant, Session: s.Session, Profile: p.Name, ProfileDigest: p.digest, Starter: s.By,
		Capture: p.Capture, Workdir: a.workdir, Text: s.Task, Limits: p.Limits,
	}, nil
}

// Agent implements [engine.Agents].
func (a *Agents) Agent(ctx context.Context, row journal.Run) (engine.Agent, error) {
	p, err := a.profile(row.Profile)
	if err != nil {
		return engine.Agent{}, err
	}
	said, err := chat.Before(ctx, a.store, row)
	if err != nil {
		return engine.Agent{}, fmt.Errorf("read the session of %s: %w", row.Run, err)
	}
	s := &sessions{agents: a, profile: p}
	m := &model{
		profile: p, said: said, sessions: s,
		client: &llm.Client{Protocol: p.Protocol, Transport: a.door},
	}
	return engine.Agent{
		Model: m, Tools: s, Evaluator: p.Evaluator, Screen: p.screen,
		ProfileDigest: p.digest, Expire: p.Expire, SecondPerson: p.SecondPerson,
	}, nil
}

// screen judges the words with which a run ends: they may name what a model named.
func (p profile) screen(ctx context.Context, text string) string {
	f := guard.NewFilter(guard.NewChain(guard.Options{Allowed: p.Allowed}, p.Output...).Open(disclosure.WithPrompt(ctx, p.System), guard.Channel{Name: "message", Role: "assistant"}))
	out, _ := f.Write(nil, []byte(text))
	out, step := f.Close(out)
	if step.Stop != nil {
		return fmt.Sprintf("Stopped. The words that say why were withheld by %s.", step.Stop.Rule)
	}
	return string(out)
}

// sessions opens a session for each thing that is asked of it: a folder that is
// held open would have to be given back, and nobody says when a run is over.
type sessions struct {
	agents  *Agents
	profile profile
}

// with does something in a session of the run.
func (s *sessions) with(row journal.Run, do func(*govern.Session) error) (err error) {
	dir, err := tool.OpenWorkdir(row.Workdir)
	if err != nil {
		return err
	}
	defer dir.Close() // it was read from
	session, err := s.agents.door.OpenSession(govern.SessionConfig{
		Profile: s.profile.Name, Run: string(row.Run), Workdir: row.Workdir, ProfileDigest: s.profile.digest,
		Tools: dir.Tools(), Fence: fenced{},
	})
	if err != nil {
		return err
	}
	return do(session)
}

// fenced is the fence of calls that the engine has fenced already: it writes the
// start before it asks for the call, and the end when it has it.
type fenced struct{}

func (fenced) Begin(context.Context, govern.Start) error               { return nil }
func (fenced) Done(context.Context, govern.Start, govern.Result) error { return nil }

// Call implements [engine.Tools]. A call that a person approved carries that
// approval to the session, which holds it against the call that would run.
func (s *sessions) Call(ctx context.Context, c engine.ToolCall) (r engine.ToolResult) {
	err := s.with(c.Run, func(session *govern.Session) error {
		var approval govern.Approval
		if c.Approved {
			var err error
			if approval, err = s.approval(ctx, c); err != nil {
				return err
			}
		}
		result, err := session.Call(ctx, govern.Call{Step: c.Step, Number: c.Call, Tool: c.Tool, Args: c.Args}, approval)
		r = engine.ToolResult{Text: result.Text, Failed: result.Failed}
		return err
	})
	if err != nil {
		return engine.ToolResult{Text: "the call could not be made: " + err.Error(), Failed: true}
	}
	return r
}

// approval finds what a person approved for a call.
func (s *sessions) approval(ctx context.Context, c engine.ToolCall) (govern.Approval, error) {
	q := journal.QuestionQuery{Tenant: c.Run.Tenant, Run: c.Run.Run, State: journal.QuestionApproved}
	for {
		rows, err := s.agents.store.Questions(ctx, q)
		if err != nil {
			return govern.Approval{}, fmt.Errorf("look for the approval: %w", err)
		}
		if len(rows) == 0 {
			return govern.Approval{}, errors.New("there is no approval of it")
		}
		for _, row := range rows {
			q.Before = row.ID
			var shown struct{ Step, Call int }
			if row.About == run.AboutCall.String() && json.Unmarshal(row.Shown, &shown) == nil && shown.Step == c.Step && shown.Call == c.Call {
				return govern.Approval{ID: string(row.ID), Digest: govern.Digest(row.Digest)}, nil
			}
		}
	}
}
