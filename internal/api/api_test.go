package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all drains a stream.
func all(t *testing.T, seq func(func(chat.Item, error) bool)) (items []chat.Item) {
	t.Helper()
	for item, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}

func names(items []chat.Item) string {
	var names []string
	for _, i := range items {
		names = append(names, i.Event.Name())
	}
	return strings.Join(names, " ")
}

func last(items []chat.Item) chat.Done { return items[len(items)-1].Event.(chat.Done) }

// TestApproval talks to an agent that asks: the stream ends where it waits, a
// decision that names what was shown lets it go on, and the story joins up.
func TestApproval(t *testing.T) {
	th := open(t, approving(), Options{})
	ctx := t.Context()
	first := all(t, th.client.Chat(ctx, ChatRequest{Message: "clean up", By: "bob"}, chat.Position{}))
	if got := names(first); got != "run step delta tool tool approval done" {
		t.Fatalf("events: %s", got)
	}
	d := last(first)
	if d.Success || d.Status != chat.StatusApproval || d.Reason != chat.ReasonApproval || len(d.Approvals) != 1 || d.Answer != "I will <clean> up." {
		t.Errorf("done: %+v", d)
	}
	if th.begun[0].By != "bob" || th.begun[0].Task != "clean up" || th.begun[0].Session.Prefix() != journal.SessionPrefix {
		t.Errorf("started: %+v", th.begun[0])
	}

	// While nobody decides, coming back says what it waits for, as the twin does.
	again := all(t, th.client.Chat(ctx, ChatRequest{Resume: d.Run}, chat.Position{}))
	if diff := cmp.Diff([]chat.Item{{Event: d}}, again); diff != "" {
		t.Errorf("still waiting (-want +got):\n%s", diff)
	}
	twin, err := th.client.Ask(ctx, ChatRequest{Resume: d.Run})
	if diff := cmp.Diff(d, twin); diff != "" || err != nil {
		t.Errorf("still waiting, unstreamed (-want +got):\n%s%v", diff, err)
	}

	list, err := th.client.Approvals(ctx, url.Values{"state": {"pending"}})
	if err != nil || len(list.Approvals) != 1 {
		t.Fatalf("pending: %+v, %v", list, err)
	}
	a, err := th.client.Approval(ctx, string(d.Approvals[0].ID[:10])) // as a person types it
	if diff := cmp.Diff(list.Approvals[0], a); diff != "" || err != nil {
		t.Fatalf("(-list +one):\n%s%v", diff, err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(a.Shown)); sum != a.Digest || a.Digest != d.Approvals[0].Digest {
		t.Errorf("digest %s of the row, %s of what is shown, %s of the stream", a.Digest, sum, d.Approvals[0].Digest)
	}

	other := strings.Repeat("0", 64)
	wantCode(t, NotShown, th.decide(ctx, a, journal.QuestionApproved, Decision{Digest: other, By: "ann"}))
	wantCode(t, BadRequest, th.decide(ctx, a, journal.QuestionApproved, Decision{Digest: a.Digest}))
	wantCode(t, BadRequest, th.decide(ctx, a, journal.QuestionAnswered, Decision{Digest: a.Digest, By: "ann", Text: "yes"}))
	if err := th.decide(ctx, a, journal.QuestionApproved, Decision{Digest: a.Digest, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	err = th.decide(ctx, a, journal.QuestionDenied, Decision{Digest: a.Digest, By: "eve"})
	wantCode(t, Decided, err)
	if !strings.Contains(err.Error(), "already approved by ann at ") {
		t.Errorf("deciding twice: %v", err)
	}

	second := all(t, th.client.Chat(ctx, ChatRequest{Resume: d.Run}, chat.Position{}))
	if got := names(second); got != "tool tool tool step delta done" {
		t.Errorf("events behind the pause: %s", got)
	}
	if d := last(second); !d.Success || d.Message != "It is clean." {
		t.Errorf("done: %+v", d)
	}
	whole := append(first[:len(first)-1:len(first)-1], second...)
	if diff := cmp.Diff(all(t, th.client.Events(ctx, d.Run, chat.Position{})), whole); diff != "" {
		t.Errorf("(-events at once +in two streams):\n%s", diff)
	}
	r, err := th.client.Run(ctx, d.Run)
	if err != nil || r.Status != journal.Completed || r.Starter != "bob" || r.Events != 17 {
		t.Errorf("run: %+v, %v", r, err)
	}
}

func (th *theatre) decide(ctx context.Context, a Approval, state journal.QuestionState, d Decision) error {
	_, err := th.client.Decide(ctx, string(a.ID), state, d)
	return err
}

func wantCode(t *testing.T, want Code, err error) {
	t.Helper()
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != want {
		t.Errorf("%v, want code %s", err, want)
	}
}

// TestComeBack follows a run behind each of its events, by the ids on the wire.
func TestComeBack(t *testing.T) {
	th := open(t, blocked(), Options{})
	items := all(t, th.client.Chat(t.Context(), ChatRequest{Message: "tell me"}, chat.Position{}))
	id := last(items).Run
	for i, item := range items {
		if item.At.IsZero() {
			t.Fatalf("%+v has no id", item)
		}
		if i == len(items)-1 {
			break // behind the Done there is nothing, and the stream has no end of its own
		}
		if diff := cmp.Diff(items[i+1:], all(t, th.client.Events(t.Context(), id, item.At))); diff != "" {
			t.Errorf("behind %s (-want +got):\n%s", item.At, diff)
		}
	}
	for _, err := range th.client.Events(t.Context(), id, chat.Position{Seq: 99}) {
		wantCode(t, BadRequest, err)
	}
}

// TestTwin asks for a blocked turn streamed and not: the same object, and HTTP 200.
func TestTwin(t *testing.T) {
	th := open(t, blocked(), Options{})
	streamed := last(all(t, th.client.Chat(t.Context(), ChatRequest{Message: "tell me"}, chat.Position{})))
	twin, err := th.client.Ask(t.Context(), ChatRequest{Message: "tell me"})
	if err != nil {
		t.Fatal(err)
	}
	streamed.Run, streamed.Session, twin.Run, twin.Session = "", "", "", ""
	if diff := cmp.Diff(streamed, twin); diff != "" {
		t.Errorf("(-streamed +unstreamed):\n%s", diff)
	}
	want := chat.Done{
		Status: chat.StatusBlocked, Reason: "guard_denied", Guard: "pii", Rule: "ssn", Answer: "It is ",
		Message: "Stopped: guard pii denied the answer (rule ssn). What ran: 0 tool calls. Nothing further will run.",
	}
	if diff := cmp.Diff(want, twin); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ask sends a request as it is, and returns the status and the body.
func (th *theatre) ask(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, th.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := th.client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestRefused sends what is wrong, and reads what is said of it.
func TestRefused(t *testing.T) {
	th := open(t, blocked(), Options{})
	const chatPath, digest = "/chat/stream", `"digest":"0000000000000000000000000000000000000000000000000000000000000000"`
	for _, tt := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"POST", chatPath, `{"mesage":"hi"}`, nil, 400, `"code":"bad_request","message":"unknown member \"mesage\": did you mean \"message\"?"`},
		{"POST", chatPath, `{"Message":"hi"}`, nil, 400, `unknown member \"Message\"`},
		{"POST", chatPath, `{"message":"hi","message":"ho"}`, nil, 400, `member \"message\" stands there twice`},
		{"POST", chatPath, `{"message":"hi"} {}`, nil, 400, `something behind the body's object`},
		{"POST", chatPath, `{"message":1}`, nil, 400, `member \"message\" can not be a number`},
		{"POST", chatPath, `{"message":"hi"`, nil, 400, `it ends early`},
		{"POST", chatPath, `["hi"]`, nil, 400, `the body is not a JSON object`},
		{"POST", chatPath, ``, nil, 400, `the body is not a JSON object`},
		{"POST", chatPath, "{\"message\":\"\xff\"}", nil, 400, `it is not UTF-8`},
		{"POST", chatPath, `{"message":" "}`, nil, 400, `member \"message\" or \"resume\" is missing`},
		{"POST", chatPath, `{"message":"hi","resume":"run_1"}`, nil, 400, `member \"resume\" stands alone`},
		{"POST", chatPath, `{"resume":"ses_1"}`, nil, 400, `is not an id run_`},
		{"POST", chatPath, `{"resume":"run_1"}`, nil, 404, `"code":"not_found"`},
		{"POST", chatPath, `{"message":"hi","session":"ses_1"}`, nil, 404, `"code":"not_found"`},
		{"POST", chatPath, `{"message":"hi","profile":"gone"}`, nil, 400, `there is no such profile`},
		{"POST", chatPath, `{"message":"hi"}`, []string{"Last-Event-ID", "3"}, 400, `leave Last-Event-ID out`},
		{"POST", chatPath, `{"resume":"run_1"}`, []string{"Last-Event-ID", "x"}, 400, `header Last-Event-ID`},
		{"POST", chatPath, `{"message":"hi"}`, []string{"Content-Type", "text/plain"}, 415, `"code":"not_json"`},
		{"POST", chatPath, `{"message":"hi"}`, []string{"Accept", "text/html"}, 406, `"code":"not_acceptable"`},
		{"POST", chatPath, `{"message":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413, `"code":"too_large"`},
		{"GET", chatPath, ``, nil, 405, `/chat/stream takes POST`},
		{"POST", "/v1/runs", `{}`, nil, 405, `/v1/runs takes GET`},
		{"GET", "/v1/nothing", ``, nil, 404, `there is no /v1/nothing here`},
		{"GET", "/v1/runs?stauts=failed", ``, nil, 400, `unknown parameter \"stauts\": did you mean \"status\"?`},
		{"GET", "/v1/runs?status=a", ``, nil, 400, `unknown status`},
		{"GET", "/v1/runs?limit=0", ``, nil, 400, `want 1 to 1000`},
		{"GET", "/v1/runs?limit=1&limit=2", ``, nil, 400, `stands there twice`},
		{"GET", "/v1/runs/ses_1", ``, nil, 400, `is not an id run_`},
		{"GET", "/v1/runs/run_7", ``, nil, 404, `"code":"not_found"`},
		{"GET", "/v1/runs/run_7/events", ``, nil, 404, `"code":"not_found"`},
		{"POST", "/v1/runs/run_7/cancel", `{}`, nil, 404, `"code":"not_found"`},
		{"POST", "/v1/runs/run_7/resolve", `{"choice":"maybe"}`, nil, 400, `want retry, done or abandon`},
		{"POST", "/v1/runs/run_7/resolve", `{"choice":"retry","text":"x"}`, nil, 400, `the choice is retry`},
		{"GET", "/v1/approvals?state=open", ``, nil, 400, `unknown state`},
		{"GET", "/v1/approvals/apr_7", ``, nil, 404, `"code":"not_found"`},
		{"POST", "/v1/approvals/apr_7/approve", `{"by":"ann"}`, nil, 400, `64 hex digits`},
		{"POST", "/v1/approvals/apr_7/approve", `{` + digest + `,"by":"ann"}`, nil, 404, `"code":"not_found"`},
		{"GET", "/v1/runs", ``, []string{"Host", "evil.example"}, 403, `not a name of this machine`},
		{"GET", "/v1/runs", ``, []string{"Host", "127.0.0.1.evil.example:80"}, 403, `not a name of this machine`},
		{"POST", chatPath, `{"message":"hi"}`, []string{"Origin", "https://evil.example"}, 403, `"code":"forbidden"`},
		{"POST", chatPath, `{"message":"hi"}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, `"code":"forbidden"`},
	} {
		status, body := th.ask(t, tt.method, tt.path, tt.body, tt.header...)
		if status != tt.status || !strings.Contains(body, tt.want) || !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s %s %.60s %q: %d %s\nwant %d with %s", tt.method, tt.path, tt.body, tt.header, status, body, tt.status, tt.want)
		}
	}
	if len(th.begun) != 0 {
		t.Errorf("runs were started: %+v", th.begun)
	}
}

// TestAccept says who gets a stream.
func TestAccept(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                    true,
		"*/*":                                 true,
		"text/event-stream":                   true,
		"application/json":                    false,
		"application/json, text/plain, */*":   false,
		"text/event-stream, application/json": false,
		"text/event-stream, application/json;q=0.5":     true,
		"text/event-stream;q=0, application/json;q=0.1": false,
	} {
		got, err := wantsStream(&http.Request{Header: http.Header{"Accept": {accept}}})
		if got != want || err != nil {
			t.Errorf("Accept %q: %v, %v", accept, got, err)
		}
	}
}

// TestHeartbeat listens to a run in which nothing happens.
func TestHeartbeat(t *testing.T) {
	s := approving()
	th := open(t, s, Options{Heartbeat: time.Millisecond})
	d := last(all(t, th.client.Chat(t.Context(), ChatRequest{Message: "clean up"}, chat.Position{})))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := http.NewRequestWithContext(ctx, "GET", th.server.URL+"/v1/runs/"+d.Run+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "6")
	resp, err := th.client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := 0; i < 3 && lines.Scan(); i++ {
		if lines.Text() != ": waiting" {
			t.Errorf("line %d: %q", i+1, lines.Text())
		}
	}
}

// TestStalled leaves a stream unread: the run ends all the same, and the client
// is cut off.
func TestStalled(t *testing.T) {
	s := blocked()
	piece := strings.Repeat("x", 1<<20)
	var flood []line
	for i := range 16 {
		flood = append(flood, line{"text_released", fmt.Sprintf(`{"step":1,"attempt":1,"channel":"reasoning","start":%d,"text":%q}`, i<<20, piece)})
	}
	s.acts[0] = append(append(append([]line{}, s.acts[0][:3]...), flood...), s.acts[0][3:]...)
	th := open(t, s, Options{Patience: 50 * time.Millisecond})
	r, err := http.NewRequestWithContext(t.Context(), "POST", th.server.URL+"/chat/stream", strings.NewReader(`{"message":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := th.client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("Stoplog-Run")
	for { // another reader, of another kind, sees it end
		r, err := th.client.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status.Terminal() {
			break
		}
	}
	for path := range th.answered { // the server has no more patience
		if path == "/chat/stream" {
			break
		}
	}
	b, err := io.ReadAll(resp.Body)
	if err == nil || strings.Contains(string(b), "event: done") {
		t.Errorf("the stream was not cut: %d bytes, %v", len(b), err)
	}
}

// TestActs passes on what people do to a run.
func TestActs(t *testing.T) {
	th := open(t, approving(), Options{})
	d := last(all(t, th.client.Chat(t.Context(), ChatRequest{Message: "clean up"}, chat.Position{})))
	_, err := th.client.Ask(t.Context(), ChatRequest{Message: "more", Session: d.Session})
	wantCode(t, Busy, err)
	if _, err := th.client.Resolve(t.Context(), d.Run, ResolveRequest{Choice: "done", Call: 2, Text: "it is out"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]Resolution{{Call: 2, Choice: run.TakeAsDone, Text: "it is out", By: "local"}}, th.resolved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r, err := th.client.Cancel(t.Context(), d.Run, "ann"); err != nil || r.ID != journal.ID(d.Run) || th.cancelled[0] != "ann" {
		t.Errorf("cancel: %+v, %v, by %q", r, err, th.cancelled)
	}
	list, err := th.client.Runs(t.Context(), url.Values{"limit": {"1"}, "session": {d.Session}})
	if err != nil || len(list.Runs) != 1 || list.Next != journal.ID(d.Run) {
		t.Errorf("runs: %+v, %v", list, err)
	}
	if list, err = th.client.Runs(t.Context(), url.Values{"before": {d.Run}}); err != nil || len(list.Runs) != 0 || list.Next != "" {
		t.Errorf("runs behind the last: %+v, %v", list, err)
	}
}

// TestCut breaks the server off in the middle of a stream.
func TestCut(t *testing.T) {
	th := open(t, approving(), Options{})
	d := last(all(t, th.client.Chat(t.Context(), ChatRequest{Message: "clean up"}, chat.Position{})))
	var got error
	for item, err := range th.client.Events(t.Context(), d.Run, chat.Position{}) {
		if err != nil {
			got = err
		} else if item.Event.Name() == "approval" { // the last thing there is to see
			th.server.CloseClientConnections()
		}
	}
	if !errors.Is(got, ErrCut) {
		t.Errorf("%v, want %v", got, ErrCut)
	}
}

// TestEnd ends a server in the middle of a stream that has no end of its own.
func TestEnd(t *testing.T) {
	th := open(t, approving(), Options{})
	d := last(all(t, th.client.Chat(t.Context(), ChatRequest{Message: "clean up"}, chat.Position{})))
	var got error
	for item, err := range th.client.Events(t.Context(), d.Run, chat.Position{}) {
		if err != nil {
			got = err
		} else if item.Event.Name() == "approval" {
			th.handler.End()
		}
	}
	if !errors.Is(got, ErrCut) {
		t.Errorf("%v, want %v", got, ErrCut)
	}
}
