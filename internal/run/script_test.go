package run

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/signal"
)

// The grammar of transcripts: each entry is one way to say an event. "+5s " in
// front of any of them moves the clock. STRING is a Go string, the lines after
// an answer are its calls, and a step, attempt or pause that is not named is the
// one that the run is at.
//
//	TOOL ARGS: RULING[ because STRING][, repeatable][, poller]
var grammar = []struct {
	pattern *regexp.Regexp
	event   func(*rehearsal, Stamp, []string) Event
}{
	{phrase(`created STRING(.*)`), func(r *rehearsal, at Stamp, m []string) Event {
		return Created{Stamp: at, Task: quoted(m[1]), Limits: r.limits(m[2])}
	}},
	{phrase(`claimed by (\w+)(?:, lost (\d+) tokens)?`), func(r *rehearsal, at Stamp, m []string) Event {
		lost := signal.Usage{Output: int64(number(m[2])), Estimated: m[2] != ""}
		return Claimed{Stamp: at, By: m[1], Lost: lost}
	}},
	{phrase(`model starts(?: attempt (\d+))?`), func(r *rehearsal, at Stamp, m []string) Event {
		attempt := r.state.Step.Attempt + 1
		if m[1] != "" {
			attempt = number(m[1])
		}
		return ModelStarted{Stamp: at, Step: r.state.Step.Number, Attempt: attempt}
	}},
	{phrase(`model answers STRING(, refusal|, length)?(?:, unusable STRING)?`), func(r *rehearsal, at Stamp, m []string) Event {
		a := Answer{Text: quoted(m[1]), Usage: signal.Usage{Input: 100, Output: 10}}
		switch m[2] {
		case ", refusal":
			a.Finish = Refusal
		case ", length":
			a.Finish = Length
		}
		if m[3] != "" {
			a.Unusable = quoted(m[3])
		}
		return ModelAnswered{Stamp: at, Step: r.state.Step.Number, Attempt: r.state.Step.Attempt, Answer: a}
	}},
	{phrase(`guard (\w+) (denies|withholds) the (answer|request) by rule (\w+)(?: after STRING)?`), func(r *rehearsal, at Stamp, m []string) Event {
		e := ModelWithheld{
			Stamp: at, Step: r.state.Step.Number, Attempt: r.state.Step.Attempt,
			Guard: m[1], Deny: m[2] == "denies", Request: m[3] == "request", Rule: m[4],
		}
		if m[5] != "" {
			e.Text = quoted(m[5])
		}
		return e
	}},
	{phrase(`model fails(, retryable)?(, released)?(?:, retry after (\w+))?`), func(r *rehearsal, at Stamp, m []string) Event {
		e := ModelFailed{
			Stamp: at, Step: r.state.Step.Number, Attempt: r.state.Step.Attempt,
			Error: "503", Retryable: m[1] != "", Released: m[2] != "", Jitter: 500,
		}
		if m[3] != "" {
			e.RetryAfter = duration(m[3])
		}
		return e
	}},
	{phrase(`budget (\w+) is spent`), func(r *rehearsal, at Stamp, m []string) Event {
		return BudgetSpent{Stamp: at, Envelope: m[1]}
	}},
	{phrase(`call (\d+) starts`), func(r *rehearsal, at Stamp, m []string) Event {
		return CallStarted{Stamp: at, Step: r.state.Step.Number, Call: number(m[1])}
	}},
	{phrase(`call (\d+)(?: of step (\d+))? (returns|fails with) STRING`), func(r *rehearsal, at Stamp, m []string) Event {
		e := CallFinished{Stamp: at, Step: r.state.Step.Number, Call: number(m[1]), Text: quoted(m[4]), Failed: m[3] != "returns"}
		if m[2] != "" {
			e.Step = number(m[2])
		}
		return e
	}},
	{phrase(`asked about the (call|reply|answer|request|step)(?: (\d+))? as (\w+) for (\w+)`), func(r *rehearsal, at Stamp, m []string) Event {
		e := Asked{Stamp: at, Step: r.state.Step.Number, Call: number(m[2]), ID: m[3], Digest: "digest of " + m[3]}
		must(e.About.UnmarshalText([]byte(m[1])))
		e.Expires = at.When().Add(duration(m[4]))
		return e
	}},
	{phrase(`(\w+) (approves|denies) (\w+)( as it was not shown)?(?:, since STRING)?(?:, (\w+) ago)?`), func(r *rehearsal, at Stamp, m []string) Event {
		e := Decided{Stamp: at, By: m[1], Approved: m[2] == "approves", ID: m[3], Digest: "digest of " + m[3]}
		if m[4] != "" {
			e.Digest = "another digest"
		}
		if m[5] != "" {
			e.Reason = quoted(m[5])
		}
		if m[6] != "" {
			e.Made = at.When().Add(-duration(m[6]))
		}
		return e
	}},
	{phrase(`(\w+) replies to (\w+): STRING`), func(r *rehearsal, at Stamp, m []string) Event {
		return Replied{Stamp: at, By: m[1], ID: m[2], Text: quoted(m[3])}
	}},
	{phrase(`(\w+) expires`), func(r *rehearsal, at Stamp, m []string) Event {
		return Expired{Stamp: at, ID: m[1]}
	}},
	{phrase(`(\w+) resolves call (\d+): (retry|abandon|done)(?: STRING)?`), func(r *rehearsal, at Stamp, m []string) Event {
		e := Resolved{Stamp: at, Step: r.state.Step.Number, By: m[1], Call: number(m[2])}
		must(e.Choice.UnmarshalText([]byte(m[3])))
		if m[4] != "" {
			e.Text = quoted(m[4])
		}
		return e
	}},
	{phrase(`answer released: STRING`), func(r *rehearsal, at Stamp, m []string) Event {
		return AnswerReleased{Stamp: at, Step: r.state.Step.Number, Answer: Answer{Text: quoted(m[1])}}
	}},
	{phrase(`evaluated(?: as pause (\d+))?(?:, and (\w+) (says (\w+)|fails|panics))?`), (*rehearsal).evaluated},
	{phrase(`(\w+) cancels`), func(r *rehearsal, at Stamp, m []string) Event {
		return Cancelled{Stamp: at, By: m[1]}
	}},
	{phrase(`times out`), func(r *rehearsal, at Stamp, m []string) Event { return TimedOut{at} }},
	{phrase(`breaks: STRING`), func(r *rehearsal, at Stamp, m []string) Event {
		return InternalError{Stamp: at, Error: quoted(m[1])}
	}},
	{phrase(`ended(?: as (\w+), (\w+))?`), func(r *rehearsal, at Stamp, m []string) Event {
		e := Ended{Stamp: at, Status: r.state.Then.Status, Reason: r.state.Then.Reason, Message: r.state.farewell()}
		if m[1] != "" {
			e.Status, e.Reason = Status(m[1]), Reason(m[2])
		}
		return e
	}},
}

