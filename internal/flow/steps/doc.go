// Package steps is a playbook at work, as a function: its run is a value, [State];
// [Apply] says what an event makes of it, and [Next] what is to be done about it.
// No clock, no id, no I/O. It is to playbooks what internal/run is to turns, and
// owes its host the same, and is owed the same: see there.
//
//	                 ┌────────────────── Apply ──────────────────┐
//	                 ▼                                           │
//	created ──►    State ──► Next ──► effects ──► the host ──► events ──► journal
//	                                  Weigh                    step_weighed
//	                                  Start, Follow            step_started, step_ended
//	                                  Observe                  observed
//	                                  Evaluate                 step_evaluated
//	                                  Ask                      asked, decided, expired
//	                                  Wait, End                ended
//
// A step follows others. Once all of them let it go on it is weighed, if it has a
// condition, and started. When an attempt has ended, its observer says its word,
// the evaluator judges, and what the step leads to is decided, once, from all of
// them:
//
//	idle ─► weighing ─► due ─► going ─► observing ─► judging ─┬─► final
//	            │        ▲       │                            ├─► due again    (retry)
//	            ▼        │       ▼                            ├─► asking, open (pause)
//	          final      └── in doubt                         ├─► handing      (a handler)
//	                                                          └─► turning      (back)
//
// # Laws
//
// The same events give the same state. An event that has no place in the state,
// because it is late, early or false, changes nothing; [Check] says why.
//
// A step runs only when all that it follows have passed, or were let off by their
// own on_fail. A condition takes nothing away from that; one that cannot be
// evaluated blocks its step.
//
// A step that is not declared safe to repeat is started once for each time that it
// is its turn; if its end was lost, a person says what to do. One that is
// irreversible is started once in the run, whatever retries, verdicts and gotos
// say.
//
// Of what an attempt's own verdict, its observer and the evaluator lead to, the
// severest is done, and all are recorded. What a person, a guard or a signal has
// stopped, no on_fail lifts.
//
// Nothing goes round for ever: attempts are bounded by the retry of their step, and
// every goto by the ceiling of where it leads.
//
// Every attempt that has ended is evaluated, before anything that follows from it.
//
// The first outcome stands.
package steps
