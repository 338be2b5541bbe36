package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var logTests = []test{
	{"events are numbered from 1 without gaps, over appends and workers", func(w *world) {
		l := w.started()
		if tail := w.append(l, notes(1, 3)...); tail.Seq != 3 {
			w.Errorf("the log ends at %d", tail.Seq)
		}
		w.clock.Advance(ttl)
		l = w.claim(l.Ref, bob)
		tail := w.append(l, notes(4, 4)...)
		for i, r := range w.log(l.Ref, 0) {
			if r.Seq != uint64(i+1) {
				w.Errorf("event %d has number %d", i+1, r.Seq)
			}
		}
		if got := w.row(l.Ref).Tail; got != tail || got.Seq != 4 {
			w.Errorf("the row's end is %+v, append said %+v", got, tail)
		}
	}},

	{"an event comes back as it went in, with its version and members sorted", func(w *world) {
		l := w.started()
		w.append(l, journal.Entry{
			Kind: "call", Content: journal.Raw,
			Payload: json.RawMessage(` { "v":7, "b" : {"z":1.50, "y":9007199254740993}, "a" : ["\u00e9<", null] } `),
		})
		got := w.log(l.Ref, 0)[0]
		want := journal.Record{
			Ref: l.Ref, Seq: 1, At: w.clock.Now(), Kind: "call", Version: 7, Content: journal.Raw,
			Payload: json.RawMessage(`{"a":["é<",null],"b":{"y":9007199254740993,"z":1.50},"v":7}`),
		}
		want.Digest = w.Key().Digest(want.Payload)
		want.Link = got.Link
		if d := cmp.Diff(want, got); d != "" {
			w.Errorf("(-want +got):\n%s", d)
		}
	}},

	{"what is no payload is refused, and what was appended beside it with it", func(w *world) {
		l := w.started()
		for name, e := range map[string]journal.Entry{
			"not JSON":       {Kind: "k", Payload: json.RawMessage(`{"v":1,"a":`)},
			"not an object":  {Kind: "k", Payload: json.RawMessage(`[1]`)},
			"empty":          {Kind: "k"},
			"a member twice": {Kind: "k", Payload: json.RawMessage(`{"v":1,"a":1,"a":2}`)},
			"not UTF-8":      {Kind: "k", Payload: json.RawMessage("{\"v\":1,\"a\":\"\xff\"}")},
			"half a pair":    {Kind: "k", Payload: json.RawMessage(`{"v":1,"a":"\ud800"}`)},
			"more behind it": {Kind: "k", Payload: json.RawMessage(`{"v":1} {}`)},
			"no kind":        {Payload: json.RawMessage(`{"v":1}`)},
			"no version":     {Kind: "k", Payload: json.RawMessage(`{}`)},
			"version 0":      {Kind: "k", Payload: json.RawMessage(`{"v":0}`)},
			"half a version": {Kind: "k", Payload: json.RawMessage(`{"v":1.5}`)},
		} {
			if err := w.try(func(tx journal.Tx) error { _, err := tx.Append(w.ctx, l, note(1), e); return err }); err == nil {
				w.Errorf("%s: appended", name)
			}
		}
		if got := w.log(l.Ref, 0); got != nil {
			w.Errorf("the log has %v", got)
		}
		if w.append(l, note(1)).Seq != 1 {
			w.Error("the numbers have a gap")
		}
	}},

	{"a reader asks for what comes after", func(w *world) {
		l := w.started()
		w.append(l, notes(1, 300)...)
		for _, after := range []uint64{0, 1, 127, 128, 129, 255, 256, 299, 300, 301} {
			got := w.log(l.Ref, after)
			if want := 300 - int(min(after, 300)); len(got) != want {
				w.Errorf("after %d: %d events, want %d", after, len(got), want)
			}
			for i, r := range got {
				if r.Seq != after+1+uint64(i) {
					w.Fatalf("after %d: event %d has number %d", after, i, r.Seq)
				}
			}
		}
		n := 0
		for range w.Events(w.ctx, l.Ref, 0) {
			if n++; n == 5 {
				break
			}
		}
	}},

	{"a payload of any size comes back, also when many runs have it", func(w *world) {
		for _, size := range []int{0, 1, 1000, 4000, 5000, 70_000, 3 << 20} {
			text := strings.Repeat("é", size/2) + strings.Repeat("x", size%2)
			e, err := journal.NewEntry("text", 1, journal.Text, map[string]string{"text": text})
			if err != nil {
				w.Fatal(err)
			}
			for range 2 {
				l := w.started()
				w.append(l, e, note(1), e)
				for _, i := range []int{0, 2} {
					var got struct{ Text string }
					if err := w.log(l.Ref, 0)[i].Decode(&got); err != nil || got.Text != text {
						w.Errorf("size %d, event %d: got %d bytes, %v", size, i+1, len(got.Text), err)
					}
				}
			}
		}
	}},

	{"an update is all or nothing", func(w *world) {
		l := w.started()
		w.append(l, note(1))
		before, log := w.row(l.Ref), w.log(l.Ref, 0)
		stop := errors.New("stop")
		var made journal.Ref
		err := w.try(func(tx journal.Tx) error {
			made = journal.Ref{Tenant: "t", Run: w.id(journal.RunPrefix)}
			if err := tx.Create(w.ctx, journal.Run{Ref: made, Kind: journal.TurnRun}); err != nil {
				return err
			}
			if _, err := tx.Append(w.ctx, l, notes(2, 9)...); err != nil {
				return err
			}
			if err := tx.Ask(w.ctx, l, journal.Question{ID: w.id(journal.ApprovalPrefix), Subject: "c"}); err != nil {
				return err
			}
			if err := tx.SetStatus(w.ctx, l, journal.Change{Status: journal.Failed}); err != nil {
				return err
			}
			return stop
		})
		if err != stop {
			w.Errorf("got error %v, want the one that was returned", err)
		}
		if d := cmp.Diff(before, w.row(l.Ref)) + cmp.Diff(log, w.log(l.Ref, 0)); d != "" {
			w.Errorf("it wrote (-before +after):\n%s", d)
		}
		_, err = w.Run(w.ctx, made)
		w.wantErr(err, journal.ErrNotFound)
		if qs, err := w.Questions(w.ctx, journal.QuestionQuery{Tenant: l.Tenant}); len(qs) != 0 || err != nil {
			w.Errorf("questions %v, %v", qs, err)
		}
	}},

	{"a transaction sees what it wrote, and nobody else does before it is done", func(w *world) {
		l := w.started()
		other := w.on(w.again())
		w.do(func(tx journal.Tx) error {
			if _, err := tx.Append(w.ctx, l, notes(1, 2)...); err != nil {
				return err
			}
			n := 0
			for _, err := range tx.Events(w.ctx, l.Ref, 0) {
				if err != nil {
					return err
				}
				n++
			}
			r, err := tx.Run(w.ctx, l.Ref)
			if n != 2 || r.Tail.Seq != 2 {
				w.Errorf("inside: %d events, the row's end %d", n, r.Tail.Seq)
			}
			for _, outside := range []*world{w, other} {
				if got := outside.log(l.Ref, 0); got != nil {
					w.Errorf("outside: %v", got)
				}
			}
			return err
		})
		if got := other.log(l.Ref, 0); len(got) != 2 {
			w.Errorf("behind it: %d events", len(got))
		}
	}},

	{"tenants do not meet", func(w *world) {
		id := w.id(journal.RunPrefix)
		in := func(tenant string) func(*journal.Run) {
			return func(r *journal.Run) { r.Tenant, r.Run = tenant, id }
		}
		a, b := w.started(in("a")), w.started(in("b"))
		w.append(a, notes(1, 3)...)
		w.append(b, note(9))
		q := w.ask(a, "call 1", 0)
		if got := w.log(a.Ref, 0); len(got) != 3 {
			w.Errorf("a has %d events", len(got))
		}
		if got := w.log(b.Ref, 0); len(got) != 1 {
			w.Errorf("b has %d events", len(got))
		}
		_, err := w.Question(w.ctx, "b", q)
		w.wantErr(err, journal.ErrNotFound)
		w.wantErr(w.try(func(tx journal.Tx) error {
			_, err := tx.Decide(w.ctx, "b", q, journal.Decision{State: journal.QuestionDenied, By: "eve"})
			return err
		}), journal.ErrNotFound)
		_, err = w.Find(w.ctx, "c", string(id))
		w.wantErr(err, journal.ErrNotFound)
		w.status(a, journal.Completed, "")
		if got := w.row(b.Ref).Status; got != journal.Running {
			w.Errorf("ending a's run made b's %s", got)
		}
	}},

	{"the last snapshot is kept, of the log's end, until the run ends", func(w *world) {
		l := w.started()
		_, err := w.Snapshot(w.ctx, l.Ref)
		w.wantErr(err, journal.ErrNotFound)
		for _, state := range []string{"first", strings.Repeat("second ", 9999)} {
			tail := w.append(l, notes(1, 5)...)
			want := journal.Snapshot{Seq: tail.Seq, Version: 3, State: []byte(state)}
			w.do(func(tx journal.Tx) error { return tx.Save(w.ctx, l, want) })
			got, err := w.Snapshot(w.ctx, l.Ref)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				w.Errorf("%v (-want +got):\n%s", err, d)
			}
			r := w.row(l.Ref)
			if r.Snapshot != tail.Seq || r.SnapshotBytes != int64(len(state)) || r.Since != 0 {
				w.Errorf("the row says snapshot %d of %d bytes, %d bytes since", r.Snapshot, r.SnapshotBytes, r.Since)
			}
		}
		w.append(l, note(6))
		if got := w.row(l.Ref).Since; got != int64(len(`{"n":6,"v":1}`)) {
			w.Errorf("%d bytes since", got)
		}
		if err := w.try(func(tx journal.Tx) error { return tx.Save(w.ctx, l, journal.Snapshot{Seq: 10, Version: 3}) }); err == nil {
			w.Error("saved a snapshot of what is not the end")
		}
		w.status(l, journal.Completed, "")
		_, err = w.Snapshot(w.ctx, l.Ref)
		w.wantErr(err, journal.ErrNotFound)
	}},

	{"snapshots are due when the bytes since the last exceed it", func(w *world) {
		l := w.started()
		e, err := journal.NewEntry("text", 1, journal.Text, map[string]string{"text": strings.Repeat("x", 2000)})
		if err != nil {
			w.Fatal(err)
		}
		var appended, saved, snapshots int64
		state := []byte{}
		for range 400 {
			w.append(l, e)
			appended += 2000
			state = append(state, make([]byte, 2000)...)
			if r := w.row(l.Ref); r.SnapshotDue() {
				w.do(func(tx journal.Tx) error {
					return tx.Save(w.ctx, l, journal.Snapshot{Seq: r.Tail.Seq, Version: 1, State: state})
				})
				saved += int64(len(state))
				snapshots++
			}
		}
		if snapshots == 0 || saved > appended/2 {
			w.Errorf("%d snapshots of %d bytes for %d bytes of events", snapshots, saved, appended)
		}
	}},

	{"times are the store's, to the microsecond", func(w *world) {
		l := w.started()
		w.clock.Advance(time.Second + 999*time.Nanosecond)
		w.append(l, note(1))
		want := w.clock.Now().Truncate(time.Microsecond)
		if got := w.log(l.Ref, 0)[0].At; !got.Equal(want) || got.Location() != time.UTC {
			w.Errorf("at %v, want %v", got, want)
		}
	}},

	{"an event that says when it happened keeps its time", func(w *world) {
		l := w.started()
		e := note(1)
		e.At = w.clock.Now().Add(-time.Second + 999*time.Nanosecond).In(time.FixedZone("east", 3600))
		w.append(l, e)
		if got := w.log(l.Ref, 0)[0].At; got != e.At.UTC().Truncate(time.Microsecond) {
			w.Errorf("at %v, want %v", got, e.At)
		}
	}},

	{"reading ends with its context", func(w *world) {
		l := w.started()
		w.append(l, notes(1, 300)...)
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		n, failed := 0, false
		for _, err := range w.Events(ctx, l.Ref, 0) {
			if err != nil {
				w.wantErr(err, context.Canceled)
				failed = true
				continue
			}
			n++
			cancel()
		}
		if !failed || n == 300 {
			w.Errorf("%d events, failed %v", n, failed)
		}
	}},
}
