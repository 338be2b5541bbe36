package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/glob"
)

// Options of a purse. The zero value limits nothing and knows the built-in
// prices.
type Options struct {
	// Owner names the process in the ledger; no other may have the name. Empty
	// makes one up.
	Owner string
	// Envelopes are the limits. Those of one scope are united ([Unite]).
	Envelopes []Envelope
	// Prices is the price list; nil is [List].
	Prices Prices
	// Now is the clock; nil is time.Now. It says what day it is.
	Now func() time.Time
	// Patience is the longest that a call waits for the ledger; 0 is 5 s.
	Patience time.Duration
}

// A Purse is a process's part of the envelopes. It is safe for use by several
// goroutines.
type Purse struct {
	ledger    Ledger
	owner     string
	envelopes []Envelope
	prices    Prices
	now       func() time.Time
	patience  time.Duration

	kick chan struct{} // holds a token when there may be something to write
	quit chan struct{}
	kept chan struct{} // closed when the keeper has ended
	once sync.Once
	last error // of the last writing

	mu      sync.Mutex
	shares  map[ID]*share
	dirty   []*share      // those with something to write
	changed chan struct{} // closed after each writing
}

// errClosed: nothing can be reserved any more.
var errClosed = errors.New("the purse is closed")

// Open opens a purse and takes the first blocks. It fails if the ledger does not
// answer. The caller closes the purse, before the ledger.
func Open(ctx context.Context, ledger Ledger, o Options) (*Purse, error) {
	if o.Owner == "" {
		o.Owner = newOwner()
	}
	if o.Prices == nil {
		o.Prices = List()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	p := &Purse{
		ledger: ledger, owner: o.Owner, envelopes: Unite(o.Envelopes), prices: o.Prices, now: o.Now, patience: o.Patience,
		kick: make(chan struct{}, 1), quit: make(chan struct{}), kept: make(chan struct{}),
		shares: map[ID]*share{}, changed: make(chan struct{}),
	}
	if err := p.write(ctx, all); err != nil {
		return nil, fmt.Errorf("open the budgets: %w", err)
	}
	go p.keep()
	return p, nil
}

// Close writes down what was spent and gives the blocks back, but for what calls
// still hold. Reservations that are settled later are not written down.
func (p *Purse) Close() error {
	p.once.Do(func() { close(p.quit) })
	<-p.kept
	return p.last
}

// Envelopes returns the limits. They are not to be changed.
func (p *Purse) Envelopes() []Envelope { return p.envelopes }

// Prices returns the price list. It is not to be changed.
func (p *Purse) Prices() Prices { return p.prices }

// Claim is what a call may take.
type Claim struct {
	// Scopes are what it is part of: a profile, a key, its labels, a playbook, a run.
	// The host and the model are added.
	Scopes []Scope
	Model  string
	// Tier is a way of being served that the price list knows no price of; empty:
	// it does, if it has the model.
	Tier string
	// Envelopes are limits that the purse does not know: a run's own, a key's.
	Envelopes []Envelope
	// Input and Output are the tokens that are reserved at once.
	Input, Output int64
	// Step is by how many tokens of output the reservation grows; 0 is 1,024.
	Step int64
}

// Reserve reserves what a call may take. It waits for the ledger only where the
// blocks at hand are not enough. Of the results one is nil.
func (p *Purse) Reserve(ctx context.Context, c Claim) (*Reservation, *Refusal) {
	price, priced := p.prices.Of(Pinned(c.Model))
	priced = priced && c.Tier == ""
	r := &Reservation{purse: p, price: price, priced: priced, input: c.Input, output: c.Output, step: c.Step}
	if r.step <= 0 {
		r.step = 1024
	}
	need := Amount{Tokens: plus(c.Input, c.Output)}
	if priced {
		rates := price.at(c.Input)
		rates.Input = rates.highestInput()
		need.USD = rates.cost(Usage{Input: c.Input, Output: c.Output})
	}
	p.mu.Lock()
	r.shares = p.sharesOf(c)
	p.mu.Unlock()
	if !priced {
		for _, s := range r.shares {
			if s.limit.USD.Set {
				return nil, &Refusal{Reason: Unpriced, ID: s.id, Limit: s.limit, Model: c.Model, Tier: c.Tier}
			}
		}
	}
	if refusal := p.obtain(ctx, r.shares, need); refusal != nil {
		return nil, refusal
	}
	r.held = need
	return r, nil
}

// sharesOf are the shares of all that a claim is part of.
func (p *Purse) sharesOf(c Claim) []*share {
	scopes := append([]Scope{{Kind: Host}}, c.Scopes...)
	if c.Model != "" {
		scopes = append(scopes, Scope{Model, Pinned(c.Model)})
	}
	envelopes := p.envelopes
	if len(c.Envelopes) > 0 {
		envelopes = Unite(p.envelopes, c.Envelopes)
	}
	today := DayOf(p.now())
	var out []*share
	add := func(s Scope, limit Limit) {
		if sh := p.share(s, limit, today); !slices.Contains(out, sh) {
			out = append(out, sh)
		}
	}
	for _, s := range scopes {
		exact := false
		for _, e := range envelopes {
			if e.Kind == s.Kind && glob.Match(e.Name, s.Name) {
				add(e.Scope, e.Limit)
				exact = exact || e.Name == s.Name
			}
		}
		if !exact {
			add(s, Limit{})
		}
	}
	return out
}

// share is the share of a scope on a day.
func (p *Purse) share(s Scope, limit Limit, at Day) *share {
	id := idOf(s, at)
	sh := p.shares[id]
	if sh == nil {
		sh = &share{id: id, limit: limit}
		p.shares[id] = sh
	}
	if sh.limit != limit {
		sh.relimit(limit)
	}
	sh.used = p.now()
	return sh
}

// touch notes that a share has something to write.
func (p *Purse) touch(s *share, now time.Time) {
	if !s.dirty {
		s.dirty, s.since = true, now
		p.dirty = append(p.dirty, s)
	}
}

// obtain holds an amount of every share, or of none.
func (p *Purse) obtain(ctx context.Context, shares []*share, need Amount) *Refusal {
	const tries = 3 // what came may have been taken by others
	p.mu.Lock()
	lacking := p.hold(shares, need)
	p.mu.Unlock()
	if lacking == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for try := 1; ; try++ {
		p.mu.Lock()
		if lacking = p.hold(shares, need); lacking == nil {
			p.mu.Unlock()
			return nil
		}
		if refusal := p.refusal(lacking, need, try > tries); refusal != nil {
			p.mu.Unlock()
			return refusal
		}
		tickets := p.ask(lacking, need)
		p.mu.Unlock()
		if err := p.await(ctx, lacking, tickets); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			refusal := lacking[0].refusal(need)
			refusal.Reason, refusal.Err = Unreachable, err
			return refusal
		}
	}
}

