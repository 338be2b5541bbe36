// Package examples holds configurations and cassettes that run without a key
// and without a network. The program carries the cassettes, so that its demo
// runs wherever it is.
package examples

import "embed"

// Cassettes has cassettes/*.cassette, and agent.cassette with an agent's two
// turns. What each of them plays is in its first line.
//
//go:embed cassettes/*.cassette agent.cassette
var Cassettes embed.FS
