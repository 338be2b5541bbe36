package journal_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

func TestChainOfOldSample(t *testing.T) {
	b, err := os.ReadFile("testdata/chain.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var sample struct {
		Tenant string
		Run    journal.ID
		Events []struct {
			Kind         string
			Payload      json.RawMessage
			At           int64 `json:"at_us"`
			Digest, Link string
		}
	}
	if err := json.Unmarshal(b, &sample); err != nil {
		t.Fatal(err)
	}
	if len(sample.Events) == 0 {
		t.Fatal("the sample is empty")
	}
	var key journal.Key
	for i := range key {
		key[i] = byte(i)
	}
	var tail journal.Tail
	ref := journal.Ref{Tenant: sample.Tenant, Run: sample.Run}
	for i, e := range sample.Events {
		var rec journal.Record
		rec, tail, err = tail.Next(key, ref, time.UnixMicro(e.At).Add(999), journal.Entry{Kind: e.Kind, Payload: e.Payload})
		if err != nil {
			t.Fatal(err)
		}
		if rec.Seq != uint64(i+1) || rec.Digest.String() != e.Digest || rec.Link.String() != e.Link {
			t.Errorf("event %d: digest %s, link %s; want %s, %s", rec.Seq, rec.Digest, rec.Link, e.Digest, e.Link)
		}
		if tail != (journal.Tail{Seq: rec.Seq, Link: rec.Link}) {
			t.Errorf("event %d: the end is %+v", rec.Seq, tail)
		}
	}
}

func TestHashesAreText(t *testing.T) {
	want := journal.Digest{1, 0xab}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got journal.Digest
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s reads as %s, %v", text, got, err)
	}
	l, err := journal.ParseLink(journal.Link(want).String())
	if err != nil || l != journal.Link(want) {
		t.Errorf("got link %s, %v", l, err)
	}
	for _, bad := range []string{"", "ab", strings.Repeat("g", 64), strings.Repeat("a", 66)} {
		if _, err := journal.ParseLink(bad); err == nil {
			t.Errorf("%q was read as a link", bad)
		}
	}
}

func TestFingerprintsHaveAKeyOfTheirOwn(t *testing.T) {
	key := journal.Key{1}
	prints := key.Fingerprints()
	if len(prints) != 32 || bytes.Equal(prints, key[:]) || !bytes.Equal(prints, key.Fingerprints()) {
		t.Errorf("got %x", prints)
	}
	if other := (journal.Key{2}).Fingerprints(); bytes.Equal(prints, other) {
		t.Error("two stores have the same")
	}
}

func TestIDs(t *testing.T) {
	now := time.Date(2026, 9, 1, 12, 0, 0, 5e6, time.UTC)
	ids := journal.NewIDs(func() time.Time { return now }, rand.Reader)
	var made []journal.ID
	for range 1000 {
		id, err := ids.New(journal.RunPrefix)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, id)
	}
	if !slices.IsSorted(made) || len(slices.Compact(slices.Clone(made))) != 1000 {
		t.Error("they are not distinct and in order")
	}
	id := made[0]
	if id.Prefix() != journal.RunPrefix || !id.Time().Equal(now) || len(id) != 30 || strings.ToLower(string(id)) != string(id) {
		t.Errorf("%s: prefix %q, time %v", id, id.Prefix(), id.Time())
	}
	if id := journal.ID("nothing"); id.Prefix() != "" || !id.Time().IsZero() {
		t.Errorf("%s: prefix %q, time %v", id, id.Prefix(), id.Time())
	}
	broken := journal.NewIDs(time.Now, bytes.NewReader(nil))
	if _, err := broken.New(journal.RunPrefix); err == nil {
		t.Error("made an id without randomness")
	}
}

func TestPartial(t *testing.T) {
	for typed, want := range map[string]string{
		"run_01K4":                        "run_01k4",
		" 01k4 ":                          "run_01k4",
		"RUN_01k4":                        "run_01k4",
		"0":                               "run_0",
		"apr_01k4":                        "",
		"run_":                            "",
		"":                                "",
		"run_01u4":                        "", // no u in a ULID
		"run_01k4%":                       "",
		"run_01k44tn5c0abcdefghjkmnpqrs":  "run_01k44tn5c0abcdefghjkmnpqrs",
		"run_01k44tn5c0abcdefghjkmnpqrs0": "",
	} {
		got, err := journal.Partial(journal.RunPrefix, typed)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", typed, got, err, want)
		}
	}
}

