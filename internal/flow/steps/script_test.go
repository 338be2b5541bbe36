package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// parse reads a line of a transcript:
//
//	created [from ID]            each further line plans a step: see plan
//	claimed by NAME
//	ID holds | does not hold | errs "WHY"
//	ID starts [as RUN]
//	ID ends STATE [verdict V] ["WHY"]
//	ID observed VERDICT
//	ID evaluated [halt | asks]
//	ID passes [verdict V]        starts, ends passed, is evaluated
//	ID fails STATE ["WHY"]       starts, ends so, is evaluated
//	ID waits for STATUS | goes on
//	ID asked as APR for DURATION
//	ID filed TKT
//	NAME approves APR | denies APR ["WHY"] | says retry|done|abandon of ID | cancels
//	APR expires
//	breaks
//	ended
//
// Before any of these, +DURATION lets time go by.
func (r *rehearsal) parse(line string, more []string) []Event {
	words := fields(line)
	if d, ok := strings.CutPrefix(words[0], "+"); ok {
		by, err := time.ParseDuration(d)
		if err != nil {
			r.t.Fatal(err)
		}
		r.clock = r.clock.Add(by)
		words = words[1:]
	}
	r.clock = r.clock.Add(time.Second)
	at := At(r.clock)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "created":
		e := Created{Stamp: at, Book: Book{Name: "test"}, Plan: r.plan(more)}
		if word(1) == "from" {
			e.From = State{Plan: e.Plan}.Find(word(2))
		}
		return []Event{e}
	case "claimed":
		return []Event{Claimed{Stamp: at, By: word(2)}}
	case "breaks":
		return []Event{InternalError{Stamp: at, Error: "broken"}}
	case "ended":
		return []Event{Ended{Stamp: at, Status: r.state.Then.Status, Reason: r.state.Then.Reason, Message: r.state.farewell()}}
	}
	if n := r.state.Find(words[0]); n > 0 {
		return r.ofStep(at, n, words)
	}
	digest := func(id string) string {
		if n := r.state.open(id); n > 0 {
			return r.state.Step(n).Question.Digest
		}
		return "none"
	}
	switch word(1) {
	case "approves", "denies":
		return []Event{Decided{Stamp: at, ID: word(2), Digest: digest(word(2)), Approved: word(1) == "approves", By: word(0), Reason: word(3)}}
	case "mistakes":
		return []Event{Decided{Stamp: at, ID: word(2), Digest: "another", Approved: true, By: word(0)}}
	case "expires":
		if n := r.state.open(word(0)); n > 0 && r.clock.Before(r.state.Step(n).Question.Expires) && !strings.HasPrefix(line, "+") {
			r.clock = r.state.Step(n).Question.Expires
		}
		return []Event{Expired{Stamp: At(r.clock), ID: word(0)}}
	case "says":
		choice := map[string]run.Choice{"retry": run.Retry, "done": run.TakeAsDone, "abandon": run.Abandon}[word(2)]
		return []Event{Resolved{Stamp: at, Step: r.state.Find(word(4)), Choice: choice, By: word(0)}}
	case "cancels":
		return []Event{RunCancelled{Stamp: at, By: word(0)}}
	}
	r.t.Fatalf("what is %q?", line)
	return nil
}

// ofStep reads what happens to a step.
func (r *rehearsal) ofStep(at Stamp, n int, words []string) []Event {
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	attempt := r.state.Step(n).Started
	result := func(state Standing, rest []string) Result {
		res := Result{State: state, Usage: &signal.Usage{Input: 10, Output: 1}}
		for i, w := range rest {
			switch {
			case w == "verdict":
				res.Verdict = rest[i+1]
			case strings.HasPrefix(w, "reason="):
				res.Reason = run.Reason(strings.TrimPrefix(w, "reason="))
			case i == 0 || rest[i-1] != "verdict":
				res.Why = w
			}
		}
		return res
	}
	whole := func(res Result) []Event {
		return []Event{
			StepStarted{Stamp: at, Step: n, Attempt: attempt + 1},
			StepEnded{Stamp: at, Step: n, Attempt: attempt + 1, Result: res},
			StepEvaluated{Stamp: at, Step: n, Attempt: attempt + 1},
		}
	}
	switch word(1) {
	case "holds":
		return []Event{Weighed{Stamp: at, Step: n, Holds: true}}
	case "does":
		return []Event{Weighed{Stamp: at, Step: n}}
	case "errs":
		return []Event{Weighed{Stamp: at, Step: n, Error: word(2)}}
	case "starts":
		return []Event{StepStarted{Stamp: at, Step: n, Attempt: attempt + 1, Run: word(3)}}
	case "ends":
		return []Event{StepEnded{Stamp: at, Step: n, Attempt: attempt, Result: result(Standing(word(2)), words[3:])}}
	case "passes":
		return whole(result(Passed, words[2:]))
	case "fails":
		return whole(result(Standing(word(2)), words[3:]))
	case "observed":
		return []Event{Observed{Stamp: at, Step: n, Attempt: attempt, Verdict: word(2)}}
	case "evaluated":
		e := StepEvaluated{Stamp: at, Step: n, Attempt: attempt}
		if word(2) != "" {
			res := map[string]signal.Result{"halt": signal.Halt, "asks": signal.RequireApproval}[word(2)]
			e.Signals = []Signal{{Signal: "loop_detect", Mode: signal.Enforce, Result: res}}
		}
		return []Event{e}
	case "waits":
		return []Event{StepWaits{Stamp: at, Step: n, For: word(3)}}
	case "goes":
		return []Event{StepWaits{Stamp: at, Step: n}}
	case "asked":
		d, err := time.ParseDuration(word(5))
		if err != nil {
			r.t.Fatal(err)
		}
		return []Event{Asked{Stamp: at, Step: n, ID: word(3), Digest: "digest of " + word(3), Expires: at.When().Add(d)}}
	case "filed":
		return []Event{Filed{Stamp: at, Step: n, Ticket: word(2), Digest: "d", New: true}}
	}
	r.t.Fatalf("what happens to a step with %q?", words)
	return nil
}

