package approval

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// An answer of a request that a guard withheld waits in the journal, sealed, with
// the request's run:
//
//	Withhold ──► run: waiting_approval ──► Decide: yes ──► run completed, the answer is kept a while
//	             secret: the answer                no  ──► run blocked, the answer is destroyed
//	                          └──────────► Lapse: silence, as no
//
// What follows from a decision is part of the decision's own write, whoever makes
// it: no process has to be up for it.

// AboutAnswer is what questions about withheld answers are about.
const AboutAnswer = "answer"

// answerKind is the kind of the journal's secrets that are answers, and answerName
// the name of the one that an approval owns.
const (
	answerKind = "withheld_answer"
	answerName = "answer"
)

// keptFor is how long an answer that was approved can be read.
const keptFor = 24 * time.Hour

// Answer is an answer of a request that waits for a person.
type Answer struct {
	V        int             `json:"v"`
	Caller   string          `json:"caller"`  // who asked, as a digest
	Request  string          `json:"request"` // what was asked, as a digest
	Status   int             `json:"status"`  // HTTP
	Kind     string          `json:"kind"`    // content type
	Findings json.RawMessage `json:"findings"`
	Denied   string          `json:"denied,omitempty"`
	// Body is the whole answer as it leaves once what asks for approval was
	// approved: byte for byte.
	Body []byte `json:"body"`
}

// subject is what a decision about the answer binds to.
func (a Answer) subject(run journal.ID) Withheld {
	return Withheld{Run: run, Side: AboutAnswer, Text: a.Body, Findings: a.Findings, Denied: a.Denied}
}

// ErrUnapprovable: somewhere in what was withheld is what nobody can let through.
var ErrUnapprovable = errors.New("it has a finding that denies: nobody can approve it")

// Withhold leaves a request to a person: its answer is kept, its run waits. guard
// and rule made it so; settled is how it ends if the answer is approved.
func Withhold(ctx context.Context, tx journal.Tx, l journal.Lease, r Request, a Answer, guard, rule string, settled journal.Settled) (journal.Question, error) {
	a.V = 1
	r.About, r.Subject = AboutAnswer, a.subject(l.Run)
	q, err := Ask(ctx, tx, l, r)
	if err != nil {
		return q, err
	}
	value, err := json.Marshal(a)
	if err != nil {
		return q, fmt.Errorf("withhold %s: %w", r.ID, err)
	}
	// A decision may come in the last moment, and what it decides on must be there.
	until := r.Expires.Add(time.Minute)
	err = tx.Keep(ctx, l.Tenant, journal.Secret{Kind: answerKind, Owner: string(r.ID), Name: answerName, Value: value, Until: until})
	if err != nil {
		return q, fmt.Errorf("withhold %s: %w", r.ID, err)
	}
	e, err := journal.NewEntry(journal.RequestWithheld, 1, journal.Structure, journal.Withheld{
		Approval: r.ID, Digest: hex.EncodeToString(q.Digest[:]), Guard: guard, Rule: rule, Denied: a.Denied, Settled: settled,
	})
	if err != nil {
		return q, err
	}
	if _, err := tx.Append(ctx, l, e); err != nil {
		return q, err
	}
	return q, tx.SetStatus(ctx, l, journal.Change{Status: journal.WaitingApproval, WakeAt: r.Expires})
}

// KeepFor keeps the answer to a request that is part of a run, which asks a person
// itself ([Withheld]) and reads the answer under the request's id.
func KeepFor(ctx context.Context, tx journal.Tx, tenant string, request journal.ID, a Answer, expires time.Time) error {
	a.V = 1
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("keep the answer of %s: %w", request, err)
	}
	return tx.Keep(ctx, tenant, journal.Secret{Kind: answerKind, Owner: string(request), Name: answerName, Value: value, Until: expires.Add(time.Minute)})
}

// AnswerOf returns the answer that is kept for a run: that of its last request of
// which one is. journal.ErrNotFound: there is none.
func AnswerOf(ctx context.Context, r journal.Reader, ref journal.Ref) (Answer, error) {
	requests, err := r.Runs(ctx, journal.RunQuery{Tenant: ref.Tenant, Parent: ref.Run, Kind: journal.RequestRun})
	if err != nil {
		return Answer{}, err
	}
	for _, request := range requests {
		a, err := ReadAnswer(ctx, r, ref.Tenant, request.Run)
		if !errors.Is(err, journal.ErrNotFound) {
			return a, err
		}
	}
	return Answer{}, fmt.Errorf("an answer that is kept for %s: %w", ref, journal.ErrNotFound)
}

// Asked returns the answer that a question is about: of a request, or of a run that
// asks itself. journal.ErrNotFound: it is about none, or it is no longer kept.
func Asked(ctx context.Context, r journal.Reader, q journal.Question) (Answer, error) {
	if q.About != AboutAnswer {
		return Answer{}, fmt.Errorf("%s is about no answer: %w", q.ID, journal.ErrNotFound)
	}
	a, err := ReadAnswer(ctx, r, q.Tenant, q.ID)
	if errors.Is(err, journal.ErrNotFound) {
		return AnswerOf(ctx, r, q.Ref)
	}
	return a, err
}

// ReadAnswer returns the answer of an approval, or of a request that is part of a
// run; journal.ErrNotFound if there is none.
func ReadAnswer(ctx context.Context, r journal.Reader, tenant string, id journal.ID) (a Answer, err error) {
	found, err := r.Secrets(ctx, tenant, answerKind, string(id))
	if err == nil && len(found) == 0 {
		err = journal.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal(found[0].Value, &a)
	}
	if err != nil {
		return a, fmt.Errorf("the answer of %s: %w", id, err)
	}
	return a, nil
}

