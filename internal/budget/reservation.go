package budget

import "context"

// A Reservation is what one call may take. It is used by one goroutine at a
// time.
type Reservation struct {
	purse  *Purse
	shares []*share
	price  Price
	priced bool
	held   Amount
	input  int64
	output int64 // what is reserved
	step   int64
	done   bool
}

// Reach says to how many tokens of output an answer has come so far. The
// reservation grows ahead of it; where it cannot, the answer must end. It waits
// for the ledger only if the blocks at hand are spent.
func (r *Reservation) Reach(ctx context.Context, output int64) *Refusal {
	if output <= r.output-r.step/2 || r.done {
		return nil
	}
	more := max(r.step, output-r.output)
	need := r.growth(more)
	if output <= r.output { // there is time: what is not at hand is asked for and not waited for
		p := r.purse
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.hold(r.shares, need) == nil {
			r.grow(more, need)
		}
		return nil
	}
	if refusal := r.purse.obtain(ctx, r.shares, need); refusal != nil {
		return refusal
	}
	r.grow(more, need)
	return nil
}

// growth is what more tokens of output may cost.
func (r *Reservation) growth(more int64) Amount {
	need := Amount{Tokens: more}
	if r.priced {
		need.USD = r.price.at(r.input).cost(Usage{Output: more})
	}
	return need
}

func (r *Reservation) grow(more int64, need Amount) {
	r.output += more
	r.held = r.held.Plus(need)
}

// Cost is what a usage costs at the price of the reservation's model.
func (r *Reservation) Cost(u Usage) Cost {
	if !r.priced {
		return Cost{}
	}
	return Cost{USD: r.price.Cost(u), Known: true}
}

// Settle puts what the call took in the place of what was reserved; of a call
// that took nothing the zero Usage. It returns at once: what was spent is written
// down with the ledger's next commit. Only the first call counts.
func (r *Reservation) Settle(u Usage) Cost {
	cost := r.Cost(u)
	if r.done {
		return cost
	}
	r.done = true
	d := Debit{Amount: Amount{Tokens: u.Tokens(), USD: cost.USD}}
	if u.Estimated {
		d.Estimated = d.Amount
	}
	if !cost.Known {
		d.Unpriced = u.Tokens()
	}
	p := r.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, s := range r.shares {
		if s.settle(r.held, d, now); !s.limit.None() || d != (Debit{}) {
			p.touch(s, now)
		}
	}
	p.nudge()
	return cost
}
