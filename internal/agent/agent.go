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
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stoplog/stoplog/govern"
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
	return engine.Agent{Model: m, Tools: s, Evaluator: p.Evaluator, ProfileDigest: p.digest}, nil
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

// Call implements [engine.Tools]. The engine has seen to the approval of a call
// that needs one: it was given for the digest that the session asks for now.
func (s *sessions) Call(ctx context.Context, c engine.ToolCall) (r engine.ToolResult) {
	call := govern.Call{Step: c.Step, Number: c.Call, Tool: c.Tool, Args: c.Args}
	err := s.with(c.Run, func(session *govern.Session) error {
		var approval govern.Approval
		if need, ok := session.Judge(call).(govern.NeedsApproval); ok {
			approval = govern.Approval{ID: string(c.Run.Run), Digest: need.Digest}
		}
		result, err := session.Call(ctx, call, approval)
		r = engine.ToolResult{Text: result.Text, Failed: result.Failed}
		return err
	})
	if err != nil {
		return engine.ToolResult{Text: "the call could not be made: " + err.Error(), Failed: true}
	}
	return r
}
