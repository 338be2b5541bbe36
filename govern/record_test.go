package govern_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// hasVerdict reports whether records hold a verdict.
func hasVerdict(rs []govern.Record) bool {
	for _, r := range rs {
		if _, ok := r.Fact.(govern.Verdict); ok {
			return true
		}
	}
	return false
}

// TestRecordedBeforeItShows keeps a verdict from being recorded: until it is,
// nothing that depends on it shows.
func TestRecordedBeforeItShows(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict guard.Verdict
		content string
		stream  bool
		up      upstream
		before  string // what shows before the record
		after   string // what shows then
	}{
		{"streamed", guard.Redact, "hi", true, says(200, "text/event-stream", chatStream("so: ", secret, " it is")), "", "[redacted:github-pat]"},
		{"streamed and denied", guard.Deny, "hi", true, says(200, "text/event-stream", chatStream("so: ", secret, " it is")), "", "content_filter"},
		{"unstreamed", guard.Redact, "hi", false, says(200, "application/json", chatBody(secret)), "", "[redacted:github-pat]"},
		{"a request", guard.Deny, secret, true, nil, "", "the request was not sent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := make(chan struct{})
				door := open(t, tt.verdict, tt.up, func(rs ...govern.Record) error {
					if hasVerdict(rs) {
						<-disk
					}
					return nil
				})
				var shown tap
				go func() {
					resp, err := door.RoundTrip(ask(t.Context(), t, chat, tt.content, tt.stream))
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					got, err := io.ReadAll(io.TeeReader(resp.Body, writer{&shown}))
					if err != nil || !strings.Contains(string(got), tt.after) {
						t.Errorf("in the end %q, %v", got, err)
					}
				}()
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := shown.text(); got != tt.before {
					t.Errorf("before the record there shows %q", got)
				}
				close(disk)
			})
		})
	}
}

type writer struct{ *tap }

func (w writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, p...)
	return len(p), nil
}

