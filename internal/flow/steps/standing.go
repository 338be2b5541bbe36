package steps

import "slices"

// Standing is where a step of a playbook stands, as people and programs are told:
// the member `state` of the interface and of JSON.
type Standing string

const (
	Pending Standing = "pending"
	Running Standing = "running"
	Waiting Standing = "waiting" // for a person, or for a run of its own that waits for one
	Passed  Standing = "passed"
	Skipped Standing = "skipped"
	// Blocked is a policy outcome: a verdict that says no, a person who does, a
	// guard, a signal, a limit.
	Blocked   Standing = "blocked"
	Cancelled Standing = "cancelled"

	Failed        Standing = "failed"
	FailedTimeout Standing = "failed_timeout"
	FailedBudget  Standing = "failed_budget_exceeded"
	FailedSchema  Standing = "failed_schema"
)

// Standings are all that there are, in the order of a step's life.
var Standings = []Standing{
	Pending, Running, Waiting, Passed, Skipped, Blocked, Cancelled, Failed, FailedTimeout, FailedBudget, FailedSchema,
}

// Known reports whether s is one of them.
func (s Standing) Known() bool { return slices.Contains(Standings, s) }

// Over reports whether an attempt that came to s is over.
func (s Standing) Over() bool { return s.Known() && s != Pending && s != Running && s != Waiting }

// Broke reports whether something broke or ran out, so that another attempt may
// end better. What policy stopped is stopped.
func (s Standing) Broke() bool {
	return s == Failed || s == FailedTimeout || s == FailedSchema
}
