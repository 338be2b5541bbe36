package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// DefaultMaxHold is the most text, in bytes, that a channel may have waiting.
const DefaultMaxHold = 1 << 20

// AuditBytes is how much of each end of a channel a guard in [Audit] mode
// judges.
const AuditBytes = 50_000

// Member is a guard and what its findings may do.
type Member struct {
	Guard Guard
	Mode  Mode
}

// Options of a chain. The zero value is ready to use.
type Options struct {
	// MaxHold is the most bytes a channel may hold back; past it the channel
	// is denied. 0 means DefaultMaxHold. It is looked at where the text's
	// length is a multiple of a small stride, so that where a channel is denied
	// depends on its text alone; at most a stride more is ever held.
	MaxHold int64
	// Placeholder is what stands in for a redacted span; nil means
	// [redacted:RULE].
	Placeholder func(rule string) string
	// Allowed is asked once for each channel that is opened, for what people have
	// allowed of what may be found there. Nil, and a nil answer: nothing.
	Allowed func() Allowed
}

// A Chain judges channels by several guards at once. It is safe for use by
// several goroutines.
type Chain struct {
	members     []Member // by mode, then name: the order given does not matter
	maxHold     int64
	stride      int64
	placeholder func(string) string
	allowed     func() Allowed
	lifted      bool
}

// NewChain returns the chain of the members. Their order has no meaning.
func NewChain(opt Options, members ...Member) *Chain {
	c := &Chain{members: slices.Clone(members), maxHold: opt.MaxHold, placeholder: opt.Placeholder, allowed: opt.Allowed}
	if c.maxHold <= 0 {
		c.maxHold = DefaultMaxHold
	}
	c.stride = min(max(c.maxHold/16, 1), 4096)
	if c.placeholder == nil {
		c.placeholder = func(rule string) string { return "[redacted:" + rule + "]" }
	}
	slices.SortStableFunc(c.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Guard.Name(), b.Guard.Name()))
	})
	return c
}

// Lifted returns the chain under which a person has approved what asks for
// approval: findings with that verdict are decided as before and stop nothing.
// Redactions and denials stay as they are.
func (c *Chain) Lifted() *Chain {
	lifted := *c
	lifted.lifted = true
	return &lifted
}

// A Strict guard knows the severest verdict that it can give. One that does
// not say so is taken to be able to deny.
type Strict interface {
	Strictest() Verdict
}

// Strictest returns the severest verdict that the chain's rules can give. (Any
// chain with an enforcing guard denies when that guard fails or too much text
// is held; that is not a rule.)
func (c *Chain) Strictest() Verdict {
	worst := Allow
	for _, m := range c.members {
		if m.Mode != Enforce {
			continue
		}
		v := Deny
		if s, ok := m.Guard.(Strict); ok {
			v = s.Strictest()
		}
		worst = max(worst, v)
	}
	return worst
}

// Pace is how much of a text a guard must see before it can settle any of it.
// Each is slower than those before it.
type Pace uint8

const (
	Deltas  Pace = iota // settles what can no longer be part of a finding
	Windows             // settles a sentence or so at a time, once it was answered
	Whole               // settles at the end; the chain's hold limit bounds the text
)

// A Paced guard says its pace; one that does not works on deltas.
type Paced interface {
	Pace() Pace
}

// Waits says, for people, what the text of a channel waits for under this
// chain.
func (c *Chain) Waits() string {
	slowest, by := Deltas, ""
	enforcing := false
	for _, m := range c.members {
		if m.Mode != Enforce {
			continue
		}
		enforcing = true
		if p, ok := m.Guard.(Paced); ok && p.Pace() > slowest {
			slowest, by = p.Pace(), m.Guard.Name()
		}
	}
	switch {
	case !enforcing:
		return "text waits for nothing"
	case slowest == Windows:
		return fmt.Sprintf("text waits for guard %s to answer, a window at a time, at most %d bytes", by, c.maxHold)
	case slowest == Whole:
		return fmt.Sprintf("text waits for its end and guard %s's answer, at most %d bytes", by, c.maxHold)
	}
	return fmt.Sprintf("text waits only where it may become part of a finding, at most %d bytes", c.maxHold)
}

