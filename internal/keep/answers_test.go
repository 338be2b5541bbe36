package keep_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/keep"
	"github.com/stoplog/stoplog/internal/requestlog"
	"github.com/stoplog/stoplog/internal/seal"
)

// responses is OpenAI's other way to answer.
const responses = "responses"

var protocols = []string{govern.OpenAI, responses, govern.Anthropic}

// house is a door over a journal, and an upstream that gives one answer.
type house struct {
	*testing.T
	path   string
	ring   *seal.Ring
	store  *sqlite.Store
	door   *govern.Transport
	answer []byte
	asked  int
}

func (h *house) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	h.asked++
	kind := "application/json"
	if bytes.Contains(body, []byte(`"stream":true`)) {
		kind = "text/event-stream"
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(h.answer))}, nil
}

func member(t *testing.T, name string, v guard.Verdict, packs ...string) guard.Member {
	t.Helper()
	selected, err := rules.Select(packs...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(selected, match.Options{Name: name, Key: []byte("key"), Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	return guard.Member{Guard: g}
}

// newHouse makes a door whose guards ask for approval of secrets, redact addresses
// and deny card numbers.
func newHouse(t *testing.T) *house {
	h := &house{T: t, path: filepath.Join(t.TempDir(), "stoplog.db"), ring: newRing(t)}
	h.open()
	return h
}

// open opens the journal, once more, and a door over it: as another process does.
func (h *house) open() {
	h.Helper()
	h.store = openStore(h.T, h.path, h.ring)
	log := requestlog.New(h.store)
	log.Hold(journal.Worker{Owner: "test", Host: "here"})
	var err error
	h.door, err = govern.Open(govern.Config{
		Upstreams: []govern.Upstream{
			{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://o.invalid/v1", Transport: h},
			{Name: "a", Protocol: govern.Anthropic, BaseURL: "http://a.invalid", Transport: h},
		},
		Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"o", "a"}, Models: []string{"m"}, Output: []guard.Member{
			member(h.T, "secrets", guard.RequireApproval, "github-pat"),
			member(h.T, "people", guard.Redact, "email"),
			member(h.T, "cards", guard.Deny, "credit-card"),
		}}},
		Record:    log.Record,
		Approvals: h.answers(log),
	})
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) answers(log *requestlog.Log) *keep.Answers {
	return &keep.Answers{
		Store: h.store, Tenant: journal.DefaultTenant, IDs: journal.NewIDs(time.Now, rand.Reader), Leave: log.Leave,
		Expire: func(string) time.Duration { return time.Hour },
	}
}

// says makes the upstream's answer: the texts, as deltas or as one.
func (h *house) says(protocol string, stream bool, texts ...string) {
	whole, _ := json.Marshal(strings.Join(texts, ""))
	var b bytes.Buffer
	event := func(name, payload string) {
		if protocol != govern.OpenAI {
			fmt.Fprintf(&b, "event: %s\n", name)
		}
		fmt.Fprintf(&b, "data: %s\n\n", payload)
	}
	switch {
	case protocol == responses:
		item := func(status, content string) string {
			return fmt.Sprintf(`{"id":"msg_1","type":"message","status":%q,"role":"assistant","content":[%s]}`, status, content)
		}
		response := func(status, output string) string {
			return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1,"status":%q,"model":"m","output":[%s],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}`, status, output)
		}
		part := fmt.Sprintf(`{"type":"output_text","text":%s,"annotations":[]}`, whole)
		if !stream {
			b.WriteString(response("completed", item("completed", part)))
			break
		}
		n := 0
		say := func(name, members string) {
			event(name, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, name, n, members))
			n++
		}
		say("response.created", `"response":`+response("in_progress", ""))
		say("response.output_item.added", `"output_index":0,"item":`+item("in_progress", ""))
		say("response.content_part.added", `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
		for _, text := range texts {
			q, _ := json.Marshal(text)
			say("response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":`+string(q))
		}
		say("response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":`+string(whole))
		say("response.content_part.done", `"item_id":"msg_1","output_index":0,"content_index":0,"part":`+part)
		say("response.output_item.done", `"output_index":0,"item":`+item("completed", part))
		say("response.completed", `"response":`+response("completed", item("completed", part)))
	case protocol == govern.OpenAI && stream:
		for _, text := range texts {
			q, _ := json.Marshal(text)
			event("", fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, q))
		}
		event("", `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		event("", `[DONE]`)
	case protocol == govern.OpenAI:
		fmt.Fprintf(&b, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`, whole)
	case stream:
		event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`)
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, text := range texts {
			q, _ := json.Marshal(text)
			event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, q))
		}
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`)
		event("message_stop", `{"type":"message_stop"}`)
	default:
		fmt.Fprintf(&b, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`, whole)
	}
	h.answer = b.Bytes()
}

// members are what the questions are in.
var members = map[string]string{govern.OpenAI: "messages", responses: "input", govern.Anthropic: "messages"}

// request is one to the door, with headers in pairs.
func (h *house) request(protocol string, stream bool, question string, headers ...string) *http.Request {
	h.Helper()
	path := map[string]string{govern.OpenAI: "/v1/chat/completions", responses: "/v1/responses", govern.Anthropic: "/v1/messages"}[protocol]
	req, err := http.NewRequestWithContext(h.Context(), "POST", "http://x.invalid"+path,
		strings.NewReader(fmt.Sprintf(`{"model":"m","stream":%v,"%s":[{"role":"user","content":%q}]}`, stream, members[protocol], question)))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "ann")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// got is what a client reads.
type got struct {
	status int
	header http.Header
	body   string
}

func (h *house) send(req *http.Request) got {
	h.Helper()
	resp, err := h.door.RoundTrip(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	return got{resp.StatusCode, resp.Header, string(body)}
}

var approvalID = regexp.MustCompile(`"approval":"(apr_[0-9a-z]{26})"`)

// asked is the approval that an answer names.
func (g got) approval(t *testing.T) journal.ID {
	t.Helper()
	m := approvalID.FindStringSubmatch(g.body)
	if m == nil || !strings.Contains(g.body, `"status":"guardrail_approval_required"`) {
		t.Fatalf("the answer names no approval: %s", g.body)
	}
	return journal.ID(m[1])
}

// decide decides as a person does, in a process of their own.
func (h *house) decide(id journal.ID, state journal.QuestionState) error {
	h.Helper()
	store := openStore(h.T, h.path, h.ring)
	q, err := store.Question(h.Context(), journal.DefaultTenant, id)
	if err != nil {
		h.Fatal(err)
	}
	_, err = approval.Decide(h.Context(), store, journal.DefaultTenant, approval.Decision{ID: id, Digest: q.Digest, State: state, By: "bea", Text: ""}, nil)
	return err
}

func (h *house) run(id journal.ID) journal.Run {
	h.Helper()
	q, err := h.store.Question(h.Context(), journal.DefaultTenant, id)
	if err != nil {
		h.Fatal(err)
	}
	run, err := h.store.Run(h.Context(), q.Ref)
	if err != nil {
		h.Fatal(err)
	}
	return run
}

func each(t *testing.T, f func(t *testing.T, protocol string, stream bool)) {
	for _, protocol := range protocols {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", protocol, stream), func(t *testing.T) { f(t, protocol, stream) })
		}
	}
}

// A withheld answer is kept, approved in another process, and read byte for byte by
// who asked for it, as often as they like, after a restart too: and by nobody else,
// for no other request, and not before.
func TestApprovedAnswer(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		h := newHouse(t)
		secret := secretOf(1)
		h.says(protocol, stream, "it ", "is "+secret[:9], secret[9:], " for ann.lee@corp-mail.example", ".")
		first := h.send(h.request(protocol, stream, "hello"))
		if strings.Contains(first.body, secret[:9]) || !strings.Contains(first.body, "it ") || first.status != 200 {
			t.Fatalf("%d: %s", first.status, first.body)
		}
		id := first.approval(t)
		if run := h.run(id); run.Status != journal.WaitingApproval {
			t.Errorf("the run is %s, want it to wait", run.Status)
		}
		again := func(headers ...string) got {
			return h.send(h.request(protocol, stream, "hello", append([]string{"Stoplog-Approval", string(id)}, headers...)...))
		}
		if g := again(); g.status != 409 || !strings.Contains(g.body, "nobody has decided yet") {
			t.Errorf("before the decision: %d %s", g.status, g.body)
		}
		if err := h.decide(id, journal.QuestionApproved); err != nil {
			t.Fatal(err)
		}
		if err := h.decide(id, journal.QuestionDenied); !errors.As(err, new(*journal.DecidedError)) {
			t.Errorf("decided twice: %v", err)
		}
		if run := h.run(id); run.Status != journal.Completed || run.Reason != "completed" {
			t.Errorf("the run is %s (%s), want completed", run.Status, run.Reason)
		}
		h.open() // a restart
		want := strings.ReplaceAll(string(h.answer), "ann.lee@corp-mail.example", "[redacted:email]")
		for range 2 {
			g := again()
			if !same(g.body, want) || g.status != 200 {
				t.Errorf("%d:\n%s\nwant\n%s", g.status, g.body, want)
			}
		}
		if g := again("X-Api-Key", "bob"); g.status != 404 || strings.Contains(g.body, secret[:9]) {
			t.Errorf("another caller gets %d %s", g.status, g.body)
		}
		if g := h.send(h.request(protocol, stream, "something else", "Stoplog-Approval", string(id))); g.status != 409 || strings.Contains(g.body, secret[:9]) {
			t.Errorf("another request gets %d %s", g.status, g.body)
		}
		if g := h.send(h.request(protocol, stream, "hello", "Stoplog-Approval", "apr_none")); g.status != 404 {
			t.Errorf("an approval that is not there gives %d %s", g.status, g.body)
		}
		if h.asked != 1 {
			t.Errorf("the upstream was asked %d times, want once", h.asked)
		}
		if rep, err := journal.Verify(t.Context(), h.store, h.run(id).Ref, journal.Link{}); err != nil || rep.Broken != nil {
			t.Errorf("the chain: %+v, %v", rep, err)
		}
	})
}

// same compares an answer with the upstream's, less what says what became of it.
func same(got, want string) bool {
	return regexp.MustCompile(`,"stoplog":\{[^{}]*\}`).ReplaceAllString(got, "") == want
}

// A caller who waits gets the rest in the same answer, or its end.
func TestWait(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		for _, state := range []journal.QuestionState{journal.QuestionApproved, journal.QuestionDenied} {
			h := newHouse(t)
			h.says(protocol, stream, "it ", "is ", secretOf(1), " and ", secretOf(2), ".")
			done := make(chan got, 1)
			go func() { done <- h.send(h.request(protocol, stream, "hello", "Stoplog-Wait", "60s")) }()
			id := h.waiting()
			if err := h.decide(id, state); err != nil {
				t.Fatal(err)
			}
			g := <-done
			switch {
			case state == journal.QuestionApproved && g.body != string(h.answer):
				t.Errorf("approved:\n%s\nwant\n%s", g.body, h.answer)
			case state == journal.QuestionDenied && (strings.Contains(g.body, "ghp_") || !strings.Contains(g.body, "denied by bea") || g.approval(t) != id):
				t.Errorf("denied: %s", g.body)
			}
		}
	})
}

// waiting waits until a question is there.
func (h *house) waiting() journal.ID {
	h.Helper()
	for {
		list, err := h.store.Questions(h.Context(), journal.QuestionQuery{Tenant: journal.DefaultTenant, State: journal.QuestionPending})
		if err != nil {
			h.Fatal(err)
		}
		if len(list) == 1 {
			return list[0].ID
		}
	}
}

// An answer that is denied, or of which nobody says anything, is destroyed.
func TestDestroyed(t *testing.T) {
	h := newHouse(t)
	h.says(govern.OpenAI, false, "it is "+secretOf(1))
	for _, c := range []struct {
		reason string
		end    func(journal.ID)
	}{
		{"approval_denied", func(id journal.ID) {
			if err := h.decide(id, journal.QuestionDenied); err != nil {
				t.Fatal(err)
			}
		}},
		{"approval_expired", func(id journal.ID) {
			late, err := sqlite.Open(t.Context(), h.path, sqlite.Options{Seal: h.ring, Now: func() time.Time { return time.Now().Add(61 * time.Minute) }})
			if err != nil {
				t.Fatal(err)
			}
			defer late.Close()
			if _, err := approval.Decide(t.Context(), late, journal.DefaultTenant, approval.Decision{
				ID: id, Digest: h.question(id).Digest, State: journal.QuestionApproved, By: "bea",
			}, nil); !errors.As(err, new(*journal.DecidedError)) {
				t.Errorf("approved after its time: %v", err)
			}
			if err := late.Update(t.Context(), func(ctx context.Context, tx journal.Tx) error {
				due, err := tx.ClaimDue(ctx, journal.Worker{Owner: "sweep", Host: "here"}, time.Minute, 9)
				if err != nil || len(due) != 1 {
					return fmt.Errorf("due are %v: %w", due, err)
				}
				_, err = approval.Lapse(ctx, tx, due[0])
				return err
			}); err != nil {
				t.Error(err)
			}
		}},
	} {
		id := h.send(h.request(govern.OpenAI, false, "hello")).approval(t)
		c.end(id)
		if run := h.run(id); run.Status != journal.Blocked || run.Reason != c.reason {
			t.Errorf("%s: the run is %s (%s)", c.reason, run.Status, run.Reason)
		}
		if left, err := h.store.Secrets(t.Context(), journal.DefaultTenant, "withheld_answer", string(id)); err != nil || len(left) != 0 {
			t.Errorf("%s: the answer is still there: %v, %v", c.reason, left, err)
		}
		if g := h.send(h.request(govern.OpenAI, false, "hello", "Stoplog-Approval", string(id))); g.status != 404 || strings.Contains(g.body, "ghp_") {
			t.Errorf("%s: it gives %d %s", c.reason, g.status, g.body)
		}
	}
}

func (h *house) question(id journal.ID) journal.Question {
	h.Helper()
	q, err := h.store.Question(h.Context(), journal.DefaultTenant, id)
	if err != nil {
		h.Fatal(err)
	}
	return q
}

// Nobody can approve what denies, further on in the answer; the card says so.
func TestUnapprovable(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		h := newHouse(t)
		h.says(protocol, stream, "it is ", secretOf(1), ", and the card is ", "4242 4242 4242 4242", ".")
		id := h.send(h.request(protocol, stream, "hello")).approval(t)
		var shown struct {
			Denied   string
			Findings []struct{ Rule string }
		}
		if err := json.Unmarshal(h.question(id).Shown, &shown); err != nil {
			t.Fatal(err)
		}
		if shown.Denied != "cards/credit-card" || len(shown.Findings) != 1 || shown.Findings[0].Rule != "github-pat" {
			t.Errorf("the card shows %s", h.question(id).Shown)
		}
		if err := h.decide(id, journal.QuestionApproved); !errors.Is(err, approval.ErrUnapprovable) {
			t.Errorf("approved: %v", err)
		}
		if err := h.decide(id, journal.QuestionDenied); err != nil {
			t.Errorf("denied: %v", err)
		}
	})
}

// A row that was altered lets nothing out.
func TestTamperedAnswer(t *testing.T) {
	for name, query := range map[string]string{
		"the answer":          `UPDATE secrets SET body = zeroblob(100)`,
		"another's answer":    `UPDATE secrets SET body = (SELECT body FROM secrets WHERE owner <> (SELECT max(owner) FROM secrets)) WHERE owner = (SELECT max(owner) FROM secrets)`,
		"marked as approved":  `UPDATE questions SET state = 'approved', decider = 'eve', decided_at = 1, used_at = 1`,
		"another digest":      `UPDATE questions SET digest = zeroblob(32)`,
		"a time without end":  `UPDATE questions SET expires_at = NULL, state = 'approved'`,
		"the run as finished": `UPDATE runs SET status = 'completed', ended_at = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.says(govern.OpenAI, false, "it is "+secretOf(1))
			h.send(h.request(govern.OpenAI, false, "first"))
			id := h.send(h.request(govern.OpenAI, false, "hello")).approval(t)
			digest := h.question(id).Digest
			db, err := sql.Open("sqlite", h.path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(query); err != nil {
				t.Fatal(err)
			}
			_, err = approval.Decide(t.Context(), h.store, journal.DefaultTenant, approval.Decision{ID: id, Digest: digest, State: journal.QuestionApproved, By: "bea"}, nil)
			if err == nil {
				t.Error("it was approved")
			}
			resp, err := h.door.RoundTrip(h.request(govern.OpenAI, false, "hello", "Stoplog-Approval", string(id)))
			if err != nil {
				return // refused, with nothing
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if strings.Contains(string(body), "ghp_") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// Without a key the answer ends as a denied one does, and says how to make one.
func TestAnswersNeedAKey(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		h := &house{T: t, path: filepath.Join(t.TempDir(), "stoplog.db")}
		h.open()
		h.says(protocol, stream, "it is ", secretOf(1), ".")
		g := h.send(h.request(protocol, stream, "hello"))
		if strings.Contains(g.body, "ghp_") || strings.Contains(g.body, `"approval"`) || !strings.Contains(g.body, "stoplog seal-key") ||
			!strings.Contains(g.body, `"status":"guardrail_approval_required"`) {
			t.Errorf("%s", g.body)
		}
		// What was handed in before is there once something else is.
		if err := h.store.Update(t.Context(), func(context.Context, journal.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		runs, err := h.store.Runs(t.Context(), journal.RunQuery{Tenant: journal.DefaultTenant})
		if err != nil || len(runs) != 1 || runs[0].Status != journal.Blocked {
			t.Errorf("the runs are %+v (%v), want one that is blocked", runs, err)
		}
	})
}

// What a decision binds to is what leaves: SHA-256 of the answer is on the card.
func TestAnswerBinds(t *testing.T) {
	h := newHouse(t)
	h.says(govern.OpenAI, false, "it is "+secretOf(1))
	id := h.send(h.request(govern.OpenAI, false, "hello")).approval(t)
	a, err := approval.ReadAnswer(t.Context(), h.store, journal.DefaultTenant, id)
	if err != nil {
		t.Fatal(err)
	}
	q := h.question(id)
	want, err := approval.Digest(approval.Withheld{Run: q.Run, Side: "answer", Text: a.Body, Findings: a.Findings})
	if err != nil || want != q.Digest {
		t.Errorf("the question binds to %s, want %s (%v)", hex.EncodeToString(q.Digest[:]), hex.EncodeToString(want[:]), err)
	}
}

// A caller who leaves while a person thinks finds the answer later; who leaves
// before the provider has said all has nothing kept.
func TestLeavesWhileWaiting(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		h := newHouse(t)
		h.says(protocol, stream, "it ", "is ", secretOf(1), ".")
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			resp, err := h.door.RoundTrip(h.request(protocol, stream, "hello", "Stoplog-Wait", "60s").WithContext(ctx))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				err = errors.Join(err, resp.Body.Close())
			}
			done <- err
		}()
		id := h.waiting()
		leave()
		if err := <-done; err == nil {
			t.Error("the answer ended well for who left")
		}
		if run := h.run(id); run.Status != journal.WaitingApproval {
			t.Errorf("the run is %s, want it to wait", run.Status)
		}
		if err := h.decide(id, journal.QuestionApproved); err != nil {
			t.Fatal(err)
		}
		if g := h.send(h.request(protocol, stream, "hello", "Stoplog-Approval", string(id))); g.body != string(h.answer) {
			t.Errorf("later it is %d %s", g.status, g.body)
		}
	})
}

// A body that is closed while it waits lets go at once.
func TestClosedWhileWaiting(t *testing.T) {
	h := newHouse(t)
	h.says(govern.OpenAI, true, "it ", "is ", secretOf(1), ".")
	resp, err := h.door.RoundTrip(h.request(govern.OpenAI, true, "hello", "Stoplog-Wait", "60s"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, resp.Body)
	}()
	h.waiting()
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

// Who does not wait so long is told where the answer will be.
func TestWaitEnds(t *testing.T) {
	each(t, func(t *testing.T, protocol string, stream bool) {
		h := newHouse(t)
		h.says(protocol, stream, "it ", "is ", secretOf(1), ".")
		g := h.send(h.request(protocol, stream, "hello", "Stoplog-Wait", "50ms"))
		if id := g.approval(t); !strings.Contains(g.body, "/v1/approvals/"+string(id)+"/answer") || strings.Contains(g.body, "ghp_") {
			t.Errorf("%s", g.body)
		}
	})
}
