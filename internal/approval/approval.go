// Package approval is the law of questions to people: what a decision binds to,
// who may give it, and that it is used once.
//
// A run that may not go on alone asks. What is asked about is a [Subject]; its
// digest covers exactly what the person is shown. The decision names that digest,
// and the run takes it with the subject as it stands then:
//
//	the run        Ask(subject) ───► row: pending, digest, what is shown
//	a person                         Decide(digest seen, yes or no)
//	the run again  Take(subject) ◄── row: decided ──► used
//
// Rows are the journal's ([journal.Question]); this package adds no store, no
// clock and no transport. Ask and Take run in the transaction that also appends
// what the run makes of them.
//
// # Laws
//
// A decision binds: it counts for the digest that was shown and for nothing else.
// It is refused if the person saw something other than what was asked, and it
// lets nothing run if what would run is not what was asked, whatever happened to
// the row or to the run in between.
//
// A decision is taken by the run, on the row that it has claimed, once.
//
// Silence is never consent: a question whose time has passed is a no, and so is
// every state but approved.
//
// Who was first decides. Whoever comes later is told who was first, and when.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// Request is a question that is to be asked.
type Request struct {
	ID      journal.ID // new, with prefix apr_
	About   string     // which kind of question: the asker's word
	Subject Subject
	Expires time.Time // when silence becomes a no
	NotBy   string    // who may not decide, where a second person must; may be empty
}

// Ask puts a question for the run that the lease holds.
func Ask(ctx context.Context, tx journal.Tx, l journal.Lease, r Request) (journal.Question, error) {
	shown, err := canonical(r.Subject.members())
	if err != nil {
		return journal.Question{}, fmt.Errorf("ask %s about %s: %w", r.ID, r.Subject, err)
	}
	q := journal.Question{
		Ref: l.Ref, ID: r.ID, About: r.About, Subject: r.Subject.String(),
		Digest: sum(shown), Shown: shown, NotBy: r.NotBy, Expires: r.Expires,
	}
	return q, tx.Ask(ctx, l, q)
}

// Decision is what a person says, and of what.
type Decision struct {
	ID journal.ID
	// Digest is of what the person was shown: the question's, if they were shown
	// the question.
	Digest [32]byte
	State  journal.QuestionState // QuestionApproved, QuestionDenied or QuestionAnswered
	By     string
	Text   string // a reason, or the answer
}

var (
	// ErrNotShown: the decision is about something other than what was asked.
	ErrNotShown = errors.New("the decision is not about what was asked: look at it again")
	// ErrSecondPerson: somebody else must decide.
	ErrSecondPerson = errors.New("a second person must decide")
	// ErrNoName: a decision has a person's name.
	ErrNoName = errors.New("a decision has a name")
)

// Decide takes a person's decision. Then, if it is not nil, runs in the same
// transaction, with the question as decided: what follows from a decision is as
// durable as the decision. A decision that comes too late gets a
// *journal.DecidedError or, if the run has ended, a *journal.SettledError.
func Decide(ctx context.Context, s journal.Store, tenant string, d Decision, then func(context.Context, journal.Tx, journal.Question) error) (q journal.Question, err error) {
	if d.By == "" {
		return q, fmt.Errorf("decide %s: %w", d.ID, ErrNoName)
	}
	err = s.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		q, err = tx.Question(ctx, tenant, d.ID)
		switch {
		case err != nil:
			return err
		case q.Digest != d.Digest:
			return fmt.Errorf("decide %s: %w", d.ID, ErrNotShown)
		case q.NotBy == d.By:
			return fmt.Errorf("decide %s: %s asked: %w", d.ID, d.By, ErrSecondPerson)
		}
		if err := mayApprove(q, d); err != nil {
			return fmt.Errorf("decide %s: %w", d.ID, err)
		}
		q, err = tx.Decide(ctx, tenant, d.ID, journal.Decision{State: d.State, By: d.By, Text: d.Text})
		if err != nil {
			return err
		}
		if err := concludeDecided(ctx, tx, q); err != nil {
			return fmt.Errorf("decide %s: %w", d.ID, err)
		}
		if then == nil {
			return nil
		}
		return then(ctx, tx, q)
	})
	if err != nil {
		return journal.Question{}, err
	}
	return q, nil
}

// Taken is a decision that a run has taken.
type Taken struct {
	journal.Question
	// Bound reports whether the decision is about the subject as it stands now.
	// One that is not counts for nothing, and was used all the same.
	Bound bool
}

