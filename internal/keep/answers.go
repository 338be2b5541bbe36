package keep

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
)

// Answers keeps withheld answers in the journal, and asks there. It is a
// govern.Approvals; the laws are package approval's.
type Answers struct {
	Store  journal.Store
	Tenant string
	IDs    *journal.IDs
	// Leave takes a request from who recorded it so far: from then on its record is
	// what becomes of the question. It fails if something of it was not kept.
	Leave func(run string) error
	// Expire says how long a question of a profile waits for a person; 0: a day.
	Expire func(profile string) time.Duration
}

var errNoKey = errors.New("there is no key to seal with (make one with `stoplog seal-key --to stoplog.seal`, and name it in stoplog.yaml as seal: {key: file:stoplog.seal})")

// Keep implements [govern.Approvals].
func (a *Answers) Keep(ctx context.Context, w govern.WithheldAnswer) (string, error) {
	if s, ok := a.Store.(interface{ Seals() bool }); ok && !s.Seals() {
		return "", errNoKey
	}
	id, err := a.IDs.New(journal.ApprovalPrefix)
	if err != nil {
		return "", err
	}
	findings, err := json.Marshal(w.Findings)
	if err != nil {
		return "", err
	}
	var settled journal.Settled
	if err := convert(w.Settled, &settled); err != nil {
		return "", err
	}
	expires := time.Now().Add(cmp.Or(a.Expire(w.Profile), 24*time.Hour)).UTC().Truncate(time.Microsecond)
	answer := approval.Answer{
		Caller: w.Caller, Request: w.Request, Status: w.Released.Status, Kind: w.Released.Kind, Body: w.Released.Body,
		Findings: findings, Denied: w.Denied,
	}
	if w.Parent != "" {
		return w.Run, a.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
			return approval.KeepFor(ctx, tx, a.Tenant, journal.ID(w.Run), answer, expires)
		})
	}
	if err := a.Leave(w.Run); err != nil {
		return "", err
	}
	l := journal.RequestLease(journal.Ref{Tenant: a.Tenant, Run: journal.ID(w.Run)})
	err = a.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		_, err := approval.Withhold(ctx, tx, l, approval.Request{ID: id, Expires: expires}, answer, w.Guard, w.Rule, settled)
		return err
	})
	return string(id), err
}

// convert says a value in another type of the same stored form.
func convert(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// Await implements [govern.Approvals].
func (a *Answers) Await(ctx context.Context, id string) (govern.Decided, error) {
	for {
		q, err := a.Store.Question(ctx, a.Tenant, journal.ID(id))
		if err != nil {
			return govern.Decided{}, err
		}
		// The row is read first: what is behind its end comes later.
		run, err := a.Store.Run(ctx, q.Ref)
		if err != nil {
			return govern.Decided{}, err
		}
		if run.Status.Terminal() {
			if q, err = a.Store.Question(ctx, a.Tenant, q.ID); err != nil {
				return govern.Decided{}, err
			}
			return decided(q, run), nil
		}
		if err := a.Store.Await(ctx, q.Ref, run.Tail.Seq); err != nil {
			return govern.Decided{}, err
		}
	}
}

// decided is what became of a question, and of its run.
func decided(q journal.Question, run journal.Run) govern.Decided {
	switch {
	case q.State == journal.QuestionApproved && run.Status == journal.Completed:
		return govern.Decided{Approved: true}
	case q.State == journal.QuestionDenied && q.Text != "":
		return govern.Decided{Words: fmt.Sprintf("the rest was denied by %s: %s", q.By, q.Text)}
	case q.State == journal.QuestionDenied:
		return govern.Decided{Words: "the rest was denied by " + q.By}
	}
	return govern.Decided{Words: "nobody approved the rest in time"}
}

// Why an answer is not given out. One that is somebody else's is as if it were not
// there.
var (
	notFound = &govern.NotGivenError{Status: http.StatusNotFound, Code: "approval_not_found", Words: "there is no such approval, or the answer is no longer kept"}
	another  = &govern.NotGivenError{Status: http.StatusConflict, Code: "approval_of_another_request", Words: "the approval is of another request than this one"}
	pending  = &govern.NotGivenError{Status: http.StatusConflict, Code: "approval_pending", Words: "nobody has decided yet"}
)

// Answer implements [govern.Approvals].
func (a *Answers) Answer(ctx context.Context, id, caller, request string) (govern.Released, error) {
	q, err := a.Store.Question(ctx, a.Tenant, journal.ID(id))
	if errors.Is(err, journal.ErrNotFound) || err == nil && q.About != approval.AboutAnswer {
		return govern.Released{}, notFound
	}
	if err != nil {
		return govern.Released{}, err
	}
	run, err := a.Store.Run(ctx, q.Ref)
	if err != nil {
		return govern.Released{}, err
	}
	kept, err := approval.ReadAnswer(ctx, a.Store, a.Tenant, q.ID)
	there := err == nil
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return govern.Released{}, err
	}
	if there && subtle.ConstantTimeCompare([]byte(kept.Caller), []byte(caller)) != 1 {
		return govern.Released{}, notFound
	}
	switch {
	case !run.Status.Terminal() && there && (q.Expires.IsZero() || time.Now().Before(q.Expires)):
		return govern.Released{}, pending
	case !there, run.Status != journal.Completed, q.State != journal.QuestionApproved, q.Used.IsZero():
		return govern.Released{}, notFound
	case request != "" && subtle.ConstantTimeCompare([]byte(kept.Request), []byte(request)) != 1:
		return govern.Released{}, another
	}
	return govern.Released{Status: kept.Status, Kind: kept.Kind, Body: kept.Body}, nil
}
