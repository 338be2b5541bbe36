package govern

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// DefaultReserve is how many tokens of output are reserved for an answer whose
// request does not say how long it may get.
const DefaultReserve = 4096

// Budget limits what may be spent of something on a day of UTC.
type Budget struct {
	// Kind is host, profile, model, key, team, app, user or playbook.
	Kind string
	// Name is whose; empty for host. A `*` stands for any characters: all those
	// names share the limit.
	Name string
	// Tokens is the most that may be read and written; nil is no limit.
	Tokens *int64
	// USD is the most that may be paid, as a decimal number of dollars such as
	// 12.50; empty is no limit.
	USD string
}

type scopesKey struct{}

// WithScope returns a context whose calls are also paid for by what else they are
// part of: a playbook, say. The profile, the model, the caller's key with its
// labels and the host need no scope.
func WithScope(ctx context.Context, kind, name string) context.Context {
	before, _ := ctx.Value(scopesKey{}).([]budget.Scope)
	return context.WithValue(ctx, scopesKey{}, append(before[:len(before):len(before)], budget.Scope{Kind: budget.Kind(kind), Name: name}))
}

type capsKey struct{}

// WithCap returns a context whose calls may together take no more than so many
// tokens: a run's own cap, whatever the days it takes. Calls of one name share it.
func WithCap(ctx context.Context, name string, tokens int64) context.Context {
	before, _ := ctx.Value(capsKey{}).([]budget.Envelope)
	own := budget.Envelope{Scope: budget.Scope{Kind: budget.Run, Name: name}, Limit: budget.Limit{Tokens: budget.AtMost(tokens)}}
	return context.WithValue(ctx, capsKey{}, append(before[:len(before):len(before)], own))
}

// envelopes reads what a configuration says of budgets.
func envelopes(all []Budget) ([]budget.Envelope, error) {
	var out []budget.Envelope
	for _, b := range all {
		e := budget.Envelope{Scope: budget.Scope{Kind: budget.Kind(b.Kind), Name: b.Name}}
		if (b.Kind == string(budget.Host)) != (b.Name == "") || b.Kind == "" {
			return nil, fmt.Errorf("a budget of kind %q named %q: want a kind and a name, or host and none", b.Kind, b.Name)
		}
		if b.Tokens != nil {
			e.Limit.Tokens = budget.AtMost(*b.Tokens)
		}
		if b.USD != "" {
			usd, err := budget.ParseUSD(b.USD)
			if err != nil {
				return nil, fmt.Errorf("the budget of %s: %w", e.Scope, err)
			}
			e.Limit.USD = budget.AtMost(usd)
		}
		out = append(out, e)
	}
	return out, nil
}

// openPurse opens the purse of a Transport that was given none: its budgets are
// kept in memory.
func (t *Transport) openPurse(cfg Config) error {
	t.purse = cfg.Purse
	if t.purse != nil || len(cfg.Budgets) == 0 {
		return nil
	}
	limits, err := envelopes(cfg.Budgets)
	if err != nil {
		return err
	}
	if t.purse, err = budget.Open(context.Background(), budget.NewMemory(nil), budget.Options{Envelopes: limits}); err != nil {
		return err
	}
	t.closers = append(t.closers, t.purse.Close)
	return nil
}

// claim is what a call may take.
func (c *call) claim() budget.Claim {
	scopes := []budget.Scope{{Kind: budget.Profile, Name: c.profile.Name}}
	if who := c.caller(); who != nil {
		for _, s := range []budget.Scope{{Kind: budget.Key, Name: cmp.Or(who.Name, who.Key)}, {Kind: "team", Name: who.Team}, {Kind: "app", Name: who.App}, {Kind: "user", Name: who.User}} {
			if s.Name != "" {
				scopes = append(scopes, s)
			}
		}
	}
	more, _ := c.ctx.Value(scopesKey{}).([]budget.Scope)
	scopes = append(scopes, more...)
	caps, _ := c.ctx.Value(capsKey{}).([]budget.Envelope)
	for _, e := range caps {
		scopes = append(scopes, e.Scope)
	}
	step := c.profile.ReserveTokens
	if step <= 0 {
		step = DefaultReserve
	}
	each := c.asked.MaxTokens
	if each <= 0 {
		each = step
	}
	if c.format == wire.OpenAIEmbeddings { // its answer is no text
		each = 0
	}
	dear := ""
	for _, tier := range c.asked.Tiers {
		if !listed[tier] {
			dear = printable(tier)
		}
	}
	return budget.Claim{
		Tier:   dear,
		Scopes: scopes, Envelopes: caps, Model: c.modelName(),
		Input: c.asked.Tokens, Output: many(each, c.asked.Choices), Step: many(step, c.asked.Choices),
	}
}

// listed are the tiers of service for which the price list has no price that is
// too low.
var listed = map[string]bool{"": true, "auto": true, "default": true, "standard": true, "standard_only": true, "flex": true}

// many is n tokens for each of several answers.
func many(n int64, choices int) int64 { return min(n, 1<<40) * int64(max(choices, 1)) }

// reserve reserves what the call may take. Where there is not enough the answer
// says so, and nothing was sent.
func (c *call) reserve() (*http.Response, error) {
	if c.t.purse == nil || c.asked == nil || c.format == wire.AnthropicCountTokens { // nothing is charged for it
		return nil, nil
	}
	reserved, refusal := c.t.purse.Reserve(c.ctx, c.claim())
	if refusal == nil {
		c.reserved = reserved
		return nil, nil
	}
	if err := c.ctx.Err(); err != nil { // the caller left while it waited
		if kept := c.settle(wire.Outcome{Status: wire.Cancelled}); kept != nil {
			return nil, kept
		}
		return nil, err
	}
	o := wire.Outcome{Status: wire.BudgetExceeded, Guard: "budget", Rule: refusal.ID.Scope.String(), Reason: refusal.String()}
	if err := c.settle(o); err != nil {
		return nil, err
	}
	return c.refuse(wire.Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "budget_exceeded", Message: o.Reason, Outcome: &o}), nil
}

// reach makes the reservation follow an answer that has come to so many tokens;
// it is why the answer must end, if it must.
func (c *call) reach(output int64) *budget.Refusal {
	if c.reserved == nil {
		return nil
	}
	return c.reserved.Reach(c.ctx, output)
}

// debit settles what was reserved, once, and says what a usage costs.
func (c *call) debit(u wire.Usage) budget.Cost {
	c.pass.Settle(budget.Usage(u).Tokens())
	switch {
	case c.reserved != nil:
		return c.reserved.Settle(budget.Usage(u))
	case c.asked == nil:
		return budget.Cost{}
	}
	if c.claim().Tier != "" {
		return budget.Cost{}
	}
	return prices.Cost(c.modelName(), budget.Usage(u))
}

// prices are for a Transport without a purse.
var prices = budget.List()

// exhaust ends an answer for which there is no more budget: the upstream is not
// heard any further.
func (b *streamBody) exhaust(r *budget.Refusal) {
	b.over = true
	b.store = append(b.store, b.out...) // the stream is asked again
	b.out = b.store
	b.show(b.stream.Exhaust(r.ID.Scope.String(), r.String()))
	b.finish()
}
