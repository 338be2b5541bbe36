package chat

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// openStore opens a real journal.
func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{Now: func() time.Time { return began }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func from(s journal.Store) Source { return Source{Store: s} }

func write(t *testing.T, s journal.Store, fn func(context.Context, journal.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// claimed makes the run and takes it.
func claimed(t *testing.T, s journal.Store, r journal.Run) (l journal.Lease) {
	t.Helper()
	write(t, s, func(ctx context.Context, tx journal.Tx) (err error) {
		if err := tx.Create(ctx, r); err != nil {
			return err
		}
		l, err = tx.Claim(ctx, r.Ref, journal.Worker{Owner: "test"}, time.Hour)
		return err
	})
	return l
}

// read drains a stream.
func read(t *testing.T, seq func(func(Item, error) bool)) (lines []string) {
	t.Helper()
	for item, err := range seq {
		if err != nil {
			t.Error(err)
			break
		}
		lines = append(lines, line(item))
	}
	return lines
}

// TestSameStory plays each transcript into a real journal. Who follows live, who
// comes when it is over, and who comes back behind any one event read the same
// events with the same positions.
func TestSameStory(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := openStore(t)
			l := claimed(t, s, row)
			live := make(chan []string)
			go func() { live <- read(t, from(s).Follow(t.Context(), row.Ref, Position{})) }()
			stalled := make(chan struct{})
			go stall(t, s, stalled)
			es := entries(t, string(text))
			for i, e := range es {
				write(t, s, func(ctx context.Context, tx journal.Tx) error {
					if _, err := tx.Append(ctx, l, e); err != nil || i < len(es)-1 {
						return err
					}
					return tx.SetStatus(ctx, l, journal.Change{Status: journal.Completed, Reason: "completed"})
				})
			}
			late := read(t, from(s).Follow(t.Context(), row.Ref, Position{}))
			if diff := cmp.Diff(late, <-live); diff != "" {
				t.Errorf("who followed live read otherwise (-late +live):\n%s", diff)
			}
			close(stalled)
			positions := 0
			for item, err := range from(s).Follow(t.Context(), row.Ref, Position{}) {
				if err != nil {
					t.Fatal(err)
				}
				positions++
				if diff := cmp.Diff(late[positions:], read(t, from(s).Follow(t.Context(), row.Ref, item.At)), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("who came back behind %s read otherwise (-late +back):\n%s", item.At, diff)
				}
			}
			if positions != len(late) || positions < 3 {
				t.Errorf("%d positions for %d events", positions, len(late))
			}
			oneDone(t, late)
			inTurns(t, s, late)
		})
	}
}

// stall reads one event and no more until it is told to go.
func stall(t *testing.T, s journal.Store, until <-chan struct{}) {
	for range from(s).Follow(t.Context(), row.Ref, Position{}) {
		<-until
		return
	}
}

func oneDone(t *testing.T, lines []string) {
	t.Helper()
	for i, l := range lines {
		if done := isDone(l); done != (i == len(lines)-1) {
			t.Errorf("line %d of %d: %s", i+1, len(lines), l)
		}
	}
}

func isDone(line string) bool { return strings.Fields(line)[1] == "done" }

// inTurns reads the story as who talks to the run does, from pause to pause: it
// is the same but for the Dones of the pauses.
func inTurns(t *testing.T, s journal.Store, want []string) {
	t.Helper()
	var got []string
	var at Position
	for over := false; !over; {
		over = true
		for item, err := range from(s).Turn(t.Context(), row.Ref, at) {
			if err != nil {
				t.Fatal(err)
			}
			at = item.At
			if d, ok := item.Event.(Done); ok && d.Waits() {
				over = false
				continue
			}
			got = append(got, line(item))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in turns (-at once +in turns):\n%s", diff)
	}
}

func TestAhead(t *testing.T) {
	s := openStore(t)
	claimed(t, s, row)
	for _, err := range from(s).Follow(t.Context(), row.Ref, Position{Seq: 7}) {
		if !errors.Is(err, ErrAhead) {
			t.Errorf("%v", err)
		}
		return
	}
	t.Error("no error")
}

// engine notes what it is asked.
type engine struct {
	started []Start
	resumed []journal.Ref
}

func (e *engine) Start(_ context.Context, s Start) (journal.Ref, error) {
	e.started = append(e.started, s)
	return journal.Ref{Tenant: s.Tenant, Run: "run_new"}, nil
}

func (e *engine) Resume(_ context.Context, ref journal.Ref) error {
	e.resumed = append(e.resumed, ref)
	return nil
}

// play writes a transcript's first n records (all: -1) as the run of that id.
func play(t *testing.T, s journal.Store, id journal.ID, file string, n int, end journal.Change) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := row
	r.Run = id
	l := claimed(t, s, r)
	es := entries(t, string(text))
	if n >= 0 {
		es = es[:n]
	}
	write(t, s, func(ctx context.Context, tx journal.Tx) error {
		if _, err := tx.Append(ctx, l, es...); err != nil {
			return err
		}
		return tx.SetStatus(ctx, l, end)
	})
}

