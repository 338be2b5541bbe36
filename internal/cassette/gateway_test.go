package cassette_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/gateway"
	"github.com/stoplog/stoplog/internal/wire"
)

// A protocol is one that the gateway speaks.
type protocol struct {
	name, base, path string
	format           *wire.Format
}

var protocols = []protocol{
	{govern.OpenAI, "http://cassette.invalid/v1", "/openai/v1/chat/completions", wire.OpenAIChat},
	{govern.Anthropic, "http://cassette.invalid", "/anthropic/v1/messages", wire.AnthropicMessages},
}

// members are guards that redact by every rule that recordings are scrubbed by.
func members(t testing.TB) []guard.Member {
	t.Helper()
	rs, err := rules.Select("secrets", "credentials", "pii")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(rs, match.Options{Name: "scrub", Key: []byte("key"), Verdict: guard.Redact})
	if err != nil {
		t.Fatal(err)
	}
	return []guard.Member{{Guard: g}}
}

// facts are what a door recorded.
type facts struct {
	mu  sync.Mutex
	all []govern.Record
}

func (f *facts) add(rs ...govern.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, rs...)
	return nil
}

// verdicts are the rules that found something.
func (f *facts) verdicts() (found []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.all {
		if v, ok := r.Fact.(govern.Verdict); ok {
			found = append(found, v.Channel+" "+v.Rule)
		}
	}
	return found
}

// serve is a gateway whose upstreams are what way gives for each protocol. Its
// guards redact answers, and requests as far as input says.
func serve(t testing.TB, input guard.Mode, way func(protocol) http.RoundTripper) (*httptest.Server, *facts) {
	t.Helper()
	f := &facts{}
	asks := members(t)
	asks[0].Mode = input
	profile := govern.Profile{Name: "p", Models: []string{"*"}, Input: asks, Output: members(t)}
	cfg := govern.Config{Record: f.add}
	var mounts []gateway.Mount
	for _, p := range protocols {
		cfg.Upstreams = append(cfg.Upstreams, govern.Upstream{Name: p.name, Protocol: p.name, BaseURL: p.base, Transport: way(p)})
		profile.Upstreams = append(profile.Upstreams, p.name)
		mounts = append(mounts, gateway.Mount{Protocol: p.name, Profiles: []string{"p"}})
	}
	cfg.Profiles = []govern.Profile{profile}
	door, err := govern.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gateway.New(door, mounts...))
	t.Cleanup(server.Close)
	return server, f
}

// An answer is what a client got: its words, and the frames around them.
type answer struct {
	Status       int
	Type         string
	Text, Frames string
	Cut          bool // the connection broke
}

var (
	// told is the member by which a client learns of findings: a recording has none.
	told = regexp.MustCompile(`,?"stoplog":\{[^}]*\}`)
	// words are the fields whose text may be cut anew where it had to wait: whether
	// it was depends on the clock.
	words = regexp.MustCompile(`("(?:content|reasoning_content|arguments|text|thinking|partial_json)":)"((?:[^"\\]|\\.)*)"`)
)

// understand tells words from frames.
func understand(a answer, body string) answer {
	body = told.ReplaceAllString(body, "")
	for _, m := range words.FindAllStringSubmatch(body, -1) {
		a.Text += m[2]
	}
	frames := strings.Split(words.ReplaceAllString(body, "$1…"), "\n\n")
	a.Frames = strings.Join(slices.Compact(frames), "\n\n")
	return a
}

func ask(t testing.TB, server *httptest.Server, path, body string) answer {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return understand(answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Cut: err != nil}, string(b))
}

