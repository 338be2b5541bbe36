// Package run is the governed loop: one turn of one agent, as a function.
//
// A run is a value, [State]. [Apply] says what an event makes of it, [Next] what
// is to be done about it. Neither does anything: a host performs the effects,
// tells the run what came of them as events, and writes those down:
//
//	                 ┌───────────────── Apply ─────────────────┐
//	                 ▼                                         │
//	created ──►    State ──► Next ──► effects ──► the host ──► events ──► journal
//	                                  CallModel   performs     ModelAnswered
//	                                  RunCall     them         CallFinished
//	                                  Ask                      Decided
//	                                  Evaluate                 StepEvaluated
//	                                  Wait, End, …             Ended, …
//
// A run goes round in steps: the model is asked, the calls in its answer are
// run, and the evaluator judges what happened. A step in which a person must
// decide something pauses, and the evaluator judges the pause too. Streaming is
// no part of it: whoever watches text arrive watches the same run.
//
// # Laws
//
// The same events give the same state, on any machine, at any time. Clocks, ids
// and chance come in as events. Apply does not touch its argument, and an event
// that has no place in the state, because it is late, early or false, changes
// nothing; [Check] says why.
//
// Every step that began is evaluated once, whichever way it ended, and so is
// every pause. The record of it comes before the next model call and before the
// run shows as completed.
//
// The first outcome stands. Once a run has come to an end, no event changes it.
//
// A call that a person must decide is run after that decision and no other. A
// call that is not declared safe to repeat is started once; if its end was lost,
// a person says what to do.
//
// Each step costs the same at step 1,000 as at step 1: steps that are over are
// shared between states, never copied.
//
// # What the host owes
//
// It gives each event to Check, appends it to its journal, and applies it. It
// performs what Next lists, in order, and asks again when more has happened; an
// effect whose first event is refused has been overtaken, and is dropped. And it
// keeps the [Order] of each effect, which says what must be durable before what:
//
//	effect         opened by      answered by
//	Claim          –              Claimed
//	CallModel      ModelStarted   ModelAnswered, ModelWithheld, ModelFailed, BudgetSpent
//	RunCall        CallStarted    CallFinished
//	Ask            Asked          Decided, Replied, Expired
//	ReleaseAnswer  –              AnswerReleased
//	Evaluate       –              StepEvaluated
//	CutOff         –              –
//	Wait           –              Decided, Replied, Expired, Resolved
//	End            –              Ended
//
// Next lists what is to be begun. What has been opened is under way and is not
// listed again, so a host that has died leaves nothing behind but the state:
// the next one appends Claimed, which counts what was under way as lost.
//
// Cancelled, InternalError and, once the deadline that effects carry has passed,
// TimedOut may come at any time. What people say may come while no worker holds
// the run, and before the Claimed of the worker that takes it up. An event's
// time is the one in its record, so that a run read back is the run that was.
package run

import "github.com/stoplog/stoplog/internal/signal"

// Apply returns the state that the event leads to. An event that Check refuses
// leads nowhere: the state is returned as it was.
func Apply(s State, e Event) State {
	if Check(s, e) != nil {
		return s
	}
	s.Events++
	s = take(s, e)
	s.Clock = s.Clock.see(e.When())
	return s
}

// take hands the event to the function that knows what it means.
func take(s State, e Event) State {
	switch e := e.(type) {
	// A run is made, and a worker takes it up.
	case Created:
		return create(s, e)
	case Claimed:
		return takeUp(s, e)

	// The model is asked, and it answers or it does not.
	case ModelStarted:
		return askModel(s)
	case ModelAnswered:
		return answer(s, e.Answer)
	case ModelWithheld:
		return withhold(s, e)
	case ModelFailed:
		return failModel(s, e)
	case BudgetSpent:
		s.Usage = plus(s.Usage, e.Usage)
		return stop(s, budgetSpent(e))

	// The calls in its answer are run.
	case CallStarted:
		return startCall(s, e)
	case CallFinished:
		return settle(finishCall(s, e.Call, result(e)))

	// People are asked, and they decide or they do not.
	case Asked:
		return settle(ask(s, e))
	case Decided:
		return decide(s, e)
	case Replied:
		return reply(s, e)
	case Expired:
		return expire(s, e)
	case Resolved:
		return resolve(s, e)
	case AnswerReleased:
		return release(s, e)

	// The evaluator judges, and the run goes on or comes to its end.
	case StepEvaluated:
		return evaluated(s, e)
	case Cancelled:
		return stop(s, cancelled(e))
	case TimedOut:
		return stop(s, timedOut(s.Limits))
	case InternalError:
		return stop(s, internalError("an error inside stoplog"))
	case Ended:
		return end(s, e)
	}
	return s
}

