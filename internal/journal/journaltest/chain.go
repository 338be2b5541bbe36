package journaltest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var chainTests = []test{
	{"the chain of a run verifies, and says where it ends", func(w *world) {
		l := w.started()
		w.append(l, notes(1, 200)...)
		w.append(l, note(201))
		tail := w.append(l, note(202))
		for _, expect := range []journal.Link{{}, tail.Link, w.log(l.Ref, 0)[99].Link} {
			w.wantReport(l.Ref, expect, journal.Report{Ref: l.Ref, Events: 202, Tail: tail})
		}
		w.status(l, journal.Completed, "")
		w.wantReport(l.Ref, tail.Link, journal.Report{Ref: l.Ref, Events: 202, Tail: tail})
	}},

	{"an empty chain verifies, and expects nothing", func(w *world) {
		ref := w.create()
		w.wantReport(ref, journal.Link{}, journal.Report{Ref: ref})
		rep := w.verify(ref, journal.Link{1})
		if rep.Broken == nil || rep.Broken.Seq != 1 {
			w.Errorf("got %+v", rep)
		}
	}},

	{"a link that the log does not come by is missed", func(w *world) {
		l := w.started()
		w.append(l, notes(1, 3)...)
		rep := w.verify(l.Ref, journal.Link{1})
		if rep.Broken == nil || rep.Broken.Seq != 4 || !strings.Contains(rep.Broken.Why, "0100") {
			w.Errorf("got %+v", rep)
		}
	}},

	{"the links of equal events differ by run, tenant and place", func(w *world) {
		id := w.id(journal.RunPrefix)
		seen := map[journal.Link]string{}
		for _, in := range []func(*journal.Run){
			func(*journal.Run) {},
			func(r *journal.Run) { r.Tenant, r.Run = "a", id },
			func(r *journal.Run) { r.Tenant, r.Run = "b", id },
		} {
			l := w.started(in)
			w.append(l, note(1), note(1))
			for _, r := range w.log(l.Ref, 0) {
				if was := seen[r.Link]; was != "" {
					w.Errorf("%s, event %d has the link of %s", r.Ref, r.Seq, was)
				}
				seen[r.Link] = r.Ref.String()
			}
		}
	}},

	{"purging breaks no chain", func(w *world) {
		l := w.started(func(r *journal.Run) { r.Capture = journal.CaptureMetadata })
		big, err := journal.NewEntry("text", 1, journal.Text, map[string]string{"text": strings.Repeat("x", 9000)})
		if err != nil {
			w.Fatal(err)
		}
		tail := w.append(l, structure(1), note(2), structure(3), big, note(5))
		w.status(l, journal.Completed, "")
		w.clock.Advance(time.Hour)
		w.purge()
		w.wantReport(l.Ref, tail.Link, journal.Report{Ref: l.Ref, Events: 5, Purged: 3, Tail: tail})
	}},
}

func (w *world) verify(ref journal.Ref, expect journal.Link) journal.Report {
	w.Helper()
	rep, err := journal.Verify(w.ctx, w.Store, ref, expect)
	if err != nil {
		w.Fatal(err)
	}
	return rep
}

func (w *world) wantReport(ref journal.Ref, expect journal.Link, want journal.Report) {
	w.Helper()
	if d := cmp.Diff(want, w.verify(ref, expect)); d != "" {
		w.Errorf("(-want +got):\n%s", d)
	}
}
