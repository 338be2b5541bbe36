package govern

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/tool"
)

// What tools are. The names are here so that those who bring their own tools
// can write them; package internal/tool has the contract.
type (
	Tool       = tool.Tool
	ToolSpec   = tool.Spec
	ToolOutput = tool.Output
	Effect     = tool.Effect
	DataClass  = tool.Class
)

// What running a tool does to the world.
const (
	Read         = tool.Read         // changes nothing
	Idempotent   = tool.Idempotent   // changes something, and twice changes no more than once
	Write        = tool.Write        // each time changes something
	Irreversible = tool.Irreversible // and nobody can change it back
)

// ToolRule says what becomes of the calls of a tool.
type ToolRule string

const (
	ToolAllow           ToolRule = "allow"
	ToolDeny            ToolRule = "deny"
	ToolRequireApproval ToolRule = "require_approval"
)

func checkToolRules(rules map[string]ToolRule) error {
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		switch rules[name] {
		case ToolAllow, ToolDeny, ToolRequireApproval:
		default:
			return fmt.Errorf("unknown rule %q for the tool %q: want allow, deny or require_approval", rules[name], name)
		}
	}
	return nil
}

// SessionConfig says whose tools are called, and where.
type SessionConfig struct {
	Profile string // one of the Transport's; empty is the first
	Run     string // the run's id
	Workdir string // the directory that the run's tools work in
	// ProfileDigest stands for the whole profile in force, in hex: an approval
	// that was given under another is not good.
	ProfileDigest string
	// Tools are those that there are. The profile may name no others.
	Tools []Tool
	// Fence makes starts durable. It may be nil where the profile allows nothing
	// but tools whose effect may be repeated.
	Fence Fence
}

// A Fence makes durable, on both sides of a call, that it takes place. It is
// called by as many goroutines as call tools.
type Fence interface {
	// Begin is called before a call runs. If the start is fenced it returns once
	// that is durable, and the approval, if there is one, is used up. The call
	// does not run if it fails.
	Begin(context.Context, Start) error
	// Done is called once a call that began has its result, before the result
	// is given to anybody.
	Done(context.Context, Start, Result) error
}

// Start is a call that is about to run.
type Start struct {
	Call     Call
	Effect   Effect
	Approval Approval // zero where none was needed
}

// Fenced reports whether the start must be durable before the call runs.
func (s Start) Fenced() bool { return !s.Effect.Repeatable() || s.Approval != Approval{} }

// Call is a tool call that a model asks for. Step and Number say which of the
// run's; a provider's ids need not be unique.
type Call struct {
	Step, Number int
	Tool         string
	Args         string // JSON, as the model wrote it
}

// Approval is a person's yes to one call.
type Approval struct {
	ID     string // of the question
	Digest Digest // of what was shown
}

// Session is where the tools of a run are called. It is safe for use by several
// goroutines.
type Session struct {
	t       *Transport
	cfg     SessionConfig
	profile *profile
	tools   *tool.Set
}

// OpenSession makes a session. It fails if a tool's declaration, or the
// profile's table of tools, does not hold together.
func (t *Transport) OpenSession(cfg SessionConfig) (*Session, error) {
	s := &Session{t: t, cfg: cfg, profile: t.first}
	if cfg.Profile != "" {
		if s.profile = t.profiles[cfg.Profile]; s.profile == nil {
			return nil, fmt.Errorf("open a session: there is no profile %q", cfg.Profile)
		}
	}
	var err error
	if s.tools, err = tool.NewSet(cfg.Tools...); err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.profile.Tools)) {
		if _, ok := s.tools.Lookup(name); !ok {
			return nil, fmt.Errorf("open a session: profile %q has a rule for the tool %q, which is not there", s.profile.Name, name)
		}
	}
	for t := range s.tools.All() {
		rule := s.rule(t.Spec)
		if cfg.Fence == nil && (rule == ToolRequireApproval || rule == ToolAllow && !t.Spec.Effect.Repeatable()) {
			return nil, fmt.Errorf("open a session: the tool %q (%s, %s) needs a Fence, and there is none", t.Spec.Name, t.Spec.Effect, rule)
		}
	}
	return s, nil
}

