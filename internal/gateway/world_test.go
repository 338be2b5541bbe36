package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var protocols = []string{govern.OpenAI, govern.Anthropic}

// surfaces are what a client may talk to: a protocol's main path, or responses.
var surfaces = append([]string{responses}, protocols...)

const responses = "responses"

// secret has the shape of a GitHub token and is none.
const secret = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

// A reply is what an upstream says.
type reply struct {
	status int
	header http.Header
	body   io.Reader
}

// streams is a reply of server-sent events that come n bytes at once.
func streams(body []byte, n int) reply {
	return reply{200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, &slow{body, n}}
}

func says(status int, kind, body string) reply {
	return reply{status, http.Header{"Content-Type": {kind}}, strings.NewReader(body)}
}

// slow gives at most n bytes at once.
type slow struct {
	rest []byte
	n    int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// upstream is a provider without a network, which remembers what it was asked.
type upstream struct {
	mu     sync.Mutex
	asked  []asked
	answer func(asked) (reply, error)
}

type asked struct {
	*http.Request
	body string
}

func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	a := asked{req, string(b)}
	u.mu.Lock()
	u.asked = append(u.asked, a)
	answer := u.answer
	u.mu.Unlock()
	r, err := answer(a)
	if err != nil {
		return nil, err
	}
	if r.header == nil {
		r.header = http.Header{}
	}
	body, ok := r.body.(io.ReadCloser)
	if !ok {
		body = io.NopCloser(r.body)
	}
	return &http.Response{StatusCode: r.status, Header: r.header, Body: body, Request: req}, nil
}

func (u *upstream) says(r func() reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = func(asked) (reply, error) { return r(), nil }
}

func (u *upstream) requests() []asked {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.asked)
}

// records keeps what was recorded.
type records struct {
	mu  sync.Mutex
	all []govern.Record
}

func (r *records) add(rs ...govern.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rs...)
	return nil
}

// of are the stored forms of one run's records, without run, at and stream, the
// verdicts in the order of channel and start: what two requests are compared by.
func (r *records) of(t testing.TB, run string) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines, verdicts []string
	for _, rec := range r.all {
		if rec.Run != run {
			continue
		}
		b, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"run", "at", "stream"} {
			delete(m, name)
		}
		key := ""
		if m["kind"] == "verdict" {
			key = fmt.Sprintf("%s %09.0f ", m["channel"], m["start"])
		}
		b, _ = json.Marshal(m)
		if key != "" {
			verdicts = append(verdicts, key+string(b))
		} else {
			lines = append(lines, string(b))
		}
	}
	slices.Sort(verdicts)
	return append(lines, verdicts...)
}

// settled is how a run ended, by its record.
func (r *records) settled(t testing.TB, run string) govern.Settled {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []govern.Settled
	for _, rec := range r.all {
		if s, ok := rec.Fact.(govern.Settled); ok && rec.Run == run {
			out = append(out, s)
		}
	}
	if len(out) != 1 {
		t.Errorf("run %q is settled %d times: %+v", run, len(out), out)
		return govern.Settled{}
	}
	return out[0]
}

// acted reports whether a verdict of a run changed something.
func (r *records) acted(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.all, func(rec govern.Record) bool {
		v, ok := rec.Fact.(govern.Verdict)
		return ok && rec.Run == run && v.Mode == guard.Enforce && v.Verdict > guard.Allow
	})
}

// world is a gateway on loopback in front of an upstream.
type world struct {
	t        testing.TB
	upstream *upstream
	records  *records
	url      string
	client   *http.Client

	door   *govern.Transport
	mounts []gateway.Mount
}

// open starts a gateway whose guard has one verdict, for answers and, if the
// test says so, for requests. change may change the configuration of the door.
func open(t testing.TB, v guard.Verdict, change ...func(*govern.Config)) *world {
	t.Helper()
	w := &world{t: t, upstream: &upstream{}, records: &records{}}
	member := guardOf(t, v, "secrets", "credentials", "pii")
	cfg := govern.Config{Record: w.records.add}
	for _, p := range protocols {
		cfg.Upstreams = append(cfg.Upstreams, govern.Upstream{Name: p, Protocol: p, BaseURL: base(p), Transport: w.upstream})
	}
	cfg.Profiles = []govern.Profile{
		{Name: "default", Upstreams: protocols, Models: []string{"m", "gpt-*"}, Output: []guard.Member{member}},
		{Name: "input", Upstreams: protocols, Models: []string{"*"}, Input: []guard.Member{member}, Output: []guard.Member{member}},
		{Name: "hidden", Upstreams: protocols, Models: []string{"*"}},
	}
	for _, c := range change {
		c(&cfg)
	}
	door, err := govern.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var mounts []gateway.Mount
	for _, p := range protocols {
		mounts = append(mounts, gateway.Mount{Protocol: p, Profiles: []string{"default", "input"}})
	}
	server := httptest.NewServer(gateway.New(door, mounts...))
	t.Cleanup(server.Close)
	w.url, w.client = server.URL, server.Client()
	w.door, w.mounts = door, mounts
	return w
}

