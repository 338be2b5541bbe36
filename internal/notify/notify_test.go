package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func ticket(kind string) Ticket {
	return Ticket{
		Digest: strings.Repeat("ab", 31) + fmt.Sprintf("%02x", len(kind)), Playbook: "deploy", Step: "dry-run", Kind: kind, Run: "run_1",
		What: "the observer of step dry-run said " + kind + ": <b>@all</b>", Detail: "{\"verdict\":\"```\"}",
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// flaky is a sink that fails as often as it is told to.
type flaky struct {
	mu    sync.Mutex
	fails int
	got   []string
	tries int
	panic bool
}

func (*flaky) Name() string { return "flaky" }

func (f *flaky) Send(_ context.Context, t Filed) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.tries <= f.fails {
		if f.panic {
			panic("a bug")
		}
		return "", errors.New("not now")
	}
	f.got = append(f.got, t.ID)
	return "there", nil
}

func open(t *testing.T, dir string, sinks ...Sink) *Outbox {
	t.Helper()
	n := 0
	o, err := New(Options{Dir: dir, Sinks: sinks, NewID: func() (string, error) {
		n++
		return fmt.Sprintf("tkt_%s_%d", filepath.Base(t.Name()), n), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A sink that fails loses nothing: it is given the ticket again, later each time,
// until it has it, and then no more. One that panics has failed.
func TestSinkFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sink := &flaky{fails: 3, panic: panics}
			o := open(t, t.TempDir(), sink)
			began := time.Now()
			id, isNew, err := o.File(ticket("odd"))
			if err != nil || !isNew {
				t.Fatal(id, isNew, err)
			}
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if len(sink.got) != 1 || sink.got[0] != id || sink.tries != 4 {
				t.Errorf("it has %v after %d tries", sink.got, sink.tries)
			}
			if time.Since(began) < 30*time.Minute {
				t.Error("time stood still")
			}
			o.Close(t.Context())
			if sink.tries != 4 {
				t.Errorf("it was given the ticket %d times", sink.tries)
			}
		})
	}
}

// What a process could not deliver the next one does.
func TestNextProcess(t *testing.T) {
	dir := t.TempDir()
	gone, stop := context.WithCancel(t.Context())
	stop()
	broken := &flaky{fails: 1 << 30}
	o := open(t, dir, broken)
	id, _, err := o.File(ticket("odd"))
	if err != nil {
		t.Fatal(err)
	}
	o.Close(gone)
	later := time.Now().Add(2 * time.Hour)
	sink := &flaky{}
	o2, err := New(Options{Dir: dir, Sinks: []Sink{sink}, NewID: o.NewID, Now: func() time.Time { return later }})
	if err != nil {
		t.Fatal(err)
	}
	o2.Close(t.Context())
	if len(sink.got) != 1 || sink.got[0] != id {
		t.Errorf("it has %v, and %s was filed", sink.got, id)
	}
}

// The same trouble in the same place is one ticket, whoever files it; what was last
// seen long ago is another one.
func TestOneTicket(t *testing.T) {
	dir := t.TempDir()
	sink := &flaky{}
	now := time.Now()
	var all []*Outbox
	for i := range 2 {
		o, err := New(Options{
			Dir: dir, Sinks: []Sink{sink}, Now: func() time.Time { return now },
			NewID: func() (string, error) { return fmt.Sprintf("tkt_%d_%d", i, now.Unix()), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, news := map[string]bool{}, 0
	for i := range 20 {
		wg.Go(func() {
			id, isNew, err := all[i%2].File(ticket("odd"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if ids[id] = true; isNew {
				news++
			}
		})
	}
	wg.Wait()
	for _, o := range all {
		o.Close(t.Context())
	}
	if len(ids) != 1 || news != 1 || len(sink.got) != 1 {
		t.Errorf("there are %d tickets, %d new, and the sink has %v", len(ids), news, sink.got)
	}
	var kept entry
	for id := range ids {
		var err error
		if kept, err = all[0].read(id); err != nil || kept.Seen != 20 {
			t.Errorf("it was seen %d times: %v", kept.Seen, err)
		}
	}
	now = now.Add(Open + time.Hour)
	o := open(t, dir)
	defer o.Close(t.Context())
	o.Now = func() time.Time { return now }
	if id, isNew, err := o.File(ticket("odd")); err != nil || !isNew || ids[id] {
		t.Errorf("a month later it is %s, new %v: %v", id, isNew, err)
	}
	if _, _, err := o.File(Ticket{Digest: "../../x"}); err == nil {
		t.Error("a digest that is none was taken")
	}
}

// A folder has each ticket as a file that people and programs read.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	tk := Filed{ticket("observer_failed"), "tkt_1"}
	where, err := Folder{dir}.Send(t.Context(), tk)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := (Folder{dir}).Send(t.Context(), tk); err != nil || again != where {
		t.Errorf("sent again it is %s: %v", again, err)
	}
	b, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	want := "---\nid: \"tkt_1\"\ntitle: \"deploy: step dry-run: observer_failed\"\nplaybook: \"deploy\"\nstep: \"dry-run\"\nkind: \"observer_failed\"\n" +
		"run: \"run_1\"\ndigest: \"" + tk.Digest + "\"\nat: \"2026-01-02T03:04:05Z\"\nstatus: \"open\"\n---\n\n" +
		"the observer of step dry-run said observer_failed: &lt;b>@\u200ball&lt;/b>\n\nRun `run_1`, at 2026-01-02T03:04:05Z.\n\n" +
		"````\n{\"verdict\":\"```\"}\n````\n\nSee `stoplog why run_1`. Digest `" + tk.Digest + "`.\n"
	if string(b) != want {
		t.Errorf("it has\n%s\nwant\n%s", b, want)
	}
	tk.Playbook, tk.Step, tk.ID = "../../etc", "a/b", "../tkt_2"
	if where, err := (Folder{dir}).Send(t.Context(), tk); err != nil || filepath.Dir(where) != dir {
		t.Errorf("it is at %s: %v", where, err)
	}
}

// An issue is opened once: one that is there is found by its label.
func TestGitHub(t *testing.T) {
	var mu sync.Mutex
	var issues []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer token-1" || r.URL.Path != "/repos/o/r/issues" {
			http.Error(w, "token-1 is wrong", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodGet {
			found := "[]"
			for _, body := range issues {
				if strings.Contains(body, `"`+r.URL.Query().Get("labels")+`"`) {
					found = `[{"html_url":"https://example.org/1"}]`
				}
			}
			fmt.Fprint(w, found)
			return
		}
		b, _ := io.ReadAll(r.Body)
		issues = append(issues, string(b))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"html_url":"https://example.org/1"}`)
	}))
	defer server.Close()
	sink := GitHub{API: server.URL, Repo: "o/r", Token: "token-1", Way: server.Client().Transport}
	for range 2 {
		where, err := sink.Send(t.Context(), Filed{ticket("odd"), "tkt_1"})
		if err != nil || where != "https://example.org/1" {
			t.Fatal(where, err)
		}
	}
	if len(issues) != 1 || !strings.Contains(issues[0], `"title":"deploy: step dry-run: odd"`) {
		t.Errorf("there are issues %v", issues)
	}
	sink.Token = "wrong"
	if _, err := sink.Send(t.Context(), Filed{ticket("odd"), "tkt_1"}); err == nil || strings.Contains(err.Error(), "token-1") || !strings.Contains(err.Error(), "403") {
		t.Errorf("it said %v", err)
	}
}

// A webhook can tell who sends, and what it has had before.
func TestWebhook(t *testing.T) {
	var got Filed
	var header http.Header
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	sink := Webhook{URL: server.URL + "/hook?key=s3cret", Secret: "k", Way: server.Client().Transport}
	if strings.Contains(sink.Name(), "s3cret") {
		t.Errorf("its name is %s", sink.Name())
	}
	want := Filed{ticket("odd"), "tkt_1"}
	if _, err := sink.Send(t.Context(), want); err != nil || got != want {
		t.Errorf("it got %+v: %v", got, err)
	}
	if header.Get("Idempotency-Key") != want.Digest || !strings.HasPrefix(header.Get("Stoplog-Signature"), "sha256=") {
		t.Errorf("the header is %v", header)
	}
	status = http.StatusInternalServerError
	if _, err := sink.Send(t.Context(), want); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("it said %v", err)
	}
}

func TestCommand(t *testing.T) {
	sink := Command{Argv: []string{"/x/file-ticket", "-q"}, Run: func(_ context.Context, argv []string, in io.Reader, out io.Writer) error {
		b, err := io.ReadAll(in)
		if err != nil || !bytes.Contains(b, []byte(`"id":"tkt_1"`)) || argv[1] != "-q" {
			return fmt.Errorf("it got %s: %w", b, err)
		}
		_, err = fmt.Fprintln(out, "JIRA-7\nmore")
		return err
	}}
	if where, err := sink.Send(t.Context(), Filed{ticket("odd"), "tkt_1"}); err != nil || where != "JIRA-7" {
		t.Error(where, err)
	}
}
