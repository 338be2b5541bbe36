// Package sandbox runs a program that is not trusted: it reads, writes, runs and
// reaches what it was given, and the kernel says no to the rest.
//
//	host ── Start ──────────────────────────────────────────────────────────────┐
//	  │  plan: patterns become files and directories, links resolved            │
//	  │  re-executes this program, with the plan and one socket                  │
//	  ▼                                                                         │
//	warden   process 1 of its own PID, mount, network and IPC namespaces         │
//	  │  all mounts read-only, what may be written bound over them,              │
//	  │  the deny list covered, a /proc of its own                               │
//	  │  listens where a service was asked for, and hands the sockets up ──────► │ Service
//	  ▼                                                                         │
//	program  no capabilities, no_new_privs, rlimits, a session of its own,       │
//	         Landlock, seccomp, then exec                                        │
//	                                                                            │
//	the warden ends ► the kernel ends every process of the namespace ► Wait ◄────┘
//
// # Laws
//
// What cannot be enforced is not run: [Start] fails with a [*RefusedError] that
// names the part. There is no weaker mode to fall back to. [Check] tries each
// part for real and says which of them hold here.
//
// Nothing of the host comes along: no environment but what [Spec] says, no open
// file but the three streams, no home, no terminal, no network but a loopback
// device of its own. [Service] is the only way out: a listener inside, served by
// the host.
//
// When Wait returns, no process of the program is left, whatever it did: ignored
// signals, left its group, began sessions. They are in a PID namespace, and that
// is gone.
//
// The deny list ([Denied]) always holds, also inside of what a scope grants.
//
// # What the kernel is told
//
// Landlock knows files and directories, not patterns. So each pattern of a
// [Scope] is resolved when the program starts, and [Plan] has the result:
//
//   - `DIR/**` and a plain directory are that directory, whole, with all that will
//     be in it. For writing it is made if it is missing.
//   - A plain file is that file. For writing it is made, empty, if it is missing,
//     and removed at the end if it is still empty.
//   - Any other pattern is, for reading and running, the files that match when the
//     program starts; for writing, the directory in front of its first wildcard,
//     whole. That directory may not be the root itself.
//
// What may be written may be read; what may be run may be read. Beside a scope,
// every program gets what a dynamically linked program needs to start (libraries,
// certificates, the account database, /proc of its namespace, the harmless
// devices), and a home and a directory for temporary files that are thrown away.
//
// docs/sandbox.md says what this can not promise.
package sandbox
