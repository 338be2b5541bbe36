// Package signal judges the history of a run after each of its steps.
//
// A guard reads text while it streams; a signal reads what has happened: which
// tools were called, with what, to what end, how often. After every step, and
// for every pause, an [Evaluator] asks each of its signals about the run's
// [History] and gives an [Evaluation], which is recorded whole:
//
//	History ─► step_cap            ─► halt     shadow   would_halt
//	        ─► tool_failure_streak ─► ok       shadow
//	        ─► loop_detect         ─► halt     enforce  ┐
//	        ─► …                                        ├─► the worst that is
//	        ─► goal_drift          ─► warn     enforce  ┘   enforced: halt
//
// # Laws
//
// An evaluation is a function of the history alone. A signal keeps nothing from
// one step to the next, so there is no memory that a step in shadow, a pause or
// a restart could reset, and the same history gives the same evaluation on any
// machine. (A signal that asks a model is taken at its answer.)
//
// Every signal is asked every time, and every answer is recorded, whatever the
// others said. What is enforced is decided here, once, from structured values:
// nothing reads the sentence in a note.
//
// Closed: an enforced signal that fails, by error or by panic, halts. A signal
// in shadow changes nothing, whatever it says and however it fails: what it
// would have done is recorded as would_halt or would_require_approval.
//
// Linear cost: a history shows the newest steps, at most [Window], and counts
// of the rest, so a step costs the same at step 1,000 as at step 1.
package signal

import (
	"context"
	"fmt"
	"slices"
)

// A Signal judges the history of a run. It is safe for use by several
// goroutines.
type Signal interface {
	// Name is the signal's name in configuration and records, such as
	// "step_cap": lower case, digits and underscores.
	Name() string
	// Judge answers for the step, or the pause, that the history ends with. The
	// answer depends on the history alone. The history is the signal's own
	// copy. The context is for cancellation only; an error means that the
	// signal could not judge.
	Judge(context.Context, History) (Judgement, error)
}

// Result is what a signal makes of a history. Results are ordered: the larger
// is the severer, and the severest that is enforced wins.
type Result uint8

const (
	// NotBuilt stands for a signal that is known by name and does not exist
	// yet: nobody judged.
	NotBuilt Result = iota
	OK
	Warn
	RequireApproval
	Halt
)

var resultNames = [...]string{"not_built", "ok", "warn", "require_approval", "halt"}

func (r Result) String() string { return name(resultNames[:], int(r), "result") }

func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what [Result.String] writes.
func (r *Result) UnmarshalText(b []byte) error { return parse(resultNames[:], b, "result", r) }

// Mode says what a signal's answers may do.
type Mode uint8

const (
	// Enforce lets an answer stop the run or put it before a person.
	Enforce Mode = iota
	// Shadow records the answer and changes nothing.
	Shadow
)

var modeNames = [...]string{"enforce", "shadow"}

func (m Mode) String() string { return name(modeNames[:], int(m), "mode") }

func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what [Mode.String] writes.
func (m *Mode) UnmarshalText(b []byte) error { return parse(modeNames[:], b, "mode", m) }

// Judgement is a signal's answer.
type Judgement struct {
	Result Result
	// Critical marks what no person may wave through: an enforced
	// require_approval that is critical halts.
	Critical bool
	// Value is what was measured and Limit what it is held against, in the
	// signal's own unit; both are 0 where nothing was measured.
	Value, Limit float64
	// Note says it in a sentence, for people. Nothing parses it.
	Note string
}

// Report is one signal's part in an evaluation.
type Report struct {
	Signal string
	Mode   Mode
	Judgement
	// Error says why the signal could not judge; its result is then Halt.
	Error string
}

// Would is what a signal in shadow would have done: would_halt,
// would_require_approval, or nothing.
func (r Report) Would() string {
	if r.Mode == Shadow && r.Result >= RequireApproval {
		return "would_" + r.Result.String()
	}
	return ""
}

// Cause is the name under which the report stops a run, as in the reason
// signal_CAUSE: the signal's own, or "error" where the signal failed.
func (r Report) Cause() string {
	if r.Error != "" {
		return "error"
	}
	return r.Signal
}

// Evaluation is what all signals made of one step or one pause, in order of
// their names.
type Evaluation struct {
	Reports []Report
}

// Worst returns the report that decides: the severest of those enforced, ties by
// name. Where none says more than ok it is the zero Report with Result OK.
func (e Evaluation) Worst() Report {
	worst := Report{Judgement: Judgement{Result: OK}}
	for _, r := range e.Reports {
		if r.Mode != Enforce {
			continue
		}
		if r.Critical && r.Result == RequireApproval {
			r.Result = Halt
		}
		if r.Result > worst.Result {
			worst = r
		}
	}
	return worst
}

func name(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

func parse[T ~uint8](names []string, b []byte, what string, into *T) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: want one of %q", what, b, names)
	}
	*into = T(i)
	return nil
}
