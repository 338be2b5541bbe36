package run

import (
	"slices"
	"time"
)

// The stored form of a state. The rules of stored_events.go hold.

type storedState struct {
	Clock     storedClock      `json:"clock"`
	Events    int              `json:"events"`
	Limits    storedLimits     `json:"limits"`
	Message   string           `json:"message,omitempty"`
	Past      []storedStep     `json:"past,omitempty"` // the oldest first
	Pauses    int              `json:"pauses"`
	Phase     Phase            `json:"phase"`
	Questions []storedQuestion `json:"questions,omitempty"`
	Ran       []storedTally    `json:"ran,omitempty"`
	Step      storedStep       `json:"step"`
	Streaks   storedStreaks    `json:"streaks"`
	Task      string           `json:"task"`
	Then      *storedOutcome   `json:"then,omitempty"`
	Usage     *storedUsage     `json:"usage,omitempty"`
	V         version          `json:"v"`
}

func storeState(s State) storedState {
	past := slices.Collect(s.Past.Backward())
	slices.Reverse(past)
	return storedState{
		Clock:     storedClock(s.Clock),
		Events:    s.Events,
		Limits:    storeLimits(s.Limits),
		Message:   s.Message,
		Past:      each(past, storeStep),
		Pauses:    s.Pauses,
		Phase:     s.Phase,
		Questions: each(s.Questions, storeQuestion),
		Ran:       each(s.Ran, func(t Tally) storedTally { return storedTally{Calls: t.Calls, Tool: t.Tool} }),
		Step:      storeStep(s.Step),
		Streaks:   storedStreaks(s.Streaks),
		Task:      s.Task,
		Then:      storeOutcome(s.Then),
		Usage:     storeUsage(s.Usage),
	}
}

func (s storedState) state() State {
	var past Steps
	for _, step := range s.Past {
		past = past.push(step.step())
	}
	return State{
		Phase:     s.Phase,
		Task:      s.Task,
		Limits:    s.Limits.limits(),
		Step:      s.Step.step(),
		Past:      past,
		Questions: each(s.Questions, storedQuestion.question),
		Pauses:    s.Pauses,
		Then:      s.Then.outcome(),
		Message:   s.Message,
		Clock:     Clock(s.Clock),
		Streaks:   Streaks(s.Streaks),
		Ran:       each(s.Ran, func(t storedTally) Tally { return Tally{Tool: t.Tool, Calls: t.Calls} }),
		Usage:     s.Usage.usage(),
		Events:    s.Events,
	}
}

type storedClock struct {
	Held  bool          `json:"held"`
	Last  time.Time     `json:"last,omitzero"`
	Since time.Time     `json:"since,omitzero"`
	Spent time.Duration `json:"spent_ns"`
}

type storedTally struct {
	Calls int    `json:"calls"`
	Tool  string `json:"tool"`
}

type storedStreaks struct {
	Malformed  int      `json:"malformed"`
	Rounds     []string `json:"rounds,omitempty"`
	ToolErrors int      `json:"tool_errors"`
}

type storedOutcome struct {
	Reason Reason `json:"reason"`
	Status Status `json:"status"`
	Why    string `json:"why,omitempty"`
}

func storeOutcome(o Outcome) *storedOutcome {
	if o == (Outcome{}) {
		return nil
	}
	return &storedOutcome{Reason: o.Reason, Status: o.Status, Why: o.Why}
}

func (s *storedOutcome) outcome() Outcome {
	if s == nil {
		return Outcome{}
	}
	return Outcome{Status: s.Status, Reason: s.Reason, Why: s.Why}
}

type storedQuestion struct {
	About   About     `json:"about"`
	After   int       `json:"after"`
	Call    int       `json:"call,omitempty"`
	Digest  string    `json:"digest,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	ID      string    `json:"id,omitempty"`
}

func storeQuestion(q Question) storedQuestion {
	return storedQuestion{About: q.About, After: q.After, Call: q.Call, Digest: q.Digest, Expires: q.Expires, ID: q.ID}
}

func (s storedQuestion) question() Question {
	return Question{About: s.About, Call: s.Call, After: s.After, ID: s.ID, Digest: s.Digest, Expires: s.Expires}
}

type storedStep struct {
	Answer    storedAnswer `json:"answer"`
	Answered  bool         `json:"answered"`
	Approved  bool         `json:"approved"`
	Attempt   int          `json:"attempt"`
	Cut       bool         `json:"cut"`
	Evaluated bool         `json:"evaluated"`
	Failures  int          `json:"failures"`
	Lost      int          `json:"lost"`
	NotBefore time.Time    `json:"not_before,omitzero"`
	Number    int          `json:"number"`
	Release   int          `json:"release,omitempty"`
	Unusable  string       `json:"unusable,omitempty"`
	Work      []storedWork `json:"work,omitempty"`
}

func storeStep(s Step) storedStep {
	return storedStep{
		Answer: storeAnswer(s.Answer), Answered: s.Answered, Approved: s.Approved, Attempt: s.Attempt,
		Cut: s.Cut, Evaluated: s.Evaluated, Failures: s.Failures, Lost: s.Lost, NotBefore: s.NotBefore,
		Number: s.Number, Release: s.Release, Unusable: s.Unusable, Work: each(s.Work, storeWork),
	}
}

func (s storedStep) step() Step {
	return Step{
		Number: s.Number, Attempt: s.Attempt, Failures: s.Failures, Lost: s.Lost, Answered: s.Answered,
		NotBefore: s.NotBefore, Answer: s.Answer.answer(), Unusable: s.Unusable,
		Work: each(s.Work, storedWork.work), Release: s.Release, Approved: s.Approved, Cut: s.Cut,
		Evaluated: s.Evaluated,
	}
}

type storedWork struct {
	After      int        `json:"after"`
	Call       storedCall `json:"call"`
	Ran        bool       `json:"ran"`
	Result     string     `json:"result,omitempty"`
	ResultKind ResultKind `json:"result_kind"`
	Stage      Stage      `json:"stage"`
}

func storeWork(w Work) storedWork {
	return storedWork{
		After: w.After, Call: storeCall(w.Call), Ran: w.Ran,
		Result: w.Result.Text, ResultKind: w.Result.Kind, Stage: w.Stage,
	}
}

func (s storedWork) work() Work {
	return Work{
		Call: s.Call.call(), Stage: s.Stage, After: s.After, Ran: s.Ran,
		Result: Result{Kind: s.ResultKind, Text: s.Result},
	}
}
