package journaltest

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var questionTests = []test{
	{"a question is pending until it is decided, and then as decided", func(w *world) {
		for _, state := range []journal.QuestionState{journal.QuestionApproved, journal.QuestionDenied, journal.QuestionAnswered} {
			l := w.started()
			want := journal.Question{
				Ref: l.Ref, ID: w.id(journal.ApprovalPrefix), About: "call", Subject: "call 1", Digest: [32]byte{1, 2, 3},
				Shown: json.RawMessage(`{"tool":"rm"}`), NotBy: "ann", Expires: w.clock.Now().Add(time.Hour),
			}
			w.do(func(tx journal.Tx) error { return tx.Ask(w.ctx, l, want) })
			want.Asked, want.State = w.clock.Now(), journal.QuestionPending
			w.wantQuestion(want)

			w.clock.Advance(time.Minute)
			w.do(func(tx journal.Tx) error {
				got, err := tx.Decide(w.ctx, l.Tenant, want.ID, journal.Decision{State: state, By: "bea", Text: "why"})
				want.State, want.By, want.Text, want.Decided = state, "bea", "why", w.clock.Now()
				if d := cmp.Diff(want, got); d != "" {
					w.Errorf("decide returned (-want +got):\n%s", d)
				}
				return err
			})
			w.wantQuestion(want)
		}
	}},

	{"a decision wakes the run", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		w.status(l, journal.WaitingApproval, "")
		w.want(w.sweep(bob, 9))
		w.decide(q, journal.QuestionApproved)
		w.want(w.sweep(bob, 9), l.Ref)
	}},

	{"deciding twice says who was first", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		w.decide(q, journal.QuestionApproved)
		first := w.question(q)
		w.clock.Advance(time.Minute)
		err := wantAs[*journal.DecidedError](w, w.tryDecide(q, journal.QuestionDenied))
		if got, want := err.Error(), "already approved by bea at "+first.Decided.Format(time.RFC3339); got != want {
			w.Errorf("it says %q, want %q", got, want)
		}
		w.wantQuestion(first)
	}},

	{"of many who decide at once, in two processes, one is first", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		other := w.on(w.again())
		var wg sync.WaitGroup
		errs := make([]error, 40)
		says := []journal.QuestionState{journal.QuestionApproved, journal.QuestionApproved, journal.QuestionDenied, journal.QuestionAnswered}
		for i := range errs {
			wg.Go(func() { errs[i] = []*world{w, other}[i%2].tryDecide(q, says[i%4]) })
		}
		wg.Wait()
		first := w.question(q)
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				if first.State != says[i%4] {
					w.Errorf("the one who was first said %s, and it is %s", says[i%4], first.State)
				}
				continue
			}
			wantAs[*journal.DecidedError](w, err)
		}
		if won != 1 {
			w.Errorf("%d were first", won)
		}
	}},

	{"a decision is used once", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		w.wantErr(w.try(func(tx journal.Tx) error { _, err := tx.Use(w.ctx, l, q); return err }), journal.ErrPending)
		w.decide(q, journal.QuestionApproved)
		want := w.question(q)
		w.clock.Advance(time.Second)
		want.Used = w.clock.Now()
		if d := cmp.Diff(want, w.use(l, q)); d != "" {
			w.Errorf("use returned (-want +got):\n%s", d)
		}
		w.wantQuestion(want)
		w.wantErr(w.try(func(tx journal.Tx) error { _, err := tx.Use(w.ctx, l, q); return err }), journal.ErrUsed)
		w.wantQuestion(want)
	}},

	{"a decision is used by its own run", func(w *world) {
		l, other := w.started(), w.started()
		q := w.ask(l, "call 1", 0)
		w.decide(q, journal.QuestionApproved)
		if err := w.try(func(tx journal.Tx) error { _, err := tx.Use(w.ctx, other, q); return err }); err == nil {
			w.Error("another run used it")
		}
		if !w.question(q).Used.IsZero() {
			w.Error("it is used")
		}
	}},

	{"silence is a denial once its time has passed", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", time.Hour)
		w.clock.Advance(time.Hour - time.Microsecond)
		w.wantErr(w.try(func(tx journal.Tx) error { _, err := tx.Use(w.ctx, l, q); return err }), journal.ErrPending)
		w.clock.Advance(time.Microsecond)
		err := wantAs[*journal.DecidedError](w, w.tryDecide(q, journal.QuestionApproved))
		if got, want := err.Error(), "expired at "+w.clock.Now().Format(time.RFC3339); got != want {
			w.Errorf("it says %q, want %q", got, want)
		}
		w.clock.Advance(time.Minute)
		got := w.use(l, q)
		if got.State != journal.QuestionExpired || !got.Decided.Equal(got.Expires) || !got.Used.Equal(w.clock.Now()) {
			w.Errorf("used as %+v", got)
		}
		w.wantQuestion(got)
	}},

	{"a decision in time holds past the time", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", time.Hour)
		w.decide(q, journal.QuestionApproved)
		w.clock.Advance(2 * time.Hour)
		if got := w.use(l, q); got.State != journal.QuestionApproved {
			w.Errorf("used as %s", got.State)
		}
	}},

	{"what is no decision is refused", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		for _, state := range []journal.QuestionState{"", journal.QuestionPending, journal.QuestionExpired, "maybe"} {
			if err := w.tryDecide(q, state); err == nil {
				w.Errorf("%q was taken", state)
			}
		}
	}},

	{"a question has an approval's id", func(w *world) {
		l := w.started()
		if err := w.try(func(tx journal.Tx) error {
			return tx.Ask(w.ctx, l, journal.Question{ID: w.id(journal.TicketPrefix), Subject: "call 1"})
		}); err == nil {
			w.Error("asked")
		}
	}},

	{"questions are listed, the newest first, by run and state", func(w *world) {
		l, other := w.started(), w.started()
		a, b, c := w.ask(l, "call 1", 0), w.ask(l, "call 2", 0), w.ask(other, "call 1", 0)
		w.decide(b, journal.QuestionDenied)
		for _, k := range []struct {
			query journal.QuestionQuery
			want  []journal.ID
		}{
			{journal.QuestionQuery{}, []journal.ID{c, b, a}},
			{journal.QuestionQuery{Run: l.Run}, []journal.ID{b, a}},
			{journal.QuestionQuery{State: journal.QuestionPending}, []journal.ID{c, a}},
			{journal.QuestionQuery{Before: c, Limit: 1}, []journal.ID{b}},
		} {
			k.query.Tenant = l.Tenant
			qs, err := w.Questions(w.ctx, k.query)
			if err != nil {
				w.Fatal(err)
			}
			var got []journal.ID
			for _, q := range qs {
				got = append(got, q.ID)
			}
			if d := cmp.Diff(k.want, got); d != "" {
				w.Errorf("%+v (-want +got):\n%s", k.query, d)
			}
		}
	}},
}