// TestSession says a third thing in a session.
func TestSession(t *testing.T) {
	s := openStore(t)
	e := &engine{}
	turns := &Turns{Source: from(s), Engine: e, IDs: journal.NewIDs(time.Now, zeros{}), Tenant: journal.DefaultTenant}
	ended := journal.Change{Status: journal.Completed, Reason: "completed"}
	play(t, s, "run_0000000000000000000000000a", "testdata/answer.txt", -1, ended)
	play(t, s, "run_0000000000000000000000000b", "testdata/blocked.txt", -1, journal.Change{Status: journal.Blocked, Reason: "guard_denied"})

	if _, err := turns.Begin(t.Context(), Message{Session: "ses_01", Text: "and?", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	want := []Start{{
		Tenant: journal.DefaultTenant, Session: "ses_01", Profile: "default", Task: "and?", By: "ann",
	}}
	if diff := cmp.Diff(want, e.started); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	third := row
	third.Run = "run_0000000000000000000000000c"
	said, err := Before(t.Context(), s, third)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Exchange{{"say hello", "Hello."}, {"tell me", "Key [redacted:aws-key]"}}, said); diff != "" {
		t.Errorf("what was said before (-want +got):\n%s", diff)
	}
	second := row
	second.Run = "run_0000000000000000000000000b"
	if said, err := Before(t.Context(), s, second); err != nil || len(said) != 1 {
		t.Errorf("before the second: %v, %v", said, err)
	}

	play(t, s, third.Run, "testdata/approval.txt", 9, journal.Change{Status: journal.WaitingApproval})
	for _, tt := range []struct {
		m    Message
		want error
	}{
		{Message{Session: "ses_01", Text: "and?"}, ErrBusy},
		{Message{Session: "ses_02", Text: "and?"}, journal.ErrNotFound},
		{Message{Text: " \n"}, ErrEmpty},
	} {
		if _, err := turns.Begin(t.Context(), tt.m); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.m, err, tt.want)
		}
	}
	if _, err := turns.Begin(t.Context(), Message{Text: "new", Profile: "strict"}); err != nil {
		t.Fatal(err)
	}
	if got := e.started[len(e.started)-1]; got.Session.Prefix() != journal.SessionPrefix || got.Profile != "strict" {
		t.Errorf("a new session: %+v", got)
	}
}

