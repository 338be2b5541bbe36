package run

import (
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// Effect is something for the host to do. The types in this file are all there
// are.
type Effect interface {
	// Needs says what must be durable before the effect is performed.
	Needs() Order

	effect()
}

// Order says what comes before an effect. The zero Order asks for nothing: the
// effect is performed at once, and its events may become durable later, in
// their order.
type Order struct {
	// After is the number of an event: it, and all before it, are durable before
	// the effect is performed. 0 is none. (State.Events counts them.)
	After int
	// Fence: the event that opens the effect, or answers one that nothing opens,
	// is durable before anybody outside can see anything of it.
	Fence bool
}

// Needs returns the order itself; effects embed it.
func (o Order) Needs() Order { return o }

func (Order) effect() {}

// Claim wants a worker for the run: one that gets its lease appends Claimed.
type Claim struct{ Order }

// CallModel asks the model, with the run's task and steps, not before NotBefore
// (zero: at once). The host gives up at the deadline with TimedOut.
type CallModel struct {
	Order
	Step, Attempt       int
	Tools               bool // whether the model is offered any
	NotBefore, Deadline time.Time
}

// RunCall runs a tool. All that are listed may run at the same time.
type RunCall struct {
	Order
	Step, Call int
	Tool, Args string
	Deadline   time.Time
}

// Ask puts a question to a person. The host gives it an id, a digest of what it
// shows, and a time at which it expires. A question that has gone from the state
// without a decision, because the run came to an end, is withdrawn.
type Ask struct {
	Order
	Step  int
	About About
	Call  int
}

// ReleaseAnswer lets a withheld answer out, as the decision allows.
type ReleaseAnswer struct {
	Order
	Step int
}

// Evaluate gives the history to the evaluator, whose record comes back as
// StepEvaluated with the same step and pause.
type Evaluate struct {
	Order
	Step, Pause int
	History     signal.History
}

// CutOff ends whatever is still under way for the step in this process. What
// comes of it is too late to count.
type CutOff struct {
	Order
	Step int
}

// Wait lets the run go: no worker, no lease, until somebody decides. At Until
// (zero: never), the questions whose time is up have Expired.
type Wait struct {
	Order
	Until time.Time
}

// End shows the outcome. The message has been made from the names of tools,
// guards and signals and from what people wrote: screen it like any text,
// follow the answer with it, and append what was shown.
type End struct {
	Order
	Outcome Outcome
	Message string
}

func (s State) callModel() Effect {
	return CallModel{
		Order: Order{After: s.Events, Fence: true},
		Step:  s.Step.Number, Attempt: s.Step.Attempt + 1,
		Tools:     !s.Last(),
		NotBefore: s.Step.NotBefore, Deadline: s.Deadline(),
	}
}

// work lists the calls to run, the questions to ask and the answer to release.
func (s State) work() []Effect {
	var todo []Effect
	for i, w := range s.Step.Work {
		if w.Stage == Due {
			todo = append(todo, s.runCall(i+1, w))
		}
	}
	for _, q := range s.Questions {
		if q.ID == "" {
			todo = append(todo, Ask{Order: Order{After: q.After, Fence: true}, Step: s.Step.Number, About: q.About, Call: q.Call})
		}
	}
	if s.Step.Release > 0 {
		todo = append(todo, ReleaseAnswer{Order: Order{After: s.Step.Release}, Step: s.Step.Number})
	}
	return todo
}

// runCall demands more of a call than its answer being on its way to disk only
// where something hangs on it: a decision, or an effect that must not be lost.
func (s State) runCall(n int, w Work) Effect {
	order := Order{After: w.After, Fence: true}
	if w.Repeatable {
		order.Fence = false
		if w.Ruling == Free {
			order.After = 0
		}
	}
	return RunCall{
		Order: order,
		Step:  s.Step.Number, Call: n,
		Tool: w.Tool, Args: w.Args,
		Deadline: s.Deadline(),
	}
}

func (s State) evaluate(pause int) Effect {
	return Evaluate{Step: s.Step.Number, Pause: pause, History: s.history(pause)}
}

func (s State) wait() Effect {
	w := Wait{Order: Order{After: s.Events}}
	for _, q := range s.Questions {
		if w.Until.IsZero() || q.Expires.Before(w.Until) {
			w.Until = q.Expires
		}
	}
	return w
}

func (s State) end() Effect {
	return End{Order: Order{After: s.Events, Fence: true}, Outcome: s.Then, Message: s.farewell()}
}
