package journaltest

import (
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var leaseTests = []test{
	{"a claim gives the next fence, for a time", func(w *world) {
		ref := w.create()
		l := w.claim(ref, alice)
		r := w.row(ref)
		if l.Fence != 1 || r.Fence != 1 || r.Owner != "alice" || !r.Until.Equal(w.clock.Now().Add(ttl)) {
			w.Errorf("lease %+v, row %+v", l, r)
		}
	}},

	{"nobody claims what another holds", func(w *world) {
		l := w.started()
		err := wantAs[*journal.LeasedError](w, w.try(func(tx journal.Tx) error {
			_, err := tx.Claim(w.ctx, l.Ref, bob, ttl)
			return err
		}))
		if err.Owner != "alice" || !err.Until.Equal(w.clock.Now().Add(ttl)) {
			w.Errorf("it says %v", err)
		}
	}},

	{"a worker without a name claims nothing", func(w *world) {
		ref := w.create()
		if err := w.try(func(tx journal.Tx) error { _, err := tx.Claim(w.ctx, ref, journal.Worker{}, ttl); return err }); err == nil {
			w.Error("claimed")
		}
	}},

	{"a lease past its time is good until somebody claims, and then for nothing", func(w *world) {
		l := w.started()
		q := w.ask(l, "call 1", 0)
		w.clock.Advance(ttl)
		w.append(l, note(1))
		if l2 := w.claim(l.Ref, bob); l2.Fence != l.Fence+1 {
			w.Errorf("fence %d behind %d", l2.Fence, l.Fence)
		}
		before, log := w.row(l.Ref), w.log(l.Ref, 0)
		for name, write := range writes(w, l, q) {
			switch name {
			case "wake", "cancel", "claim", "decide": // these need no lease
			default:
				w.wantErr(w.try(write), journal.ErrFenced)
			}
		}
		if d := cmp.Diff(before, w.row(l.Ref)) + cmp.Diff(log, w.log(l.Ref, 0)); d != "" {
			w.Errorf("a stale lease changed (-before +after):\n%s", d)
		}
	}},

	{"a lease that was given up is good for nothing", func(w *world) {
		l := w.started()
		w.status(l, journal.WaitingApproval, "")
		w.wantErr(w.try(func(tx journal.Tx) error { _, err := tx.Append(w.ctx, l, note(1)); return err }), journal.ErrFenced)
	}},

	{"renewing moves the end of all of a worker's leases and no other's", func(w *world) {
		a, b, c := w.started(), w.started(), w.create()
		w.claim(c, bob)
		lost := w.started()
		w.status(lost, journal.Queued, "")
		w.clock.Advance(10 * time.Second)
		w.do(func(tx journal.Tx) error {
			held, err := tx.Renew(w.ctx, alice, ttl)
			if d := cmp.Diff([]journal.Held{{Lease: a}, {Lease: b}}, held); d != "" {
				w.Errorf("renewed (-want +got):\n%s", d)
			}
			return err
		})
		for _, ref := range []journal.Ref{a.Ref, b.Ref} {
			if got := w.row(ref).Until; !got.Equal(w.clock.Now().Add(ttl)) {
				w.Errorf("until %v", got)
			}
		}
		if got := w.row(c).Until; !got.Equal(w.clock.Now().Add(ttl - 10*time.Second)) {
			w.Errorf("bob's lease moved to %v", got)
		}
	}},

	{"a run that depends on a machine is claimed there only", func(w *world) {
		ref := w.create(func(r *journal.Run) { r.Host = "there" })
		err := wantAs[*journal.PlacedError](w, w.try(func(tx journal.Tx) error {
			_, err := tx.Claim(w.ctx, ref, alice, ttl)
			return err
		}))
		if err.Host != "there" {
			w.Errorf("it says %v", err)
		}
		if got := w.sweep(alice, 9); got != nil {
			w.Errorf("swept %v", got)
		}
		there := journal.Worker{Owner: "carol", Host: "there"}
		if got := w.sweep(there, 9); len(got) != 1 || got[0].Ref != ref {
			w.Errorf("there, swept %v", got)
		}
	}},

	{"the sweep takes what is queued, woken, or left by the dead", func(w *world) {
		queued := w.create()
		dead := w.started()
		woken := w.started()
		w.status(woken, journal.WaitingApproval, "")
		asleep := w.started()
		w.status(asleep, journal.WaitingApproval, "")
		alarm := w.started()
		w.do(func(tx journal.Tx) error {
			return tx.SetStatus(w.ctx, alarm, journal.Change{Status: journal.WaitingInput, WakeAt: w.clock.Now().Add(time.Hour)})
		})
		over := w.started()
		w.status(over, journal.Completed, "")

		w.want(w.sweep(bob, 9), queued)
		w.clock.Advance(ttl - time.Microsecond)
		w.want(w.sweep(bob, 9))
		w.do(func(tx journal.Tx) error { return tx.Wake(w.ctx, woken.Ref, w.clock.Now()) })
		w.want(w.sweep(bob, 9), woken.Ref)
		w.clock.Advance(time.Microsecond) // past dead's lease, and queued's, which bob holds and does not renew
		w.want(w.sweep(alice, 9), dead.Ref, queued)
		w.clock.Advance(time.Hour - ttl)
		w.want(w.sweep(bob, 9), queued, dead.Ref, woken.Ref, alarm.Ref)
	}},

	{"the sweep takes the longest due first, as many as asked", func(w *world) {
		var made []journal.Ref
		for range 5 {
			made = append(made, w.create())
			w.clock.Advance(time.Millisecond)
		}
		w.want(w.sweep(bob, 2), made[:2]...)
		w.want(w.sweep(bob, 9), made[2:]...)
		w.want(w.sweep(bob, 9))
	}},

	{"two processes that sweep at once share out the runs", func(w *world) {
		const n = 60
		made := map[journal.Ref]int{}
		for range n {
			made[w.create()] = 0
		}
		other := w.on(w.again())
		got := make([][]journal.Lease, 2*6)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				in := []*world{w, other}[i%2]
				by := []journal.Worker{alice, bob}[i%2]
				if err := in.try(func(tx journal.Tx) (err error) {
					got[i], err = tx.ClaimDue(w.ctx, by, ttl, 5)
					return err
				}); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		for _, leases := range got {
			for _, l := range leases {
				made[l.Ref]++
			}
		}
		for ref, n := range made {
			if n != 1 {
				w.Errorf("%s was claimed %d times", ref, n)
			}
		}
	}},

	{"a worker hears with its next renewal, once, that a run it holds was woken", func(w *world) {
		a, b, c := w.started(), w.started(), w.started()
		q := w.ask(c, "call 1", 0)
		renew := func(by journal.Worker) (woken []journal.Lease) {
			w.do(func(tx journal.Tx) error {
				held, err := tx.Renew(w.ctx, by, ttl)
				for _, h := range held {
					if h.Woken {
						woken = append(woken, h.Lease)
					}
				}
				return err
			})
			return woken
		}
		w.do(func(tx journal.Tx) error { return tx.Wake(w.ctx, a.Ref, w.clock.Now()) })
		w.want(renew(bob))
		w.want(renew(alice), a.Ref)
		w.want(renew(alice))
		w.decide(q, journal.QuestionApproved)
		w.do(func(tx journal.Tx) error { return tx.AskCancel(w.ctx, b.Ref, "ann") })
		w.want(renew(alice), b.Ref, c.Ref)
		w.do(func(tx journal.Tx) error { return tx.Wake(w.ctx, a.Ref, w.clock.Now()) })
		w.clock.Advance(ttl)
		w.claim(a.Ref, bob) // and so sees what there is
		w.want(renew(bob))
	}},

	{"a wake that the worker was not told of is not lost to a pause", func(w *world) {
		told, untold, over := w.started(), w.started(), w.started()
		for _, l := range []journal.Lease{told, untold, over} {
			w.do(func(tx journal.Tx) error { return tx.Wake(w.ctx, l.Ref, w.clock.Now()) })
			if l == told {
				w.do(func(tx journal.Tx) error { _, err := tx.Renew(w.ctx, alice, ttl); return err })
			}
		}
		w.status(told, journal.WaitingApproval, "")
		w.status(untold, journal.WaitingApproval, "")
		w.status(over, journal.Completed, "")
		w.want(w.sweep(bob, 9), untold.Ref)
		if got := w.row(over.Ref).WakeAt; !got.IsZero() {
			w.Errorf("a run that is over wakes at %v", got)
		}
	}},

	{"a worker sweeps the profiles that it knows", func(w *world) {
		under := func(profile string) func(*journal.Run) {
			return func(r *journal.Run) { r.Profile = profile }
		}
		a, b := w.create(under("a")), w.create(under("b"))
		w.create(under("a b"))
		none := w.create(under(""))
		w.want(w.sweep(journal.Worker{Owner: "c", Profiles: []string{"z", "a b c"}}, 9))
		w.want(w.sweep(journal.Worker{Owner: "c", Profiles: []string{"b", "a"}}, 9), a, b)
		w.want(w.sweep(journal.Worker{Owner: "c", Profiles: []string{""}}, 9), none)
	}},

	{"a worker sweeps the kinds that it knows", func(w *world) {
		turn := w.create()
		request := w.create(func(r *journal.Run) { r.Kind = journal.RequestRun })
		step := w.create(func(r *journal.Run) { r.Kind = journal.StepRun })
		w.want(w.sweep(journal.Worker{Owner: "c", Kinds: []journal.RunKind{journal.TurnRun, journal.StepRun}}, 9), turn, step)
		w.want(w.sweep(journal.Worker{Owner: "c", Kinds: []journal.RunKind{journal.PlaybookRun}}, 9))
		w.want(w.sweep(journal.Worker{Owner: "c"}, 9), request)
	}},

	{"the first who asks to cancel is noted, and the run is due", func(w *world) {
		l := w.started()
		w.status(l, journal.WaitingApproval, "")
		for _, by := range []string{"ann", "bea"} {
			w.do(func(tx journal.Tx) error { return tx.AskCancel(w.ctx, l.Ref, by) })
		}
		if got := w.row(l.Ref).CancelBy; got != "ann" {
			w.Errorf("cancelled by %q", got)
		}
		w.want(w.sweep(bob, 9), l.Ref)
	}},

	{"waking moves the time forward, never back", func(w *world) {
		l := w.started()
		soon, late := w.clock.Now().Add(time.Minute), w.clock.Now().Add(time.Hour)
		w.status(l, journal.WaitingApproval, "")
		for _, c := range []struct{ at, want time.Time }{{late, late}, {soon, soon}, {late, soon}} {
			w.do(func(tx journal.Tx) error { return tx.Wake(w.ctx, l.Ref, c.at) })
			if got := w.row(l.Ref).WakeAt; !got.Equal(c.want) {
				w.Errorf("woken at %v, it wakes at %v, want %v", c.at, got, c.want)
			}
		}
	}},
}

// sweep claims up to n runs that are due.
func (w *world) sweep(by journal.Worker, n int) (got []journal.Lease) {
	w.Helper()
	w.do(func(tx journal.Tx) (err error) {
		got, err = tx.ClaimDue(w.ctx, by, ttl, n)
		return err
	})
	return got
}

// want fails unless the leases are of these runs, in any order.
func (w *world) want(leases []journal.Lease, refs ...journal.Ref) {
	w.Helper()
	want, got := map[journal.Ref]bool{}, map[journal.Ref]bool{}
	for _, r := range refs {
		want[r] = true
	}
	for _, l := range leases {
		got[l.Ref] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		w.Errorf("claimed (-want +got):\n%s", d)
	}
}