// Tools are the tools that a model is told of: those that the profile does not
// deny.
func (s *Session) Tools() []ToolSpec {
	var specs []ToolSpec
	for t := range s.tools.All() {
		if s.rule(t.Spec) != ToolDeny {
			specs = append(specs, t.Spec)
		}
	}
	return specs
}

// Spec finds the declaration of a tool.
func (s *Session) Spec(name string) (ToolSpec, bool) {
	t, ok := s.tools.Lookup(name)
	if !ok {
		return ToolSpec{}, false
	}
	return t.Spec, true
}

// rule is the profile's rule for a tool, or what stands where it has none.
func (s *Session) rule(spec ToolSpec) ToolRule {
	if s.profile.session.Has(spec.Name) {
		return ToolRequireApproval // the most that is known before there are arguments
	}
	if r, ok := s.profile.Tools[spec.Name]; ok {
		return r
	}
	if spec.Effect == Read {
		return ToolAllow
	}
	return ToolRequireApproval
}

// Call runs a tool call if it may run, with the approval it needs, and judges
// what came of it. The result's Decision says whether it ran; every result has
// the text that the model is to be told.
//
// An error means that there is no result: the start or the verdicts could not be
// made durable, or the context ended. If Fence.Begin has come back, whether the
// call took effect is not known then.
func (s *Session) Call(ctx context.Context, c Call, a Approval) (Result, error) {
	t, args, d := s.judge(c)
	if need, ok := d.(NeedsApproval); ok && a != (Approval{}) && a.Digest == need.Digest {
		d = Allowed{}
	} else if ok && a != (Approval{}) {
		need.Stale = true
		d = need
	} else if !ok {
		a = Approval{} // it needs none, so it uses none
	}
	if _, ok := d.(Allowed); !ok {
		return s.refuse(c, d)
	}
	start := Start{Call: c, Effect: t.Spec.Effect, Approval: a}
	if s.cfg.Fence != nil {
		if err := s.cfg.Fence.Begin(ctx, start); err != nil {
			return Result{}, fmt.Errorf("call %s: it did not begin: %w", c.Tool, err)
		}
	}
	out, err := runTool(ctx, t, args)
	if err != nil {
		return Result{}, fmt.Errorf("call %s: %w", c.Tool, err)
	}
	r, decisions := s.screen(ctx, c, out)
	if err := s.keep(c, decisions); err != nil {
		return Result{}, err
	}
	if s.cfg.Fence != nil {
		// What has happened is written down whoever has left meanwhile.
		if err := s.cfg.Fence.Done(context.WithoutCancel(ctx), start, r); err != nil {
			return Result{}, fmt.Errorf("call %s: its result was not kept: %w", c.Tool, err)
		}
	}
	return r, nil
}

// refuse is the result of a call that does not run.
func (s *Session) refuse(c Call, d Decision) (Result, error) {
	v := Verdict{Channel: channelName(c, "args"), Guard: "policy", Mode: guard.Enforce, Verdict: guard.Deny, Severity: guard.Medium}
	switch d := d.(type) {
	case Denied:
		v.Rule = d.record()
	case NeedsApproval:
		v.Rule, v.Verdict = "tools", guard.RequireApproval
	}
	if err := s.t.record(Record{Run: s.cfg.Run, At: time.Now(), Fact: v}); err != nil {
		return Result{}, fmt.Errorf("call %s: the verdict was not recorded: %w", c.Tool, err)
	}
	return Result{Decision: d, Text: d.String(), Failed: true}, nil
}

// runTool runs a tool that may run. A tool that breaks off is a result, since
// the model can go on without it; only a context that ended is an error.
func runTool(ctx context.Context, t *tool.Ready, args []byte) (out ToolOutput, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			err = errors.Join(ctx.Err(), err)
		default:
			out, err = ToolOutput{Text: "the tool broke off: " + err.Error(), Failed: true}, nil
			if t.Spec.Effect != Read {
				out.Note = "[what it was doing may have taken effect]"
			}
		}
	}()
	return t.Run(ctx, args)
}