func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		keep    journal.Retention
		capture journal.Capture
		age     time.Duration
		gone    []journal.Content
		next    time.Duration
	}{
		{journal.Retention{}, journal.CaptureRedacted, -1, nil, time.Minute},
		{journal.Retention{}, journal.CaptureRedacted, time.Minute, []journal.Content{journal.Raw}, 30 * day},
		{journal.Retention{}, "", 30 * day, []journal.Content{journal.Text, journal.Raw}, 0},
		{journal.Retention{Text: day, Grace: time.Hour}, journal.CaptureRedacted, 23 * time.Hour, []journal.Content{journal.Raw}, day},
		{journal.Retention{Text: time.Minute, Grace: time.Hour}, journal.CaptureRedacted, time.Minute, nil, time.Hour},
		{journal.Retention{}, journal.CaptureFull, 1000 * day, nil, 0},
		{journal.Retention{}, journal.CaptureNone, time.Hour, []journal.Content{journal.Structure, journal.Text, journal.Raw}, 0},
	} {
		gone, next := c.keep.Due(c.capture, c.age)
		if !slices.Equal(gone, c.gone) || next != c.next {
			t.Errorf("%+v %s at %v: gone %v, next %v; want %v, %v", c.keep, c.capture, c.age, gone, next, c.gone, c.next)
		}
	}
	if _, err := journal.ParseCapture("some"); err == nil {
		t.Error("an unknown capture was read")
	}
}