// recorder records into a folder of the test's, and fails it for each line that
// is said.
func recorder(t testing.TB) (*cassette.Recorder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tapes")
	r, err := cassette.NewRecorder(dir, guard.NewChain(guard.Options{}, members(t)...), func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

func tapes(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.cassette"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func play(t testing.TB, files []string) *cassette.Cassette {
	t.Helper()
	c, err := cassette.Open(files...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func question(model string, stream bool, text string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":99,"stream":%v,"messages":[{"role":"user","content":%q}]}`, model, stream, text)
}

// secret has the shape of a GitHub token and is none.
const secret = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

// TestRecordAndReplay asks the examples through a gateway that records, and then
// what was recorded through another: clients get the same, and there is nothing
// left for guards to find. The requests hold a secret, which the upstream is sent
// where the profile only watches.
func TestRecordAndReplay(t *testing.T) {
	examples, err := filepath.Glob("../../examples/cassettes/*.cassette")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, input := range []guard.Mode{guard.Enforce, guard.Shadow} {
		t.Run(input.String(), func(t *testing.T) {
			provider := play(t, examples)
			rec, dir := recorder(t)
			recording, _ := serve(t, input, func(p protocol) http.RoundTripper {
				return rec.Upstream(cassette.Upstream{Name: p.name, Format: p.format, BaseURL: p.base, Next: provider})
			})
			type asked struct{ path, body string }
			var questions []asked
			var want []answer
			for _, p := range protocols {
				for _, model := range []string{"demo-clean", "demo-secrets", "demo-tool", "demo-denied", "demo-cut"} {
					for _, stream := range []bool{true, false} {
						if model == "demo-cut" && !stream {
							continue // half a document cannot be scrubbed: see TestNotWritten
						}
						questions = append(questions, asked{p.path, question(model, stream, "use "+secret+" for user@example.com, please")})
					}
				}
			}
			for _, q := range questions {
				want = append(want, ask(t, recording, q.path, q.body))
			}
			rec.Close()
			files := tapes(t, dir)
			if len(files) != len(questions) {
				t.Fatalf("%d recordings of %d exchanges", len(files), len(questions))
			}
			for _, file := range files {
				if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte(secret[8:])) || bytes.Contains(b, []byte("user@")) {
					t.Errorf("%s: error %v, or it has what the request had:\n%.500s", file, err, b)
				}
			}
			recorded := play(t, files)
			replay, found := serve(t, input, func(protocol) http.RoundTripper { return recorded })
			for i, q := range slices.Backward(questions) { // in whatever order
				if diff := cmp.Diff(want[i], ask(t, replay, q.path, q.body)); diff != "" {
					t.Errorf("%s %s (-recorded +replayed):\n%s", q.path, q.body, diff)
				}
			}
			if unused := recorded.Unused(); len(unused) > 0 {
				t.Errorf("never given out: %q", unused)
			}
			for _, v := range found.verdicts() {
				if !strings.HasPrefix(v, "messages/") { // the questions', which are asked as before
					t.Errorf("found in what was recorded: %s", v)
				}
			}
		})
	}
}

// TestRecordedBytes: of providers' own streams, what nothing is found in is
// recorded as the bytes that came, in the pieces in which they came.
func TestRecordedBytes(t *testing.T) {
	for _, p := range protocols {
		streams := providers(t, p)
		clean := 0
		for name, stream := range streams {
			rec, dir := recorder(t)
			up := rec.Upstream(cassette.Upstream{Name: p.name, Format: p.format, BaseURL: p.base, Next: says(200, "text/event-stream", stream, 700)})
			body := question("m", true, "hi")
			got := fetch(t, up, p, body)
			rec.Close()
			if got != stream {
				t.Errorf("%s: the answer was changed by recording it", name)
			}
			files := tapes(t, dir)
			if len(files) != 1 {
				continue // and the recorder failed the test
			}
			replayed := fetch(t, play(t, files), p, body)
			if strings.Contains(replayed, "[redacted:") {
				t.Logf("%s has findings", name)
				continue
			}
			clean++
			if replayed != stream {
				t.Errorf("%s: %d bytes came, %d were recorded", name, len(stream), len(replayed))
			}
		}
		t.Logf("%s: %d streams, %d of them clean", p.name, len(streams), clean)
		if clean < len(streams)/2 {
			t.Errorf("%s: only %d of %d streams are clean", p.name, clean, len(streams))
		}
	}
}

// fetch asks an upstream without a door.
func fetch(t testing.TB, up http.RoundTripper, p protocol, body string) string {
	t.Helper()
	_, path, _ := strings.Cut(p.path[1:], "/v1")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://cassette.invalid/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := up.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type upstream func(*http.Request) (*http.Response, error)

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) { return u(r) }

// says is an upstream with one answer, which comes n bytes at once.
func says(status int, kind, body string, n int) upstream {
	return func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(&slow{body, n})}, nil
	}
}

type slow struct {
	rest string
	n    int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// providers are recorded streams of a protocol, by name.
func providers(t *testing.T, p protocol) map[string]string {
	t.Helper()
	f, err := os.Open("../../../shared/data/streams.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/data is not there: nothing of providers' to record")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	folder := map[string]string{govern.OpenAI: "openai-chat/", govern.Anthropic: "anthropic-messages/"}[p.name]
	all := map[string]string{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Name, folder) || !strings.HasSuffix(h.Name, ".jsonl") {
			continue
		}
		all[h.Name] = framed(t, p, tr)
	}
	if len(all) < 10 {
		t.Fatalf("%d streams of %s", len(all), p.name)
	}
	return all
}

var payloadType = regexp.MustCompile(`^\{"type":"(\w+)"`)

// framed frames payloads, one a line, as the provider does.
func framed(t *testing.T, p protocol, payloads io.Reader) string {
	t.Helper()
	var b strings.Builder
	sc := bufio.NewScanner(payloads)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		if sc.Text() == "" {
			continue
		}
		if m := payloadType.FindStringSubmatch(sc.Text()); p.name == govern.Anthropic && m != nil {
			fmt.Fprintf(&b, "event: %s\n", m[1])
		}
		fmt.Fprintf(&b, "data: %s\n\n", sc.Text())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if p.name == govern.OpenAI {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// TestRecordAtOnce records many exchanges at the same time: each of them is in a
// file of its own, whole, and answers its own question.
func TestRecordAtOnce(t *testing.T) {
	const n = 48
	rec, dir := recorder(t)
	echo := upstream(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		number := regexp.MustCompile(`number-\d+`).FindString(string(b))
		chunk := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":%s}]}`
		frames := fmt.Sprintf("data: "+chunk+"\n\ndata: "+chunk+"\n\ndata: [DONE]\n\n", number+" "+secret, "null", "", `"stop"`)
		return says(200, "text/event-stream", frames, 50)(r.WithContext(r.Context()))
	})
	recording, _ := serve(t, guard.Shadow, func(p protocol) http.RoundTripper {
		return rec.Upstream(cassette.Upstream{Name: p.name, Format: p.format, BaseURL: p.base, Next: echo})
	})
	want := make([]answer, n)
	each := func(f func(i int, body string)) {
		var wait sync.WaitGroup
		for i := range n {
			wait.Go(func() { f(i, question("m", true, fmt.Sprintf("number-%d.", i))) })
		}
		wait.Wait()
	}
	each(func(i int, body string) { want[i] = ask(t, recording, protocols[0].path, body) })
	rec.Close()
	files := tapes(t, dir)
	if len(files) != n {
		t.Fatalf("%d recordings of %d exchanges", len(files), n)
	}
	recorded := play(t, files)
	replay, _ := serve(t, guard.Shadow, func(protocol) http.RoundTripper { return recorded })
	each(func(i int, body string) {
		if !strings.Contains(want[i].Text, fmt.Sprintf("number-%d [redacted:github-pat]", i)) {
			t.Errorf("%d was answered %+v", i, want[i])
		}
		if diff := cmp.Diff(want[i], ask(t, replay, protocols[0].path, body)); diff != "" {
			t.Errorf("%d (-recorded +replayed):\n%s", i, diff)
		}
	})
}

// TestRecordModels: a list of models is an exchange like any other, of a path
// that is the provider's own wherever the upstream is.
func TestRecordModels(t *testing.T) {
	rec, dir := recorder(t)
	list := `{"object":"list","data":[{"id":"gpt-9","object":"model","created":1,"owned_by":"user@example.com"}]}`
	up := says(200, "application/json", list, 10)
	recording, _ := serve(t, guard.Shadow, func(p protocol) http.RoundTripper {
		return rec.Upstream(cassette.Upstream{Name: p.name, Format: p.format, BaseURL: p.base, Next: upstream(up)})
	})
	want := ask(t, recording, "/openai/v1/models", "")
	rec.Close()
	files := tapes(t, dir)
	if len(files) != 1 || !strings.HasSuffix(files[0], "-models.cassette") {
		t.Fatalf("recorded as %q", files)
	}
	recorded := play(t, files)
	replay, _ := serve(t, guard.Shadow, func(protocol) http.RoundTripper { return recorded })
	if diff := cmp.Diff(want, ask(t, replay, "/openai/v1/models", "")); diff != "" || !strings.Contains(want.Frames, "[redacted:email]") {
		t.Errorf("%+v (-recorded +replayed):\n%s", want, diff)
	}
}
