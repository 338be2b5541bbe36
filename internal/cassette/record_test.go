package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/wire"
)

// secret has the shape of a GitHub token and is none.
const secret = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

func scrubChain(t testing.TB, opt guard.Options) *guard.Chain {
	t.Helper()
	g, err := scrubRules()
	if err != nil {
		t.Fatal(err)
	}
	return guard.NewChain(opt, guard.Member{Guard: g})
}

var scrubRules = sync.OnceValues(func() (guard.Guard, error) {
	rs, err := rules.Select("secrets", "credentials", "pii")
	if err != nil {
		return nil, err
	}
	return match.Compile(rs, match.Options{Name: "scrub", Key: []byte("key"), Verdict: guard.Redact})
})

// studio records what an upstream of a test says.
type studio struct {
	*Recorder
	dir  string
	said []string // of recordings that were not written; read it after Close
}

func newStudio(t testing.TB, chain *guard.Chain) *studio {
	t.Helper()
	s := &studio{dir: filepath.Join(t.TempDir(), "a", "tapes")}
	var err error
	if s.Recorder, err = NewRecorder(s.dir, chain, func(line string) { s.said = append(s.said, line) }); err != nil {
		t.Fatal(err)
	}
	return s
}

// files are the recordings, with their names, in order.
func (s *studio) files(t testing.TB) (names []string, texts []string) {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, e.Name()), append(texts, string(b))
	}
	return names, texts
}

type provider func(*http.Request) (*http.Response, error)

func (p provider) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// says is a provider with one answer.
func says(status int, kind string, body io.Reader) provider {
	return func(*http.Request) (*http.Response, error) {
		rc, ok := body.(io.ReadCloser)
		if !ok {
			rc = io.NopCloser(body)
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}, "Set-Cookie": {"session=1"}}, Body: rc}, nil
	}
}

func (s *studio) openai(next http.RoundTripper) http.RoundTripper {
	return s.Upstream(Upstream{Name: "up", Format: wire.OpenAIChat, BaseURL: "http://provider.example/v1", Next: next})
}

