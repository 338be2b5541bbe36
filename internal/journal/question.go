package journal

import (
	"encoding/json"
	"time"
)

// Question is the row of a question to a person: what was asked, and what became
// of it. Its laws (what the digest covers, who may decide) are package
// approval's; the journal keeps the row and lets each of its steps happen once.
//
//	pending ──► approved, denied, answered ──► used
//	   └──────► expired ─────────────────────► used
type Question struct {
	Ref
	ID ID
	// About says what kind of question it is, and Subject what in the run it is
	// about, in the words of whoever asks.
	About, Subject string
	// Digest is what the decision binds to: of exactly what is shown.
	Digest [32]byte
	// Shown is what a person is shown, a JSON object; nil if it was purged.
	Shown   json.RawMessage
	NotBy   string // who may not decide; may be empty
	Asked   time.Time
	Expires time.Time // when silence becomes a no; zero: never

	State   QuestionState
	By      string // who decided
	Text    string // the reason, or the answer
	Decided time.Time
	Used    time.Time // when the run took the decision; zero: not yet
}

// QuestionState is how a question stands.
type QuestionState string

const (
	QuestionPending  QuestionState = "pending"
	QuestionApproved QuestionState = "approved"
	QuestionDenied   QuestionState = "denied"
	QuestionAnswered QuestionState = "answered" // with words, where words were asked for
	QuestionExpired  QuestionState = "expired"
)

// Decision is what a person says to a question.
type Decision struct {
	State QuestionState // QuestionApproved, QuestionDenied or QuestionAnswered
	By    string
	Text  string
}