// Next returns what is to be begun in the state, in order. It is a function of
// the state: asked twice, it says the same. Nothing means that what is under way
// will tell.
func Next(s State) []Effect {
	switch {
	case s.Phase == Fresh || s.Phase == Over:
		return nil
	case s.Phase == Waiting:
		return []Effect{s.wait()}
	case !s.Clock.Held:
		return []Effect{Claim{}}
	}
	switch s.Phase {
	case Ready:
		return []Effect{s.callModel()}
	case Working:
		return s.work()
	case Pausing:
		return []Effect{s.evaluate(s.Pauses + 1)}
	case Judging:
		if s.Step.Cut {
			return []Effect{CutOff{Step: s.Step.Number}, s.evaluate(0)}
		}
		return []Effect{s.evaluate(0)}
	case Ending:
		return []Effect{s.end()}
	}
	return nil // Answering: the model has the word
}

// create makes the run. It is queued until a worker claims it.
func create(s State, e Created) State {
	s.Task = e.Task
	s.Limits = e.Limits.orDefault()
	s.Step = Step{Number: 1}
	s.Phase = Ready
	return s
}

// takeUp gives the run to a worker. Whatever a worker before it had under way is
// lost: the model is asked again, a call that is safe to repeat runs again, and
// any other call is in doubt. A step that takes worker after worker down with it
// is not tried for ever.
func takeUp(s State, e Claimed) State {
	s.Clock = s.Clock.claim(e.When())
	s.Usage = plus(s.Usage, e.Lost)
	switch s.Phase {
	case Answering:
		s.Step.Lost++
		s.Phase = Ready
	case Working:
		var lost bool
		if s.Step, lost = s.Step.loseRunning(); lost {
			s.Step.Lost++
		}
		s = settle(s)
	}
	if s.Step.Lost > maxLost {
		return stop(s, internalError("worker after worker was lost in the same step"))
	}
	return s
}

// askModel opens the step, or another attempt at it.
func askModel(s State) State {
	s.Step.Attempt++
	s.Phase = Answering
	return s
}

// answer takes what the model said. Words alone end the run. Calls are work for
// the step, unless the answer ended in a refusal or was the last that the run
// may ask for.
func answer(s State, a Answer) State {
	s.Usage = plus(s.Usage, a.Usage)
	s.Step.Answered = true
	s.Step.Answer = a.withoutCalls()
	s.Step.Unusable = a.unusable()
	switch {
	case s.Last():
		s.Step.Work = notRun(a.Calls, "this was the last answer of the run")
		return judge(s, maxIterations(s.Limits))
	case a.Finish == Refusal:
		s.Step.Work = notRun(a.Calls, "the answer ended in a refusal")
		return judge(s, completed)
	case s.Step.Unusable != "":
		s.Step.Work = notRun(a.Calls, "the answer could not be used")
		return complete(s)
	case len(a.Calls) == 0:
		return judge(s, completed)
	}
	return settle(plan(s, a.Calls))
}

// withhold takes a guard's verdict on what was to go to the model or came from
// it: denied, the run is over; else a person is asked.
func withhold(s State, e ModelWithheld) State {
	s.Usage = plus(s.Usage, e.Usage)
	s.Step.Answer = Answer{Text: e.Text}
	if e.Deny {
		return judge(s, guardDenied(e))
	}
	about := AboutAnswer
	if e.Request {
		about = AboutRequest
	}
	return settle(s.withQuestion(Question{About: about}))
}