// TestNotRecorded fails each call of Record in turn: nothing that depends on it
// shows, no call goes out behind it, and the program is told.
func TestNotRecorded(t *testing.T) {
	full := errors.New("the disk is full")
	for _, stream := range []bool{true, false} {
		for fails := 1; ; fails++ {
			calls, asked := 0, false
			body, kind := chatStream("so: ", secret, " it is"), "text/event-stream"
			if !stream {
				body, kind = chatBody(secret), "application/json"
			}
			answer := says(200, kind, body)
			door := open(t, guard.Redact, upstream(func(r *http.Request) (*http.Response, error) {
				asked = true
				return answer(r)
			}), func(rs ...govern.Record) error {
				if calls++; calls == fails {
					return full
				}
				return nil
			})
			ctx, exchange := govern.Watch(t.Context())
			var shown []byte
			resp, err := door.RoundTrip(ask(ctx, t, chat, "hi", stream))
			if err == nil {
				shown, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil { // fewer calls than that
				if fails <= calls || fails < 4 || !strings.Contains(string(shown), "[redacted:github-pat]") {
					t.Errorf("stream %v: %d calls of Record, %q", stream, fails-1, shown)
				}
				break
			}
			at := fmt.Sprintf("stream %v, call %d of Record fails", stream, fails)
			if !errors.Is(err, full) {
				t.Errorf("%s: the error is %v", at, err)
			}
			if strings.Contains(string(shown), "redacted") || strings.Contains(string(shown), "DONE") {
				t.Errorf("%s: %q shows", at, shown)
			}
			if fails == 1 && asked {
				t.Errorf("%s: the upstream was asked", at)
			}
			if o, ok := exchange.Outcome(); !ok || o.Status != "upstream_failed" || o.Reason != "the record could not be kept" {
				t.Errorf("%s: the program is told %+v, %v", at, o, ok)
			}
		}
	}
}

// TestRecordFile pins the stored form, and who may read it.
func TestRecordFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state", "requests.jsonl")
	file, err := govern.OpenRecordFile(name)
	if err != nil {
		t.Fatal(err)
	}
	door := open(t, guard.Redact, says(200, "application/json", chatBody("it is "+secret+".")), file.Append)
	resp, err := door.RoundTrip(ask(t.Context(), t, chat, "hi", false))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	run := resp.Header.Get("Stoplog-Run")
	got := strings.ReplaceAll(string(b), run, "RUN")
	got = regexp.MustCompile(`"at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`).ReplaceAllString(got, `"at":"AT"`)
	got = regexp.MustCompile(`"fingerprint":"[0-9a-f]{16}"`).ReplaceAllString(got, `"fingerprint":"F"`)
	want := `{"v":1,"run":"RUN","at":"AT","kind":"started","mount":"openai","profile":"p","upstream":"o","model":"m","stream":false}
{"v":1,"run":"RUN","at":"AT","kind":"verdict","channel":"choice/0/content","guard":"secrets","rule":"github-pat","mode":"enforce","verdict":"redact","start":6,"end":46,"severity":"critical","fingerprint":"F"}
{"v":1,"run":"RUN","at":"AT","kind":"settled","status":"completed","reason":"completed","usage":{"input":7,"output":9,"estimated":false},"cost_usd":null}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if bytes.Contains(b, []byte(secret)) {
		t.Error("the record holds what was found")
	}
	for path, mode := range map[string]fs.FileMode{name: 0o600, filepath.Dir(name): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}

// TestEvidenceInTheModel: what a guard finds in the model's name, though it only
// watches, is not recorded as a name.
func TestEvidenceInTheModel(t *testing.T) {
	records := &records{}
	m := member(t, guard.Redact)
	m.Mode = guard.Shadow
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: says(200, "application/json", chatBody("hi"))}},
		Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{"*"}, Input: []guard.Member{m}}},
		Record:    records.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	req := ask(t.Context(), t, chat, "hi", false)
	req.Body = io.NopCloser(strings.NewReader(`{"model":"` + secret + `"}`))
	if _, err := door.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(records.all)
	if err != nil || bytes.Contains(b, []byte(secret)) || !bytes.Contains(b, []byte(`"channel":"model"`)) {
		t.Errorf("the record is %s, %v", b, err)
	}
}

// TestTwoProcesses append to one file at once: every line is whole. The test is
// its own second process.
func TestTwoProcesses(t *testing.T) {
	const n, file = 200, "STOPLOG_TEST_RECORD_FILE"
	appendAll := func(name string) {
		f, err := govern.OpenRecordFile(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range n {
					run := fmt.Sprintf("run_%d_%d", os.Getpid(), i)
					err := f.Append(govern.Record{Run: run, Fact: govern.Started{Mount: strings.Repeat("m", 500)}}, govern.Record{Run: run, Fact: govern.Settled{}})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	if name := os.Getenv(file); name != "" {
		appendAll(name)
		return
	}
	name := filepath.Join(t.TempDir(), "requests.jsonl")
	var others []*exec.Cmd
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcesses$")
		cmd.Env = append(os.Environ(), file+"="+name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, last := map[string]int{}, ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r struct{ Run, Kind string }
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, sc.Bytes())
		}
		if r.Kind == "settled" && r.Run != last {
			t.Fatalf("records that were appended together lie apart: %s after %s", r.Run, last)
		}
		last = r.Run
		runs[r.Run]++
	}
	if len(runs) != 8 {
		t.Errorf("%d runs", len(runs))
	}
	for run, got := range runs {
		if got != 2*n {
			t.Errorf("%s has %d lines", run, got)
		}
	}
}

// TestOpen says what does not hold together.
func TestOpen(t *testing.T) {
	up := govern.Upstream{Name: "o", Protocol: govern.OpenAI, BaseURL: "https://api.openai.com/v1"}
	record := (&records{}).add
	for _, tt := range []struct {
		cfg  govern.Config
		want string
	}{
		{govern.Config{Record: record}, "there is no profile"},
		{govern.Config{Profiles: []govern.Profile{{Name: "p"}}}, "there is nowhere to record"},
		{govern.Config{Record: record, Upstreams: []govern.Upstream{up, up}}, `two upstreams are named "o"`},
		{govern.Config{Record: record, Upstreams: []govern.Upstream{{Name: "x", Protocol: "smtp"}}}, `upstream "x": unknown protocol "smtp"`},
		{govern.Config{Record: record, Upstreams: []govern.Upstream{{Name: "x", Protocol: govern.OpenAI, BaseURL: "ftp://x"}}}, `"ftp://x" is not an http or https URL`},
		{govern.Config{Record: record, Profiles: []govern.Profile{{Name: "p"}, {Name: "p"}}}, `two profiles are named "p"`},
		{govern.Config{Record: record, Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"o"}}}}, `profile "p" uses the upstream "o", which is not there`},
	} {
		if _, err := govern.Open(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("the error is %v, want %q", err, tt.want)
		}
	}
}

// TestVerdictsWaitForTheDisk records into a pipe, which takes what is written
// and cannot be synced: that tells which records ask for it.
func TestVerdictsWaitForTheDisk(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	file, err := govern.OpenRecordFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		fact govern.Fact
		sync bool
	}{
		{govern.Started{}, false},
		{govern.Settled{}, false},
		{govern.Verdict{Mode: guard.Enforce, Verdict: guard.Redact}, true},
		{govern.Verdict{Mode: guard.Enforce, Verdict: guard.Deny}, true},
		{govern.Verdict{Mode: guard.Shadow, Verdict: guard.Deny}, false},
		{govern.Verdict{Mode: guard.Enforce, Verdict: guard.Allow}, false},
	} {
		err := file.Append(govern.Record{Fact: govern.Started{}}, govern.Record{Fact: tt.fact})
		if got := errors.Is(err, syscall.EINVAL); got != tt.sync || err != nil && !got {
			t.Errorf("%+v: %v", tt.fact, err)
		}
	}
}