// concludeDecided carries out a decision about a request's answer; it does nothing
// about others, which their runs take up themselves.
func concludeDecided(ctx context.Context, tx journal.Tx, q journal.Question) error {
	if q.About != AboutAnswer {
		return nil
	}
	run, err := tx.Run(ctx, q.Ref)
	if err != nil {
		return err
	}
	if run.Kind != journal.RequestRun {
		return destroyOf(ctx, tx, q)
	}
	l, err := tx.Claim(ctx, q.Ref, journal.Worker{Owner: "decision " + string(q.ID), Host: run.Host}, time.Minute)
	if err != nil {
		return err
	}
	return conclude(ctx, tx, l, q.ID, q.State)
}

// destroyOf destroys what is kept for a run that was told no.
func destroyOf(ctx context.Context, tx journal.Tx, q journal.Question) error {
	if q.State == journal.QuestionApproved {
		return nil
	}
	requests, err := tx.Runs(ctx, journal.RunQuery{Tenant: q.Tenant, Parent: q.Run, Kind: journal.RequestRun})
	for _, r := range requests {
		if err == nil {
			_, err = tx.Destroy(ctx, q.Tenant, answerKind, string(r.Run))
		}
	}
	return err
}

// Lapse carries out the silence on what the run of a request waits for, whose time
// has passed. It reports whether the run waited for a person.
func Lapse(ctx context.Context, tx journal.Tx, l journal.Lease) (bool, error) {
	run, err := tx.Run(ctx, l.Ref)
	if err != nil || run.Status != journal.WaitingApproval {
		return false, err
	}
	w, err := withheldEvent(ctx, tx, l.Ref)
	if err != nil {
		return true, err
	}
	if run.CancelBy != "" {
		if _, err := tx.Destroy(ctx, l.Tenant, answerKind, string(w.Approval)); err != nil {
			return true, err
		}
		settled := w.Settled
		settled.Status, settled.Reason = journal.Cancelled, "cancelled"
		return true, end(ctx, tx, l, settled)
	}
	err = conclude(ctx, tx, l, w.Approval, journal.QuestionExpired)
	if errors.Is(err, journal.ErrPending) { // woken before its time
		q, err := tx.Question(ctx, l.Tenant, w.Approval)
		if err != nil {
			return true, err
		}
		return true, tx.SetStatus(ctx, l, journal.Change{Status: journal.WaitingApproval, WakeAt: q.Expires})
	}
	return true, err
}

// withheldEvent is what the run's log says of what waits.
func withheldEvent(ctx context.Context, r journal.Reader, ref journal.Ref) (w journal.Withheld, err error) {
	for rec, err := range r.Events(ctx, ref, 0) {
		if err != nil {
			return w, err
		}
		if rec.Kind == journal.RequestWithheld {
			return w, rec.Decode(&w)
		}
	}
	return w, fmt.Errorf("the log of %s does not say what it waits for: %w", ref, journal.ErrNotFound)
}

// conclude takes the decision, once, ends the run with it, and destroys the answer
// unless it was approved.
func conclude(ctx context.Context, tx journal.Tx, l journal.Lease, id journal.ID, state journal.QuestionState) error {
	w, err := withheldEvent(ctx, tx, l.Ref)
	if err != nil {
		return err
	}
	settled := w.Settled
	if state == journal.QuestionApproved {
		err = approved(ctx, tx, l, id, w)
	} else {
		settled.Status, settled.Reason = journal.Blocked, "approval_denied"
		var q journal.Question
		if q, err = tx.Use(ctx, l, id); q.State == journal.QuestionExpired {
			settled.Reason = "approval_expired"
		}
		settled.Detail = cmp.Or(q.Text, settled.Detail)
		if err == nil {
			_, err = tx.Destroy(ctx, l.Tenant, answerKind, string(id))
		}
	}
	if err != nil {
		return err
	}
	return end(ctx, tx, l, settled)
}

// end ends the run.
func end(ctx context.Context, tx journal.Tx, l journal.Lease, settled journal.Settled) error {
	e, err := journal.NewEntry(journal.RequestSettled, 1, journal.Structure, settled)
	if err != nil {
		return err
	}
	if _, err := tx.Append(ctx, l, e); err != nil {
		return err
	}
	return tx.SetStatus(ctx, l, journal.Change{Status: settled.Status, Reason: settled.Reason})
}

// approved takes a yes. It is refused, and the question stays, if what would be
// given out is not what was asked about.
func approved(ctx context.Context, tx journal.Tx, l journal.Lease, id journal.ID, w journal.Withheld) error {
	a, err := ReadAnswer(ctx, tx, l.Tenant, id)
	if err != nil {
		return err
	}
	if a.Denied != "" || w.Denied != "" {
		return fmt.Errorf("%s: %w", cmp.Or(a.Denied, w.Denied), ErrUnapprovable)
	}
	asked, err := hex.DecodeString(w.Digest)
	if err != nil || len(asked) != 32 {
		return fmt.Errorf("%q is not a digest", w.Digest)
	}
	taken, err := Take(ctx, tx, l, id, [32]byte(asked), a.subject(l.Run))
	if err != nil {
		return err
	}
	if !taken.Approved() {
		return ErrNotShown
	}
	_, err = tx.KeepUntil(ctx, l.Tenant, answerKind, string(id), taken.Decided.Add(keptFor))
	return err
}
