// Package claude asks a model for a verdict: with `claude -p` in a sandbox, or
// over the provider's interface with no tools. It is the judge of package flow.
//
//	prompt ─► claude -p ──────────────► events ─► Evidence ─► Read ─► Judgement
//	          in a sandbox: the scope,              ▲    ▲
//	          a home that is thrown away            │    └─ how it ended, who was left
//	            │                                   │
//	            └─► 127.0.0.1 inside ─► gate ───────┘ what was served, what it took
//	                 a key of one run    │
//	                                     └─► internal/gateway ─► the door ─► model
//
// # Laws
//
// The exit code proves nothing. A run passes only if everything that could speak
// agrees ([Read]): the one result and its members, the exit code, the tools and
// models of the first event and of each answer, what the gate saw served, our own
// check of the answer against the schema, and that nothing was left running. What
// no rule knows how to read fails.
//
// The answer is the structured output. A text is never taken for one.
//
// Caps are ours: the program has no flag for tokens or time. The gate counts what
// passes, sub-agents included, while it passes; each message counts once. Over the
// cap, over time, or silent for too long, the program ends with all that it
// started.
//
// The program gets none of the user's settings, keys, hooks, servers or
// environment, and no way out but the gate.
package claude
