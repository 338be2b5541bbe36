package journaltest

import (
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var runTests = []test{
	{"a new run is queued, due, and nobody's", func(w *world) {
		want := journal.Run{
			Ref:  journal.Ref{Tenant: "t", Run: w.id(journal.RunPrefix)},
			Kind: journal.StepRun, Parent: w.id(journal.RunPrefix), Session: w.id(journal.SessionPrefix),
			Profile: "p", ProfileDigest: "d", Starter: "s", Capture: journal.CaptureFull, Workdir: "/w", Host: "h",
		}
		w.do(func(tx journal.Tx) error { return tx.Create(w.ctx, want) })
		want.Status, want.Created, want.WakeAt = journal.Queued, w.clock.Now(), w.clock.Now()
		if d := cmp.Diff(want, w.row(want.Ref)); d != "" {
			w.Errorf("the row is not as created (-want +got):\n%s", d)
		}
	}},

	{"the capture of a new run is redacted unless said", func(w *world) {
		if got := w.row(w.create()).Capture; got != journal.CaptureRedacted {
			w.Errorf("capture %q", got)
		}
	}},

	{"what cannot be a run is not created", func(w *world) {
		ref := w.create()
		for name, r := range map[string]journal.Run{
			"the same id again": {Ref: ref, Kind: journal.TurnRun},
			"no tenant":         {Ref: journal.Ref{Run: w.id(journal.RunPrefix)}},
			"another's id":      {Ref: journal.Ref{Tenant: "t", Run: w.id(journal.TicketPrefix)}},
			"unknown capture":   {Ref: journal.Ref{Tenant: "t", Run: w.id(journal.RunPrefix)}, Capture: "some"},
		} {
			if err := w.try(func(tx journal.Tx) error { return tx.Create(w.ctx, r) }); err == nil {
				w.Errorf("%s: created", name)
			}
		}
	}},

	{"a run that is not there is not found", func(w *world) {
		none := journal.Ref{Tenant: "t", Run: w.id(journal.RunPrefix)}
		_, err := w.Run(w.ctx, none)
		w.wantErr(err, journal.ErrNotFound)
		for name, write := range writes(w, journal.Lease{Ref: none, Fence: 1}, "") {
			if name != "decide" {
				w.wantErr(w.try(write), journal.ErrNotFound)
			}
		}
	}},

	{"running keeps the lease, every other status gives it up", func(w *world) {
		for _, s := range []journal.Status{journal.Queued, journal.WaitingApproval, journal.WaitingInput, journal.WaitingDecision,
			journal.Completed, journal.Blocked, journal.Failed, journal.Cancelled} {
			l := w.started()
			if r := w.row(l.Ref); r.Status != journal.Running || r.Owner != alice.Owner {
				w.Fatalf("running: status %s, owner %q", r.Status, r.Owner)
			}
			w.status(l, s, "because")
			r := w.row(l.Ref)
			if r.Status != s || r.Reason != "because" || r.Owner != "" {
				w.Errorf("%s: status %s, reason %q, owner %q", s, r.Status, r.Reason, r.Owner)
			}
			if r.Ended.IsZero() == s.Terminal() {
				w.Errorf("%s: ended %v", s, r.Ended)
			}
		}
	}},

	{"a run wakes when its status says", func(w *world) {
		later := w.clock.Now().Add(time.Hour)
		for _, c := range []struct {
			change journal.Change
			want   time.Time
		}{
			{journal.Change{Status: journal.Queued}, w.clock.Now()},
			{journal.Change{Status: journal.Queued, WakeAt: later}, later},
			{journal.Change{Status: journal.WaitingApproval}, time.Time{}},
			{journal.Change{Status: journal.WaitingApproval, WakeAt: later}, later},
			{journal.Change{Status: journal.Running, WakeAt: later}, w.clock.Now()},
			{journal.Change{Status: journal.Failed, WakeAt: later}, time.Time{}},
		} {
			l := w.started()
			w.do(func(tx journal.Tx) error { return tx.SetStatus(w.ctx, l, c.change) })
			if got := w.row(l.Ref).WakeAt; !got.Equal(c.want) {
				w.Errorf("%+v: wakes at %v, want %v", c.change, got, c.want)
			}
		}
	}},

	{"terminal is terminal: a late write changes nothing and says so", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		w.append(l, note(1))
		w.status(l, journal.Blocked, "guard_denied")
		row, log := w.row(l.Ref), w.log(l.Ref, 0)
		w.clock.Advance(time.Minute)
		for name, write := range writes(w, l, q) {
			err := wantAs[*journal.SettledError](w, w.try(write))
			if err.Status != journal.Blocked || err.Reason != "guard_denied" || !err.At.Equal(row.Ended) {
				w.Errorf("%s: it says %v", name, err)
			}
		}
		if d := cmp.Diff(row, w.row(l.Ref)) + cmp.Diff(log, w.log(l.Ref, 0)); d != "" {
			w.Errorf("it changed (-before +after):\n%s", d)
		}
	}},

	{"of many that end a run, in two processes, one wins", func(w *world) {
		l := w.started()
		stores := []journal.Store{w.Store, w.again()}
		ends := []journal.Status{journal.Completed, journal.Cancelled, journal.Failed, journal.Blocked}
		errs := make([]error, 24)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = w.on(stores[i%2]).try(func(tx journal.Tx) error {
					return tx.SetStatus(w.ctx, l, journal.Change{Status: ends[i%4]})
				})
			})
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				if got := w.row(l.Ref).Status; got != ends[i%4] {
					w.Errorf("%s won, and the row says %s", ends[i%4], got)
				}
				continue
			}
			wantAs[*journal.SettledError](w, err)
		}
		if won != 1 {
			w.Errorf("%d won", won)
		}
	}},

	{"an unknown status is refused", func(w *world) {
		l := w.started()
		if err := w.try(func(tx journal.Tx) error { return tx.SetStatus(w.ctx, l, journal.Change{Status: "done"}) }); err == nil {
			w.Error("taken")
		}
	}},

	{"runs are listed, the newest first, by what they are", func(w *world) {
		session := w.id(journal.SessionPrefix)
		a := w.create()
		b := w.create(func(r *journal.Run) { r.Kind = journal.RequestRun })
		c := w.create(func(r *journal.Run) { r.Session = session })
		d := w.create(func(r *journal.Run) { r.Parent = a.Run })
		w.create(func(r *journal.Run) { r.Tenant = "other" })
		w.status(w.claim(c, alice), journal.Completed, "")
		for _, c := range []struct {
			query journal.RunQuery
			want  []journal.Ref
		}{
			{journal.RunQuery{}, []journal.Ref{d, c, b, a}},
			{journal.RunQuery{Limit: 2}, []journal.Ref{d, c}},
			{journal.RunQuery{Before: c.Run}, []journal.Ref{b, a}},
			{journal.RunQuery{Kind: journal.RequestRun}, []journal.Ref{b}},
			{journal.RunQuery{Session: session}, []journal.Ref{c}},
			{journal.RunQuery{Parent: a.Run}, []journal.Ref{d}},
			{journal.RunQuery{Status: journal.Completed}, []journal.Ref{c}},
			{journal.RunQuery{Status: journal.Queued, Kind: journal.TurnRun}, []journal.Ref{d, a}},
		} {
			c.query.Tenant = journal.DefaultTenant
			rows, err := w.Runs(w.ctx, c.query)
			if err != nil {
				w.Fatal(err)
			}
			var got []journal.Ref
			for _, r := range rows {
				got = append(got, r.Ref)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				w.Errorf("%+v (-want +got):\n%s", c.query, d)
			}
		}
	}},

	{"an id is found by what it begins with", func(w *world) {
		a := w.create()
		w.clock.Advance(40 * 24 * time.Hour)
		b := w.create()
		q := w.ask(w.claim(b, alice), "call 1", 0)
		w.create(func(r *journal.Run) { r.Tenant, r.Run = "other", b.Run[:20]+"zzzzzzzzzz" })
		for partial, want := range map[string]journal.ID{
			string(a.Run):      a.Run,
			string(a.Run[:12]): a.Run,
			string(b.Run[:12]): b.Run,
			string(q):          q,
			string(q[:6]):      q,
		} {
			got, err := w.Find(w.ctx, journal.DefaultTenant, partial)
			if err != nil || got != want {
				w.Errorf("%s: found %s, %v, want %s", partial, got, err, want)
			}
		}
		_, err := w.Find(w.ctx, journal.DefaultTenant, "run_0")
		if e := wantAs[*journal.AmbiguousError](w, err); len(e.IDs) != 2 {
			w.Errorf("it names %v", e.IDs)
		}
		for _, none := range []string{"run_zz", "apr_zz", "tkt_0", "what"} {
			_, err := w.Find(w.ctx, journal.DefaultTenant, none)
			w.wantErr(err, journal.ErrNotFound)
		}
	}},
}

