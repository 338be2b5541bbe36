// Package flow runs playbooks: it is the host of internal/flow/steps on the
// engine's leases and in the journal, as internal/engine is the host of turns.
package flow
