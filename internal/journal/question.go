package journal

import (
	"encoding/json"
	"time"
)

// Question is the row of an approval: what was asked, and what became of it. Its
// laws (what the digest covers, who may decide) are package approval's; the
// journal keeps the row and lets each of its steps happen once.
//
//	pending ──► approved ──► used
//	   ├──────► denied ────► used
//	   └──────► expired ───► used
type Question struct {
	Ref
	ID ID
	// Call says what in the run the question is about; a run asks once about a call.
	Call string
	// Digest is what the decision binds to: of exactly what is shown.
	Digest [32]byte
	// Shown is what a person is shown, a JSON object.
	Shown   json.RawMessage
	Asked   time.Time
	Expires time.Time // when silence becomes a denial; zero: never

	State   QuestionState
	By      string // who decided
	Reason  string
	Decided time.Time
	Used    time.Time // when the run took the answer; zero: not yet
}

// QuestionState is how a question stands.
type QuestionState string

const (
	QuestionPending  QuestionState = "pending"
	QuestionApproved QuestionState = "approved"
	QuestionDenied   QuestionState = "denied"
	QuestionExpired  QuestionState = "expired"
)

// Decision is a person's answer to a question.
type Decision struct {
	Approve bool
	By      string
	Reason  string
}
