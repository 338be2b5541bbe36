// Package govern is the door: model traffic leaves the process through its
// [Transport] and nowhere else, and tools are called through a [Session] and
// nowhere else.
//
// A Transport is an [net/http.RoundTripper], so a provider's SDK needs nothing
// but an http.Client that has it:
//
//	t, err := govern.Open(govern.Config{…})
//	client := &http.Client{Transport: t}
//
// What it does with a request, in this order:
//
//	identify caller and profile
//	judge the request        denied: an answer that says so, no call
//	call an upstream         those of the profile, in turn, before the first byte
//	judge the answer         as it streams; package wire says what may leave
//	settle and record        on every way out, a caller that hung up included
//
// What a Session does with a tool call, in this order:
//
//	know the tool            unknown or denied: a result that says so
//	read its arguments       malformed, or redacted on their way: not run
//	ask for approval         if a rule says so: it binds to one digest
//	fence the effect         its start is durable before it runs
//	run it
//	judge the result         as the model may see it
//
// # Laws
//
// A policy outcome is a value. It reaches a client in its own protocol, with a
// status that says policy, and a program through [Watch]; it is never an error.
// RoundTrip fails only if no upstream was reached, the caller left, or the record
// could not be kept; reading a body fails only if the upstream broke, with
// [*UpstreamError], after everything that may be shown, or likewise.
//
// An approval binds: it lets one call run, with the arguments, in the directory
// and under the profile that were shown, and no other. A call whose effect may
// not be repeated does not begin before Fence.Begin has come back.
//
// Recorded before it shows: a verdict other than allow is handed to
// Config.Record, and has come back, before a byte that depends on it leaves. If
// it cannot be recorded nothing more leaves.
package govern