// plan reads steps, one a line:
//
//	ID TYPE [WORD…]
//
// where a word is handler, when, repeatable, irreversible, tickets, or one of
// after=A,B (else the step before; `after=` is nothing), then=ACTION,
// on_fail=ACTION, tries=N, backoff=D, ceiling=N, verdict:V=ACTION, observer:V=ACTION.
func (r *rehearsal) plan(lines []string) (p Plan) {
	for _, line := range lines {
		p.Steps = append(p.Steps, Planned{ID: strings.Fields(line)[0], Type: Type(strings.Fields(line)[1]), Attempts: 1})
	}
	find := State{Plan: p}.Find
	action := func(s string) Action {
		if to, ok := strings.CutPrefix(s, "goto:"); ok {
			return Action{Do: Goto, To: find(to)}
		}
		return Action{Do: Do(strings.TrimSuffix(s, "fail"))}
	}
	before := 0
	for i, line := range lines {
		step := &p.Steps[i]
		if before > 0 {
			step.After = []int{before}
		}
		for _, w := range strings.Fields(line)[2:] {
			key, value, _ := strings.Cut(w, "=")
			number, _ := strconv.Atoi(value)
			switch kind, verdict, _ := strings.Cut(key, ":"); kind {
			case "handler":
				step.Handler, step.After = true, nil
			case "when":
				step.When = true
			case "repeatable":
				step.Repeatable = true
			case "irreversible":
				step.Irreversible = true
			case "tickets":
				step.Tickets = true
			case "after":
				step.After = nil
				for _, id := range strings.FieldsFunc(value, func(c rune) bool { return c == ',' }) {
					step.After = append(step.After, find(id))
				}
			case "then":
				step.Then = action(value)
			case "on_fail":
				step.OnFail = action(value)
			case "tries":
				step.Attempts = number
			case "backoff":
				step.Backoff, _ = time.ParseDuration(value)
			case "ceiling":
				step.Ceiling = number
			case "verdict":
				step.Verdicts = append(step.Verdicts, Mapped{verdict, action(value)})
			case "observer":
				step.Observed = true
				step.Observer = append(step.Observer, Mapped{verdict, action(value)})
			default:
				r.t.Fatalf("what is a step that is %q?", w)
			}
		}
		if !step.Handler {
			before = i + 1
		}
	}
	return p
}

// say says an effect in a line.
func (r *rehearsal) say(e Effect) string {
	id := func(n int) string { return r.state.Plan.step(n).ID }
	var line string
	switch e := e.(type) {
	case Claim:
		line = "find a worker"
	case Weigh:
		line = "weigh " + id(e.Step)
	case Start:
		line = fmt.Sprintf("start %s, attempt %d", id(e.Step), e.Attempt)
		if !e.NotBefore.IsZero() {
			line += fmt.Sprintf(", not before +%s", e.NotBefore.Sub(r.clock))
		}
	case Follow:
		line = fmt.Sprintf("follow %s, which is the work of %s", e.Run, id(e.Step))
	case Observe:
		line = fmt.Sprintf("hear the observer of %s, attempt %d", id(e.Step), e.Attempt)
	case FileTicket:
		line = fmt.Sprintf("file a ticket: %s", e.What)
	case Evaluate:
		line = fmt.Sprintf("evaluate %s, attempt %d", id(e.Step), e.Attempt)
	case Ask:
		line = fmt.Sprintf("ask about %s (%s)", id(e.Step), e.About)
	case CutOff:
		line = "cut off what is under way"
	case Wait:
		line = "wait"
		if !e.Until.IsZero() {
			line += " until +" + e.Until.Sub(start).String()
		}
	case End:
		line = fmt.Sprintf("end: %s, %s", e.Outcome.Status, e.Outcome.Reason)
		if e.Message != "" {
			line += ", and say: " + e.Message
		}
	}
	if o := e.Needs(); o.After > 0 || o.Fence {
		line += fmt.Sprintf(" [after %d", o.After)
		if o.Fence {
			line += ", fenced"
		}
		line += "]"
	}
	return line
}

// fields splits a line into words; what stands in quotes is one.
func fields(line string) (words []string) {
	parts := strings.Split(line, `"`)
	for i, part := range parts {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = slices.Concat(words, strings.Fields(part))
	}
	return words
}
