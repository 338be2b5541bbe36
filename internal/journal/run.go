package journal

import (
	"slices"
	"time"
)

// Run is the row of a run.
type Run struct {
	Ref
	Kind    RunKind
	Parent  ID     // the run that this one is part of; may be empty
	Session ID     // the conversation that a turn belongs to; may be empty
	Profile string // the policy that it runs under
	Starter string // who started it
	Capture Capture

	// ProfileDigest is of the profile as it was when the run was made.
	ProfileDigest string
	// Workdir is the folder that the run works in; empty: none.
	Workdir string
	// Host is the machine that the run depends on (for its folder, a sandbox):
	// only workers of that host claim it. Empty: any worker may.
	Host string

	Status Status
	Reason string // why it stands so, in the words of whoever set the status

	Created time.Time
	Ended   time.Time // when the status became terminal; else zero

	// WakeAt is when a worker should take the run if nobody holds it: a time
	// that has passed for what is ready or under way, a later one for what
	// waits for a clock, zero for what waits for a person alone.
	WakeAt time.Time
	// CancelBy is who asked that the run be cancelled; empty: nobody has.
	CancelBy string

	// Owner holds the lease, until Until; nobody does if Owner is empty. A lease
	// past its time is still good until somebody claims the run.
	Owner string
	Until time.Time
	// Fence counts the claims. Only who made the last one may write.
	Fence uint64

	// Tail is the end of the log.
	Tail Tail

	// Snapshot is the last snapshot's place in the log, and its size; zero if
	// there is none. Since is the bytes of payload appended behind it.
	Snapshot      uint64
	SnapshotBytes int64
	Since         int64
}

// SnapshotDue reports whether a snapshot now would keep both costs within
// bounds: all snapshots of a run together are at most a quarter of what its
// events take, and a worker that resumes reads at most four times the state it
// comes to, or snapshotFloor.
func (r Run) SnapshotDue() bool { return r.Since > max(4*r.SnapshotBytes, snapshotFloor) }

// snapshotFloor is the bytes of events that are read again rather than saved:
// a few milliseconds' work.
const snapshotFloor = 64 << 10

// RunKind says what a run is.
type RunKind string

const (
	TurnRun     RunKind = "turn"
	PlaybookRun RunKind = "playbook"
	StepRun     RunKind = "step"
	ObserverRun RunKind = "observer"
	RequestRun  RunKind = "request"
	ReplayRun   RunKind = "replay"
	// AllowancesRun is no piece of work but a log that stays open: of what people
	// have allowed of what guards find.
	AllowancesRun RunKind = "allowances"
)

// Status is how a run stands.
type Status string

const (
	Queued          Status = "queued"
	Running         Status = "running"
	WaitingApproval Status = "waiting_approval"
	WaitingInput    Status = "waiting_input"
	WaitingDecision Status = "waiting_decision" // an effect is in doubt

	Completed Status = "completed"
	Blocked   Status = "blocked" // a policy outcome
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

var (
	openStatuses     = []Status{Queued, Running, WaitingApproval, WaitingInput, WaitingDecision}
	terminalStatuses = []Status{Completed, Blocked, Failed, Cancelled}
)

// Terminal reports whether nothing follows the status.
func (s Status) Terminal() bool { return slices.Contains(terminalStatuses, s) }

// Known reports whether s is one of the statuses.
func (s Status) Known() bool { return s.Terminal() || slices.Contains(openStatuses, s) }

// A Change moves a run to a status.
type Change struct {
	Status Status
	Reason string
	// WakeAt is when a run that is queued or waits is to be taken up. Zero: at
	// once if it is queued, and never, unless woken, if it waits.
	WakeAt time.Time
}

// A Snapshot is a run's state as it stood behind the event Seq. What State means
// is its owner's business; the journal keeps the last one of each open run.
type Snapshot struct {
	Seq     uint64
	Version int
	State   []byte
}

// Worker is somebody who advances runs: one process, in one life.
type Worker struct {
	// Owner names the worker. No two workers, and no two lives of one, share it.
	Owner string
	// Host is the machine that the worker is on.
	Host string
	// Kinds and Profiles are the kinds of runs that the worker knows how to
	// advance, and the profiles that it knows: the sweep takes no others. Empty: all.
	Kinds    []RunKind
	Profiles []string
}

// Held is a lease that a worker has.
type Held struct {
	Lease
	// Woken: something came that the worker may not have seen.
	Woken bool
}

// A Lease is the right to write to a run: the number of the claim that gave it.
type Lease struct {
	Ref
	Fence uint64
}