// release takes a withheld answer that is out after all. Its tokens were counted
// when it was withheld.
func release(s State, e AnswerReleased) State {
	s.Step.Release = 0
	e.Answer.Usage = signal.Usage{}
	return answer(s, e.Answer)
}

// failModel takes a provider's failure. It is tried again, later, if that can
// help and nobody has seen a byte of the answer.
func failModel(s State, e ModelFailed) State {
	s.Usage = plus(s.Usage, e.Usage)
	s.Step.Failures++
	again := e.When().Add(max(e.RetryAfter, backoff(s.Step.Failures, e.Jitter)))
	if e.Retryable && !e.Released && s.Step.Failures < s.Limits.ModelAttempts && again.Before(s.Deadline()) {
		s.Step.NotBefore = again
		s.Phase = Ready
		return s
	}
	return judge(s, modelFailed(s.Step, e))
}

// settle looks at the step after something in it has changed. While the host
// has work to do, it works. When all that is left is up to people, the run
// pauses, once, for as long as that is so. When nothing is left, the step is
// complete.
func settle(s State) State {
	switch {
	case s.busy():
		s.Phase = Working
	case s.waits():
		if s.Phase != Waiting {
			s.Phase = Pausing
		}
	case s.Step.Evaluated: // and a person has let the run go on
		return follow(s)
	case !s.Step.Answered: // and a person has let the request through
		s.Phase = Ready
	default:
		return complete(s)
	}
	return s
}

// complete closes a step that has run its course. The limits have the first
// say.
func complete(s State) State {
	s.Streaks = s.Streaks.after(s.Step, s.Limits)
	return judge(s, s.Streaks.exceeded(s.Limits))
}

// judge puts the step before the evaluator. What the run then comes to, if the
// evaluator lets it, is decided here; no outcome means another step.
func judge(s State, then Outcome) State {
	s.Then = then
	s.Phase = Judging
	return s
}

// stop ends the run for a reason from outside the step. A step that is open is
// closed as it stands, and meets the evaluator like any other.
func stop(s State, why Outcome) State {
	s.Questions = nil
	if s.Step.Attempt == 0 || s.Step.Evaluated {
		s.Then = why
		s.Phase = Ending
		return s
	}
	s.Step.Cut = s.Phase == Answering
	s.Step = s.Step.cutOff(why)
	return judge(s, why)
}

// evaluated takes the evaluator's record. It can stop what would go on, or put
// it before a person; it cannot change why something has already stopped.
func evaluated(s State, e StepEvaluated) State {
	worst := e.Evaluation.Worst()
	if e.Pause > 0 {
		return pause(s, e, worst)
	}
	s.Step.Evaluated = true
	switch {
	case s.Then.stops():
		s.Phase = Ending
	case worst.Result == signal.Halt:
		return stop(s, halted(worst))
	case worst.Result == signal.RequireApproval:
		return settle(s.withQuestion(Question{About: AboutStep}))
	default:
		return follow(s)
	}
	return s
}

// pause makes the run wait, if it still must: decisions may have come while the
// evaluator judged. That a person should be asked changes nothing here, since
// one is.
func pause(s State, e StepEvaluated, worst signal.Report) State {
	s.Pauses++
	if worst.Result == signal.Halt {
		return stop(s, halted(worst))
	}
	s.Phase = Waiting
	if s = settle(s); s.Phase == Waiting {
		s.Clock = s.Clock.release(e.When())
	}
	return s
}

// follow does what a step comes to: the end, or the next step.
func follow(s State) State {
	if s.Then != (Outcome{}) {
		s.Phase = Ending
		return s
	}
	s.Past = s.Past.push(s.Step)
	s.Step = Step{Number: s.Step.Number + 1}
	s.Phase = Ready
	return s
}

// end closes the run: what it came to now shows.
func end(s State, e Ended) State {
	s.Message = e.Message
	s.Clock = s.Clock.release(e.When())
	s.Phase = Over
	return s
}
