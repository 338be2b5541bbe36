package journaltest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var secretTests = []test{
	{"secrets are read as they were kept, an owner's of one kind, by name", func(w *world) {
		one, two := w.secret("answer", "apr_1", "a", "rest"), w.secret("answer", "apr_1", "b", "")
		w.keep(two, one, w.secret("answer", "apr_2", "a", "another's"), w.secret("value", "apr_1", "a", "of another kind"))
		w.wantSecrets("answer", "apr_1", one, two)
		w.on(w.again()).wantSecrets("answer", "apr_1", one, two)
		if got, err := w.Secrets(w.ctx, "other", "answer", "apr_1"); err != nil || len(got) != 0 {
			w.Errorf("another tenant sees %v, %v", got, err)
		}
	}},

	{"one that is there is not written over", func(w *world) {
		first := w.secret("value", "ses_1", "EMAIL_1", "ann@corp.example")
		w.keep(first)
		other := w.secret("value", "ses_1", "EMAIL_2", "bea@corp.example")
		err := w.try(func(tx journal.Tx) error {
			return tx.Keep(w.ctx, journal.DefaultTenant, other, w.secret("value", "ses_1", "EMAIL_1", "somebody else"))
		})
		w.wantErr(err, journal.ErrExists)
		w.wantSecrets("value", "ses_1", first) // and not the other
	}},

	{"one that is destroyed is gone, and nothing else is", func(w *world) {
		stays := w.secret("answer", "apr_2", "a", "stays")
		w.keep(w.secret("answer", "apr_1", "a", "goes"), w.secret("answer", "apr_1", "b", "goes too"), stays)
		for _, want := range []int{2, 0} {
			w.do(func(tx journal.Tx) error {
				n, err := tx.Destroy(w.ctx, journal.DefaultTenant, "answer", "apr_1")
				if n != want {
					w.Errorf("%d were destroyed, want %d", n, want)
				}
				return err
			})
		}
		w.wantSecrets("answer", "apr_1")
		w.wantSecrets("answer", "apr_2", stays)
	}},

	{"its time passes, unless it is moved before", func(w *world) {
		s := w.secret("answer", "apr_1", "a", "rest")
		w.keep(s)
		s.Until = s.Until.Add(time.Hour)
		w.until(s, 1)
		w.clock.Advance(90 * time.Minute)
		w.wantSecrets("answer", "apr_1", s)
		w.clock.Advance(30 * time.Minute)
		w.wantSecrets("answer", "apr_1")
		w.until(s, 0) // too late
		w.do(func(tx journal.Tx) error { _, err := tx.Purge(w.ctx, 10); return err })
		w.keep(s) // the purge has made room for it
	}},
}

// secret is one that is kept for an hour.
func (w *world) secret(kind, owner, name, value string) journal.Secret {
	until := w.clock.Now().Add(time.Hour).Truncate(time.Microsecond)
	return journal.Secret{Kind: kind, Owner: owner, Name: name, Value: []byte(value), Until: until}
}

func (w *world) keep(s ...journal.Secret) {
	w.Helper()
	w.do(func(tx journal.Tx) error { return tx.Keep(w.ctx, journal.DefaultTenant, s...) })
}

// until moves the end of a secret's owner's.
func (w *world) until(s journal.Secret, want int) {
	w.Helper()
	w.do(func(tx journal.Tx) error {
		n, err := tx.KeepUntil(w.ctx, journal.DefaultTenant, s.Kind, s.Owner, s.Until)
		if n != want {
			w.Errorf("%d are kept longer, want %d", n, want)
		}
		return err
	})
}

func (w *world) wantSecrets(kind, owner string, want ...journal.Secret) {
	w.Helper()
	got, err := w.Secrets(w.ctx, journal.DefaultTenant, kind, owner)
	if err != nil {
		w.Fatal(err)
	}
	for i := range got {
		got[i].Value = append([]byte{}, got[i].Value...)
	}
	if d := cmp.Diff(want, got); d != "" {
		w.Errorf("%s of %s (-want +got):\n%s", kind, owner, d)
	}
}
