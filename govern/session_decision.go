package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/stoplog/stoplog/internal/tool"
)

// Decision is what the tool rules make of a call: [Allowed], [Denied] or
// [NeedsApproval].
type Decision interface {
	// String is what a model is told of a call that did not run.
	String() string

	decision()
}

// Allowed lets a call run.
type Allowed struct{}

// Denied lets a call not run, whoever says so.
type Denied struct {
	Ground Ground
	// Why is the rule that forbids the call or withheld its arguments, or what is
	// wrong with them; empty for a tool that is not there.
	Why  string
	tool string
}

// NeedsApproval lets a call run once a person has approved it.
type NeedsApproval struct {
	// Digest is what an approval names: SHA-256 of Shown.
	Digest Digest
	// Shown is exactly what there is to approve, as RFC 8785 has it: an object
	// with v, run, step, call, tool, args, workdir and profile_digest.
	Shown json.RawMessage
	// Caution is to be said beside it; may be empty.
	Caution string
	// Stale says that an approval was there, for something else.
	Stale bool
}

// Ground is why a call is denied.
type Ground uint8

const (
	Forbidden   Ground = iota // by a tool rule
	UnknownTool               // there is no such tool
	Malformed                 // its arguments are not what the tool takes
	Withheld                  // a guard has redacted its arguments
)

func (Allowed) decision()       {}
func (Denied) decision()        {}
func (NeedsApproval) decision() {}

func (Allowed) String() string { return "allowed" }

func (d Denied) String() string {
	switch d.Ground {
	case UnknownTool:
		return "there is no tool " + d.tool
	case Malformed:
		return "malformed arguments: " + d.Why
	case Withheld:
		return "arguments withheld by " + d.Why
	}
	return "denied by " + d.Why
}

// record is the denial as the record names its rule: nothing that a model wrote.
func (d Denied) record() string {
	return [...]string{"tools", "unknown_tool", "malformed_arguments", "redacted_arguments"}[d.Ground]
}

func (n NeedsApproval) String() string {
	if n.Stale {
		return "not run: the approval that was given is for something else"
	}
	return "not run: a person has to approve it"
}

// Digest is the SHA-256 of what a person is shown.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what [Digest.String] writes.
func ParseDigest(s string) (d Digest, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("%q is not a digest: want %d hex digits", s, 2*len(d))
	}
	return Digest(b), nil
}

// Judge says what the rules make of a call. It is the same for the same call,
// and runs and records nothing.
func (s *Session) Judge(c Call) Decision {
	_, _, d := s.judge(c)
	return d
}

func (s *Session) judge(c Call) (*tool.Ready, json.RawMessage, Decision) {
	t, ok := s.tools.Lookup(c.Tool)
	if !ok {
		return nil, nil, Denied{Ground: UnknownTool, tool: printable(c.Tool)}
	}
	rule := s.rule(t.Spec)
	if rule == ToolDeny {
		return nil, nil, Denied{Ground: Forbidden, Why: "the tool rule for " + c.Tool}
	}
	// Before the schema: what it has against a placeholder is not the model's fault.
	if rule, ok := redactedBy(c.Args); ok {
		return nil, nil, Denied{Ground: Withheld, Why: rule}
	}
	args, err := t.Arguments(c.Args)
	if err != nil {
		return nil, nil, Denied{Ground: Malformed, Why: err.Error()}
	}
	if rule, ok := redactedBy(string(args)); ok { // spelled with escapes
		return nil, nil, Denied{Ground: Withheld, Why: rule}
	}
	if ruled, ok := s.profile.ruling(c.Tool, args); ok {
		rule = ruled
	}
	switch rule {
	case ToolAllow:
		return t, args, Allowed{}
	case ToolDeny:
		return nil, nil, Denied{Ground: Forbidden, Why: "the tool rule for " + c.Tool}
	}
	shown := s.shown(c, args)
	return t, args, NeedsApproval{Digest: sha256.Sum256(shown), Shown: shown, Caution: t.Spec.Caution}
}

// shown is the call as a person approves it.
func (s *Session) shown(c Call, args json.RawMessage) json.RawMessage {
	doc, err := json.Marshal(struct {
		V             int             `json:"v"`
		Run           string          `json:"run"`
		Step          int             `json:"step"`
		Call          int             `json:"call"`
		Tool          string          `json:"tool"`
		Args          json.RawMessage `json:"args"`
		Workdir       string          `json:"workdir"`
		ProfileDigest string          `json:"profile_digest"`
	}{1, s.cfg.Run, c.Step, c.Number, c.Tool, args, s.cfg.Workdir, s.cfg.ProfileDigest})
	if err == nil {
		err = (*jsontext.Value)(&doc).Canonicalize()
	}
	if err != nil {
		panic(err) // the arguments were read, and the rest is plain
	}
	return doc
}

// A guard leaves a placeholder in everything that it redacts, so a text without
// one is as the model wrote it. (One that the model has read somewhere and
// copied is no better: what it stands for is lost.)
const placeholderStart = "[redacted:"

var placeholder = regexp.MustCompile(`\[redacted:([A-Za-z0-9_.-]{1,64})\]`)

func redactedBy(args string) (rule string, ok bool) {
	if !strings.Contains(args, placeholderStart) {
		return "", false
	}
	if m := placeholder.FindStringSubmatch(args); m != nil {
		return m[1], true
	}
	return "a rule", true
}
