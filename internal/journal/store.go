package journal

import (
	"context"
	"iter"
	"time"
)

// Store is a journal. It is safe for use by several goroutines, and several
// processes may have the same one open.
//
// The store's clock, not the caller's, says when an event happened and whether a
// lease has expired.
type Store interface {
	Reader

	// Update runs fn in a transaction and returns when what it wrote is durable.
	// Updates of several goroutines may share one commit, but each succeeds or
	// fails by itself. An error that fn returns comes back as it is, and undoes
	// what fn wrote. fn must have no effect but through its Tx, for it may run
	// more than once; it must not outlive its call, nor use the store itself.
	//
	// If ctx ends before fn has begun, Update returns its error. Once fn has
	// begun Update stays until the outcome is known: its caller must know.
	Update(ctx context.Context, fn func(context.Context, Tx) error) error

	// Later hands in fn as Update does, and does not wait. It is for what need
	// not be durable before something shows: an allow verdict, a debit. What is
	// handed in runs in order of arrival, so an Update that succeeds says that
	// everything handed in before it has had its outcome.
	Later(fn func(context.Context, Tx) error) *Pending

	// Await returns when the run's log goes on behind the event after, or the
	// run has ended, whoever did it, in whatever process; or when ctx ends.
	Await(ctx context.Context, ref Ref, after uint64) error

	// Key returns the store's own key.
	Key() Key

	// Close waits for what was handed in, and closes the store. Closing it again
	// does nothing.
	Close() error
}

// Reader reads what is committed, or, as part of a [Tx], what is about to be.
type Reader interface {
	// Run returns a run's row, or ErrNotFound.
	Run(ctx context.Context, ref Ref) (Run, error)

	// Runs lists rows, the newest first.
	Runs(ctx context.Context, q RunQuery) ([]Run, error)

	// Events reads a run's log behind the event after, in order: all of it when
	// after is 0. A run without events, or that does not exist, has none. No lock
	// is held while the caller works, and what is appended meanwhile may show.
	Events(ctx context.Context, ref Ref, after uint64) iter.Seq2[Record, error]

	// Snapshot returns the last snapshot; ErrNotFound if there is none, ErrAltered
	// if its keyed digest does not fit.
	Snapshot(ctx context.Context, ref Ref) (Snapshot, error)

	// Question returns an approval's row, or ErrNotFound.
	Question(ctx context.Context, tenant string, id ID) (Question, error)

	// Questions lists approvals, the newest first.
	Questions(ctx context.Context, q QuestionQuery) ([]Question, error)

	// Secrets returns what is kept of a kind for an owner, in order of its names,
	// as far as its time has not passed.
	Secrets(ctx context.Context, tenant, kind, owner string) ([]Secret, error)

	// Find returns the one id of a run or an approval that begins with what
	// [Partial] made of a person's typing; ErrNotFound, or an *AmbiguousError.
	Find(ctx context.Context, tenant, partial string) (ID, error)
}

// RunQuery says which rows are wanted: those that match every member set.
type RunQuery struct {
	Tenant  string
	Status  Status
	Kind    RunKind
	Session ID
	Parent  ID
	Before  ID  // older than this run: the last of the page before
	Limit   int // 0 is 100
}

// QuestionQuery says which approvals are wanted: those that match every member set.
type QuestionQuery struct {
	Tenant string
	Run    ID
	State  QuestionState
	Before ID
	Limit  int // 0 is 100
}

// Tx is a transaction. Its methods that take a [Lease] return ErrFenced if it is
// not the run's, ErrNotFound if there is no such run, and a [*SettledError] if
// the run has ended; in each case they have written nothing.
type Tx interface {
	Reader
	RunWriter
	LogWriter
	QuestionWriter
	SecretWriter
	Sweeper
}

// RunWriter makes runs, says who advances them, and moves their status.
type RunWriter interface {
	// Create makes a run from r's Ref, Kind, Parent, Session, Profile, Starter,
	// Capture, ProfileDigest, Workdir and Host. It is queued, ready to be claimed.
	Create(ctx context.Context, r Run) error

	// Claim takes the run for a worker until ttl from now, whatever its WakeAt.
	// It fails with a *LeasedError while another worker holds it, a *PlacedError
	// if it depends on another machine, a *SettledError if it has ended.
	Claim(ctx context.Context, ref Ref, w Worker, ttl time.Duration) (Lease, error)

	// Renew moves the end of every lease that a worker still has to ttl from now,
	// and returns them: one that is missing was lost. A wake is told once.
	Renew(ctx context.Context, w Worker, ttl time.Duration) ([]Held, error)

	// SetStatus moves the run to a status. Running keeps the lease; every other
	// status gives it up, so that a pause holds no worker. A run that was woken,
	// and whose worker was not told, is due at once: no wake is lost to a pause.
	// The first terminal status wins: later changes, these and all others, get a
	// *SettledError.
	SetStatus(ctx context.Context, l Lease, c Change) error

	// Wake makes an open run due at a time, if it was to be due later or never,
	// and tells a worker that holds it, with its next Renew. It needs no lease: it
	// is a hint, and a worker that wakes for nothing sees so.
	Wake(ctx context.Context, ref Ref, at time.Time) error

	// AskCancel notes on the row of an open run that somebody wants it cancelled,
	// and wakes it. The first who asks is noted. It needs no lease; whoever holds
	// the run, or claims it, cancels it.
	AskCancel(ctx context.Context, ref Ref, by string) error
}

// LogWriter writes what happened.
type LogWriter interface {
	// Append adds entries to the log and returns its new end.
	Append(ctx context.Context, l Lease, entries ...Entry) (Tail, error)

	// Save keeps a snapshot in place of the last one.
	Save(ctx context.Context, l Lease, s Snapshot) error
}

// QuestionWriter moves approvals, one step each.
type QuestionWriter interface {
	// Ask adds a pending question: ID, About, Subject, Digest, Shown, NotBy and
	// Expires of q.
	Ask(ctx context.Context, l Lease, q Question) error

	// Decide takes a person's decision on a pending question, wakes the run, and
	// returns the row. It needs no lease: who decides is not who advances. A question that is
	// decided, or whose time has passed, gets a *DecidedError; one whose run has
	// ended a *SettledError.
	Decide(ctx context.Context, tenant string, id ID, d Decision) (Question, error)

	// Use takes the decision for the run, once, and returns the row as it stands
	// behind it. A question whose time has passed without one is used as expired.
	// ErrPending: there is no decision yet; ErrUsed: it was taken before.
	Use(ctx context.Context, l Lease, id ID) (Question, error)
}

// Sweeper is what each worker does now and then for the runs of every tenant.
type Sweeper interface {
	// ClaimDue takes up to limit runs that are due, that nobody holds and that
	// the worker may advance, the longest due first.
	ClaimDue(ctx context.Context, w Worker, ttl time.Duration, limit int) ([]Lease, error)

	// Purge removes the payloads whose time has come (see [Capture]) from up to
	// limit runs, and returns from how many.
	Purge(ctx context.Context, limit int) (int, error)
}

// Pending is a write that was handed in and not waited for.
type Pending struct {
	done chan struct{}
	err  error
}

// NewPending returns a pending write and the function that gives its outcome,
// which is called once.
func NewPending() (*Pending, func(error)) {
	p := &Pending{done: make(chan struct{})}
	return p, func(err error) {
		p.err = err
		close(p.done)
	}
}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Err returns the outcome, nil while it is not known.
func (p *Pending) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Wait returns the outcome when it is known, or the context's error.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
