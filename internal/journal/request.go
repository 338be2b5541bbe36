package journal

import (
	"time"

	"github.com/stoplog/stoplog/internal/budget"
)

// The events of a run of kind request: one governed exchange with a model that
// somebody else's program began. Two exchanges have the same record when these
// are equal but for stream, verdicts sorted by channel and start.
const (
	// RequestStarted opens the log: version 1, payload [Started], Structure.
	RequestStarted = "started"
	// RequestVerdict is a guard's finding: version 1, payload [Verdict], Structure.
	// One that is not allow is durable before later bytes leave.
	RequestVerdict = "verdict"
	// RequestWithheld: what is left of the answer waits for a person: version 1,
	// payload [Withheld], Structure.
	RequestWithheld = "withheld"
	// RequestSettled closes the log: version 1, payload [Settled], Structure.
	RequestSettled = "settled"
)

// Started says what was asked of whom.
type Started struct {
	Mount    string `json:"mount"`
	Profile  string `json:"profile"`
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Parent   ID     `json:"parent,omitempty"` // the run that the exchange is part of
	// Caller is whose key the request came with; nil if it came with none.
	Caller *Caller `json:"caller,omitempty"`
}

// Caller is a key's id and name, and whose it is.
type Caller struct {
	Key  string `json:"key"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	App  string `json:"app,omitempty"`
	User string `json:"user,omitempty"`
}

// Verdict is the evidence for one finding: where, by which rule, what followed.
// It never holds the matched text.
type Verdict struct {
	Channel     string `json:"channel"`
	Guard       string `json:"guard"`
	Rule        string `json:"rule"`
	Mode        string `json:"mode"`
	Verdict     string `json:"verdict"`
	Start       int64  `json:"start"`
	End         int64  `json:"end"`
	Severity    string `json:"severity"`
	Fingerprint string `json:"fingerprint"`
	// Allowed says who has allowed the finding; the verdict is allow then.
	Allowed *Allowed `json:"allowed,omitempty"`
	Error   string   `json:"error,omitempty"` // of a guard that failed
}

// Allowed is a person's word that a finding is no fault.
type Allowed struct {
	By    string    `json:"by"`
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// Withheld says what waits for a person, and how the exchange will have ended once
// the decision is there.
type Withheld struct {
	Approval ID     `json:"approval"`
	Digest   string `json:"digest"` // of what is shown, as the question's row has it
	Guard    string `json:"guard"`
	Rule     string `json:"rule"`
	// Denied is the guard and rule of what nobody can let through; empty if a yes
	// is possible.
	Denied  string  `json:"denied,omitempty"`
	Settled Settled `json:"settled"`
}

// Settled says how the exchange ended: a terminal status of a run, and a reason.
type Settled struct {
	Status Status `json:"status"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"` // a sentence for people
	// Upstream is the one that answered, where it is not Started's.
	Upstream string `json:"upstream,omitempty"`
	// WouldHold is the most bytes of one of the answer's texts that guards in shadow
	// would have held back, looked at every 256 bytes.
	WouldHold int64 `json:"would_hold,omitempty"`
	Usage     Usage `json:"usage"`
	// Cost is what that costs, in dollars; null where the price is not known.
	Cost budget.Cost `json:"cost_usd"`
}

// Usage counts tokens. Estimated: the provider did not report them all.
type Usage = budget.Usage