func phrase(p string) *regexp.Regexp {
	return regexp.MustCompile(`^` + strings.ReplaceAll(p, "STRING", `("(?:[^"\\]|\\.)*")`) + `$`)
}

var moves = regexp.MustCompile(`^\+(\w+) (.*)$`)

// parse turns a line, and the calls under it, into an event.
func (r *rehearsal) parse(script []string) Event {
	r.t.Helper()
	line := script[0]
	if m := moves.FindStringSubmatch(line); m != nil {
		r.clock = r.clock.Add(duration(m[1]))
		line = m[2]
	}
	for _, g := range grammar {
		m := g.pattern.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e := g.event(r, At(r.clock), m)
		switch e := e.(type) {
		case ModelAnswered:
			e.Answer.Calls = r.calls(script[1:])
			return e
		case AnswerReleased:
			e.Answer.Calls = r.calls(script[1:])
			return e
		}
		return e
	}
	r.t.Fatalf("no event is said as %q", line)
	return nil
}

var callLine = regexp.MustCompile(`^(\w+) (.*): (\w+)(?: because ("[^"]*"))?(, repeatable)?(, poller)?$`)

func (r *rehearsal) calls(lines []string) []Call {
	r.t.Helper()
	var calls []Call
	for i, line := range lines {
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			r.t.Fatalf("no call is said as %q", line)
		}
		c := Call{ID: fmt.Sprintf("call_%d", i+1), Tool: m[1], Args: m[2], Repeatable: m[5] != "", Poller: m[6] != ""}
		must(c.Ruling.UnmarshalText([]byte(m[3])))
		if m[4] != "" {
			c.Why = quoted(m[4])
		}
		calls = append(calls, c)
	}
	return calls
}

// limits reads "; max_iterations 2, stall 3"-like limits, in the words of the
// stored form.
func (r *rehearsal) limits(text string) Limits {
	r.t.Helper()
	var l Limits
	text = strings.TrimPrefix(text, ", with ")
	for item := range strings.SplitSeq(text, ", ") {
		key, value, _ := strings.Cut(item, " ")
		switch key {
		case "":
		case "max_iterations":
			l.MaxIterations = number(value)
		case "timeout":
			l.Timeout = duration(value)
		case "stall_limit":
			l.Stall = number(value)
		case "malformed_limit":
			l.Malformed = number(value)
		case "tool_error_limit":
			l.ToolErrors = number(value)
		case "model_attempts":
			l.ModelAttempts = number(value)
		default:
			r.t.Fatalf("no limit is called %q", key)
		}
	}
	return l
}

