// Package e2e has no code of its own: its tests let others' clients loose on
// the real program.
//
//	openai-go, anthropic-sdk-go   in this process ┐
//	openai, @anthropic-ai/sdk,    ask.mjs in node ┴► tap ─► stoplog serve ─► cassette
//	ai (with its two providers),
//	@langchain/openai
//
//	claude                        stoplog run ─► sandbox ─► claude -p ─► the run's gate ─► a model that was written
//
// A client knows nothing of Stoplog but its address. What it hands its user is
// compared with what the model's answer, judged as a whole, should have become;
// the tap, a listener that passes bytes on and keeps a copy, tells how often the
// client asked, what it sent, and what went over the wire to it.
//
// The module is one of its own, so that nobody who uses Stoplog gets a
// provider's SDK, and it knows the product as its users do: a program, its
// flags, its addresses and its files. Its tests import nothing of it, so that
// Go's cache of test results cannot see it change: test with -count=1, as ../check
// does. The program in the folder library, the example of ../docs/library.md, uses
// the product as a library, with no server.
//
// Cassettes were written for these tests. Recorded streams of real providers
// are read from outside the project where they are at hand.
package e2e
