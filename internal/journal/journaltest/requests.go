package journaltest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var requestTests = []test{
	{"a request is a run that starts, has verdicts, and settles", func(w *world) {
		q := &journal.Requests{Store: w.Store, Tenant: "t", Worker: alice, Lease: ttl}
		id := w.id(journal.RunPrefix)
		fact := func(kind string, payload any) journal.RequestFact {
			return journal.RequestFact{Run: id, At: w.clock.Now(), Kind: kind, Payload: payload}
		}
		ref := journal.Ref{Tenant: "t", Run: id}
		started := fact(journal.RequestStarted, journal.Started{Mount: "openai", Profile: "p", Upstream: "u", Model: "m", Stream: true})
		if _, err := q.Append(w.ctx, false, started); err != nil {
			w.Fatal(err)
		}
		// One that is waited for is durable when it returns, and all before it.
		w.clock.Advance(time.Second)
		if _, err := q.Append(w.ctx, true, fact(journal.RequestVerdict, journal.Verdict{Guard: "secrets", Verdict: "redact"})); err != nil {
			w.Fatal(err)
		}
		r := w.on(w.again()).row(ref)
		if r.Kind != journal.RequestRun || r.Status != journal.Running || r.Profile != "p" || r.Owner != "alice" || r.Tail.Seq != 2 {
			w.Errorf("under way, the row is %+v", r)
		}
		p, err := q.Append(w.ctx, false,
			fact(journal.RequestVerdict, journal.Verdict{Guard: "pii", Verdict: "allow"}),
			fact(journal.RequestSettled, journal.Settled{Status: journal.Blocked, Reason: "guard_denied", Usage: journal.Usage{Input: 1}}))
		if err != nil {
			w.Fatal(err)
		}
		if err := p.Wait(w.ctx); err != nil {
			w.Fatal(err)
		}
		if r := w.row(ref); r.Status != journal.Blocked || r.Reason != "guard_denied" || r.Owner != "" {
			w.Errorf("settled, the row is %+v", r)
		}
		var kinds []string
		for _, rec := range w.log(ref, 0) {
			kinds = append(kinds, rec.Kind)
		}
		if d := cmp.Diff([]string{"started", "verdict", "verdict", "settled"}, kinds); d != "" {
			w.Errorf("(-want +got):\n%s", d)
		}
		if rep := w.verify(ref, journal.Link{}); rep.Broken != nil {
			w.Error(rep.Broken)
		}
		late, err := q.Append(w.ctx, true, fact(journal.RequestVerdict, journal.Verdict{Guard: "late"}))
		wantAs[*journal.SettledError](w, err)
		wantAs[*journal.SettledError](w, late.Err())
	}},

	{"what cannot be recorded of a request is an error", func(w *world) {
		q := &journal.Requests{Store: w.Store, Tenant: "t", Worker: alice, Lease: ttl}
		id := w.id(journal.RunPrefix)
		_, err := q.Append(w.ctx, true, journal.RequestFact{Run: id, Kind: journal.RequestVerdict, Payload: journal.Verdict{}})
		w.wantErr(err, journal.ErrNotFound)
		_, err = q.Append(w.ctx, true,
			journal.RequestFact{Run: id, Kind: journal.RequestStarted, Payload: journal.Started{}},
			journal.RequestFact{Run: id, Kind: journal.RequestSettled, Payload: journal.Settled{Status: journal.Running}})
		if err == nil || !strings.Contains(err.Error(), string(id)) {
			w.Errorf("settled as running: %v", err)
		}
		_, err = w.Run(w.ctx, journal.Ref{Tenant: "t", Run: id})
		w.wantErr(err, journal.ErrNotFound)
	}},
}
