package chat

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

var update = flag.Bool("update", false, "rewrite the transcripts with what was seen")

// A transcript has a line for each record of a run's log, `> kind payload`
// (without the payload's version), and behind it what it shows, as it would be
// sent: the event's position, its name, its data. Records are a second apart.
const recordMark = "> "

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// entries reads the records of a transcript.
func entries(t *testing.T, text string) (es []journal.Entry) {
	t.Helper()
	for line := range strings.Lines(text) {
		said, ok := strings.CutPrefix(strings.TrimSpace(line), recordMark)
		if !ok {
			continue
		}
		kind, payload, _ := strings.Cut(said, " ")
		e, err := journal.NewEntry(kind, 1, journal.Text, json.RawMessage(payload))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e.At = began.Add(time.Duration(len(es)) * time.Second)
		es = append(es, e)
	}
	return es
}

// records numbers entries as a log does.
func records(t *testing.T, es []journal.Entry) (recs []journal.Record) {
	t.Helper()
	var tail journal.Tail
	for _, e := range es {
		var rec journal.Record
		var err error
		rec, tail, err = tail.Next(journal.Key{}, row.Ref, began, e)
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

var row = journal.Run{
	Ref:  journal.Ref{Tenant: journal.DefaultTenant, Run: "run_01"},
	Kind: journal.TurnRun, Session: "ses_01", Profile: "default",
}

func line(i Item) string {
	data, err := json.Marshal(i.Event)
	if err != nil {
		panic(err) // events are plain
	}
	return fmt.Sprintf("%s %s %s\n", i.At, i.Event.Name(), data)
}

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(file, got, 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// replay writes the transcript anew: comments and records as they are, and what
// each record shows behind it.
func replay(t *testing.T, text string) []byte {
	recs := records(t, entries(t, text))
	r := NewReader(row)
	var out bytes.Buffer
	for l := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(l, recordMark):
			out.WriteString(l)
			items, err := r.Take(recs[0])
			if err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			recs = recs[1:]
			for _, i := range items {
				out.WriteString(line(i))
			}
		case strings.HasPrefix(l, "#") || strings.TrimSpace(l) == "":
			out.WriteString(l)
		}
	}
	return out.Bytes()
}

// TestPurged reads a run whose payloads have gone: what its row says is told.
func TestPurged(t *testing.T) {
	text, err := os.ReadFile("testdata/answer.txt")
	if err != nil {
		t.Fatal(err)
	}
	recs := records(t, entries(t, string(text)))
	ended := row
	ended.Status, ended.Reason = journal.Completed, "completed"
	r := NewReader(ended)
	var got []Event
	for _, rec := range recs {
		if rec.Kind != "claimed" { // structure stays
			rec.Purged, rec.Payload = began, nil
		}
		items, err := r.Take(rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			got = append(got, i.Event)
		}
	}
	want := []Event{
		Run{ID: "run_01", Profile: "default", Session: "ses_01"},
		Done{Success: true, Status: "completed", Reason: "completed", Run: "run_01", Session: "ses_01"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPosition(t *testing.T) {
	for i, ps := 0, []string{"0", "1", "2.1", "2.2", "2.10", "2", "3"}; i < len(ps); i++ {
		p, err := ParsePosition(ps[i])
		if err != nil || p.String() != ps[i] {
			t.Fatalf("%s: %v, %v", ps[i], p, err)
		}
		for j := range ps {
			q, err := ParsePosition(ps[j])
			if err != nil || p.After(q) != (i > j) {
				t.Errorf("%s after %s: %v, %v", p, q, p.After(q), err)
			}
		}
	}
	if p, err := ParsePosition(""); err != nil || !p.IsZero() {
		t.Errorf("empty: %v, %v", p, err)
	}
	for _, bad := range []string{"-1", "x", "1.", "1.0", "1.-1", "01", " 1", "1.1.1", "9223372036854775808"} {
		if p, err := ParsePosition(bad); err == nil {
			t.Errorf("%q is taken as %v", bad, p)
		}
	}
}
