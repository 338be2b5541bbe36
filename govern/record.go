package govern

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// Record is one fact about a request. It never holds matched text or a key.
type Record struct {
	Run  string
	At   time.Time
	Fact Fact
}

// Fact is what a Record says: [Started], [Verdict] or [Settled].
type Fact interface{ kind() string }

// Started says that a request was taken.
type Started struct {
	Mount    string `json:"mount"` // the protocol it came in
	Profile  string `json:"profile"`
	Upstream string `json:"upstream"` // the one that is asked first; empty if none is
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	// Parent is the run that the request is part of; empty if nobody said.
	Parent string `json:"parent,omitempty"`
	// Caller is whose key the request came with; nil if it came with none.
	Caller *Caller `json:"caller,omitempty"`
}

// Verdict says what a guard found, and whether it had a say.
type Verdict struct {
	Channel     string         `json:"channel"`
	Guard       string         `json:"guard"`
	Rule        string         `json:"rule"`
	Mode        guard.Mode     `json:"mode"`
	Verdict     guard.Verdict  `json:"verdict"`
	Start       int64          `json:"start"` // in the channel's text, in bytes
	End         int64          `json:"end"`   // -1 where the finding was cut before its end was known
	Severity    guard.Severity `json:"severity"`
	Fingerprint string         `json:"fingerprint"`
	// Allowed says who has allowed the finding; the verdict is allow then.
	Allowed *guard.Allowance `json:"allowed,omitempty"`
	Error   string           `json:"error,omitempty"` // of a guard that failed
}

// Settled says how a request ended, and what it took: in the words for every
// run, of which an answer's own status (redacted, guardrail_blocked, …) is what
// clients are told.
type Settled struct {
	Status string `json:"status"`           // completed, blocked, failed or cancelled
	Reason string `json:"reason"`           // completed, guard_denied, budget_exceeded, model_failed or cancelled
	Detail string `json:"detail,omitempty"` // a sentence for people
	// Upstream is the one that answered, where it is not the one that was asked
	// first.
	Upstream string `json:"upstream,omitempty"`
	// WouldHold is the most bytes of one of the answer's texts that guards in shadow
	// would have held back, looked at every 256 bytes.
	WouldHold int64      `json:"would_hold,omitempty"`
	Usage     wire.Usage `json:"usage"`
	// Cost is what that costs, in dollars; null where the price is not known.
	Cost budget.Cost `json:"cost_usd"`
}

// settled says an outcome in the words of runs.
func settled(o wire.Outcome) Settled {
	s := Settled{Status: "completed", Reason: "completed", Detail: o.Reason, WouldHold: o.WouldHold, Usage: o.Usage}
	switch o.Status {
	case wire.Blocked, wire.ApprovalRequired: // and nobody is asked
		s.Status, s.Reason = "blocked", "guard_denied"
	case wire.BudgetExceeded:
		s.Status, s.Reason = "failed", "budget_exceeded"
	case wire.UpstreamFailed:
		s.Status, s.Reason = "failed", "model_failed"
	case wire.Cancelled:
		s.Status, s.Reason = "cancelled", "cancelled"
	}
	return s
}

func (Started) kind() string { return "started" }
func (Verdict) kind() string { return "verdict" }
func (Settled) kind() string { return "settled" }

// recordVersion is the version of the stored form.
const recordVersion = 1

// MarshalJSON gives the stored form: {v, run, at, kind} and the fact's members.
func (r Record) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		V    int       `json:"v"`
		Run  string    `json:"run"`
		At   time.Time `json:"at"`
		Kind string    `json:"kind"`
	}{recordVersion, r.Run, r.At.UTC(), r.Fact.kind()})
	if err != nil {
		return nil, err
	}
	fact, err := json.Marshal(r.Fact)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), fact[1:]...), nil
}

// urgent reports whether a record must be durable before anything goes on.
func (r Record) urgent() bool {
	v, ok := r.Fact.(Verdict)
	return ok && v.Mode == guard.Enforce && v.Verdict > guard.Allow
}

// RecordFile appends records to a JSON Lines file. It is safe for use by
// several goroutines; several processes may append to one file.
type RecordFile struct {
	file *os.File

	mu      sync.Mutex
	written int64 // appends so far
	torn    bool  // the last one was cut: a disk was full

	syncing sync.Mutex // held while the disk is waited for
	synced  int64      // appends that are on it
}

// OpenRecordFile opens a file of records, and makes it and its folder if they
// are not there.
func OpenRecordFile(name string) (*RecordFile, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, fmt.Errorf("open the record of requests: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the record of requests: %w", err)
	}
	if err := syncFolder(filepath.Dir(name)); err != nil { // a file is durable with its name only
		f.Close()
		return nil, fmt.Errorf("open the record of requests: %w", err)
	}
	return &RecordFile{file: f}, nil
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Append writes records, together. Where one of them is a verdict that holds
// something back they are on the disk when it returns.
func (f *RecordFile) Append(records ...Record) error {
	var lines []byte
	urgent := false
	for _, r := range records {
		line, err := r.MarshalJSON()
		if err != nil {
			return fmt.Errorf("record a request: %w", err)
		}
		lines = append(append(lines, line...), '\n')
		urgent = urgent || r.urgent()
	}
	n, err := f.write(lines)
	if err == nil && urgent {
		err = f.sync(n)
	}
	if err != nil {
		return fmt.Errorf("record a request: %w", err)
	}
	return nil
}

// write appends lines and returns the number of this append.
func (f *RecordFile) write(lines []byte) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := f.file.Write(lines)
	f.torn = err != nil && (f.torn && n == 0 || n > 0)
	if err != nil {
		return 0, err
	}
	f.written++
	return f.written, nil
}

// sync waits until an append is on the disk. Those that wait together are
// written together.
func (f *RecordFile) sync(n int64) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.synced >= n {
		return nil
	}
	f.mu.Lock()
	upTo := f.written
	f.mu.Unlock()
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.synced = upTo
	return nil
}

// Close closes the file.
func (f *RecordFile) Close() error { return f.file.Close() }
