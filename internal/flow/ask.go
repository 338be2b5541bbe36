package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/playbook"
)

// previewTime is how long the command of a pause may take whose output is shown.
const previewTime = time.Minute

// previewBytes is how much of it is shown.
const previewBytes = 16 << 10

// ask puts a step's question to a person. What the person is to see is put together
// first, which may take a command.
func (t *hold) ask(eff steps.Ask) func() {
	key := fmt.Sprintf("ask %d", eff.Step)
	state := t.state
	return t.once(key, func(ctx context.Context) (steps.Event, error) {
		asked, request, err := t.question(ctx, state, eff)
		if err != nil {
			return steps.InternalError{Stamp: now(), Error: valid(fmt.Sprintf("ask about step %s: %v", t.step(eff.Step).ID.Value, err))}, nil
		}
		return question{asked, request}, nil
	})
}

// question is an Asked that brings the row of its question along.
type question struct {
	steps.Asked
	request approval.Request
}

// asked writes a question and its event at once.
func (t *hold) asked(q question) {
	q.Stamp = now()
	if !t.happen(q.Asked) {
		return
	}
	t.batch.before = append(t.batch.before, func(ctx context.Context, tx journal.Tx) error {
		_, err := approval.Ask(ctx, tx, t.lease, q.request)
		return err
	})
}

// question puts together what a person is asked.
func (t *hold) question(ctx context.Context, state steps.State, eff steps.Ask) (e steps.Asked, r approval.Request, err error) {
	step := t.step(eff.Step)
	e = steps.Asked{Stamp: now(), Step: eff.Step}
	expire := cmp.Or(t.profile.Expire, 24*time.Hour)
	second := t.profile.SecondPerson
	pause, ok := step.Work.(*playbook.Pause)
	if ok && eff.About == steps.AboutPause {
		expire = cmp.Or(pause.Expire.Value, expire)
		second = second || pause.SecondPerson.Value
		if pause.Preview != nil {
			w := &attempt{hold: t, n: eff.Step, step: step, state: state}
			if e.Preview, err = w.preview(ctx, pause.Preview); err != nil {
				return e, r, err
			}
		}
	}
	subject, err := t.subject(state, eff.Step, eff.About, e.Preview)
	if err != nil {
		return e, r, err
	}
	digest, err := approval.Digest(subject)
	if err != nil {
		return e, r, err
	}
	id, err := t.engine.NewID(journal.ApprovalPrefix)
	if err != nil {
		return e, r, err
	}
	e.ID, e.Digest, e.Expires = string(id), hex.EncodeToString(digest[:]), time.Now().Add(expire).UTC().Truncate(time.Microsecond)
	r = approval.Request{ID: id, About: eff.About, Subject: subject, Expires: e.Expires}
	if second {
		r.NotBy = t.row.Starter
	}
	return e, r, nil
}

func approvers(pause *playbook.Pause) (all []string) {
	for _, name := range pause.Approvers.Value {
		all = append(all, name.Value)
	}
	return all
}

// preview runs the command whose output a person sees. It has the step's scope, and
// what it says is screened.
func (w *attempt) preview(ctx context.Context, work *playbook.Run) (string, error) {
	spec, err := w.spec(work, w.step.Scope)
	if err != nil {
		return "", err
	}
	if why := w.destroys(spec.Argv); why != "" {
		return "", fmt.Errorf("its preview is not run: %s", why)
	}
	spec.Limits.Wall = previewTime
	var out bytes.Buffer
	spec.Stdout, spec.Stderr = &out, &out
	end, err := w.hold.h.Run(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("run its preview: %w", err)
	}
	text := screened(ctx, w.hold.profile.Guards, "step/"+w.step.ID.Value+"/preview", out.String())
	if len(text) > previewBytes {
		text = valid(text[:previewBytes]) + fmt.Sprintf("\n[%d bytes more]", len(text)-previewBytes)
	}
	if end.End != sandbox.Exited || end.Exit != 0 {
		text += fmt.Sprintf("\n[the preview %s with code %d]", end.End, end.Exit)
	}
	return text, nil
}

// subject is what a question is about, as the run stands: all that the person sees.
func (t *hold) subject(state steps.State, n int, about, preview string) (approval.Subject, error) {
	step, at := t.step(n), state.Steps[n-1]
	s := approval.Pause{
		Run: t.row.Run, Playbook: state.Book.Name, Step: step.ID.Value, Visit: at.Started + 1,
		Workdir: t.row.Workdir, ProfileDigest: t.row.ProfileDigest,
	}
	var err error
	if s.BookDigest, err = bookDigest(state.Book); err != nil {
		return nil, err
	}
	if s.Inputs, err = values(state.Book.Inputs); err != nil {
		return nil, err
	}
	if about == steps.AboutVerdict {
		s.Visit = at.Started
		s.Reason, s.Output = at.Question.Why, at.Result.Output
		return s, nil
	}
	pause, ok := step.Work.(*playbook.Pause)
	if !ok {
		return nil, errors.New("it is no pause")
	}
	s.Reason, s.Preview, s.Approvers = pause.Reason.Value, preview, approvers(pause)
	sc, err := sceneOf(state)
	if err != nil {
		return nil, err
	}
	shown, err := sc.values(pause.Show)
	if err != nil {
		return nil, err
	}
	s.Shown, err = values(shown)
	return s, err
}

// values is named values as one object.
func values(all []steps.Value) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	for _, v := range all {
		object[v.Name] = v.Value
	}
	return json.Marshal(object)
}

// takeDecision takes in what became of a step's question, if something did. The row
// is marked as used in the write that also appends the event.
func (t *hold) takeDecision(n int) error {
	q := t.state.Steps[n-1].Question
	row, err := t.store.Question(t.ctx, t.lease.Tenant, journal.ID(q.ID))
	if err != nil {
		return err
	}
	if row.State == journal.QuestionPending && time.Now().Before(q.Expires) {
		return nil
	}
	subject, err := t.subject(t.state, n, q.About, t.state.Steps[n-1].Preview)
	if err != nil {
		return err
	}
	asked, err := hex.DecodeString(q.Digest)
	if err != nil || len(asked) != 32 {
		return fmt.Errorf("%q is not a digest", q.Digest)
	}
	would, err := approval.Digest(subject)
	if err != nil {
		return err
	}
	seen := approval.Taken{Question: row, Bound: would == [32]byte(asked) && would == row.Digest}
	event := verdict(q, seen)
	if steps.Check(t.state, event) != nil {
		return nil // the run has moved on, and asks this no longer
	}
	t.batch.before = append(t.batch.before, func(ctx context.Context, tx journal.Tx) error {
		taken, err := approval.Take(ctx, tx, t.lease, row.ID, [32]byte(asked), subject)
		if err != nil {
			return err
		}
		if taken.Bound != seen.Bound || taken.State != seen.State && taken.State != journal.QuestionExpired {
			return errors.New("the row changed while it was read")
		}
		return nil
	})
	t.happen(event)
	return nil
}

// verdict is what a taken decision means to the run. A decision that is not about
// what would go on is a no.
func verdict(q steps.Question, taken approval.Taken) steps.Event {
	d := steps.Decided{Stamp: now(), ID: q.ID, Digest: q.Digest, By: taken.By, Reason: valid(taken.Text), Made: taken.Decided}
	switch {
	case taken.State == journal.QuestionPending || taken.State == journal.QuestionExpired:
		return steps.Expired{Stamp: now(), ID: q.ID}
	case !taken.Bound:
		d.By, d.Reason = "stoplog", "what was decided is not what would go on"
		return d
	}
	d.Approved = taken.Approved()
	return d
}