// writes are all the ways to write to a run, by name: those that need its lease,
// and those that need none. q is a question of the run.
func writes(w *world, l journal.Lease, q journal.ID) map[string]func(journal.Tx) error {
	return map[string]func(journal.Tx) error{
		"append": func(tx journal.Tx) error { _, err := tx.Append(w.ctx, l, note(9)); return err },
		"save":   func(tx journal.Tx) error { return tx.Save(w.ctx, l, journal.Snapshot{Seq: 1, Version: 1}) },
		"status": func(tx journal.Tx) error {
			return tx.SetStatus(w.ctx, l, journal.Change{Status: journal.Completed})
		},
		"running": func(tx journal.Tx) error {
			return tx.SetStatus(w.ctx, l, journal.Change{Status: journal.Running})
		},
		"ask": func(tx journal.Tx) error {
			return tx.Ask(w.ctx, l, journal.Question{ID: w.id(journal.ApprovalPrefix), Subject: "call 9"})
		},
		"use":   func(tx journal.Tx) error { _, err := tx.Use(w.ctx, l, q); return err },
		"wake":  func(tx journal.Tx) error { return tx.Wake(w.ctx, l.Ref, w.clock.Now()) },
		"claim": func(tx journal.Tx) error { _, err := tx.Claim(w.ctx, l.Ref, bob, ttl); return err },
		"decide": func(tx journal.Tx) error {
			_, err := tx.Decide(w.ctx, l.Tenant, q, journal.Decision{State: journal.QuestionDenied, By: "eve"})
			return err
		},
	}
}
