package requestlog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/requestlog"
	"github.com/stoplog/stoplog/internal/wire"
)

const (
	request = "run_01m8q1zezahpnfa2a8kch3v88f"
	turn    = "run_01m8q1zs2s3eejg5g4ywrpwqr3"
)

var (
	started = govern.Started{Mount: "openai", Profile: "default", Upstream: "up", Model: "m", Stream: true, Parent: turn}
	redact  = govern.Verdict{Channel: "choice/0/content", Guard: "secrets", Rule: "github-pat", Mode: guard.Enforce, Verdict: guard.Redact, Start: 3, End: 43, Severity: guard.Critical, Fingerprint: "00112233aabbccdd"}
	noted   = govern.Verdict{Channel: "choice/0/content", Guard: "pii", Rule: "email", Mode: guard.Shadow, Verdict: guard.Redact, Start: 50, End: 60}
	settled = govern.Settled{Status: "completed", Reason: "completed", Usage: wire.Usage{Input: 7, Output: 9}}
)

func records(run string, facts ...govern.Fact) []govern.Record {
	var rs []govern.Record
	for _, f := range facts {
		rs = append(rs, govern.Record{Run: run, At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Fact: f})
	}
	return rs
}

func open(t *testing.T) (*sqlite.Store, *requestlog.Log) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := requestlog.New(s)
	l.Hold(journal.Worker{Owner: "test/1", Host: "test"})
	return s, l
}

// story is a run's row and log, a line each.
func story(t *testing.T, s *sqlite.Store, id journal.ID) string {
	t.Helper()
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: id}
	row, err := s.Run(t.Context(), ref)
	if err != nil {
		return err.Error()
	}
	lines := []string{fmt.Sprintf("%s %s %s parent %s", row.Kind, row.Status, row.Reason, row.Parent)}
	for r, err := range s.Events(t.Context(), ref, 0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, r.Kind+" "+string(r.Payload))
	}
	if rep, err := journal.Verify(t.Context(), s, ref, journal.Link{}); err != nil || rep.Broken != nil {
		t.Errorf("the chain: %v, %v", rep.Broken, err)
	}
	return strings.Join(lines, "\n")
}

// flush waits for what was handed in and not waited for.
func flush(t *testing.T, s *sqlite.Store) {
	t.Helper()
	if err := s.Update(t.Context(), func(context.Context, journal.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestRequest(t *testing.T) {
	s, l := open(t)
	for _, rs := range [][]govern.Record{records(request, started), records(request, redact, noted), records(request, settled)} {
		if err := l.Record(rs...); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, s)
	want := `request completed completed parent ` + turn + `
started {"model":"m","mount":"openai","parent":"` + turn + `","profile":"default","stream":true,"upstream":"up","v":1}
verdict {"channel":"choice/0/content","end":43,"fingerprint":"00112233aabbccdd","guard":"secrets","mode":"enforce","rule":"github-pat","severity":"critical","start":3,"v":1,"verdict":"redact"}
verdict {"channel":"choice/0/content","end":60,"fingerprint":"","guard":"pii","mode":"shadow","rule":"email","severity":"low","start":50,"v":1,"verdict":"redact"}
settled {"cost_usd":null,"reason":"completed","status":"completed","usage":{"estimated":false,"input":7,"output":9},"v":1}`
	if got := story(t, s, request); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A verdict that holds something back is in the journal when Record returns.
func TestVerdictIsDurable(t *testing.T) {
	s, l := open(t)
	if err := l.Record(records(request, started)...); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(records(request, redact)...); err != nil {
		t.Fatal(err)
	}
	if got := story(t, s, request); !strings.Contains(got, "\nverdict ") || !strings.HasPrefix(got, "request running") {
		t.Errorf("got\n%s", got)
	}
}

// Verdicts on the tool calls of a run are a request that is a part of it.
func TestVerdictOfARun(t *testing.T) {
	s, l := open(t)
	if err := l.Record(records(turn, redact)...); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Runs(t.Context(), journal.RunQuery{Tenant: journal.DefaultTenant, Parent: turn})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	got := story(t, s, rows[0].Run)
	if !strings.HasPrefix(got, "request completed completed parent "+turn+"\nstarted ") || !strings.Contains(got, "\nverdict ") || !strings.Contains(got, "\nsettled ") {
		t.Errorf("got\n%s", got)
	}
}

// What could not be kept is an error with the next fact at the latest.
func TestNotKept(t *testing.T) {
	s, l := open(t)
	if err := l.Record(records(request, started)...); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(records(request, started)...); err != nil { // the same id again: the journal refuses it
		t.Fatal(err)
	}
	flush(t, s)
	if err := l.Record(records(request, redact)...); err == nil {
		t.Error("a verdict of a request that was not kept is kept")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := "run_01m8q1zs2xzw009vwyyst57yv4"
	first := l.Record(records(other, started)...)
	if second := l.Record(records(other, redact)...); first == nil && second == nil {
		t.Error("a closed journal keeps verdicts")
	} else if err := errors.Join(first, second); err == nil {
		t.Error("no error")
	}
}
