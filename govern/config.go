package govern

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/glob"
	"github.com/stoplog/stoplog/internal/policy"
	"github.com/stoplog/stoplog/internal/wire"
)

// Protocols that upstreams speak.
const (
	OpenAI    = "openai"    // chat completions, responses, embeddings
	Anthropic = "anthropic" // messages, the counting of their tokens
)

// DefaultMaxBody is the largest request body taken, in bytes.
const DefaultMaxBody = 32 << 20

// Config is what a Transport is made of: plain values, no files.
type Config struct {
	// Upstreams are where models are. The names are the caller's.
	Upstreams []Upstream
	// Profiles are the policies; the first is used where a call names none.
	Profiles []Profile
	// Record keeps the facts about requests, in order, durably: a verdict that
	// is not allow waits for it. It is called from many goroutines. Nil appends
	// to the JSON Lines file RecordFile.
	Record func(...Record) error
	// RecordFile is used where Record is nil. It is made with mode 0600.
	RecordFile string
	// Values keeps what the placeholders of reversible redaction stand for. Nil
	// remembers them in this process, and no longer than it lives.
	Values Values
	// Approvals keeps answers that a guard withholds for a person. Nil: they end as
	// if they were denied, with a status of their own.
	Approvals Approvals
	// MaxBody is the largest request body taken, in bytes; 0 is DefaultMaxBody.
	MaxBody int64
	// Rates hold callers to so much a minute, by their labels.
	Rates []Rate
	// Budgets limit what may be spent. They are this Transport's alone and are
	// forgotten with it.
	Budgets []Budget
	// Purse, where it is not nil, is used in place of Budgets: limits that
	// processes share. Its owner closes it, after the Transport.
	Purse *budget.Purse
}

// Profile is a named policy.
type Profile struct {
	Name string
	// Upstreams are the names of those it uses: of the call's protocol, in this
	// order, until one answers.
	Upstreams []string
	// Models are what a caller may ask for; a `*` stands for any characters.
	Models []string
	// Input judges requests, Output answers.
	Input, Output []guard.Member
	// Reversible are the names of the guards of Input whose redactions come back:
	// a placeholder such as [EMAIL_1] stands in the request, and the answer has
	// what it stands for. They enforce, and redact.
	Reversible []string
	// Allowed is asked, when a text begins to be judged, for what people have
	// allowed of what guards may find there; nil: nothing.
	Allowed func() guard.Allowed
	// Media says which parts of requests that no guard can read are not sent. What
	// is sent of them is recorded.
	Media Media
	// Tools says which tools a session may call, by name. One that is not named
	// is allowed if all it does is read, and needs approval if not.
	Tools map[string]ToolRule
	// ToolClauses are rules with conditions for tools of a session, in place of
	// Tools.
	ToolClauses []CallRule
	// Calls are rules for the tool calls that a model asks for in an answer, those
	// of the caller's own tools too: a call that they may stop is held until it is
	// complete. A tool without a rule is allowed.
	Calls []CallRule
	// DataClass is what requests are at least; 0 is Internal.
	DataClass DataClass
	// Ceilings are what the zones may see at most, by zone; one that is left out is
	// Internal for external, Personal for private, Secret for local, and none may be
	// higher than that.
	Ceilings map[string]DataClass
	// ClassOf is the class of what a rule of a guard finds; nil: findings have none.
	ClassOf func(guard, rule string) DataClass
	// MaxHold is the most text of a channel that may wait, in bytes; 0 is
	// guard.DefaultMaxHold.
	MaxHold int64
	// ReserveTokens are reserved of a budget for the answer to a request that does
	// not say how long it may get, and again as it gets longer; 0 is
	// DefaultReserve.
	ReserveTokens int64
}

// Media are images, audio and files of no text; the zero value lets them pass.
type Media struct{ NoImages, NoAudio, NoFiles bool }

// profile is a Profile ready for use.
type profile struct {
	Profile
	clean         *wire.Clean // what of requests is; nil where a guard may change its mind
	input, output *guard.Chain
	asks          bool // a guard of answers may ask for approval
	// results judges what a session's tools say: what reversible guards redact goes
	// to the session's own model by the door, which puts a placeholder in its place.
	results   *guard.Chain
	upstreams map[string][]*Upstream // by protocol
	answers   *policy.Calls          // rules for tool calls in answers,
	session   *policy.Calls          // and for those of a session
	egress    egress
}

