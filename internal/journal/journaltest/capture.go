package journaltest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

const (
	grace = time.Minute
	month = 30 * 24 * time.Hour
)

var captureTests = []test{
	{"what remains of a run is what its capture says, when it says", func(w *world) {
		// Which of the contents remain just before and at the two moments at
		// which payloads go: s(tructure), t(ext), r(aw).
		for _, c := range []struct {
			capture                                    journal.Capture
			beforeGrace, grace, beforeMonth, afterward string
		}{
			{journal.CaptureNone, "str", "", "", ""},
			{journal.CaptureMetadata, "str", "s", "s", "s"},
			{journal.CaptureRedacted, "str", "st", "st", "s"},
			{journal.CaptureFull, "str", "str", "str", "str"},
		} {
			l := w.started(func(r *journal.Run) { r.Capture = c.capture })
			w.append(l, structure(1), note(2), raw(3))
			w.clock.Advance(time.Hour)
			w.purge() // an open run keeps what it needs
			w.remains(l, c.capture, "str")
			w.status(l, journal.Completed, "")
			w.clock.Advance(grace - time.Microsecond)
			w.purge()
			w.remains(l, c.capture, c.beforeGrace)
			w.clock.Advance(time.Microsecond)
			w.purge()
			w.remains(l, c.capture, c.grace)
			w.clock.Advance(month - grace - time.Microsecond)
			w.purge()
			w.remains(l, c.capture, c.beforeMonth)
			w.clock.Advance(time.Microsecond)
			w.purge()
			w.remains(l, c.capture, c.afterward)
		}
	}},

	{"a purged event keeps all but its payload, and says so", func(w *world) {
		l := w.started(func(r *journal.Run) { r.Capture = journal.CaptureNone })
		w.append(l, note(1))
		want := w.log(l.Ref, 0)[0]
		w.status(l, journal.Completed, "")
		w.clock.Advance(grace)
		w.purge()
		want.Payload, want.Purged = nil, w.clock.Now()
		got := w.log(l.Ref, 0)[0]
		if d := cmp.Diff(want, got); d != "" {
			w.Errorf("(-want +got):\n%s", d)
		}
		w.wantErr(got.Decode(&struct{}{}), journal.ErrPurged)
	}},

	{"what an approval showed goes with the text", func(w *world) {
		l := w.started(func(r *journal.Run) { r.Capture = journal.CaptureMetadata })
		q := w.ask(l, "call 1", 0)
		want := w.question(q)
		w.status(l, journal.Cancelled, "")
		w.clock.Advance(grace)
		w.purge()
		want.Shown = nil
		w.wantQuestion(want)
	}},

	{"a payload that another run keeps is gone only from the run that does not", func(w *world) {
		text, err := journal.NewEntry("text", 1, journal.Text, map[string]string{"text": fmt.Sprintf("%09000d", 1)})
		if err != nil {
			w.Fatal(err)
		}
		gone := w.started(func(r *journal.Run) { r.Capture = journal.CaptureNone })
		kept := w.started()
		w.append(gone, text)
		w.append(kept, text, text)
		w.status(gone, journal.Completed, "")
		w.status(kept, journal.Completed, "")
		w.clock.Advance(grace)
		w.purge()
		w.remains(gone, "none", "")
		w.remains(kept, "redacted", "tt")
	}},

	{"purging goes run by run, as many as asked, and ends", func(w *world) {
		for range 5 {
			w.status(w.started(func(r *journal.Run) { r.Capture = journal.CaptureNone }), journal.Completed, "")
		}
		w.clock.Advance(grace)
		for _, want := range []int{2, 2, 1, 0} {
			w.do(func(tx journal.Tx) error {
				n, err := tx.Purge(w.ctx, 2)
				if n != want {
					w.Errorf("purged %d runs, want %d", n, want)
				}
				return err
			})
		}
	}},
}

func structure(n int) journal.Entry {
	return journal.Entry{Kind: "structure", Content: journal.Structure, Payload: fmt.Appendf(nil, `{"n":%d,"v":1}`, n)}
}

func raw(n int) journal.Entry {
	return journal.Entry{Kind: "raw", Content: journal.Raw, Payload: fmt.Appendf(nil, `{"n":%d,"v":1}`, n)}
}

func (w *world) purge() {
	w.Helper()
	w.do(func(tx journal.Tx) error { _, err := tx.Purge(w.ctx, 100); return err })
}

// remains fails unless the payloads that remain are those of the contents named.
func (w *world) remains(l journal.Lease, capture journal.Capture, want string) {
	w.Helper()
	got := ""
	for _, r := range w.log(l.Ref, 0) {
		if (r.Payload == nil) == r.Purged.IsZero() {
			w.Errorf("capture %s: event %d has payload %s, purged %v", capture, r.Seq, r.Payload, r.Purged)
		}
		if r.Payload != nil {
			got += "str"[r.Content : r.Content+1]
		}
	}
	if got != want {
		w.Errorf("capture %s: %q remains, want %q", capture, got, want)
	}
}
