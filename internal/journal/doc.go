// Package journal is the contract of the append-only log of runs.
//
// A [Run] is a row: what it is, how it stands, who may advance it now. Beside
// the row lies its log: events, numbered from 1, each with a payload that the
// journal does not read. The row is the truth about the run's status; the log is
// the truth about how it came to be.
//
//	Update(fn) ──► fn(Tx) ─┐
//	Update(fn) ──► fn(Tx) ─┼─► one commit ─► durable ─► Update returns,
//	Later(fn)  ──► fn(Tx) ─┘   (a group)                those who Await wake
//
//	runs    tenant run │ status reason │ wake_at lease fence │ seq head
//	events  tenant run seq at kind version payload digest chain
//	          1 ──► 2 ──► 3 ──► … ──► head      (each link covers the one before)
//
// Back ends live below this package (sqlite); journaltest holds the suite that
// each of them passes.
//
// # Laws
//
// Appended, never changed: a committed event keeps its number, time, kind,
// digest and link for ever. Only its payload may go, and a tombstone says so.
//
// Numbered without gaps: the log of a run is 1, 2, 3, … and a reader who has
// seen n asks for what comes after n.
//
// Durable: when Update returns nil, what it wrote survives a kill -9 and a cut
// of power. Before it returns, nobody else sees it. What was handed to Later is
// durable with the next commit of the store, and never later than what is
// handed in after it.
//
// All or nothing: an Update that returns an error wrote nothing.
//
// One writer: every write to a run names a [Lease], and is refused with
// [ErrFenced] once somebody else has claimed the run. A worker that was stopped
// for a minute and goes on cannot write a byte.
//
// Terminal is terminal: the first terminal status wins. Whatever comes later
// changes nothing and gets a [*SettledError], which says what won.
//
// Chained: each event's link is a hash over the link before it and over the
// keyed digest of its payload, so [Verify] finds what was altered, left out or
// put in, and finds it also where payloads have been purged.
//
// Linear: what is written for an event does not depend on how many came before.
//
// Tenants do not meet: a [Ref] names tenant and run, and every read and write is
// within one tenant. The only exceptions are the sweeps, which serve all.
package journal

//go:generate go test -run ^TestJournalDoc$ . -update
