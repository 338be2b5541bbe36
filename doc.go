// Package stoplog is a tour of the house; it holds no code.
//
// A stoplog is a beam dropped into a slot to hold back a stream of water. This
// one governs LLM agents: every model call and every streamed token passes
// through it, it stops what must be stopped, and it records what it did.
//
// # Goals
//
// A person who points an SDK's base URL at `stoplog serve` gets the same words
// streamed and unstreamed, with secrets replaced while they stream. A person who
// pipes a log through `stoplog guard` gets the log, at once, less its secrets.
// What is refused is refused in the caller's own protocol. Nothing passes
// because it was streamed, cut at an odd place or put in a field that nobody
// thought of; when a part fails, it fails closed.
//
// These are laws with tests that can fail. docs/ARCHITECTURE.md lists them, each
// with the name of its test; docs/adr tells why the walls stand where they do.
//
// # Words
//
// The same words are used in code, flags, records and pages.
//
// A channel is one stream of text: a choice's content, a tool call's arguments.
// A guard judges a channel, through a screen that sees its text once, in order.
// A rule is one pattern or check of a guard. A finding is the evidence: rule,
// span, severity and a keyed fingerprint, never the matched text. A verdict is
// what must happen: allow < redact < require_approval < deny. A byte is settled
// when no finding that is still to come can begin before it; what is settled may
// leave. A mode says what a guard's findings may do: enforce, shadow or audit. A
// profile is a named policy: model, guards, limits. A mount is a place where the
// gateway speaks a provider's protocol, and an upstream is where it leads. A
// cassette is a recorded or written upstream. The door is govern: there is no
// other way to a model.
//
// # How to read it
//
// The packages follow from the bottom up; each uses only those before it. Which
// may import which is a table in arch_test.go, and that table is the law. A
// change belongs in the lowest room whose words describe it. Rooms outside
// internal are public: others may build on them.
//
// # Package guard
//
// The contract, and what enforces it: Guard, Screen, Finding, Verdict. Chain
// runs several guards over a channel, lets out what all of them settled, unites
// what they found and stops where one of them denies. It knows no rule, no
// provider and no file, and depends on the standard library alone. Start here.
//
// # Package guard/disclosure
//
// A guard that finds a request's system prompt in its answer: runs of its words,
// and canaries. It is no pattern: what it looks for comes with each request.
//
// # Package guard/inline
//
// A file of ours as a guard reads it, with the comments in it that let findings
// pass, each for one rule and with a reason.
//
// # Package guard/match
//
// A guard made of patterns. It gives what Go's regular expressions would find in
// the whole text, whatever the pieces it came in, holds back only what could
// still become a match, and takes time linear in the text.
//
// # Package guard/rules/gitleaks
//
// The rules of gitleaks as data, and what is changed in them so that they redact
// what they should in text that streams, each with its reason.
//
// # Package guard/rules
//
// The rules themselves, in packs (secrets, credentials, pii): data, each with
// texts that it must and must not match. A new rule is an entry here and
// nothing else.
//
// # Package guard/guardtest
//
// What a guard owes, as a suite that any guard can be put through: the same
// answer at every cut, bounded hold, nothing of a blocked span let out, failure
// closed.
//
// # Package internal/diag
//
// A mistake in a file, with its place: position, span, message, the keys that
// were expected, a suggestion. It draws the line with a caret, or gives JSON.
//
// # Package internal/yamltree
//
// A YAML file as a tree of values with places, strictly: what two readers could
// take for two things is an error.
//
// # Package internal/prompt
//
// Prompts as files: versions, pins, front matter, a body with declared inputs.
//
// # Package playbook
//
// What a runtime is to do, as a typed tree with places, and the checks that a
// playbook must pass. It starts nothing and asks nobody.
//
// # Package internal/glob
//
// Names against patterns in which a `*` stands for any characters.
//
// # Package internal/budget
//
// What may be spent and what was: envelopes of tokens and money, reserved in
// durable blocks before a call and settled after it, and the price list. It knows
// no provider's wire and no database.
//
// # Package internal/budget/budgettest
//
// The suite that every ledger of budgets passes.
//
// # Package internal/signal
//
// The evaluator: signals judge what a run has done, after each step and for each
// pause. Every answer is recorded; those that are enforced can stop a run or put
// it before a person. An evaluation is a function of the history alone.
//
// # Package internal/run
//
// The governed loop as a function: a run is a value, events change it, and what
// is to be done follows from it. No clock, no id, no I/O. Read loop.go first;
// docs/run-states.md is its chart.
//
// # Package internal/auth
//
// Who calls: keys with a role, labels and limits, kept as digests, and the ring
// that a request's key is looked up in.
//
// # Package internal/journal
//
// The contract of the append-only log of runs: a row and a log for each run,
// chained, fenced, durable before anything that depends on it shows. It defines
// ids, leases, snapshots and what remains of a run after its end, and reads no
// payload but its own. It does not know internal/run.
//
// # Package internal/seal
//
// Keys, and what is sealed with them: bound to its place, under the newest key,
// opened by any that there is. Rotation is one more line in a file.
//
// # Package internal/journal/sqlite
//
// The journal in one SQLite file that any number of processes of a machine may
// have open: one goroutine writes, and writes that come together share a commit.
//
// # Package internal/journal/journaltest
//
// The suite that every back end of the journal passes, a file for each behaviour.
//
// # Package internal/approval
//
// The law of questions to people: what a decision binds to, who may give it, that
// it is used once. Its rows are the journal's.
//
// # Package internal/allowance
//
// What people have said of findings that are no fault, each for one profile, one
// rule, one text and some time: a log in the journal, and a book that follows it.
//
// # Package internal/engine
//
// The host of runs: it performs what internal/run asks for and writes down, in a
// journal, what came of it, under a lease. Any number of processes may; one that
// dies is made up for by the sweep of another.
//
// # Package internal/engine/deferred
//
// Wake-ups as jobs of River, in the journal's own database: part of the
// transaction that caused them, and a hint.
//
// # Package internal/sse
//
// Server-sent events as bytes: a scanner that gives each frame as it came, and a
// writer. It knows nothing of what the frames say.
//
// # Package internal/wire
//
// The provider formats, as tables: which field is text, which is a JSON document
// in a string, which is an id, what may pass unread. It turns an answer, streamed
// or not, into channels, and what a chain says of them back into frames, as the
// very bytes that came wherever nothing was found.
//
// # Package internal/dial
//
// The only room that builds HTTP clients and transports. Everything else is
// handed an http.RoundTripper.
//
// # Package internal/cassette
//
// A recorded or written provider exchange, replayed as an http.RoundTripper
// below the door: tests, examples and the demo run real streams without a key
// and without a network. It is also what records them, and scrubs what it writes.
//
// # Package internal/sandbox
//
// Runs a program that is not trusted with what it was given, and nothing else:
// files, programs, hosts, time. The kernel enforces it (namespaces, Landlock,
// seccomp); what it can not enforce is not run.
//
// # Package internal/tool
//
// What an agent can do: the contract of a tool, the check of what a model wants
// of it, and the tools that come with the product (read_file, list_dir,
// run_command). Beside internal/sandbox it is the only room that starts other
// programs. Who may run a tool is govern's to say.
//
// # Package internal/secret
//
// Where a secret is that a configuration names and does not hold: in the
// environment, in a file, in what a command prints.
//
// # Package internal/policy
//
// What may go where: conditions on tool calls, and classes of data against the
// zones of models. It decides; govern enforces.
//
// # Package internal/config
//
// stoplog.yaml and the environment into one struct, strictly: an unknown key is
// an error with its place and a suggestion. The built-in profile lives here.
//
// # Package govern
//
// The door. Transport is an http.RoundTripper that screens the request, calls
// the upstream, screens the answer while it streams, settles what it cost and
// records what was decided, before it shows.
//
// # Package internal/llm
//
// A model as the loop sees it: a history goes out in the provider's form, and
// what the model says comes back as events, whichever provider it is. It asks
// through the door, retries nothing and judges nothing.
//
// # Package internal/judge
//
// Guards that ask: a model with a rubric, or a service over HTTP, about windows of
// a text or all of it, under a profile that asks nobody in turn.
//
// # Package internal/gateway
//
// Providers' own HTTP interfaces, served: what comes in goes to the door, and
// what the door gives back goes out. It judges nothing.
//
// # Package internal/chat
//
// A conversation as its reader sees it: sessions of turns, each turn a run, and
// the events that a run's records show. Whoever follows live, comes late or comes
// back reads the same ones.
//
// # Package internal/agent
//
// A profile at work: the engine's model, tools and evaluator, made of internal/llm
// and a session of the door. It translates and decides nothing.
//
// # Package internal/requestlog
//
// What the door says about its requests, in the journal: each request is a run
// with a log of its own, held under the engine's name until it is settled.
//
// # Package internal/notify
//
// Tickets: kept in an outbox on disk until every sink (a folder, GitHub, a webhook,
// a command) has them; the same trouble in the same place is one.
//
// # Package internal/flow/steps
//
// A playbook at work as a function: steps that follow on each other, are tried
// again, gone to, observed, decided by people. No clock, no id, no I/O.
//
// # Package internal/flow
//
// The host of playbooks: it performs what internal/flow/steps asks for, on the
// engine's leases and in the journal, and asks models for verdicts through a Judge.
//
// # Package internal/keep
//
// What the door keeps beside its records, sealed in the journal: what placeholders
// stand for.
//
// # Package internal/api
//
// The control interface over HTTP, and its client in Go: say something, see runs,
// follow one, decide what it asks. It judges nothing and holds up nobody.
//
// # Package internal/flow/claude
//
// Asks a model for a verdict: `claude -p` in the sandbox, whose only way out is a
// gate to the door, or the provider's interface. Nothing that the program says of
// itself counts alone.
//
// # Package examples
//
// Configurations and cassettes that run without a key and without a network;
// the program carries the cassettes for its demo.
//
// # Package cmd/stoplog
//
// The program: one file a command, flags and wiring and nothing else. The rules
// of its voice are in voice.go; testdata/script drives the real binary.
package stoplog
