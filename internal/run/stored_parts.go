package run

import (
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// The stored forms of what events and states have in common. The rules of
// stored_events.go hold.

type storedLimits struct {
	Malformed     int           `json:"malformed"`
	MaxIterations int           `json:"max_iterations"`
	ModelAttempts int           `json:"model_attempts"`
	Stall         int           `json:"stall"`
	Timeout       time.Duration `json:"timeout_ns"`
	ToolErrors    int           `json:"tool_errors"`
}

func storeLimits(l Limits) storedLimits {
	return storedLimits{
		Malformed: l.Malformed, MaxIterations: l.MaxIterations, ModelAttempts: l.ModelAttempts,
		Stall: l.Stall, Timeout: l.Timeout, ToolErrors: l.ToolErrors,
	}
}

func (s storedLimits) limits() Limits {
	return Limits{
		MaxIterations: s.MaxIterations, Timeout: s.Timeout, Stall: s.Stall,
		Malformed: s.Malformed, ToolErrors: s.ToolErrors, ModelAttempts: s.ModelAttempts,
	}
}

type storedUsage struct {
	Estimated bool  `json:"estimated"`
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
}

// storeUsage stores no usage as no member.
func storeUsage(u signal.Usage) *storedUsage {
	if u == (signal.Usage{}) {
		return nil
	}
	return &storedUsage{Estimated: u.Estimated, Input: u.Input, Output: u.Output}
}

func (s *storedUsage) usage() signal.Usage {
	if s == nil {
		return signal.Usage{}
	}
	return signal.Usage{Input: s.Input, Output: s.Output, Estimated: s.Estimated}
}

type storedAnswer struct {
	Calls    []storedCall `json:"calls,omitempty"`
	Finish   Finish       `json:"finish"`
	Kept     string       `json:"kept,omitempty"`
	Text     string       `json:"text"`
	Thought  string       `json:"thought,omitempty"`
	Unusable string       `json:"unusable,omitempty"`
	Usage    *storedUsage `json:"usage,omitempty"`
}

func storeAnswer(a Answer) storedAnswer {
	return storedAnswer{
		Calls: each(a.Calls, storeCall), Finish: a.Finish, Kept: a.Kept, Text: a.Text,
		Thought: a.Thought, Unusable: a.Unusable, Usage: storeUsage(a.Usage),
	}
}

func (s storedAnswer) answer() Answer {
	return Answer{
		Text: s.Text, Thought: s.Thought, Kept: s.Kept, Finish: s.Finish,
		Calls: each(s.Calls, storedCall.call), Unusable: s.Unusable, Usage: s.Usage.usage(),
	}
}

type storedCall struct {
	Args       string `json:"args"`
	ID         string `json:"id"`
	Poller     bool   `json:"poller"`
	Repeatable bool   `json:"repeatable"`
	Ruling     Ruling `json:"ruling"`
	Tool       string `json:"tool"`
	Why        string `json:"why,omitempty"`
}

func storeCall(c Call) storedCall {
	return storedCall{
		Args: c.Args, ID: c.ID, Poller: c.Poller, Repeatable: c.Repeatable,
		Ruling: c.Ruling, Tool: c.Tool, Why: c.Why,
	}
}

func (s storedCall) call() Call {
	return Call{
		ID: s.ID, Tool: s.Tool, Args: s.Args, Ruling: s.Ruling, Why: s.Why,
		Repeatable: s.Repeatable, Poller: s.Poller,
	}
}

// storedReport is one signal's part in an evaluation. Would repeats, for those
// who read the record, what result and mode say.
type storedReport struct {
	Critical bool          `json:"critical,omitempty"`
	Error    string        `json:"error,omitempty"`
	Limit    float64       `json:"limit,omitempty"`
	Mode     signal.Mode   `json:"mode"`
	Note     string        `json:"note,omitempty"`
	Result   signal.Result `json:"result"`
	Signal   string        `json:"signal"`
	Value    float64       `json:"value,omitempty"`
	Would    string        `json:"would,omitempty"`
}

func storeReports(e signal.Evaluation) []storedReport {
	return each(e.Reports, func(r signal.Report) storedReport {
		return storedReport{
			Critical: r.Critical, Error: r.Error, Limit: r.Limit, Mode: r.Mode, Note: r.Note,
			Result: r.Result, Signal: r.Signal, Value: r.Value, Would: r.Would(),
		}
	})
}

func evaluation(stored []storedReport) signal.Evaluation {
	return signal.Evaluation{Reports: each(stored, func(s storedReport) signal.Report {
		return signal.Report{
			Signal: s.Signal, Mode: s.Mode, Error: s.Error,
			Judgement: signal.Judgement{
				Result: s.Result, Critical: s.Critical, Value: s.Value, Limit: s.Limit, Note: s.Note,
			},
		}
	})}
}

// each maps a slice. An empty one is nil, so that what is read back is what was
// written.
func each[A, B any](from []A, f func(A) B) []B {
	if len(from) == 0 {
		return nil
	}
	to := make([]B, len(from))
	for i, a := range from {
		to[i] = f(a)
	}
	return to
}
