package run

import (
	"slices"
	"time"
)

// Question is something that a person must decide. It is due from the moment
// that it comes up, and open once it has been asked and has an id.
type Question struct {
	About About
	Call  int // the call it is about, numbered from 1; 0 if it is about none
	After int // the number of the event that raised it

	ID      string
	Digest  string // of exactly what was shown; a decision names it
	Expires time.Time
}

// About is what a question is about.
type About uint8

const (
	AboutCall    About = iota // whether a call may run
	AboutReply                // what the model wants to know: the answer is the call's result
	AboutRequest              // whether what a guard holds back may go to the model
	AboutAnswer               // whether what a guard holds back may leave
	AboutStep                 // whether the run may go on after what the evaluator saw
)

var aboutNames = [...]string{"call", "reply", "request", "answer", "step"}

// subject names it in a sentence.
func (a About) subject() string {
	return [...]string{"the tool call", "the question", "the request", "the answer", "going on"}[a]
}

// inTime reports whether what a person said, and when, came before the question
// expired.
func (q Question) inTime(made, now time.Time) bool {
	if made.IsZero() {
		made = now
	}
	return made.Before(q.Expires)
}

func (s State) withQuestion(q Question) State {
	q.After = s.Events
	s.Questions = append(slices.Clip(s.Questions), q)
	return s
}

// open finds the open question of an id.
func (s State) open(id string) (Question, bool) {
	i := slices.IndexFunc(s.Questions, func(q Question) bool { return q.ID == id && id != "" })
	if i < 0 {
		return Question{}, false
	}
	return s.Questions[i], true
}

// due finds the question about a subject that has not been asked.
func (s State) due(about About, call int) int {
	return slices.IndexFunc(s.Questions, func(q Question) bool {
		return q.ID == "" && q.About == about && q.Call == call
	})
}

func (s State) without(q Question) State {
	var left []Question
	for _, p := range s.Questions {
		if p != q {
			left = append(left, p)
		}
	}
	s.Questions = left
	return s
}

// ask records that a question has been put.
func ask(s State, e Asked) State {
	s.Questions = slices.Clone(s.Questions)
	q := &s.Questions[s.due(e.About, e.Call)]
	q.ID, q.Digest, q.Expires = e.ID, e.Digest, At(e.Expires).at
	return s
}

// decide carries out a person's decision. A call that was denied has its result,
// and the model may try something else; where the run itself was in question, a
// no ends it.
func decide(s State, e Decided) State {
	q, _ := s.open(e.ID)
	s = s.without(q)
	if e.Approved {
		s.Step.Approved = true
	}
	switch {
	case q.About == AboutCall && e.Approved:
		s = s.withCall(q.Call, func(w *Work) {
			w.Stage = Due
			w.After = s.Events
		})
	case q.About == AboutCall:
		s = finishCall(s, q.Call, Result{NotRun, denial(e)})
	case !e.Approved:
		return stop(s, approvalDenied(q, e))
	case q.About == AboutAnswer:
		s.Step.Release = s.Events
	}
	return s.onwards()
}

// reply gives the model the answer to its question.
func reply(s State, e Replied) State {
	q, _ := s.open(e.ID)
	return finishCall(s.without(q), q.Call, Result{Returned, e.Text}).onwards()
}

// expire takes silence for a no. Since nobody is there, the run does not go on
// to ask for something else: it ends.
func expire(s State, e Expired) State {
	q, _ := s.open(e.ID)
	return stop(s, questionExpired(q))
}

// onwards settles the state after a person had a say, unless the evaluator has
// yet to judge the pause: then it does so first.
func (s State) onwards() State {
	if s.Phase == Pausing {
		return s
	}
	return settle(s)
}

func denial(e Decided) string {
	if e.Reason == "" {
		return "denied by " + e.By
	}
	return "denied by " + e.By + ": " + e.Reason
}
