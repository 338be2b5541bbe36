// Package config reads stoplog.yaml: where the program listens, which upstreams
// it may call, which guards there are, and the profiles that say what they do.
//
//	stoplog.yaml ─► nodes ─► declarations ─┐
//	                                       ├─► Config: what is in force
//	              the built-in profile ────┘
//
// A file is read over what is built in: a profile extends `builtin` or another
// profile, an upstream or a guard of a built-in name replaces that one. A
// [Config] holds the result and nothing that was left out on the way, so what
// [Config.WriteYAML] prints is what governs.
//
// # Laws
//
// Strict: an unknown, misplaced or repeated key, a value of the wrong type, a
// name that nothing bears, an anchor, a second document is an error with file,
// line and column, the keys that are expected and a suggestion. All of them are
// reported, not the first.
//
// Nothing is configured that is not wired: a key whose work this version does
// not do is an error that says so, and is never ignored. Signals alone may be
// enforced before they are built: each evaluation, and start-up, says of them
// that they do not judge yet.
//
// Secure by default: no file at all means the built-in profile, and a file that
// cannot be read is an error, never the default. A guard that a profile switches
// off, or lets only watch, is among the [Config.Warnings] that start-up logs, and
// so are a signal that may no longer stop a run and a tool that may run unasked.
//
// Keys are named, not written: a configuration refers to an environment variable
// or a file, and no error, warning or print of it holds a key.
package config

import (
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/secret"
)

// Config is a configuration in force: checked, resolved, complete.
type Config struct {
	// File is the file that was read; empty for what is built in.
	File string
	// Listen is an address, host:port. Port 0 is any free one.
	Listen string
	// RequireKeys refuses callers without a key also on loopback; see
	// [Config.KeysRequired].
	RequireKeys bool
	TLS         TLS // zero: the listener speaks plain HTTP
	// Store is the SQLite file of the journal, named from the working directory;
	// empty for the one in the state directory.
	Store string
	// Seal says where the keys are that what is kept is sealed with; the zero Key:
	// there are none, and what must be sealed is refused.
	Seal Key
	// MaxBodyBytes is the largest request body that the gateway takes.
	MaxBodyBytes int64
	// Packs are the rules of its own that the file names, which guards may use as
	// those that are built in.
	Packs []Pack
	// Upstreams, Guards and Profiles are those that the file declares, in its
	// order, after the built-in ones that are in use.
	Upstreams []Upstream
	Guards    []Guard
	Profiles  []Profile
	Gateway   Gateway
	// Budgets are those that are no profile's; see [Config.Envelopes].
	Budgets []budget.Envelope
	// Rates are how much may begin in a minute, by labels of callers.
	Rates []Rate
	// Prices are the file's own; they come before those of [budget.List].
	Prices budget.Prices
	// Tickets says where what observers find odd goes.
	Tickets Tickets
	// Warnings are what a person should see at start-up, with its place.
	Warnings diag.List
}

// The provider protocols that an upstream may speak; each has its mount.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// Upstream is a place where models are: at an address, or in cassettes.
type Upstream struct {
	Name     string
	Protocol string // OpenAI or Anthropic
	// BaseURL is what the protocol's paths are appended to, without a slash at
	// the end; for OpenAI it includes the version. That of cassettes names no
	// host: it gives a request the path by which a cassette knows it.
	BaseURL string
	Key     Key
	Zone    string // local, private or external
	Reach          // of one at an address
	// Cassettes are the files that the globs of the configuration match, by
	// name, each once. They are named from the working directory.
	Cassettes []string
	Pace      string // of cassettes: none or real
}

// Key says where a key is. The zero Key is none: of an upstream, the caller's own
// key passes through.
type Key struct {
	secret.Source // files are named from the working directory
	At            diag.Span
}

// Guard is a named set of rules and what is done with what they find.
type Guard struct {
	Name  string
	Rules []string // names of packs and of rules, as Config.Select takes them
	// Literals say where values are that the guard looks for. It has these or
	// rules.
	Literals []Key
	Verdict  guard.Verdict // Allow: each rule's own, unless Labels
	// Labels: what it finds is let be, and raises the class of a request that it is
	// in.
	Labels bool
	// Class is of what it finds: public, internal, personal or secret; empty: what
	// the pack of the rule says.
	Class string
	// Judge says how it asks; nil for a guard of rules or literals.
	Judge *Judge
}

// Profile is a named policy, with all that it extends applied.
type Profile struct {
	Name string
	// Upstreams are the names of those it may use. A mount uses the ones of its
	// own protocol, in this order.
	Upstreams []string
	// Model is the one that runs of the loop ask; empty: the profile has no such
	// runs.
	Model string
	// Models are what a caller of the gateway may name; a `*` stands for any run of
	// characters.
	Models []string
	// Input and Output are the guards that judge requests and answers, in the
	// order of Config.Guards. A guard that is off is not among them.
	Input, Output []Use
	// Budget is what all that the profile is used for may spend on a day.
	Budget budget.Limit
	// ReserveTokens are reserved for an answer to a request that does not say how
	// long it may get; 0 is for the door to say.
	ReserveTokens int64
	// Media says which parts of requests that no guard can read are not sent.
	Media Media
	// MaxHoldBytes is how much text of a channel may wait; more is denied.
	MaxHoldBytes int
	// MaxRuleHoldBytes is the most that a rule of a guard that enforces may hold
	// back; 0 is no limit. What is in force keeps it.
	MaxRuleHoldBytes int
	// Capture is what is kept of a run once it has ended: none, metadata, redacted
	// or full.
	Capture string
	// DataClass is what requests are at least: public, internal, personal or
	// secret. Ceilings are what each zone may see.
	DataClass string
	Ceilings  []Ceiling
	// Calls are rules for the tool calls in answers.
	Calls []CallRule
	Loop
}

// Use is a guard at work.
type Use struct {
	Guard string
	Mode  guard.Mode
	// Reversible: what the guard redacts in a request is put back in its answer.
	// Mode is then enforce.
	Reversible bool
}

// Gateway says which mounts there are.
type Gateway struct {
	OpenAI, Anthropic Mount
}

// Mount is where the gateway speaks one provider's protocol.
type Mount struct {
	// Profile is the one for callers that choose none; empty if the mount is not
	// served.
	Profile string
	// Choices are the profiles that a caller may choose with the header
	// Stoplog-Profile: all that the configuration's gateway names and that have an
	// upstream of the mount's protocol; Profile is the first.
	Choices []string
}

// Upstream gives the upstream of that name.
func (c *Config) Upstream(name string) (Upstream, bool) {
	return named(c.Upstreams, name, func(u Upstream) string { return u.Name })
}

// Guard gives the guard of that name.
func (c *Config) Guard(name string) (Guard, bool) {
	return named(c.Guards, name, func(g Guard) string { return g.Name })
}

// Profile gives the profile of that name.
func (c *Config) Profile(name string) (Profile, bool) {
	return named(c.Profiles, name, func(p Profile) string { return p.Name })
}

func named[T any](all []T, name string, of func(T) string) (found T, ok bool) {
	i := slices.IndexFunc(all, func(t T) bool { return of(t) == name })
	if i < 0 {
		return found, false
	}
	return all[i], true
}