// zeros is chance that is always the same.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestGoOn comes back to a run that waits: while nobody has decided, it says what
// for; then it is taken up, and the reader goes on behind the pause.
func TestGoOn(t *testing.T) {
	s := openStore(t)
	e := &engine{}
	turns := &Turns{Source: from(s), Engine: e, Tenant: journal.DefaultTenant}
	const id = "run_0000000000000000000000000a"
	text, err := os.ReadFile("testdata/approval.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := row
	r.Run = id
	l := claimed(t, s, r)
	const asked = "apr_1"
	write(t, s, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Ask(ctx, l, journal.Question{Ref: r.Ref, ID: asked, About: "call", Shown: []byte(`{}`), Expires: began.Add(time.Hour)}); err != nil {
			return err
		}
		if _, err := tx.Append(ctx, l, entries(t, string(text))[:9]...); err != nil {
			return err
		}
		return tx.SetStatus(ctx, l, journal.Change{Status: journal.WaitingApproval})
	})

	g, err := turns.GoOn(t.Context(), id)
	if err != nil || g.Waits == nil || g.Waits.Status != StatusApproval || len(g.Waits.Approvals) != 1 || len(e.resumed) != 0 {
		t.Fatalf("nobody has decided: %+v, %v, resumed %v", g, err, e.resumed)
	}
	write(t, s, func(ctx context.Context, tx journal.Tx) error {
		_, err := tx.Decide(ctx, r.Tenant, asked, journal.Decision{State: journal.QuestionApproved, By: "ann"})
		return err
	})
	g, err = turns.GoOn(t.Context(), "0000000000000000000000000A") // as a person types it
	want := Going{Ref: r.Ref, After: Position{Seq: 9}}
	if diff := cmp.Diff(want, g); diff != "" || err != nil || len(e.resumed) != 1 {
		t.Errorf("decided (-want +got):\n%s%v, resumed %v", diff, err, e.resumed)
	}
	if _, err := turns.GoOn(t.Context(), "run_7"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	if _, err := turns.GoOn(t.Context(), "ses_7"); err == nil {
		t.Error("a session's id is taken for a run's")
	}
}

// interrupted is a store in which something happens when a question is read.
type interrupted struct {
	journal.Store
	happens func()
}

func (s *interrupted) Question(ctx context.Context, tenant string, id journal.ID) (journal.Question, error) {
	if happens := s.happens; happens != nil {
		s.happens = nil
		happens()
	}
	return s.Store.Question(ctx, tenant, id)
}

// TestGoOnWhileItGoesOn: whoever has the run in hand takes the decision between
// the two looks at it. It does not wait then, whatever the first look saw.
func TestGoOnWhileItGoesOn(t *testing.T) {
	s := &interrupted{Store: openStore(t)}
	e := &engine{}
	turns := &Turns{Source: from(s), Engine: e, Tenant: journal.DefaultTenant}
	text, err := os.ReadFile("testdata/approval.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := row
	r.Run = "run_0000000000000000000000000a"
	l := claimed(t, s, r)
	const asked = "apr_1"
	write(t, s, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Ask(ctx, l, journal.Question{Ref: r.Ref, ID: asked, About: "call", Shown: []byte(`{}`), Expires: began.Add(time.Hour)}); err != nil {
			return err
		}
		if _, err := tx.Append(ctx, l, entries(t, string(text))[:9]...); err != nil {
			return err
		}
		return tx.SetStatus(ctx, l, journal.Change{Status: journal.WaitingApproval})
	})
	s.happens = func() {
		write(t, s, func(ctx context.Context, tx journal.Tx) error {
			if _, err := tx.Decide(ctx, r.Tenant, asked, journal.Decision{State: journal.QuestionApproved, By: "ann"}); err != nil {
				return err
			}
			l, err := tx.Claim(ctx, r.Ref, journal.Worker{Owner: "another"}, time.Hour)
			if err != nil {
				return err
			}
			if _, err := tx.Use(ctx, l, asked); err != nil {
				return err
			}
			_, err = tx.Append(ctx, l, entries(t, string(text))[9:11]...)
			return err
		})
	}
	g, err := turns.GoOn(t.Context(), string(r.Run))
	if err != nil || g.Waits != nil || len(e.resumed) != 1 {
		t.Errorf("%+v, %v, resumed %v", g, err, e.resumed)
	}
}

// said is live text, yielded when it is asked for.
type said struct{ texts chan Delta }

func (s said) Text(ctx context.Context, _ journal.Ref) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for {
			select {
			case d := <-s.texts:
				if !yield(d, nil) {
					return
				}
			case <-ctx.Done():
				yield(Delta{}, ctx.Err())
				return
			}
		}
	}
}

// TestLive reads text before the log has it: it comes once, without a position,
// and the story is the same.
func TestLive(t *testing.T) {
	s := openStore(t)
	l := claimed(t, s, row)
	text, err := os.ReadFile("testdata/answer.txt")
	if err != nil {
		t.Fatal(err)
	}
	es := entries(t, string(text))
	put := func(es ...journal.Entry) {
		write(t, s, func(ctx context.Context, tx journal.Tx) error { _, err := tx.Append(ctx, l, es...); return err })
	}
	put(es[:6]...) // up to "Hel"
	live := said{make(chan Delta)}
	items := make(chan Item)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		defer close(items)
		for item, err := range (Source{Store: s, Live: live}).Follow(ctx, row.Ref, Position{Seq: 5}) {
			if err != nil {
				t.Error(err)
				return
			}
			items <- item
		}
	}()
	delta := func(start int64, text string) Delta {
		return Delta{Step: 1, Attempt: 1, Channel: "text", Start: start, Text: text}
	}
	expect := func(want Item) {
		t.Helper()
		if diff := cmp.Diff(want, <-items); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	expect(Item{Position{Seq: 6}, delta(0, "Hel")})
	live.texts <- delta(0, "Hello") // two bytes of it are news
	expect(Item{Position{}, delta(3, "lo")})
	live.texts <- delta(7, "gap") // what is between is not known: the log will tell
	late := delta(5, "!")
	late.Attempt = 9
	live.texts <- late // of an attempt that the log does not know
	put(es[6:8]...)    // "lo", which was shown, and the whole answer
	expect(Item{Position{Seq: 8}, delta(5, ".")})
	put(es[8:]...)
	write(t, s, func(ctx context.Context, tx journal.Tx) error {
		return tx.SetStatus(ctx, l, journal.Change{Status: journal.Completed, Reason: "completed"})
	})
	expect(Item{Position{Seq: 10}, Done{Success: true, Status: "completed", Reason: "completed", Message: "Hello.", Run: "run_01", Session: "ses_01"}})
	if item, more := <-items; more {
		t.Errorf("behind the Done: %v", item)
	}
}
