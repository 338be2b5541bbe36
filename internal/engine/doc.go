// Package engine is the host of runs: it performs what internal/run asks for and
// writes down, in a journal, what came of it.
//
// For each run that this process advances there is one goroutine, a tenure. It
// alone holds the run's state; everything else tells it what happened:
//
//	                      ┌────────────── tenure ──────────────┐
//	Start, Resume,        │  run.Next ──► effect ──► perform ──┼──► model, tools,
//	Decide, Cancel, ───►  │     ▲                              │    evaluator
//	the sweep             │  run.Apply ◄── event ◄── inbox ◄───┼─── what came of it
//	                      │     │                              │
//	                      └─────┼──────────────────────────────┘
//	                            ▼
//	                 journal, under the lease ──► Watch, here and elsewhere
//
// # Laws
//
// Recorded before it shows. A tenure keeps the order that an effect demands
// ([run.Order]): what must be durable before an effect is, and the event that
// opens a fenced effect is durable before the effect begins. Events that nothing
// hangs on become durable a moment later, in order.
//
// One worker. A tenure writes with the fence of its lease. When it has lost the
// run it finds out with its next write, or within a tick, and stops; what it had
// under way is cut off and counts for nothing.
//
// Nothing is lost with a process. A worker that dies leaves its lease to run out;
// the sweep of any other that may advance the run takes it up from the journal,
// at most Lease + Tick later. A pause holds no lease, no worker and no goroutine.
//
// Who decides need not advance. A decision, a cancellation, a resolution of a
// call in doubt is durable in its own transaction, by whatever process; whoever
// holds the run, or takes it up, acts on it.
//
// Watching changes nothing. Whoever watches reads the journal, and, in the process
// that advances the run, text as it is released, from a place where it lies
// anyway. One who stalls or leaves is not waited for.
//
// What the journal says is followed link by link before it is acted on. A run whose
// log or snapshot was altered runs nothing more: it has failed.
//
// If the journal cannot be written to, the tenure ends before the next effect and
// the run stays as it is in the journal, to be taken up when there is room.
package engine
