package journaltest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var messageTests = []test{
	{"a list is read back from its digest, however it was put together", func(w *world) {
		l := w.started()
		all := []json.RawMessage{
			json.RawMessage(`{"content":"é","role":"system"}`), json.RawMessage(`"b"`), json.RawMessage(`{"a":1.50,"b":2}`),
			json.RawMessage(`"` + strings.Repeat("x", 20_000) + `"`),
		}
		whole := w.say(l, journal.Digest{}, "", all...)
		byOne := journal.Digest{}
		other := w.started()
		for i := range all {
			byOne = w.say(other, byOne, "", all[i])
		}
		if whole != byOne {
			w.Errorf("the digest says how it was put together: %s, %s", whole, byOne)
		}
		w.wantMessages(l, whole, all...)
		w.wantMessages(other, whole, all...)
		w.wantMessages(l, journal.Digest{})
		if spelled := w.say(w.started(), journal.Digest{}, "",
			json.RawMessage(` {"role":"system", "content":"\u00e9"}`), all[1], all[2], all[3]); spelled != whole {
			w.Errorf("the digest says how messages were spelled")
		}
	}},

	{"a list goes on from another in two ways, and in the next run", func(w *world) {
		l, next := w.started(), w.started()
		root := w.say(l, journal.Digest{}, "", json.RawMessage(`"root"`))
		left := w.say(l, root, "", json.RawMessage(`"left"`))
		right := w.say(next, root, l.Run, json.RawMessage(`"right"`))
		on := w.say(next, right, "", json.RawMessage(`"on"`))
		w.wantMessages(l, left, json.RawMessage(`"root"`), json.RawMessage(`"left"`))
		w.wantMessages(next, on, json.RawMessage(`"root"`), json.RawMessage(`"right"`), json.RawMessage(`"on"`))
	}},

	{"a list that was not added, or has no beginning, is not found", func(w *world) {
		l := w.started()
		orphan := w.say(l, journal.Digest{9}, "", json.RawMessage(`"a"`))
		foreign := w.started(func(r *journal.Run) { r.Tenant, r.Run = "other", l.Run })
		there := w.say(l, journal.Digest{}, "", json.RawMessage(`"b"`))
		for _, c := range []struct {
			in   journal.Lease
			list journal.Digest
		}{{l, orphan}, {l, journal.Digest{8}}, {foreign, there}} {
			_, err := journal.ReadMessages(w.ctx, w.Store, w.Key(), c.in.Ref, c.list)
			w.wantErr(err, journal.ErrNotFound)
		}
	}},

	{"what is no JSON is no message", func(w *world) {
		if _, err := w.Key().Extend(journal.Digest{}, json.RawMessage(`{"b":`)); err == nil {
			w.Error("taken")
		}
	}},

	{"a list whose beginning was purged says so", func(w *world) {
		first := w.started(func(r *journal.Run) { r.Capture = journal.CaptureNone })
		second := w.started()
		a := w.say(first, journal.Digest{}, "", json.RawMessage(`"a"`))
		b := w.say(second, a, first.Run, json.RawMessage(`"b"`))
		w.status(first, journal.Completed, "")
		w.clock.Advance(time.Hour)
		w.wantMessages(second, b, json.RawMessage(`"a"`), json.RawMessage(`"b"`))
		w.purge()
		_, err := journal.ReadMessages(w.ctx, w.Store, w.Key(), second.Ref, b)
		w.wantErr(err, journal.ErrPurged)
	}},
}

// say records messages that go on from a list, which lies in another run if one
// is named, and returns the digest of the list that they make.
func (w *world) say(l journal.Lease, parent journal.Digest, in journal.ID, messages ...json.RawMessage) journal.Digest {
	w.Helper()
	added, err := w.Key().Extend(parent, messages...)
	if err != nil {
		w.Fatal(err)
	}
	added.Run = in
	e, err := added.Entry()
	if err != nil {
		w.Fatal(err)
	}
	w.append(l, e)
	return added.List
}

func (w *world) wantMessages(l journal.Lease, list journal.Digest, want ...json.RawMessage) {
	w.Helper()
	got, err := journal.ReadMessages(w.ctx, w.Store, w.Key(), l.Ref, list)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		w.Errorf("%v (-want +got):\n%s", err, d)
	}
}