// evaluated asks the real evaluator about the history in the effect; a signal
// that the line names stands in it.
func (r *rehearsal) evaluated(at Stamp, m []string) Event {
	r.t.Helper()
	e := StepEvaluated{Stamp: at, Step: r.state.Step.Number, Pause: number(m[1])}
	var h signal.History
	for _, effect := range Next(r.state) {
		if ev, ok := effect.(Evaluate); ok {
			h = ev.History
			if m[1] == "" {
				e.Pause = ev.Pause
			}
		}
	}
	var opt signal.Options
	if m[2] != "" {
		opt.Signals = []signal.Signal{puppet{m[2], m[3], m[4]}}
	}
	evaluator, err := signal.New(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	e.Evaluation = evaluator.Evaluate(context.Background(), h)
	return e
}

// puppet is a signal that does as the transcript says.
type puppet struct{ name, does, result string }

func (p puppet) Name() string { return p.name }

func (p puppet) Judge(context.Context, signal.History) (signal.Judgement, error) {
	switch p.does {
	case "fails":
		return signal.Judgement{}, errors.New("no answer")
	case "panics":
		panic("at the puppet")
	}
	var j signal.Judgement
	return j, j.Result.UnmarshalText([]byte(p.result))
}

func quoted(s string) string {
	out, err := strconv.Unquote(s)
	must(err)
	return out
}

func number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	must(err)
	return n
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	must(err)
	return d
}

// must is for what the grammar has matched.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// invariants says what of a state, and of the events that led to it, must not
// be.
func invariants(s State, events []Event) (broken []string) {
	fail := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	if s.Events != len(events) {
		fail("%d events were taken, and the state counts %d", len(events), s.Events)
	}
	evaluated := map[[2]int]int{}
	approved := map[int]bool{} // calls of the newest step that a person let run
	asked := map[string]Asked{}
	starts := map[[2]int]int{}
	allowed := map[[2]int]int{} // starts that are in order
	steps := slices.Collect(s.Steps())
	slices.Reverse(steps)
	for _, e := range events {
		switch e := e.(type) {
		case StepEvaluated:
			evaluated[[2]int{e.Step, e.Pause}]++
		case Asked:
			asked[e.ID] = e
		case Decided:
			if q := asked[e.ID]; q.About == AboutCall && e.Approved {
				approved[q.Call+1000*q.Step] = true
			}
		case CallStarted:
			c := [2]int{e.Step, e.Call}
			starts[c]++
			w := steps[e.Step-1].Work[e.Call-1]
			switch {
			case w.Ruling != Free && w.Ruling != Gated:
				fail("call %v is %s and was run", c, w.Ruling)
			case w.Ruling == Gated && !approved[e.Call+1000*e.Step]:
				fail("call %v is gated and was run without approval", c)
			}
		case Resolved:
			if e.Choice == Retry {
				allowed[[2]int{e.Step, e.Call}]++
			}
		}
	}
	for what, n := range evaluated {
		if n != 1 {
			fail("step %d, pause %d was evaluated %d times", what[0], what[1], n)
		}
	}
	for c, n := range starts {
		if w := steps[c[0]-1].Work[c[1]-1]; !w.Repeatable && n > 1+allowed[c] {
			fail("call %v was started %d times", c, n)
		}
	}
	for i, step := range steps {
		if over := i < len(steps)-1 || s.Phase >= Ending; over && evaluated[[2]int{step.Number, 0}] != 1 {
			fail("step %d is over and was not evaluated", step.Number)
		}
		if step.Number != i+1 {
			fail("step %d stands at place %d", step.Number, i+1)
		}
		if i == len(steps)-1 && s.Phase < Judging {
			continue
		}
		for n, w := range step.Work {
			if w.Stage != Done || w.Result.Text == "" && w.Result.Kind != Returned && w.Result.Kind != Errored {
				fail("call %d of step %d is over and has no result", n+1, step.Number)
			}
		}
	}
	broken = append(broken, brokenEffects(s)...)
	return broken
}

// brokenEffects says what is wrong with what is to be done.
func brokenEffects(s State) (broken []string) {
	for _, e := range Next(s) {
		if o := e.Needs(); o.After > s.Events {
			broken = append(broken, fmt.Sprintf("%s waits for an event that has not happened", say(e)))
		}
		switch e := e.(type) {
		case RunCall:
			if w, ok := s.call(e.Call); !ok || w.Stage != Due {
				broken = append(broken, fmt.Sprintf("%s, which is not due", say(e)))
			}
		case CallModel, End:
			if e.Needs().After != s.Events || !e.Needs().Fence {
				broken = append(broken, fmt.Sprintf("%s, before all is durable", say(e)))
			}
		}
	}
	return broken
}
