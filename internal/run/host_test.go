package run

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHostThatDies runs the loop on a host that keeps the orders of effects and
// no more: what need not be durable yet is lost when it dies, and it dies often.
// The world outside remembers what was really done to it.
//
// However it goes: a tool that is not safe to repeat is run once, and again only
// if a person said so; a gated tool is run only after an approval that no death
// can take back; the model is asked only when the steps before are evaluated for
// good, and the same holds for what is shown as the end; what was shown stays.
func TestHostThatDies(t *testing.T) {
	var deaths, doubts int
	ended := map[Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := &host{t: t, clock: start, ran: map[string]int{}, retried: map[string]int{}}
		h.append(Created{Stamp: At(start), Task: "task", Limits: anyLimits(t)})
		h.durable = 1
		for n := 0; n < 600 && h.state.Phase != Over; n++ {
			h.calm = n > 100 // nobody dies any more: the run comes to an end
			h.turn()
		}
		h.die() // what has been shown stays
		if h.state.Phase != Over {
			t.Fatalf("the run does not end: it is %s, and %v is to be done", h.state.Phase, Next(h.state))
		}
		deaths += h.deaths
		doubts += h.doubts
		ended[h.state.Reason()]++
	})
	t.Logf("%d deaths and %d calls in doubt; ended: %v", deaths, doubts, ended)
	if deaths == 0 || doubts == 0 {
		t.Errorf("%d deaths, %d calls in doubt: the test does not test", deaths, doubts)
	}
}

// host performs effects, and dies.
type host struct {
	t       *rapid.T
	clock   time.Time
	state   State
	journal []Event
	durable int // how many events of the journal a death leaves
	calm    bool

	model bool     // a model call is under way
	calls [][2]int // tool calls under way

	ran     map[string]int // how often the world saw a call, by its id
	retried map[string]int // how often a person said: again
	shown   Outcome        // what the world was shown as the end
	deaths  int
	doubts  int
	ids     int
}

// append gives an event to the run, as the host must: checked, written, applied.
func (h *host) append(e Event) {
	h.t.Helper()
	if err := Check(h.state, e); err != nil {
		h.t.Fatalf("the host was told to do this: %v", err)
	}
	h.journal = append(h.journal, reread(h.t, e))
	h.state = Apply(h.state, e)
	if broken := invariants(h.state, h.journal); broken != nil {
		h.t.Fatalf("after %s: %v", e.Kind(), broken)
	}
}

// turn lets one thing happen: something is begun, something that is under way
// ends, a person speaks, or the host dies.
func (h *host) turn() {
	h.clock = h.clock.Add(time.Second)
	var may []func()
	for _, e := range Next(h.state) {
		may = append(may, func() { h.begin(e) })
	}
	if h.model {
		may = append(may, h.modelEnds)
	}
	for i := range h.calls {
		may = append(may, func() { h.callEnds(i) })
	}
	for _, q := range h.state.Questions {
		if q.ID != "" {
			may = append(may, func() { h.decide(q) })
		}
	}
	for i, w := range h.state.Step.Work {
		if w.Stage == InDoubt && h.state.Phase != Judging && h.state.Phase < Ending {
			may = append(may, func() { h.resolve(i + 1) })
		}
	}
	if !h.calm && rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).Draw(h.t, "dice") == 1 {
		may = []func(){h.die}
	}
	rapid.SampledFrom(may).Draw(h.t, "turn")()
}

// die loses what need not be durable yet, and what was under way. The next host
// reads the journal and claims the run, if it needs a worker.
func (h *host) die() {
	h.deaths++
	h.durable = rapid.IntRange(h.durable, len(h.journal)).Draw(h.t, "survives")
	h.journal = h.journal[:h.durable]
	h.model, h.calls = false, nil
	h.state = State{}
	for _, e := range h.journal {
		h.state = Apply(h.state, e)
	}
	if h.shown != (Outcome{}) && (h.state.Phase != Over || h.state.Then != h.shown) {
		h.t.Fatalf("%v was shown, and now the run is %s, %v", h.shown, h.state.Phase, h.state.Then)
	}
	if h.state.Phase != Over && h.state.Phase != Waiting {
		h.append(Claimed{Stamp: At(h.clock), By: "w"})
		for _, w := range h.state.Step.Work {
			if w.Stage == InDoubt {
				h.doubts++
			}
		}
	}
}