// Open makes a Transport. It fails if the configuration does not hold together.
func Open(cfg Config) (*Transport, error) {
	t := &Transport{record: cfg.Record, maxBody: cfg.MaxBody, labelRates: cfg.Rates, values: cfg.Values, approvals: cfg.Approvals, profiles: map[string]*profile{}}
	if t.values == nil {
		t.values = &remembered{}
	}
	if t.maxBody <= 0 {
		t.maxBody = DefaultMaxBody
	}
	ups := map[string]*Upstream{}
	for _, u := range cfg.Upstreams {
		if err := u.complete(); err != nil {
			return nil, fmt.Errorf("open govern: upstream %q: %w", u.Name, err)
		}
		if ups[u.Name] != nil {
			return nil, fmt.Errorf("open govern: two upstreams are named %q", u.Name)
		}
		ups[u.Name] = &u
	}
	if len(cfg.Profiles) == 0 {
		return nil, errors.New("open govern: there is no profile")
	}
	for _, p := range cfg.Profiles {
		if t.profiles[p.Name] != nil {
			return nil, fmt.Errorf("open govern: two profiles are named %q", p.Name)
		}
		if err := checkReversible(p); err != nil {
			return nil, fmt.Errorf("open govern: profile %q: %w", p.Name, err)
		}
		if err := checkToolRules(p.Tools); err != nil {
			return nil, fmt.Errorf("open govern: profile %q: %w", p.Name, err)
		}
		ready := &profile{
			Profile:   p,
			input:     guard.NewChain(guard.Options{MaxHold: p.MaxHold, Allowed: p.Allowed}, p.Input...),
			output:    guard.NewChain(guard.Options{MaxHold: p.MaxHold, Allowed: p.Allowed}, p.Output...),
			results:   guard.NewChain(guard.Options{MaxHold: p.MaxHold, Allowed: p.Allowed}, watched(p)...),
			upstreams: map[string][]*Upstream{},
			asks:      asks(p.Output),
		}
		if ready.input.Constant() {
			ready.clean = &wire.Clean{}
		}
		for _, name := range p.Upstreams {
			u := ups[name]
			if u == nil {
				return nil, fmt.Errorf("open govern: profile %q uses the upstream %q, which is not there", p.Name, name)
			}
			ready.upstreams[u.Protocol] = append(ready.upstreams[u.Protocol], u)
		}
		if err := ready.open(); err != nil {
			return nil, fmt.Errorf("open govern: profile %q: %w", p.Name, err)
		}
		t.profiles[p.Name] = ready
	}
	t.first = t.profiles[cfg.Profiles[0].Name]
	if t.record == nil {
		if cfg.RecordFile == "" {
			return nil, errors.New("open govern: there is nowhere to record: set Record or RecordFile")
		}
		file, err := OpenRecordFile(cfg.RecordFile)
		if err != nil {
			return nil, err
		}
		t.record, t.closers = file.Append, append(t.closers, file.Close)
	}
	if err := t.openPurse(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("open govern: %w", err), t.Close())
	}
	return t, nil
}

// open compiles what a profile says of calls and of data.
func (p *profile) open() (err error) {
	if p.answers, err = compileCalls(p.Calls); err != nil {
		return err
	}
	if p.session, err = compileCalls(p.ToolClauses); err != nil {
		return err
	}
	p.egress, err = openEgress(p)
	return err
}

// Waits says, for people, what the texts of requests and of answers wait for
// under a profile; nothing of one that is not there.
func (t *Transport) Waits(profile string) (input, output string) {
	p := t.profiles[profile]
	if p == nil {
		return "", ""
	}
	return p.input.Waits(), p.output.Waits()
}

// allows reports whether a caller may ask for a model.
func (p *profile) allows(model string) bool {
	return slices.ContainsFunc(p.Models, func(pattern string) bool { return glob.Match(pattern, model) })
}