// Approved reports whether what was asked about may go on: somebody said yes,
// and to this.
func (t Taken) Approved() bool { return t.Bound && t.State == journal.QuestionApproved }

// Take takes the decision on a question for the run that the lease holds, once.
// now is the subject as it would go on; asked is its digest as the run's own log
// has it. There is no decision without both and the row being of one digest.
// journal.ErrPending: nobody has decided yet; journal.ErrUsed: it was taken before.
func Take(ctx context.Context, tx journal.Tx, l journal.Lease, id journal.ID, asked [32]byte, now Subject) (Taken, error) {
	q, err := tx.Use(ctx, l, id)
	if err != nil {
		return Taken{}, err
	}
	would, err := Digest(now)
	if err != nil {
		return Taken{}, fmt.Errorf("take the decision on %s about %s: %w", id, now, err)
	}
	return Taken{Question: q, Bound: would == asked && would == q.Digest}, nil
}

// A Subject is what a question is about. Its digest covers all of its members;
// String names it in a sentence.
type Subject interface {
	fmt.Stringer
	members() any
}

// Digest is SHA-256 over the canonical JSON of a subject.
func Digest(s Subject) ([32]byte, error) {
	form, err := canonical(s.members())
	if err != nil {
		return [32]byte{}, fmt.Errorf("digest %s: %w", s, err)
	}
	return sum(form), nil
}

// version is of the members below: a subject that gains one counts it up.
const version = 1

// Call is a tool call that wants to run.
type Call struct {
	Run           journal.ID
	Step, Call    int
	Tool          string
	Args          json.RawMessage
	Workdir       string
	ProfileDigest string
}

func (c Call) String() string { return fmt.Sprintf("step %d, call %d: %s", c.Step, c.Call, c.Tool) }

func (c Call) members() any {
	return struct {
		V             int             `json:"v"`
		Run           journal.ID      `json:"run"`
		Step          int             `json:"step"`
		Call          int             `json:"call"`
		Tool          string          `json:"tool"`
		Args          json.RawMessage `json:"args"`
		Workdir       string          `json:"workdir"`
		ProfileDigest string          `json:"profile_digest"`
	}{version, c.Run, c.Step, c.Call, c.Tool, c.Args, c.Workdir, c.ProfileDigest}
}

// Withheld is text that a guard holds back: of an answer, or of a request.
type Withheld struct {
	Run      journal.ID
	Step     int
	Side     string // request or answer
	Text     []byte
	Findings json.RawMessage // what the guards found in it
	// Denied is what of it nobody can let through; empty if a yes is possible.
	Denied string
}

func (w Withheld) String() string {
	return fmt.Sprintf("step %d: the %s that was withheld", w.Step, w.Side)
}

func (w Withheld) members() any {
	return struct {
		V        int             `json:"v"`
		Run      journal.ID      `json:"run"`
		Step     int             `json:"step"`
		Side     string          `json:"side"`
		Withheld string          `json:"withheld_sha256"`
		Findings json.RawMessage `json:"findings"`
		Denied   string          `json:"denied,omitempty"`
	}{version, w.Run, w.Step, w.Side, fmt.Sprintf("%x", sum(w.Text)), w.Findings, w.Denied}
}

// Going is whether a run goes on behind a step that the evaluator put in doubt.
type Going struct {
	Run     journal.ID
	Step    int
	Signals json.RawMessage // the evaluator's record
}

func (g Going) String() string { return fmt.Sprintf("going on behind step %d", g.Step) }

func (g Going) members() any {
	return struct {
		V       int             `json:"v"`
		Run     journal.ID      `json:"run"`
		Step    int             `json:"step"`
		Signals json.RawMessage `json:"signals"`
	}{version, g.Run, g.Step, g.Signals}
}

// Reply is a question of the model's own, which wants words for an answer.
type Reply struct {
	Run        journal.ID
	Step, Call int
	Question   string
}

func (r Reply) String() string { return fmt.Sprintf("step %d, call %d: a question", r.Step, r.Call) }

func (r Reply) members() any {
	return struct {
		V        int        `json:"v"`
		Run      journal.ID `json:"run"`
		Step     int        `json:"step"`
		Call     int        `json:"call"`
		Question string     `json:"question"`
	}{version, r.Run, r.Step, r.Call, r.Question}
}