// hear asks a provider through the studio, and reads the answer to its end.
func (s *studio) hear(t testing.TB, next http.RoundTripper, body string) (string, error) {
	t.Helper()
	resp, err := s.openai(next).RoundTrip(request(t, http.MethodPost, chat, body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

const hello = `{"model":"m","stream":true,"temperature":0.5,"messages":[{"role":"user","content":"hi"}]}`

func delta(text string) string {
	return fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text) + "\n\n"
}

const done = "data: [DONE]\n\n"

// script is a body that says its lines with pauses between them, and then ends.
type script struct {
	lines []string
	end   error
}

func (s *script) Read(p []byte) (int, error) {
	time.Sleep(40*time.Millisecond + 600*time.Microsecond) // of a synctest bubble
	if len(s.lines) == 0 {
		return 0, s.end
	}
	n := copy(p, s.lines[0])
	s.lines = s.lines[1:]
	return n, nil
}

var recordedAt = regexp.MustCompile(` Recorded [^"]*`)

// TestRecordingsRead is what recordings look like, line by line.
func TestRecordingsRead(t *testing.T) {
	euro := delta("a €")
	cut := strings.Index(euro, "€") + 1
	const head = `{"cassette":1,"about":"POST /v1/chat/completions of the upstream up, model m, streamed: 200 OK.","source":"recorded"}
{"request":{"method":"POST","path":"/v1/chat/completions","match":{"messages":[{"content":"hi","role":"user"}],"model":"m","stream":true}}}
{"response":{"status":200,"header":{"content-type":"text/event-stream"}}}
`
	line := func(ms int, data string) string {
		b, _ := json.Marshal(data)
		return fmt.Sprintf(`{"ms":%d,"data":%s}`, ms, b) + "\n"
	}
	for name, c := range map[string]struct {
		lines []string
		end   error
		want  string
	}{
		"whole": {[]string{delta("a"), delta("b") + done}, io.EOF,
			head + line(40, delta("a")) + line(41, delta("b")+done) + `{"ms":40,"end":true}` + "\n"},
		"cut":                {[]string{delta("a"), delta("b")}, io.ErrUnexpectedEOF, head + line(40, delta("a")) + line(41, delta("b"))},
		"cut inside a frame": {[]string{delta("a") + delta("b")[:30]}, io.ErrUnexpectedEOF, head + line(40, delta("a"))},
		"cut inside a rune": {[]string{euro[:cut], euro[cut:] + done}, io.EOF,
			head + fmt.Sprintf(`{"ms":40,"base64":%s}`+"\n", base64Of(euro[:cut])) + fmt.Sprintf(`{"ms":41,"base64":%s}`+"\n", base64Of(euro[cut:]+done)) + `{"ms":40,"end":true}` + "\n"},
		"a secret over two pieces": {[]string{delta("key " + secret[:9]), delta(secret[9:] + " end"), done}, io.EOF,
			head + line(81, delta("key [redacted:github-pat]")) + line(40, delta(" end")+done) + `{"ms":41,"end":true}` + "\n"},
		"a secret, then cut": {[]string{delta(secret + " "), delta("half " + secret[:9])}, errors.New("reset"),
			head + line(40, delta("[redacted:github-pat] ")) + line(41, delta("half "+secret[:9]))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStudio(t, scrubChain(t, guard.Options{}))
				got, err := s.hear(t, says(200, "text/event-stream", &script{c.lines, c.end}), hello)
				if want := strings.Join(c.lines, ""); got != want || err != nil && !errors.Is(err, c.end) {
					t.Errorf("the answer was changed: %q, %v", got, err)
				}
				s.Close()
				_, texts := s.files(t)
				if len(texts) != 1 || len(s.said) > 0 {
					t.Fatalf("%d files, said %q", len(texts), s.said)
				}
				if diff := cmp.Diff(c.want, unescaped(recordedAt.ReplaceAllString(texts[0], ""))); diff != "" {
					t.Errorf("the file (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func base64Of(s string) string { b, _ := json.Marshal([]byte(s)); return string(b) }

// unescaped is a recording's text with its escapes as Marshal has them.
func unescaped(s string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(s)
}

// TestRecordedPage: an upstream that fails does not speak its format. That is
// recorded like any exchange.
func TestRecordedPage(t *testing.T) {
	s := newStudio(t, scrubChain(t, guard.Options{}))
	page := "<p>bad gateway, write to user@example.com</p>"
	if got, err := s.hear(t, says(502, "text/html", strings.NewReader(page)), hello); got != page || err != nil {
		t.Errorf("the answer is %q, %v", got, err)
	}
	s.Close()
	names, texts := s.files(t)
	if len(names) != 1 {
		t.Fatalf("the files are %q, said %q", names, s.said)
	}
	resp, err := open(t, texts[0], None).RoundTrip(request(t, http.MethodPost, chat, hello))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 502 || resp.Header.Get("Content-Type") != "text/html" || string(b) != "<p>bad gateway, write to [redacted:email]</p>" || err != nil {
		t.Errorf("replayed as %d, %v, %q, %v", resp.StatusCode, resp.Header, b, err)
	}
	if len(resp.Header) != 1 {
		t.Errorf("more headers than one are recorded: %v", resp.Header)
	}
}

// TestRecordingFiles: they are their owner's alone, sort as the requests came,
// and bear the model's name, whatever that is.
func TestRecordingFiles(t *testing.T) {
	s := newStudio(t, scrubChain(t, guard.Options{}))
	models := []string{"gpt-9.1_x", "../../etc/passwd", "vendor/model:free", strings.Repeat("long", 40), "模型", ""}
	for _, m := range models {
		body := fmt.Sprintf(`{"model":%q,"messages":[]}`, m)
		if _, err := s.hear(t, says(200, "application/json", strings.NewReader(`{"id":"c","choices":[]}`)), body); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if len(s.said) > 0 {
		t.Errorf("said %q", s.said)
	}
	names, _ := s.files(t)
	want := []string{"gpt-9.1_x", "..-..-etc-passwd", "vendor-model-free", strings.Repeat("long", 16), "--", "completions"}
	if len(names) != len(want) {
		t.Fatalf("the files are %q", names)
	}
	for i, name := range names {
		if !regexp.MustCompile(`^[0-9a-z]{26}-`).MatchString(name) || name[27:] != want[i]+".cassette" {
			t.Errorf("the file of %q is %q", models[i], name)
		}
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: mode %v, %v", info.Mode(), err)
	}
}

// TestQuestion makes the match of requests: a part that says which it is, and
// nothing of what was scrubbed.
func TestQuestion(t *testing.T) {
	blob := strings.Repeat("iVBORw0KGgo", 30)
	for name, c := range map[string]struct{ asked, scrubbed, want string }{
		"what identifies": {
			`{"model":"m","stream":false,"temperature":1,"user":"u","system":"s","messages":[{"role":"user","content":"hi"}]}`, "",
			`{"model":"m","stream":false,"system":"s","messages":[{"role":"user","content":"hi"}]}`},
		"nothing of it": {`{"input":"hi"}`, "", `{}`},
		"no nulls":      {`{"model":"m","stream":null}`, "", `{"model":"m"}`},
		"a secret at the end": {`{"messages":[{"content":"my key is S3CRET"}]}`, `{"messages":[{"content":"my key is [redacted:r]"}]}`,
			`{"messages":[{"content":{"$has":"my key is "}}]}`},
		"a secret in front": {`{"messages":[{"content":"S3CRET is my key"}]}`, `{"messages":[{"content":"[redacted:r] is my key"}]}`,
			`{"messages":[{"content":{"$has":" is my key"}}]}`},
		"secrets on both sides": {`{"messages":[{"content":"S3CRET and S3CRET"}]}`, `{"messages":[{"content":"[redacted:r] and [redacted:r]"}]}`,
			`{"messages":[{"content":{"$has":""}}]}`},
		"beside half a rune": {`{"messages":[{"content":"aä"}]}`, `{"messages":[{"content":"aö"}]}`, `{"messages":[{"content":{"$has":"a"}}]}`},
		"a number":           {`{"messages":[{"content":"x","n":4111}]}`, `{"messages":[{"content":"x","n":null}]}`, `{"messages":[{"content":"x"}]}`},
		"a number in a list": {`{"messages":[{"content":"x","n":[1,4111]}]}`, `{"messages":[{"content":"x","n":[1,null]}]}`, `{"messages":[{"content":"x"}]}`},
		"a key of the language": {`{"messages":[{"input":{"$ref":"#/a","$has":1,"b":2}}]}`, "",
			`{"messages":[{"input":{"b":2}}]}`},
		"a key with a secret": {`{"messages":[{"input":{"S3CRET":1,"b":2}}]}`, `{"messages":[{"input":{"[redacted:r]":1,"b":2}}]}`,
			`{"messages":[{"input":{"b":2}}]}`},
		"an image": {`{"messages":[{"content":[{"source":{"type":"base64","data":"` + blob + `"}},{"image_url":{"url":"data:image/png;base64,` + blob + `"}}]}]}`, "",
			`{"messages":[{"content":[{"source":{"type":"base64","data":{"$has":""}}},{"image_url":{"url":{"$has":""}}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.scrubbed == "" {
				c.scrubbed = c.asked
			}
			got, err := question([]byte(c.asked), []byte(c.scrubbed))
			if err != nil {
				t.Fatal(err)
			}
			want, err := decodeObject([]byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			p, err := compile(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, body := range []string{c.asked, c.scrubbed} {
				if _, differs := p.compare(decodeBody([]byte(body)).value, "body"); differs != "" {
					t.Errorf("it does not match %s: %s differs", body, differs)
				}
			}
		})
	}
}

// TestNotWritten: what cannot be recorded is answered as ever, leaves no file,
// and is said in one line, which gives nothing away.
func TestNotWritten(t *testing.T) {
	stream := func(text string) provider { return says(200, "text/event-stream", strings.NewReader(text)) }
	document := func(text string) provider { return says(200, "application/json", strings.NewReader(text)) }
	gzipped := func(r *http.Request) (*http.Response, error) {
		resp, err := stream("\x1f\x8b" + secret)(r)
		resp.Header.Set("Content-Encoding", "GZIP")
		return resp, err
	}
	leaky := guard.Options{Placeholder: func(string) string { return secret }}
	for name, c := range map[string]struct {
		opt  guard.Options
		next provider
		body string
		want string
	}{
		"a finding that stays":         {leaky, stream(delta(secret) + done), hello, "rule github-pat still finds something in it"},
		"one that stays in the match":  {leaky, stream(delta("hi") + done), strings.Replace(hello, "hi", secret, 1), "it would not answer its own request|rule github-pat still finds something in it"},
		"a finding in the model":       {guard.Options{}, stream(delta("hi") + done), `{"model":"` + secret + `"}`, "rule github-pat finds something in the request where nothing can be replaced"},
		"a finding in an id":           {guard.Options{}, stream(strings.Replace(delta("hi"), `"c"`, `"`+secret+`"`, 1) + done), hello, "rule github-pat stops the answer"},
		"one in a document's id":       {guard.Options{}, document(`{"id":"` + secret + `","choices":[]}`), hello, "rule github-pat stops the answer"},
		"too much that waits":          {guard.Options{MaxHold: 16}, stream(delta(secret) + done), hello, "rule max_hold_bytes stops the answer"},
		"the same in a document":       {guard.Options{MaxHold: 16}, document(`{"id":"c","choices":[{"message":{"content":"` + secret + `"}}]}`), hello, "rule max_hold_bytes stops the answer"},
		"the same in a text":           {guard.Options{MaxHold: 16}, says(502, "text/html", strings.NewReader("x "+secret)), hello, "rule max_hold_bytes stops the answer"},
		"no JSON in a frame":           {guard.Options{}, stream("data: {\"id\":" + secret + "\n\n"), hello, "the answer cannot be scrubbed: a frame of the answer is not valid JSON.*"},
		"no JSON":                      {guard.Options{}, document("[" + secret), hello, "the answer cannot be scrubbed: the answer is not valid JSON.*"},
		"half a document":              {guard.Options{}, document("").breaks(`{"id":"c","choices":[{"mess`), hello, "the answer broke off, and half a document cannot be scrubbed"},
		"a request that is no JSON":    {guard.Options{}, stream(done), "hello " + secret, "the request cannot be scrubbed: .*"},
		"a secret where none may read": {guard.Options{}, stream(done + "data: " + secret + "\n\n"), hello, "rule github-pat still finds something in it"},
		"a status that none may have":  {guard.Options{}, says(777, "text/plain", strings.NewReader("odd")), hello, `it could not be read back: .*"status" is 777: want 200 to 599`},
		"another type of answer":       {guard.Options{}, says(200, "text/plain", strings.NewReader(delta(secret[:9])+delta(secret[9:]))), hello, `the answer is of type "text/plain", and cannot be scrubbed`},
		"a content encoding":           {guard.Options{}, gzipped, hello, `the answer came in Content-Encoding "gzip", and cannot be scrubbed so`},
		"too long an answer":           {guard.Options{}, stream(strings.Repeat(": ping\n\n", 600) + done), hello, "the answer has [0-9]+ bytes, more than are kept"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, scrubChain(t, c.opt))
			s.most = 4 << 10
			resp, err := s.openai(c.next).RoundTrip(request(t, http.MethodPost, chat, c.body))
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := io.Copy(io.Discard, resp.Body); n == 0 {
				t.Error("the answer did not come")
			}
			s.Close()
			want := regexp.MustCompile(`^the recording of POST /v1/chat/completions, upstream up, is not written: (` + c.want + `)$`)
			if len(s.said) != 1 || !want.MatchString(s.said[0]) || strings.Contains(strings.Join(s.said, ""), secret[4:]) {
				t.Errorf("said %q, want %s", s.said, want)
			}
			if names, _ := s.files(t); len(names) > 0 {
				t.Errorf("there are files: %q", names)
			}
		})
	}
}

// breaks is the provider with another body, that breaks off.
func (p provider) breaks(body string) provider {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := p(r)
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), failing{io.ErrUnexpectedEOF}))
		return resp, err
	}
}

// TestScrubPanics: a panic while scrubbing ends the recording and nothing else.
func TestScrubPanics(t *testing.T) {
	s := newStudio(t, nil)
	if got, err := s.hear(t, says(200, "text/event-stream", strings.NewReader(done)), hello); got != done || err != nil {
		t.Errorf("the answer is %q, %v", got, err)
	}
	s.Close()
	if len(s.said) != 1 || !strings.Contains(s.said[0], "is not written: it made the program panic") {
		t.Errorf("said %q", s.said)
	}
}

// TestFolderGone: a folder that can no longer be written to is said, and the
// answer comes; one that never could be is an error before anything is served.
func TestFolderGone(t *testing.T) {
	s := newStudio(t, scrubChain(t, guard.Options{}))
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if got, err := s.hear(t, says(200, "text/event-stream", strings.NewReader(done)), hello); got != done || err != nil {
		t.Errorf("the answer is %q, %v", got, err)
	}
	s.Close()
	if len(s.said) != 1 || !strings.Contains(s.said[0], "no such file or directory") {
		t.Errorf("said %q", s.said)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRecorder(file, s.scrub, nil); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// TestAnswersAreLive: each piece is the reader's when it comes, and the end of an
// answer waits for no recording, not even for one that takes for ever.
func TestAnswersAreLive(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	s := newStudio(t, guard.NewChain(guard.Options{}, guard.Member{Guard: g}))
	r, w := io.Pipe()
	resp, err := s.openai(says(200, "text/event-stream", r)).RoundTrip(request(t, http.MethodPost, chat, hello))
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan string)
	var writer sync.WaitGroup
	writer.Go(func() {
		for piece := range next {
			w.Write([]byte(piece))
		}
		w.Close()
	})
	buf := make([]byte, 1<<10)
	for _, piece := range []string{delta("one"), delta("two"), done} {
		next <- piece
		n, err := resp.Body.Read(buf)
		if string(buf[:n]) != piece || err != nil {
			t.Errorf("read %q, %v, want %q", buf[:n], err, piece)
		}
	}
	close(next)
	if n, err := resp.Body.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("at the end %d, %v", n, err)
	}
	writer.Wait()
	if got, err := s.hear(t, says(200, "text/event-stream", strings.NewReader(done)), hello); got != done || err != nil {
		t.Errorf("the next answer is %q, %v", got, err)
	}
	if names, _ := s.files(t); len(names) > 0 {
		t.Errorf("written before it was scrubbed: %q", names)
	}
	close(g.open)
	s.Close()
	if names, _ := s.files(t); len(names) != 2 || len(s.said) > 0 {
		t.Errorf("the files are %q, said %q", names, s.said)
	}
}

// gate is a guard that finds nothing, once it is open.
type gate struct{ open chan struct{} }

func (g *gate) Name() string { return "gate" }
func (g *gate) Open(context.Context, guard.Channel) guard.Screen {
	<-g.open
	return &gateScreen{}
}

type gateScreen struct{ n int64 }

func (s *gateScreen) Write(p []byte) (guard.Progress, error) {
	s.n += int64(len(p))
	return guard.Progress{Settled: s.n}, nil
}
func (s *gateScreen) Close() (guard.Progress, error) { return guard.Progress{Settled: s.n}, nil }

// TestCallerLeaves: an answer that is closed before its end, also while a Read
// waits for more of it, is recorded as one that breaks off there.
func TestCallerLeaves(t *testing.T) {
	s := newStudio(t, scrubChain(t, guard.Options{}))
	r, w := io.Pipe()
	resp, err := s.openai(says(200, "text/event-stream", r)).RoundTrip(request(t, http.MethodPost, chat, hello))
	if err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	first := make(chan struct{})
	reader.Go(func() {
		buf := make([]byte, 1<<10)
		resp.Body.Read(buf)
		close(first)
		resp.Body.Read(buf) // until Close
	})
	if _, err := w.Write([]byte(delta("one"))); err != nil {
		t.Fatal(err)
	}
	<-first
	resp.Body.Close()
	reader.Wait()
	resp.Body.Close()
	s.Close()
	_, texts := s.files(t)
	if len(texts) != 1 || !strings.Contains(texts[0], "one") || strings.Contains(texts[0], `"end"`) {
		t.Errorf("recorded %q, said %q", texts, s.said)
	}
}

// TestUpstreamAsked: an upstream is sent what was asked, may ask for it again, and
// what has no answer is no exchange.
func TestUpstreamAsked(t *testing.T) {
	s := newStudio(t, scrubChain(t, guard.Options{}))
	refused := errors.New("refused")
	next := provider(func(r *http.Request) (*http.Response, error) {
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []io.Reader{r.Body, again} {
			if b, err := io.ReadAll(body); string(b) != hello || err != nil {
				t.Errorf("asked %q, %v", b, err)
			}
		}
		return nil, refused
	})
	if _, err := s.hear(t, next, hello); err != refused {
		t.Errorf("got the error %v", err)
	}
	if got, err := s.hear(t, open(t, paced, None), hello); !strings.Contains(got, "cassette_miss") || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	r := request(t, http.MethodPost, chat, "")
	r.Body = io.NopCloser(failing{refused})
	if _, err := s.openai(next).RoundTrip(r); !errors.Is(err, refused) {
		t.Errorf("a request that cannot be read gives %v", err)
	}
	s.Close()
	if names, _ := s.files(t); len(names) > 0 || len(s.said) > 0 {
		t.Errorf("the files are %q, said %q", names, s.said)
	}
}

// TestRecordedPath is the provider's own, wherever the upstream has its paths.
func TestRecordedPath(t *testing.T) {
	for _, c := range []struct {
		format           *wire.Format
		base, path, want string
	}{
		{wire.OpenAIChat, "https://api.openai.com/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{wire.OpenAIChat, "https://api.deepseek.com", "/chat/completions", "/v1/chat/completions"},
		{wire.OpenAIChat, "https://openrouter.ai/api/v1/", "/api/v1/models", "/v1/models"},
		{wire.AnthropicMessages, "https://api.anthropic.com", "/v1/messages", "/v1/messages"},
		{wire.AnthropicMessages, "https://proxy.example/anthropic", "/anthropic/v1/messages", "/v1/messages"},
		{wire.AnthropicMessages, "https://proxy.example/anthropic", "/other", "/other"},
		{wire.AnthropicMessages, "://", "/other", "/other"},
	} {
		u := Upstream{Format: c.format, BaseURL: c.base}
		if got := u.path(c.path); got != c.want {
			t.Errorf("%s under %s is %s, want %s", c.path, c.base, got, c.want)
		}
	}
}

// FuzzRecord: whatever is asked and answered, the answer is the provider's, and
// what is written plays, answers its request, and has no finding left.
func FuzzRecord(f *testing.F) {
	for _, body := range []string{delta("hi") + done, delta("key "+secret[:9]) + delta(secret[9:]) + done, delta(secret)[:60], "<p>" + secret,
		`{"id":"c","choices":[{"message":{"content":"` + secret + `"}}]}`, "\xff\x00"} {
		for _, kind := range []string{eventStream, "application/json", ""} {
			f.Add(hello, kind, body, 7, true)
			f.Add(strings.Replace(hello, "hi", "use "+secret+", please", 1), kind, body, 100, false)
		}
	}
	chain := scrubChain(f, guard.Options{})
	f.Fuzz(func(t *testing.T, asked, kind, body string, n int, whole bool) {
		if len(asked)+len(body) > 4<<10 {
			return
		}
		s := newStudio(t, chain)
		var reader io.Reader = &chunks{body, max(n, 1)}
		if !whole {
			reader = io.MultiReader(reader, failing{io.ErrUnexpectedEOF})
		}
		got, _ := s.hear(t, says(200, kind, reader), asked)
		if got != body {
			t.Errorf("the answer was changed: %q to %q", body, got)
		}
		s.Close()
		names, texts := s.files(t)
		if len(names)+len(s.said) != 1 {
			t.Fatalf("the files are %q, said %q", names, s.said)
		}
		for i, text := range texts {
			if _, rule, _ := (&scrubber{chain: chain}).plain([]byte(text)); rule != "" {
				t.Errorf("rule %s finds something in %s", rule, text)
			}
			c, err := Parse(names[i], []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.RoundTrip(request(t, http.MethodPost, chat, asked))
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("it does not answer its request: %v, %v", resp, err)
			}
			if _, err := io.ReadAll(resp.Body); (err == nil) != whole {
				t.Errorf("whole %v, and the replay ends with %v", whole, err)
			}
		}
	})
}

// chunks gives n bytes at once.
type chunks struct {
	rest string
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
