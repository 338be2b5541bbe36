// Package samples has no code of its own: its test asks gitleaks' own detector
// and the real program about the samples that gitleaks keeps of each of its
// rules, and compares what each takes for a secret.
//
//	gitleaks, in the module cache ─► a copy, with testdata/validate.go.txt in it
//	   go run ./cmd/generate/config ─► samples, and what its detector finds in each
//	stoplog guard --rules RULE      ─► what is left of each
//
// The copy is there because the samples stand inside functions, as arguments of a
// call: it calls something of ours instead. Nothing of gitleaks is linked into
// anything that is ours.
package samples