func TestErrorsSayWhatActs(t *testing.T) {
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	ref := journal.Ref{Tenant: "t", Run: "run_1"}
	for want, err := range map[string]error{
		"run run_1 is blocked (guard_denied) since 2026-09-01T12:00:00Z": &journal.SettledError{Ref: ref, Status: journal.Blocked, Reason: "guard_denied", At: at},
		"run run_1 is held by w until 2026-09-01T12:00:00Z":              &journal.LeasedError{Ref: ref, Owner: "w", Until: at},
		"run run_1 depends on the machine h":                             &journal.PlacedError{Ref: ref, Host: "h"},
		"already denied by bea at 2026-09-01T12:00:00Z":                  &journal.DecidedError{Question: journal.Question{State: journal.QuestionDenied, By: "bea", Decided: at}},
		"run_0 begins several ids: run_01, …":                            &journal.AmbiguousError{Partial: "run_0", IDs: []journal.ID{"run_01", "run_02"}},
		"event 3: missing":                                               &journal.Broken{Seq: 3, Why: "missing"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The payloads of a gateway's records are what its requests.jsonl had.
func TestRequestPayloads(t *testing.T) {
	for want, e := range map[string]struct {
		kind string
		v    any
	}{
		`{"mount":"openai","model":"m","profile":"p","stream":true,"upstream":"u","v":1}`: {journal.RequestStarted,
			journal.Started{Mount: "openai", Profile: "p", Upstream: "u", Model: "m", Stream: true}},
		`{"channel":"c","end":9,"fingerprint":"f","guard":"g","mode":"enforce","rule":"r","severity":"high","start":4,"v":1,"verdict":"redact"}`: {journal.RequestVerdict,
			journal.Verdict{Channel: "c", Guard: "g", Rule: "r", Mode: "enforce", Verdict: "redact", Start: 4, End: 9, Severity: "high", Fingerprint: "f"}},
		`{"cost_usd":null,"reason":"completed","status":"completed","usage":{"estimated":false,"input":1,"output":2},"v":1}`: {journal.RequestSettled,
			journal.Settled{Status: journal.Completed, Reason: "completed", Usage: journal.Usage{Input: 1, Output: 2}}},
	} {
		entry, err := journal.NewEntry(e.kind, 1, journal.Structure, e.v)
		if err != nil {
			t.Fatal(err)
		}
		form, version, err := entry.Encode()
		want = canonicalOrder(t, want)
		if err != nil || version != 1 || string(form) != want {
			t.Errorf("%s: got %s, %d, %v; want %s", e.kind, form, version, err, want)
		}
	}
	if _, err := journal.NewEntry("k", 1, journal.Structure, []int{1}); err == nil {
		t.Error("a list was taken for an object")
	}
}

// canonicalOrder sorts a flat object's members, to write wanted ones by hand.
func canonicalOrder(t *testing.T, s string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSegments(t *testing.T) {
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	s := journal.Segments{Step: 2, Attempt: 1}
	if !s.Due().IsZero() || s.Take() != nil {
		t.Error("nothing is due")
	}
	s.Add("a", "one ", at)
	s.Add("a", "two ", at.Add(time.Millisecond))
	s.Add("b", "three", at.Add(2*time.Millisecond))
	s.Add("a", "four", at.Add(3*time.Millisecond))
	if got := s.Due(); !got.Equal(at.Add(200 * time.Millisecond)) {
		t.Errorf("due %v", got)
	}
	want := []journal.Released{
		{Step: 2, Attempt: 1, Channel: "a", Start: 0, Text: "one two "},
		{Step: 2, Attempt: 1, Channel: "b", Start: 0, Text: "three"},
		{Step: 2, Attempt: 1, Channel: "a", Start: 8, Text: "four"},
	}
	if d := cmp.Diff(want, s.Take()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s.Add("a", strings.Repeat("x", 4096), at.Add(time.Second))
	if got := s.Due(); got.After(at.Add(time.Second)) {
		t.Errorf("4 KB are due %v", got)
	}
	if got := s.Take(); len(got) != 1 || got[0].Start != 12 {
		t.Errorf("got %+v", got)
	}
}

// However a channel's text is cut, its segments joined are the text, each is
// whole runes, and each starts where the one before ended.
func FuzzSegments(f *testing.F) {
	f.Add("grüße, 世界 🚣", uint64(0b1011011), 3)
	f.Add("\xe4\xb8", uint64(1), 1)
	f.Add("\xff\xfe", uint64(2), 2)
	f.Fuzz(func(t *testing.T, text string, cuts uint64, takeEvery int) {
		var s journal.Segments
		now := time.Unix(0, 0)
		var got []journal.Released
		rest, n := text, 0
		for rest != "" {
			k := min(len(rest), 1+int(cuts>>(n%64)&3))
			s.Add("c", rest[:k], now)
			rest = rest[k:]
			if n++; takeEvery > 0 && n%takeEvery == 0 {
				got = append(got, s.Take()...)
			}
		}
		s.End(now)
		got = append(got, s.Take()...)
		joined, valid := "", strings.ToValidUTF8(text, "") == text
		for _, r := range got {
			if r.Start != int64(len(joined)) {
				t.Errorf("a segment starts at %d, behind %d bytes", r.Start, len(joined))
			}
			if valid && strings.ToValidUTF8(r.Text, "") != r.Text {
				t.Errorf("a segment %q is cut in a rune", r.Text)
			}
			joined += r.Text
		}
		if joined != text {
			t.Errorf("joined %q, want %q", joined, text)
		}
	})
}

// A payload's form is a fixed point, whatever it came from, and reads as the same value.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{`{"v":1}`, `{"v":2,"b":[1.50,"\u00e9"],"a":{"z":null,"y":true}}`, `{"v":1,"n":123456789012345678901234567890}`, `{"v":1,"a":"\u2028<>&"}`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		form, version, err := journal.Entry{Kind: "k", Payload: payload}.Encode()
		if err != nil {
			return
		}
		again, version2, err := journal.Entry{Kind: "k", Payload: form}.Encode()
		if err != nil || !bytes.Equal(again, form) || version != version2 {
			t.Fatalf("%s encodes to %s (%d), and that to %s (%d), %v", payload, form, version, again, version2, err)
		}
		if a, b := decoded(t, payload), decoded(t, form); !cmp.Equal(a, b) {
			t.Errorf("%s and %s differ", payload, form)
		}
	})
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPending(t *testing.T) {
	p, settle := journal.NewPending()
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	want := errors.New("no")
	go settle(want)
	if err := p.Wait(t.Context()); err != want || p.Err() != want {
		t.Errorf("got %v, %v", err, p.Err())
	}
}

func ExampleTail_Next() {
	var tail journal.Tail
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: "run_01k44tn5c0abcdefghjkmnpqrs"}
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	for _, payload := range []string{`{"v":1,"task":"say hello"}`, `{"v":1}`} {
		var r journal.Record
		r, tail, _ = tail.Next(journal.Key{}, ref, at, journal.Entry{Kind: "note", Payload: json.RawMessage(payload)})
		fmt.Printf("%d %s %.8s\n", r.Seq, r.Payload, r.Link)
	}
	// Output:
	// 1 {"task":"say hello","v":1} a27a357c
	// 2 {"v":1} 6bb26be2
}
