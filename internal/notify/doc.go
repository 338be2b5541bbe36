// Package notify keeps tickets and takes them to where people look: a folder, an
// issue tracker, a webhook, a command.
//
//	File ──► the outbox (a folder, on disk) ──► Sink, Sink, …
//	             one file a ticket                 each until it has it, with backoff,
//	             one a digest                      by whichever process is up
//
// # Laws
//
// A ticket is on disk when File returns, and stays until every sink has it: a sink
// that fails, and a process that dies, lose nothing.
//
// The same trouble in the same place, by its digest, is one ticket as long as it
// goes on happening: what comes again within [Open] is counted and not filed anew.
//
// A sink is given a ticket again only if it has not said that it has it. Sinks that
// can tell a repeated delivery are told by what: the digest.
package notify
