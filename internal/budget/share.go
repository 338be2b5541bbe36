package budget

import (
	"time"
)

const (
	// ready is the part of a limit, one in so many, that a process keeps at hand.
	ready = 32
	// most is the largest part of it that a process keeps for calls like its largest.
	most = 4
	// margin is how long before the end of a lease a block is no longer used: the
	// clocks that are compared may differ by that much.
	margin = 10 * time.Second
	// renewal is when a block that nobody uses is written again.
	renewal = 2 * time.Minute
	// refused is how long the ledger's word that there is no room is believed.
	refused = 250 * time.Millisecond
)

// A share is what a purse has of one envelope. The purse's lock guards it.
type share struct {
	id    ID
	limit Limit
	fixed bool // named by an envelope: kept ready whether it is used or not

	total Amount // the block, less what was spent of it
	held  Amount // of it: reserved by calls under way
	until time.Time
	peak  Amount // the most that one call has reserved

	debit   Debit // spent, not yet on its way to the ledger
	writing Debit // on its way
	spent   Debit // by all, as the ledger last said
	others  Amount
	short   time.Time // when the ledger last had less than was needed

	dirty    bool
	since    time.Time // when it became so
	needs    Amount    // what those who wait are waiting for
	asked    uint64    // how often somebody began to wait
	answered uint64    // of them, how many have their answer
	failure  error     // of the last writing, if it failed
	used     time.Time
}

// fits reports whether a call can have an amount of the block.
func (s *share) fits(need Amount, now time.Time) bool {
	if s.limit.None() {
		return true
	}
	return now.Before(s.until.Add(-margin)) && s.limit.covers(s.total.Minus(s.held), need)
}

func (s *share) hold(need Amount, now time.Time) {
	s.held = s.held.Plus(need)
	s.peak = s.peak.atLeast(need)
	s.used = now
}

// settle puts what was spent in the place of what was held.
func (s *share) settle(held Amount, d Debit, now time.Time) {
	s.held = s.held.Minus(held)
	s.total = s.total.Minus(s.limit.counted(d.Amount))
	s.debit = s.debit.Plus(d)
	s.used = now
}

// relimit changes the limit. Of what was not limited there is nothing at hand.
func (s *share) relimit(l Limit) {
	s.total = l.counted(s.limit.counted(s.total))
	s.limit = l
}

// spare is what the block is to have beyond what is held.
func (s *share) spare() Amount {
	limit := s.limit.amount()
	return s.limit.counted(limit.over(ready).atLeast(s.peak.atMost(limit.over(most))))
}

// entry is what is to be written now. What the block is to lose it loses before:
// nobody may have it while it is given back.
func (s *share) entry(now time.Time, closing bool) Entry {
	e := Entry{ID: s.id, Limit: s.limit, Debit: s.debit}
	s.writing, s.debit = s.debit, Debit{}
	s.dirty = false
	if s.limit.None() {
		return e
	}
	spare := s.spare()
	s.peak = s.peak.Minus(s.peak.over(16)) // the largest call of late
	want := s.held.Plus(spare)
	switch {
	case closing || s.over(now) || !s.fixed && now.Sub(s.used) > Lease:
		spare, want = Amount{}, s.held
		s.total = s.total.atMost(want)
	case !now.Before(s.until): // the lease ran out: what was free is no longer ours
		s.total = s.total.atMost(s.held)
	case !s.limit.covers(s.held.Plus(spare).Plus(spare), s.total):
		s.total = s.total.atMost(want)
	}
	e.Held = s.limit.counted(s.held)
	e.Keep = s.limit.counted(s.total.atLeast(Amount{}))
	e.Want = s.limit.counted(want.Plus(s.needs)).atLeast(e.Keep)
	return e
}

// over reports whether the envelope's day is.
func (s *share) over(now time.Time) bool { return s.id.Day != 0 && s.id.Day < DayOf(now) }

// written takes in how the envelope stands.
func (s *share) written(e Entry, is Standing, began time.Time) {
	s.total = s.total.Plus(is.Block.Minus(e.Keep))
	s.until = began.Add(Lease)
	s.spent, s.others, s.writing, s.failure = is.Spent, is.Others, Debit{}, nil
	s.short = time.Time{}
	if !s.limit.covers(is.Block, e.Want) {
		s.short = began
	}
}

// failed takes back what was not written.
func (s *share) failed(err error) {
	s.debit = s.debit.Plus(s.writing)
	s.writing, s.failure = Debit{}, err
}

// idle reports whether the purse can forget the share.
func (s *share) idle(now time.Time) bool {
	if s.dirty || s.held != (Amount{}) || s.asked != s.answered || s.writing != (Debit{}) || now.Sub(s.used) < look {
		return false
	}
	return s.over(now) || !s.fixed && (s.limit.None() || s.total == Amount{})
}

// stale reports whether a block must be written again, or given up.
func (s *share) stale(now time.Time) bool {
	switch {
	case s.limit.None() || s.until.IsZero():
		return false
	case s.over(now) || !s.fixed && now.Sub(s.used) > Lease:
		return !s.limit.covers(s.held, s.total)
	}
	return now.Sub(s.until.Add(-Lease)) >= renewal
}

// hopeless reports whether asking the ledger would change nothing.
func (s *share) hopeless(need Amount, now time.Time) bool {
	if !s.limit.covers(s.limit.amount(), need) {
		return true
	}
	return !s.short.IsZero() && now.Sub(s.short) < refused && now.Before(s.until.Add(-margin))
}

// refusal says why a call cannot have an amount.
func (s *share) refusal(need Amount) *Refusal {
	r := &Refusal{Reason: Exceeded, ID: s.id, Limit: s.limit, Need: s.limit.counted(need)}
	r.Spent = s.spent.Plus(s.writing).Plus(s.debit).Amount
	r.Reserved = s.others.Plus(s.limit.counted(s.held))
	if s.failure != nil {
		r.Reason, r.Err = Unreachable, s.failure
	}
	return r
}
