// Package budget says what may be spent, and knows what was.
//
// An [Envelope] is a limit on tokens, on money or on both, of one scope and one
// day: a profile's, a model's, a key's, the whole host's. What a call may take is
// reserved before it begins and settled when it has ended:
//
//	                       ┌──────────── a process ────────────┐
//	Ledger (durable)       │ Purse                             │
//	  spent     ◄── debits │   block = held by calls + free    │ ◄─ Reserve, TopUp
//	  blocks    ──► blocks │                                   │ ◄─ Settle
//	                       └───────────────────────────────────┘
//
// A [Purse] takes blocks out of the envelopes, durably, ahead of need, and calls
// reserve from the blocks in memory: they wait for no disk. One goroutine keeps
// the purse: it writes debits and takes the next blocks. Only a call that asks
// for more than its block has waits for that.
//
// # Laws
//
// What is spent and what is in blocks is never more than the limit, whatever
// number of processes share the ledger, but for what a call took beyond its
// reservation: its input was larger than its bytes let expect, or it was not
// streamed and had no max_tokens.
//
// Every reservation is settled once; the first settlement counts. What nobody
// reported is an estimate and is marked.
//
// An unknown price is unknown: it is never zero, and where money is limited a
// call without a price is refused.
//
// A ledger that does not answer refuses, as soon as the blocks at hand are spent
// or their lease has run out.
//
// # How exact it is
//
// A process that dies leaves its blocks behind. When their lease ends
// ([Lease]), what its calls held when they were last written down counts as
// spent, marked as estimated, and the rest returns. What the calls took after
// that is lost: they are written down within one commit of the ledger, so it is
// what was reserved within about 10 ms, and never more than the block: what its
// calls held and twice what it kept ready.
//
// A process keeps a part of each envelope ready, 1/[ready] of its limit or what
// its largest call reserved, and at most 1/[most]. An envelope may so refuse
// while each of the other processes still has that much.
//
// What is spent outside of any limit is written down at most a second later.
//
// Money is counted in whole nano-dollars, and a day is a day of UTC: that on
// which the call was reserved.
package budget
