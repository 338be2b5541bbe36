package journal

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound: there is no such run, approval, snapshot or message list in the tenant.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the lease is not, or no longer, the right to write: the run was
	// claimed by another worker, or given up.
	ErrFenced = errors.New("the lease was lost")
	// ErrFull: there is no room for the write. Nothing of it was written.
	ErrFull = errors.New("no space left for the journal")
	// ErrPurged: the payload was purged.
	ErrPurged = errors.New("the payload was purged")
	// ErrSealed: the payload is sealed, and the key that opens it is not here.
	ErrSealed = errors.New("it is sealed under a key that is not here")
	// ErrExists: there is one already.
	ErrExists = errors.New("it is there already")
	// ErrAltered: what was read is not what was written.
	ErrAltered = errors.New("it was altered")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrUsed: the decision was used before.
	ErrUsed = errors.New("the decision was used")
	// ErrPending: the question has no decision yet.
	ErrPending = errors.New("the question is not decided")
)

// SettledError: the run has ended, and what came after its end changed nothing.
type SettledError struct {
	Ref    Ref
	Status Status
	Reason string
	At     time.Time
}

func (e *SettledError) Error() string {
	return fmt.Sprintf("run %s is %s (%s) since %s", e.Ref.Run, e.Status, e.Reason, e.At.Format(time.RFC3339))
}

// LeasedError: another worker holds the run.
type LeasedError struct {
	Ref   Ref
	Owner string
	Until time.Time
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("run %s is held by %s until %s", e.Ref.Run, e.Owner, e.Until.Format(time.RFC3339))
}

// PlacedError: the run depends on another machine.
type PlacedError struct {
	Ref  Ref
	Host string
}

func (e *PlacedError) Error() string {
	return fmt.Sprintf("run %s depends on the machine %s", e.Ref.Run, e.Host)
}

// DecidedError: the question has an answer, or its time has passed.
type DecidedError struct{ Question Question }

func (e *DecidedError) Error() string {
	q := e.Question
	if q.State == QuestionExpired {
		return fmt.Sprintf("expired at %s", q.Decided.Format(time.RFC3339))
	}
	return fmt.Sprintf("already %s by %s at %s", q.State, q.By, q.Decided.Format(time.RFC3339))
}

// AmbiguousError: several ids begin so.
type AmbiguousError struct {
	Partial string
	IDs     []ID // some of them, in order
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s begins several ids: %s, …", e.Partial, e.IDs[0])
}

// NewerError: the store was written by a newer version of this program.
type NewerError struct {
	Store       string
	Have, Known int64 // versions of the schema: the store's, and the last that is known here
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("store %s was written by a newer stoplog (schema %d; this one knows %d): upgrade stoplog, or name another store", e.Store, e.Have, e.Known)
}