func base(protocol string) string {
	if protocol == govern.OpenAI {
		return "http://openai.invalid/v1"
	}
	return "http://anthropic.invalid"
}

func guardOf(t testing.TB, v guard.Verdict, names ...string) guard.Member {
	t.Helper()
	key := fmt.Sprint(v, names)
	if m, ok := compiled.Load(key); ok {
		return m.(guard.Member)
	}
	rs, err := rules.Select(names...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(rs, match.Options{Name: "test", Key: []byte("key"), Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	m := guard.Member{Guard: g}
	compiled.Store(key, m)
	return m
}

// compiled are the guards that tests have asked for, by verdict and names.
var compiled sync.Map

func path(surface string) string {
	switch surface {
	case govern.OpenAI:
		return "/openai/v1/chat/completions"
	case responses:
		return "/openai/v1/responses"
	}
	return "/anthropic/v1/messages"
}

// question is a request's body.
func question(protocol string, stream bool) string {
	options := ""
	if protocol == responses {
		return fmt.Sprintf(`{"model":"m","max_output_tokens":9,"stream":%v,"input":[{"role":"user","content":"hello"}]}`, stream)
	}
	if stream && protocol == govern.OpenAI {
		options = `,"stream_options":{"include_usage":true}`
	}
	return fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"messages":[{"role":"user","content":"hello"}]%s}`, stream, options)
}

// An answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

func (a answer) run() string { return a.header.Get("Stoplog-Run") }

// ask sends a request, with headers in pairs, and reads all of the answer.
func (w *world) ask(method, path, body string, headers ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b, err}
}

// A message is what a client has understood in the end.
type message struct {
	Text, Finish string
	Stoplog      map[string]any
	Error        string // the message of an error
	Done         bool   // the protocol's end mark came
}

// understand reads an answer as a client of the protocol does, independently of
// the product.
func understand(t testing.TB, protocol string, a answer) message {
	t.Helper()
	var m message
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		m.take(t, protocol, string(a.body))
		return m
	}
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(a.body), "\n\n"), "\n\n") {
		name, data := "", ""
		for line := range strings.SplitSeq(ev, "\n") {
			if n, ok := strings.CutPrefix(line, "event: "); ok {
				name = n
			}
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				data += d
			}
		}
		if m.Done {
			t.Errorf("after the end: %s", ev)
		}
		if data == "[DONE]" {
			m.Done = true
		} else if data != "" {
			m.take(t, protocol, data)
		}
		m.Done = m.Done || name == "message_stop" || name == "response.completed" || name == "response.incomplete"
	}
	delete(m.Stoplog, "run")
	return m
}

func (m *message) take(t testing.TB, protocol, doc string) {
	t.Helper()
	if protocol == responses {
		m.takeResponse(t, doc)
		return
	}
	type text struct{ Content, Text string }
	var e struct {
		Type    string
		Error   *struct{ Message string }
		Stoplog map[string]any
		Choices []struct {
			Delta, Message text
			Finish_reason  string
		}
		Delta struct {
			text
			Stop_reason string
		}
		Content     []text
		Stop_reason string
	}
	if err := json.Unmarshal([]byte(doc), &e); err != nil {
		t.Errorf("%v: %s", err, doc)
	}
	if e.Error != nil {
		m.Error += e.Error.Message
	}
	if e.Stoplog != nil {
		if m.Stoplog != nil {
			t.Error("two stoplog members")
		}
		m.Stoplog = maps.Clone(e.Stoplog)
		delete(m.Stoplog, "run")
	}
	for _, c := range e.Choices {
		m.Text += c.Delta.Content + c.Message.Content
		m.Finish += c.Finish_reason
	}
	m.Text += e.Delta.Text
	m.Finish += e.Delta.Stop_reason + e.Stop_reason
	for _, c := range e.Content {
		m.Text += c.Text
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// frames frames payloads as a provider of the protocol does.
func frames(protocol string, payloads []string) []byte {
	var b bytes.Buffer
	for _, p := range payloads {
		if protocol != govern.OpenAI {
			var e struct{ Type string }
			json.Unmarshal([]byte(p), &e)
			fmt.Fprintf(&b, "event: %s\n", e.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", p)
	}
	if protocol == govern.OpenAI {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// said is an answer that says the deltas: streamed, and its unstreamed twin.
func said(protocol string, deltas ...string) (streamed []byte, whole string) {
	if protocol == responses {
		return saidResponse(deltas...)
	}
	all := quoted(strings.Join(deltas, ""))
	if protocol == govern.OpenAI {
		head := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",`
		p := []string{head + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`}
		for _, d := range deltas {
			p = append(p, head+`"choices":[{"index":0,"delta":{"content":`+quoted(d)+`},"finish_reason":null}]}`)
		}
		usage := `"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}`
		p = append(p, head+`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, head+`"choices":[],`+usage)
		return frames(protocol, p), `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + all + `},"finish_reason":"stop"}],` + usage
	}
	p := []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	}
	for _, d := range deltas {
		p = append(p, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quoted(d)+`}}`)
	}
	p = append(p, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	return frames(protocol, p), `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":` + all + `}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}`
}
