package allowance_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/allowance"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

const tenant = journal.DefaultTenant

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func allows(profile, rule, print string, d time.Duration) allowance.Allowance {
	return allowance.Allowance{
		Key:       allowance.Key{Profile: profile, Rule: rule, Fingerprint: print},
		Allowance: guard.Allowance{By: "ann", Why: "it is ours", Until: time.Now().Add(d).UTC().Truncate(time.Second)},
	}
}

const one, two = "00112233aabbccdd", "ffeeddccbbaa9988"

// told is a list of allowances, a line each.
func told(t *testing.T, s journal.Reader) string {
	t.Helper()
	all, err := allowance.List(t.Context(), s, tenant)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, a := range all {
		if a.At.IsZero() {
			t.Errorf("%v was given at no time", a.Key)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s by %s: %s", a.Profile, a.Rule, a.Fingerprint, a.By, a.Why))
	}
	return strings.Join(lines, "\n")
}

// TestGiveAndTake keeps the last word on each key, in one log whose chain holds.
func TestGiveAndTake(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	ctx := t.Context()
	if got := told(t, s); got != "" {
		t.Errorf("a journal begins with %s", got)
	}
	email, other := allows("default", "email", one, time.Hour), allows("coding", "email", two, time.Hour)
	again := email
	again.By, again.Why = "bob", "still"
	for _, a := range []allowance.Allowance{email, other, again} {
		if err := allowance.Give(ctx, s, tenant, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := allowance.Take(ctx, s, tenant, allowance.Taken{Key: other.Key, By: "eve"}); err != nil {
		t.Fatal(err)
	}
	if got, want := told(t, s), "default email "+one+" by bob: still"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, key := range []allowance.Key{other.Key, {Profile: "default", Rule: "phone", Fingerprint: one}} {
		if err := allowance.Take(ctx, s, tenant, allowance.Taken{Key: key, By: "eve"}); !errors.Is(err, allowance.ErrNone) {
			t.Errorf("%v is taken back: %v", key, err)
		}
	}
	rows, err := s.Runs(ctx, journal.RunQuery{Tenant: tenant, Kind: journal.AllowancesRun})
	if err != nil || len(rows) != 1 || rows[0].Status.Terminal() || rows[0].Owner != "" || rows[0].Tail.Seq != 4 {
		t.Fatalf("the log is %+v, %v", rows, err)
	}
	if rep, err := journal.Verify(ctx, s, rows[0].Ref, journal.Link{}); err != nil || rep.Broken != nil {
		t.Errorf("the chain: %v, %v", rep.Broken, err)
	}
	// No engine ever takes it up.
	err = s.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		due, err := tx.ClaimDue(ctx, journal.Worker{Owner: "w"}, time.Minute, 10)
		if len(due) > 0 {
			t.Errorf("%v is due", due)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefused says what is wrong with an allowance.
func TestRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	for want, change := range map[string]func(*allowance.Allowance){
		"is not a fingerprint":     func(a *allowance.Allowance) { a.Fingerprint = "00112233AABBCCDD" },
		"names a profile":          func(a *allowance.Allowance) { a.Rule = "" },
		"who gives it":             func(a *allowance.Allowance) { a.By = "" },
		"says why":                 func(a *allowance.Allowance) { a.Why = " " },
		"one line of text":         func(a *allowance.Allowance) { a.Why = "a\nb" },
		"is past":                  func(a *allowance.Allowance) { a.Until = time.Now().Add(-time.Second) },
		"is more than a year away": func(a *allowance.Allowance) { a.Until = time.Now().Add(2 * allowance.Longest) },
	} {
		a := allows("default", "email", one, time.Hour)
		change(&a)
		if err := allowance.Give(t.Context(), s, tenant, a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that it %s", err, want)
		}
	}
	if got := told(t, s); got != "" {
		t.Errorf("kept: %s", got)
	}
}

// TestBook has what is allowed under its profile, for its rule and text, and until
// its time; whoever writes it, in another process too.
func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, elsewhere := open(t, path), open(t, path)
	ctx := t.Context()
	b, err := allowance.Open(ctx, s, tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer b.Close()

	finding := func(rule, print string) guard.Finding { return guard.Finding{Rule: rule, Fingerprint: print} }
	knows := func(profile, rule, print string) *guard.Allowance {
		if allowed := b.For(profile)(); allowed != nil {
			return allowed(finding(rule, print))
		}
		return nil
	}
	becomes := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				t.Fatalf("not after half a minute: %s", what)
			}
			// The book's own goroutine, and the other store's, must get to run.
			<-time.After(time.Millisecond)
		}
	}
	if b.For("default")() != nil {
		t.Error("an empty book is asked about findings")
	}
	if err := allowance.Give(ctx, elsewhere, tenant, allows("default", "email", one, time.Hour)); err != nil {
		t.Fatal(err)
	}
	becomes("allowed", func() bool { return knows("default", "email", one) != nil })
	if a := knows("default", "email", one); a.By != "ann" || a.Why != "it is ours" {
		t.Errorf("got %+v", a)
	}
	for _, other := range [][3]string{{"coding", "email", one}, {"default", "phone", one}, {"default", "email", two}} {
		if knows(other[0], other[1], other[2]) != nil {
			t.Errorf("%v is allowed too", other)
		}
	}

	// What a channel was told when it began holds while it goes on.
	begun := b.For("default")()
	if err := allowance.Take(ctx, elsewhere, tenant, allowance.Taken{Key: allowance.Key{Profile: "default", Rule: "email", Fingerprint: one}, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	becomes("taken back", func() bool { return knows("default", "email", one) == nil })
	if begun(finding("email", one)) == nil {
		t.Error("a channel's answers change while it goes on")
	}

	// One that has expired counts for nothing, though nobody took it back.
	soon := allows("default", "email", two, time.Hour)
	soon.Until = time.Now().Add(150 * time.Millisecond)
	if err := allowance.Give(ctx, s, tenant, soon); err != nil {
		t.Fatal(err)
	}
	becomes("expired", func() bool { return time.Now().After(soon.Until) && knows("default", "email", two) == nil })
	if got := told(t, s); !strings.Contains(got, two) {
		t.Errorf("the list forgets what has expired: %q", got)
	}
}

// TestNoBook allows nothing.
func TestNoBook(t *testing.T) {
	var b *allowance.Book
	if b.For("default") != nil {
		t.Error("a book that is not there is asked")
	}
}