// begin performs an effect: first what must be durable before it, then the
// event that opens it, then the effect itself.
func (h *host) begin(e Effect) {
	h.durable = max(h.durable, e.Needs().After)
	open := func(event Event) {
		h.append(event)
		if e.Needs().Fence {
			h.durable = len(h.journal)
		}
	}
	at := At(h.clock)
	switch e := e.(type) {
	case Claim:
		open(Claimed{Stamp: at, By: "w"})
	case CallModel:
		if h.clock.Before(e.NotBefore) {
			h.clock = e.NotBefore
		}
		open(ModelStarted{Stamp: At(h.clock), Step: e.Step, Attempt: e.Attempt})
		h.checkEvaluated(e.Step - 1)
		h.model = true
	case RunCall:
		open(CallStarted{Stamp: at, Step: e.Step, Call: e.Call})
		h.run([2]int{e.Step, e.Call})
	case Ask:
		h.ids++
		open(Asked{Stamp: at, Step: e.Step, About: e.About, Call: e.Call, ID: fmt.Sprint("q", h.ids), Expires: h.clock.Add(24 * time.Hour)})
	case ReleaseAnswer:
		open(AnswerReleased{Stamp: at, Step: e.Step, Answer: h.answer()})
	case Evaluate:
		open(StepEvaluated{Stamp: at, Step: e.Step, Pause: e.Pause, Evaluation: anyEvaluation(h.t, e.History)})
	case CutOff:
		h.model, h.calls = false, nil
	case Wait:
		if h.model || len(h.calls) > 0 {
			h.t.Fatalf("the run waits while something is under way")
		}
	case End:
		open(Ended{Stamp: at, Status: e.Outcome.Status, Reason: e.Outcome.Reason, Message: e.Message})
		h.shown = e.Outcome
		h.checkEvaluated(h.state.Step.Number - 1)
		if h.state.Step.Open() {
			h.checkEvaluated(h.state.Step.Number)
		}
	}
}

// checkEvaluated fails unless the evaluation of each step up to one would
// survive a death.
func (h *host) checkEvaluated(upTo int) {
	h.t.Helper()
	for _, e := range h.journal[:h.durable] {
		if e, ok := e.(StepEvaluated); ok && e.Pause == 0 && e.Step == upTo {
			return
		}
	}
	if upTo > 0 {
		h.t.Fatalf("step %d is not evaluated for good", upTo)
	}
}

// run is where the world sees a tool call.
func (h *host) run(call [2]int) {
	h.calls = append(h.calls, call)
	w, _ := h.state.call(call[1])
	h.ran[w.ID]++
	if n := h.ran[w.ID]; !w.Repeatable && n > 1+h.retried[w.ID] {
		h.t.Fatalf("call %v was run %d times", call, n)
	}
	if w.Ruling != Gated {
		return
	}
	asked := map[string]Asked{}
	for _, e := range h.journal[:h.durable] {
		switch e := e.(type) {
		case Asked:
			asked[e.ID] = e
		case Decided:
			if q := asked[e.ID]; e.Approved && q.About == AboutCall && q.Step == call[0] && q.Call == call[1] {
				return
			}
		}
	}
	h.t.Fatalf("call %v was run, and a death could lose its approval", call)
}

// answer is any answer, with ids that no other has: one that is lost and given
// again has other calls.
func (h *host) answer() Answer {
	a := anyAnswer(h.t)
	for i := range a.Calls {
		h.ids++
		a.Calls[i].ID = fmt.Sprint("call_", h.ids)
	}
	return a
}

func (h *host) modelEnds() {
	h.model = false
	at, step, attempt := At(h.clock), h.state.Step.Number, h.state.Step.Attempt
	var e Event = ModelAnswered{Stamp: at, Step: step, Attempt: attempt, Answer: h.answer()}
	switch rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8}).Draw(h.t, "model") {
	case 1:
		e = ModelFailed{Stamp: at, Step: step, Attempt: attempt, Retryable: true}
	case 2:
		e = ModelWithheld{Stamp: at, Step: step, Attempt: attempt, Request: rapid.Bool().Draw(h.t, "request")}
	}
	h.late(e)
}

func (h *host) callEnds(i int) {
	call := h.calls[i]
	h.calls = append(h.calls[:i:i], h.calls[i+1:]...)
	h.late(CallFinished{Stamp: At(h.clock), Step: call[0], Call: call[1], Text: "result", Failed: rapid.Bool().Draw(h.t, "failed")})
}

// late appends what comes from something that was under way, unless the run has
// gone on without it.
func (h *host) late(e Event) {
	if Check(h.state, e) == nil {
		h.append(e)
	}
}

// decide lets a person answer a question. What people say is durable at once.
func (h *host) decide(q Question) {
	at := At(h.clock)
	if q.About == AboutReply {
		h.append(Replied{Stamp: at, ID: q.ID, By: "ann", Text: "reply"})
	} else {
		h.append(Decided{Stamp: at, ID: q.ID, By: "ann", Approved: rapid.Bool().Draw(h.t, "approved")})
	}
	h.durable = len(h.journal)
}

func (h *host) resolve(call int) {
	choice := rapid.SampledFrom([]Choice{Retry, TakeAsDone, Retry, Abandon}).Draw(h.t, "choice")
	h.append(Resolved{Stamp: At(h.clock), Step: h.state.Step.Number, Call: call, Choice: choice, By: "ann"})
	h.durable = len(h.journal)
	if w, _ := h.state.call(call); choice == Retry {
		h.retried[w.ID]++
	}
}
