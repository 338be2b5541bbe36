package govern

import (
	"context"
	"fmt"
	"sync"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

type (
	watchKey    struct{}
	profileKey  struct{}
	protocolKey struct{}
	parentKey   struct{}
)

// WithProfile returns a context whose calls are judged under a profile.
func WithProfile(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, profileKey{}, name)
}

// WithProtocol returns a context whose calls are in a protocol. Without it the
// path of a call tells; for a list of models, which both protocols have, its
// header anthropic-version.
func WithProtocol(ctx context.Context, protocol string) context.Context {
	return context.WithValue(ctx, protocolKey{}, protocol)
}

// WithParent returns a context whose calls are part of a run: the record of each
// names it.
func WithParent(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, parentKey{}, run)
}

// Watch returns a context for one call, and where to read how that call ended.
func Watch(ctx context.Context) (context.Context, *Exchange) {
	x := &Exchange{}
	return context.WithValue(ctx, watchKey{}, x), x
}

// Exchange is one call, as a program sees it.
type Exchange struct {
	mu      sync.Mutex
	outcome *Outcome
}

// Outcome is how a call ended.
type Outcome struct {
	Run string
	// Status is completed, redacted, guardrail_blocked,
	// guardrail_approval_required, budget_exceeded, upstream_failed or cancelled.
	Status string
	// Guard and Rule made it so; empty if none did.
	Guard, Rule string
	// Reason is a sentence for people; may be empty.
	Reason string
	// InputTokens and OutputTokens are what the call took; Estimated says that
	// the provider did not report all of it.
	InputTokens, OutputTokens int64
	Estimated                 bool
	// USD is what that costs, as a decimal number of dollars; empty where the price
	// is not known.
	USD string
}

// Outcome returns how the call ended; ok is false before its answer has been
// read to the end or closed, and where nothing was asked of a model: a path that
// is not served, a body that is not read.
func (x *Exchange) Outcome() (o Outcome, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outcome == nil {
		return Outcome{}, false
	}
	return *x.outcome, true
}

func (x *Exchange) set(run string, o wire.Outcome) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outcome = &Outcome{Run: run, Status: string(o.Status), Guard: o.Guard, Rule: o.Rule, Reason: o.Reason,
		InputTokens: o.Usage.Input, OutputTokens: o.Usage.Output, Estimated: o.Usage.Estimated}
}

// settle is set, of a call that has ended, with what it cost.
func (x *Exchange) settle(run string, o wire.Outcome, cost budget.Cost) {
	if x == nil {
		return
	}
	x.set(run, o)
	x.mu.Lock()
	defer x.mu.Unlock()
	if cost.Known {
		x.outcome.USD = cost.USD.String()
	}
}

// UpstreamError says that an upstream was not reached, or broke off.
type UpstreamError struct {
	Upstream string
	Err      error
}

func (e *UpstreamError) Error() string { return fmt.Sprintf("upstream %s: %v", e.Upstream, e.Err) }
func (e *UpstreamError) Unwrap() error { return e.Err }
