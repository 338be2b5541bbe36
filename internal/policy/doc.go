// Package policy decides what may go where: which tool calls a model may ask for,
// and which data may reach which model.
//
//	a tool call ─► Calls: clauses in order ─► allow, require_approval or deny
//
//	the profile's class ─┐
//	what redaction left ─┴─► a request's class ─► Egress ─► may it go to this zone?
//
// It decides and does nothing: package govern asks it and acts.
//
// # Laws
//
// A condition is CEL, checked when it is compiled, and its cost is limited. One
// that cannot be evaluated, for whatever reason, denies: a rule that nobody can
// answer protects nothing otherwise. So do arguments that two readers could read
// differently: no JSON, a member that stands twice or twice but for upper case.
//
// Classes are ordered, and a request's is the highest of all that is known of it.
// The zone that counts is the worst that the request could reach.
package policy