// Constant is implemented by guards that give one text, in one channel, the same
// answer whenever they are asked: they look at nothing else, not at a clock, not
// at a model. What such guards found nothing in need not be shown to them again.
type Constant interface {
	Constant() bool
}

// Constant reports whether all guards of the chain are.
func (c *Chain) Constant() bool {
	return !slices.ContainsFunc(c.members, func(m Member) bool {
		g, ok := m.Guard.(Constant)
		return !ok || !g.Constant()
	})
}

// Members returns the chain's guards, enforcing ones first.
func (c *Chain) Members() []Member { return slices.Clone(c.members) }

// A Decision is a finding, what its guard was allowed to do about it, and, for
// a guard that failed, how.
type Decision struct {
	Finding
	Mode Mode
	// Allowed is set where a person has allowed the finding; its verdict is then
	// Allow.
	Allowed *Allowance
	// Err is set where the guard failed; Rule is then [RuleGuardFailed].
	Err error
}

// Rules of decisions that no rule of a guard made.
const (
	RuleGuardFailed = "guard_failed"   // an error, a panic, or a broken contract
	RuleMaxHold     = "max_hold_bytes" // more text would have to wait than the chain allows
)

// Edit replaces a span of the channel's text. A span whose end is not known
// yet is replaced in several edits, each starting where the last one ended and
// all but the first with an empty Text.
type Edit struct {
	Start, End int64
	Text       string
	Rule       string
}

// Stop says why a channel ended before its text did.
type Stop struct {
	Verdict     Verdict // RequireApproval or Deny
	Guard, Rule string
	At          int64 // where the span that stopped it starts
}

// Step is what a chain knows after a piece of text.
type Step struct {
	// Settled is an offset in the channel's text. What lies before it may
	// leave, as Edits have it; it never goes back.
	Settled int64
	// Edits are the new ones, in order, all before Settled; the slice is the
	// stream's until its next call.
	Edits []Edit
	// Decisions are the new ones, to be recorded before anything that this step
	// settles is shown. The slice is the stream's until its next call.
	Decisions []Decision
	// Stop is not nil once the channel has been stopped: nothing at or after
	// Settled leaves, ever.
	Stop *Stop
}

// Open starts judging a channel. The context is handed to the guards.
func (c *Chain) Open(ctx context.Context, ch Channel) *Stream {
	s := &Stream{chain: c}
	if c.allowed != nil {
		s.allowed = c.allowed()
	}
	for _, m := range c.members {
		j := &judge{name: m.Guard.Name(), guard: m.Guard, mode: m.Mode, screen: screen(ctx, m.Guard, m.Mode, ch)}
		if m.Mode == Enforce {
			s.enforcing = append(s.enforcing, j)
		} else {
			s.watching = append(s.watching, j)
		}
	}
	return s
}

// screen opens a guard for what it is to do.
func screen(ctx context.Context, g Guard, m Mode, ch Channel) Screen {
	if m == Audit {
		return &auditor{ctx: ctx, guard: g, channel: ch}
	}
	return open(ctx, g, ch)
}

// open is Guard.Open with a panic turned into a screen that fails.
func open(ctx context.Context, g Guard, ch Channel) (s Screen) {
	defer func() {
		if r := recover(); r != nil {
			s = failing{fmt.Errorf("opening a screen panicked: %v", r)}
		} else if s == nil {
			s = failing{fmt.Errorf("opening a screen gave none")}
		}
	}()
	return g.Open(ctx, ch)
}

type failing struct{ err error }

func (f failing) Write([]byte) (Progress, error) { return Progress{}, f.err }
func (f failing) Close() (Progress, error)       { return Progress{}, f.err }
