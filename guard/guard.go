// Package guard judges streams of text.
//
// A [Guard] opens one [Screen] for each [Channel]. A screen sees the channel's
// text once, in order, in pieces of any size, and says two things: how much of
// the text is settled, and what it has found. A [Chain] runs several guards
// over a channel and turns what they say into what may leave:
//
//	text ─► Screen A ─► settled, findings ─┐
//	     ─► Screen B ─► settled, findings ─┤
//	     ─► …                              ▼
//	                     smallest settled, overlapping findings united
//	                                       ▼
//	                 Step{Settled, Edits, Stop}: what may leave, what is
//	                 replaced, and where the channel ends if it must
//
// A [Redactor] is a chain as a writer, a [Transformer] as package transform's; a
// [Filter] is for those who keep the decisions in their own hands.
//
// # Laws
//
// Chunk invariance: what a chain lets out, its verdicts and its decisions are
// a function of the channel's text alone, never of how it was cut into pieces.
//
// Least hold-back: a byte waits only while some continuation could still make
// it part of a finding.
//
// Closed: a guard that enforces and fails (an error, a panic) denies; held
// text past the chain's limit is denied. A guard that does not enforce changes
// nothing, whatever it does.
//
// The package depends on the standard library only. Rules live in guard/rules,
// the matcher that runs them in guard/match, and guard/guardtest has the
// conformance suite that every guard passes.
package guard

import (
	"context"
	"fmt"
)

// A Guard judges the text of channels. A Guard is safe for use by several
// goroutines; the screens it opens are not.
type Guard interface {
	// Name is the guard's name in configuration and records, such as "secrets".
	Name() string
	// Open returns a new screen for one channel.
	Open(context.Context, Channel) Screen
}

// A Screen sees a channel's text once, in order, in pieces of any size.
//
// What a screen reports is a function of the text so far: after the same
// bytes, however they were cut, Settled is the same and the same findings
// have been reported in the same order.
type Screen interface {
	// Write takes the next piece, which may be empty, and may cut a rune. The
	// screen does not keep p. Settled is never smaller than before and never
	// larger than the number of bytes written. If err is not nil the Progress
	// still holds and the screen is not used again.
	Write(p []byte) (Progress, error)
	// Close marks the end of the text: only here can a pattern's `$` and `\z`
	// be decided. Afterwards Settled is the length of the text, every finding
	// has been reported, and the screen is not used again.
	Close() (Progress, error)
}

// Progress is what a screen knows after a piece.
type Progress struct {
	// Settled is an offset in the channel's text. No finding that is reported
	// later starts before it.
	Settled int64
	// Findings are the new ones, in order of start (ties in the order of the
	// guard's rules), final when reported. The slice is the screen's until its
	// next call.
	Findings []Finding
}

// Channel is one stream of text: a choice's content, a tool call's arguments.
type Channel struct {
	Name string // such as "choice/0/content"; unique in its request or response
	Side Side
	Kind Kind
	Role string // of the message the text belongs to; may be empty
	Tool string // the tool's name where the text is its arguments or result
}

// Side says which way the text travels.
type Side uint8

const (
	Response Side = iota // from the model to the caller
	Request              // from the caller to the model
)

func (s Side) String() string {
	if s == Request {
		return "request"
	}
	return "response"
}

// Kind says what a channel's text is.
type Kind uint8

const (
	Text Kind = iota
	Reasoning
	Refusal
	ToolArgs // the decoded projection of a JSON document; see internal/wire
	ToolResult
	Document
	Field // an id, a number, a name, or what no table of fields knows
)

var kindNames = [...]string{"text", "reasoning", "refusal", "tool_args", "tool_result", "document", "field"}

func (k Kind) String() string { return name(kindNames[:], int(k), "kind") }

// Verdict says what must happen to a finding's text. Verdicts are ordered:
// the larger is the severer, and the severest wins.
type Verdict uint8

const (
	Allow Verdict = iota
	Redact
	RequireApproval
	Deny
)

var verdictNames = [...]string{"allow", "redact", "require_approval", "deny"}

func (v Verdict) String() string { return name(verdictNames[:], int(v), "verdict") }

// Severity grades a finding for people. It never decides anything.
type Severity uint8

const (
	Low Severity = iota
	Medium
	High
	Critical
)

var severityNames = [...]string{"low", "medium", "high", "critical"}

func (s Severity) String() string { return name(severityNames[:], int(s), "severity") }

// Mode says what a guard's findings may do.
type Mode uint8

const (
	// Enforce lets findings hold, replace and stop text.
	Enforce Mode = iota
	// Shadow records what enforcing would find, in the text that was let
	// through, and changes nothing.
	Shadow
	// Audit judges after the fact: the channel's first and last AuditBytes
	// bytes, once the text has ended, however it ended.
	Audit
)

var modeNames = [...]string{"enforce", "shadow", "audit"}

func (m Mode) String() string { return name(modeNames[:], int(m), "mode") }

// ParseVerdict reads what [Verdict.String] writes.
func ParseVerdict(s string) (Verdict, error) { return parse[Verdict](verdictNames[:], s, "verdict") }

// ParseSeverity reads what [Severity.String] writes.
func ParseSeverity(s string) (Severity, error) {
	return parse[Severity](severityNames[:], s, "severity")
}

// ParseMode reads what [Mode.String] writes.
func ParseMode(s string) (Mode, error) { return parse[Mode](modeNames[:], s, "mode") }

// Open is the end of a finding whose search was cut at the hold limit.
const Open int64 = -1

// Finding is the evidence for a verdict. It never holds the matched text.
type Finding struct {
	Guard string
	Rule  string
	// Start and End are byte offsets in the channel's text. A search that was
	// cut at the hold limit is reported at once with End [Open], and again, with
	// the same Guard, Rule and Start, when its end is decided; the verdict may then
	// be severer.
	Start, End int64
	Severity   Severity
	Verdict    Verdict
	// Fingerprint is the first 16 hex digits of HMAC-SHA-256 of the matched
	// bytes under the store's key; empty while End is Open.
	Fingerprint string
}

// MarshalText writes what String gives.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes what String gives.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText writes what String gives.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func name(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

func parse[T ~uint8](names []string, s, what string) (T, error) {
	for i, n := range names {
		if n == s {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %q", what, s, names)
}
