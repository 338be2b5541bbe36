package signal

import "slices"

// Window is the most steps that a history shows.
const Window = 20

// History is what has happened in a run, as signals see it: text that has been
// screened, the newest steps, and counts of all.
type History struct {
	Task  string // what the run was asked to do
	Steps int    // taken so far, the one that is judged included
	// Pause is 0 where a step is judged that has completed, and else the number
	// of the pause, from 1, within the run; the newest step is then unfinished.
	Pause  int
	Recent []Step // the newest steps, at most Window, the one that is judged last
	Usage  Usage  // of all steps
}

// Usage counts tokens. What no provider reported is an estimate, and marked so.
type Usage struct {
	Input, Output int64
	Estimated     bool
}

// Step is one round of the loop: what the model said, and what came of it.
type Step struct {
	Number  int
	Text    string
	Thought string
	Calls   []Call
	// Approved says that a person decided for this step to go on, or for one of
	// its calls to run.
	Approved bool
}

// Call is a tool call that the model asked for.
type Call struct {
	Tool   string
	Args   string // JSON as the model wrote it
	Result string
	Ran    bool // it was run; else Result says why not
	Failed bool // it was run and gave an error, or there is no such tool
	Poller bool // the tool is declared to be one that is asked again and again
}

// clone returns a copy that shares nothing that can be written to.
func (h History) clone() History {
	h.Recent = slices.Clone(h.Recent)
	for i, s := range h.Recent {
		h.Recent[i].Calls = slices.Clone(s.Calls)
	}
	return h
}
