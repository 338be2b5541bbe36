// Package flow runs playbooks: it is the host of internal/flow/steps, as
// internal/engine is the host of turns, under the leases that the engine keeps.
//
//	                     ┌──────────────── hold ───────────────┐
//	the engine gives     │ steps.Next ─► effect ─► perform ────┼──► command ─► sandbox
//	a run in hand  ────► │     ▲                               │    claude  ─► Judge
//	                     │ steps.Apply ◄─ event ◄─ inbox ◄─────┼─── agent, playbook ─► runs of their own
//	                     └─────┼───────────────────────────────┘    pause ─► internal/approval
//	                           ▼                                         │ text, screened
//	                        journal  ◄───────────────────────────────────┴─► observer ─► Judge
//
// A run is made from a [Book]: the playbook, those that it calls and their prompts,
// as they were checked. It is written down with the run and read again from there:
// whoever goes on with the run, and whenever, goes on with what was started.
//
// # Laws
//
// What must be durable before an effect is (steps, and run.Order). The start of a
// step that is not safe to repeat is on record before its program is; its end, with
// all that it said, before anything that follows from it.
//
// What a step says is screened by the guards of the run's profile before anybody
// sees it: the journal, who watches, an observer, a later step. A guard's deny ends
// the step.
//
// A program of a step has the step's scope, by the kernel, and the environment that
// the step gives it. Where that cannot be held the step is not run.
//
// What is irreversible runs behind a person's yes of this run, or not at all; and a
// command that destroys, in a step that does not say so, is not run. The checks of
// a playbook say so before; here it is so.
//
// An observer never slows its step: it reads through a window that elides and says
// so. It is heard when the step has ended, whichever way; if it is missing, late,
// malformed or over its budget its verdict is observer_failed.
package flow