// refusal is why there is no use in asking for more; nil if there is.
func (p *Purse) refusal(lacking []*share, need Amount, tired bool) *Refusal {
	now := p.now()
	for _, s := range lacking {
		if tired || s.failure != nil && s.asked > 0 && s.asked == s.answered || s.hopeless(need, now) {
			return s.refusal(need)
		}
	}
	return nil
}

// hold holds an amount of every share, or returns those that lack it.
func (p *Purse) hold(shares []*share, need Amount) (lacking []*share) {
	now := p.now()
	for _, s := range shares {
		if !s.fits(need, now) {
			lacking = append(lacking, s)
		}
	}
	if lacking != nil {
		return lacking
	}
	for _, s := range shares {
		if s.hold(need, now); !s.limit.None() {
			p.touch(s, now)
			p.nudge()
		}
	}
	return nil
}

// ask makes the keeper get an amount for shares.
func (p *Purse) ask(shares []*share, need Amount) (tickets []uint64) {
	for _, s := range shares {
		s.needs = s.needs.Plus(s.limit.counted(need))
		s.asked++
		p.touch(s, p.now())
		tickets = append(tickets, s.asked)
	}
	p.nudge()
	return tickets
}

// await waits until the ledger has answered.
func (p *Purse) await(ctx context.Context, shares []*share, tickets []uint64) error {
	for {
		p.mu.Lock()
		pending := false
		for i, s := range shares {
			pending = pending || s.answered < tickets[i]
		}
		changed := p.changed
		p.mu.Unlock()
		if !pending {
			return nil
		}
		select {
		case <-changed:
		case <-p.kept:
			return errClosed
		case <-ctx.Done():
			return fmt.Errorf("wait for the ledger: %w", ctx.Err())
		}
	}
}

// nudge makes the keeper look again.
func (p *Purse) nudge() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Level is how much of an envelope is spent.
type Level struct {
	ID    ID
	Limit Limit
	Spent Amount
}

// Levels says how full the limited envelopes are of which a claim would take, in
// order. It fails where the ledger has not answered for so long that it is not
// known.
func (p *Purse) Levels(c Claim) ([]Level, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Level
	for _, s := range p.sharesOf(c) {
		if s.limit.None() {
			continue
		}
		if !s.until.IsZero() && !p.now().Before(s.until) {
			return nil, fmt.Errorf("the budget of %s: the ledger has not answered since %s: %w", s.id.Scope, s.until.Add(-Lease).Format(time.RFC3339), s.failure)
		}
		out = append(out, Level{s.id, s.limit, s.spent.Plus(s.writing).Plus(s.debit).Amount})
	}
	slices.SortFunc(out, func(a, b Level) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}