// ask asks about a subject; expires 0 is never.
func (w *world) ask(l journal.Lease, subject string, expires time.Duration) journal.ID {
	w.Helper()
	q := journal.Question{ID: w.id(journal.ApprovalPrefix), Subject: subject, Shown: json.RawMessage(`{}`)}
	if expires > 0 {
		q.Expires = w.clock.Now().Add(expires)
	}
	w.do(func(tx journal.Tx) error { return tx.Ask(w.ctx, l, q) })
	return q.ID
}

func (w *world) tryDecide(q journal.ID, state journal.QuestionState) error {
	return w.try(func(tx journal.Tx) error {
		_, err := tx.Decide(w.ctx, journal.DefaultTenant, q, journal.Decision{State: state, By: "bea"})
		return err
	})
}

func (w *world) decide(q journal.ID, state journal.QuestionState) {
	w.Helper()
	if err := w.tryDecide(q, state); err != nil {
		w.Fatal(err)
	}
}

func (w *world) use(l journal.Lease, id journal.ID) (q journal.Question) {
	w.Helper()
	w.do(func(tx journal.Tx) (err error) {
		q, err = tx.Use(w.ctx, l, id)
		return err
	})
	return q
}

func (w *world) question(id journal.ID) journal.Question {
	w.Helper()
	q, err := w.Question(w.ctx, journal.DefaultTenant, id)
	if err != nil {
		w.Fatal(err)
	}
	return q
}

func (w *world) wantQuestion(want journal.Question) {
	w.Helper()
	if d := cmp.Diff(want, w.question(want.ID)); d != "" {
		w.Errorf("the question (-want +got):\n%s", d)
	}
}
