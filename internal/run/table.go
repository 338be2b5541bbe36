package run

//go:generate go test -run ^TestStatesDoc$ . -update

// Transition is one row of the loop's table: an event that has a place in a
// phase, and the phases that it can lead to.
type Transition struct {
	From Phase
	On   string // the event's kind
	To   []Phase
	When string // what decides, and what else there is to say
}

// Transitions is the table. Apply takes no event that is not in it, and leads to
// no phase that is not in it; docs/run-states.md is drawn from it.
var Transitions = []Transition{
	{Fresh, "created", to(Ready), "queued, until a worker claims it"},

	{Ready, "claimed", to(Ready), ""},
	{Ready, "model_started", to(Answering), ""},
	{Ready, "budget_spent", to(Judging, Ending), "ending, if the step has not begun"},
	{Ready, "cancelled", to(Judging, Ending), "ending, if the step has not begun"},
	{Ready, "timed_out", to(Judging, Ending), "ending, if the step has not begun"},
	{Ready, "internal_error", to(Judging, Ending), "ending, if the step has not begun"},

	{Answering, "claimed", to(Ready, Judging), "the attempt was lost; judging, if too many were"},
	{Answering, "model_answered", to(Working, Judging), "working, if there are calls to run or questions to ask"},
	{Answering, "model_withheld", to(Working, Judging), "working, if a person may let it through"},
	{Answering, "model_failed", to(Ready, Judging), "ready, if it is worth another attempt"},
	{Answering, "budget_spent", to(Judging), ""},
	{Answering, "cancelled", to(Judging), ""},
	{Answering, "timed_out", to(Judging), ""},
	{Answering, "internal_error", to(Judging), ""},

	{Working, "claimed", to(Working, Pausing, Judging), "pausing, if only calls in doubt are left; judging, if too many workers were lost"},
	{Working, "call_started", to(Working), ""},
	{Working, "call_finished", to(Working, Pausing, Judging), "pausing, if only people can go on; judging, if all calls have results"},
	{Working, "asked", to(Working, Pausing), "pausing, if nothing else is under way"},
	{Working, "decided", to(Working), "something else is under way"},
	{Working, "replied", to(Working), "something else is under way"},
	{Working, "expired", to(Judging), ""},
	{Working, "resolved", to(Working, Judging), "judging, if the run is abandoned"},
	{Working, "answer_released", to(Working, Judging), "as for an answer that was not withheld"},
	{Working, "cancelled", to(Judging, Ending), "ending, if the step has been judged"},
	{Working, "timed_out", to(Judging, Ending), "ending, if the step has been judged"},
	{Working, "internal_error", to(Judging, Ending), "ending, if the step has been judged"},

	{Pausing, "claimed", to(Pausing), ""},
	{Pausing, "step_evaluated", to(Waiting, Working, Ready, Judging, Ending), "waiting, unless everything was decided meanwhile or a signal halts"},
	{Pausing, "decided", to(Pausing, Judging, Ending), "the pause is judged first; a no to the run itself ends it"},
	{Pausing, "replied", to(Pausing), "the pause is judged first"},
	{Pausing, "expired", to(Judging, Ending), "ending, if the step has been judged"},
	{Pausing, "resolved", to(Pausing, Judging), "judging, if the run is abandoned"},
	{Pausing, "cancelled", to(Judging, Ending), "ending, if the step has been judged"},
	{Pausing, "timed_out", to(Judging, Ending), "ending, if the step has been judged"},
	{Pausing, "internal_error", to(Judging, Ending), "ending, if the step has been judged"},

	{Waiting, "decided", to(Waiting, Working, Ready, Judging, Ending), "waiting, if there is more to decide"},
	{Waiting, "replied", to(Waiting, Judging), "waiting, if there is more to decide"},
	{Waiting, "expired", to(Judging, Ending), "ending, if the step has been judged"},
	{Waiting, "resolved", to(Waiting, Working, Judging), "waiting, if there is more to decide"},
	{Waiting, "cancelled", to(Judging, Ending), "ending, if the step has been judged"},
	{Waiting, "internal_error", to(Judging, Ending), "ending, if the step has been judged"},

	{Judging, "claimed", to(Judging), ""},
	{Judging, "step_evaluated", to(Ready, Working, Ending), "ready for the next step; working, if a person must be asked"},
	{Judging, "cancelled", to(Judging), "unless an outcome is decided"},
	{Judging, "timed_out", to(Judging), "unless an outcome is decided"},
	{Judging, "internal_error", to(Judging), "unless an outcome is decided"},

	{Ending, "claimed", to(Ending), ""},
	{Ending, "ended", to(Over), ""},
}

func to(phases ...Phase) []Phase { return phases }
