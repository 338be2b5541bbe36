package budget

import (
	"context"
	"time"
)

// Lease is how long a block stays its owner's without being written again.
const Lease = 5 * time.Minute

// Ledger is where accounts and blocks are durable. Any number of processes may
// have the same one. It is safe for use by several goroutines.
type Ledger interface {
	// Write performs entries of one owner, in one transaction, each as [Entry.Apply]
	// says, and returns what came of each, in order, once it is durable. Where wait
	// is false it may wait for others to share a commit with. After an error nothing
	// of it was written.
	Write(ctx context.Context, owner string, wait bool, entries []Entry) ([]Standing, error)
	// Accounts returns the accounts of a day and those of no day that have a block,
	// in order of kind and name.
	Accounts(ctx context.Context, day Day) ([]Account, error)
}

// Entry is what a purse writes about one envelope.
type Entry struct {
	ID    ID
	Limit Limit // none: only the debit counts
	Debit Debit // spent since the last entry
	// Held is what calls under way have reserved; it is part of the block.
	Held Amount
	// Keep is what the owner's block has and is still to have. Want is what it is to
	// have if there is room. Both zero give the block up.
	Keep, Want Amount
}

// Debit is what was spent.
type Debit struct {
	Amount
	// Estimated is the part of it that nobody reported.
	Estimated Amount
	// Unpriced are the tokens, of all, whose price is not known.
	Unpriced int64
}

// Plus is the sum.
func (d Debit) Plus(e Debit) Debit {
	return Debit{d.Amount.Plus(e.Amount), d.Estimated.Plus(e.Estimated), plus(d.Unpriced, e.Unpriced)}
}

// Block is a part of an envelope that an owner has for itself.
type Block struct {
	Amount
	Held  Amount // of it: reserved by calls under way when it was written
	Until time.Time
}

// Standing is how an envelope stands after an entry.
type Standing struct {
	Spent  Debit  // by all
	Block  Amount // the owner's
	Others Amount // the other owners' blocks
}

// Expire is what the end of a lease makes of a block: what calls held counts as
// spent, by estimate.
func (b Block) Expire() Debit { return Debit{Amount: b.Held, Estimated: b.Held} }

// Apply is the arithmetic of an entry: from what is spent, the owner's own block
// and the sum of the others' follows how the envelope stands. A block is never
// made smaller than Keep, and never grows beyond the limit.
func (e Entry) Apply(spent Debit, others Amount) Standing {
	s := Standing{Spent: spent.Plus(e.Debit), Others: others}
	if e.Limit.None() {
		return s
	}
	room := e.Limit.amount().Minus(s.Spent.Amount).Minus(others)
	s.Block = e.Limit.counted(e.Want.atMost(room).atLeast(e.Keep).atLeast(Amount{}))
	return s
}

// Account is what was spent of an envelope.
type Account struct {
	ID
	Spent   Debit
	Blocked Amount // in the blocks of all owners
	Held    Amount // of them: reserved by calls under way
}
