package govern_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

var encodings = []string{"gzip", "br", "zstd"}

// packer is a writer of an encoding. Flush ends what a reader can be given.
type packer interface {
	io.WriteCloser
	Flush() error
}

func pack(t testing.TB, encoding string, to io.Writer) packer {
	t.Helper()
	switch encoding {
	case "br":
		return brotli.NewWriter(to)
	case "zstd":
		z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	return gzip.NewWriter(to)
}

func packed(t testing.TB, encoding string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := pack(t, encoding, &out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sends is a request whose body has an encoding.
func sends(t testing.TB, door http.RoundTripper, encoding string, body []byte) *http.Response {
	t.Helper()
	req := ask(t.Context(), t, chat, "", false)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Encoding", encoding)
	resp, err := door.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestEncodedRequests are decoded and judged, and go on plain; what is not what
// it says is refused.
func TestEncodedRequests(t *testing.T) {
	var sent string
	var header http.Header
	door := open(t, guard.Redact, upstream(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		sent, header = string(b), r.Header
		return response(200, "application/json", strings.NewReader(chatBody("ok"))), err
	}), (&records{}).add)
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"my key ` + secret + `"}]}`)
	for _, enc := range encodings {
		whole := packed(t, enc, body)
		resp := sends(t, door, strings.ToUpper(enc), whole)
		if want := `{"model":"m","messages":[{"role":"user","content":"my key [redacted:github-pat]"}]}`; resp.StatusCode != 200 || sent != want {
			t.Errorf("%s: %d, and the upstream is sent %s", enc, resp.StatusCode, sent)
		}
		if header.Get("Content-Encoding") != "" {
			t.Errorf("%s: the upstream is told of an encoding", enc)
		}
		sent = ""
		for _, tt := range []struct {
			name, encoding string
			body           []byte
			status         int
		}{
			{"half", enc, whole[:len(whole)/2], 400},
			{"plain", enc, body, 400},
			{"twice", enc + ", " + enc, packed(t, enc, whole), 415},
			{"unknown", "compress", body, 415},
		} {
			if resp := sends(t, door, tt.encoding, tt.body); resp.StatusCode != tt.status || sent != "" {
				t.Errorf("%s, %s: %d, and the upstream is sent %q", enc, tt.name, resp.StatusCode, sent)
			}
		}
	}
}

// TestBombs are requests of 100 MB of zeros in a few bytes: no more is unpacked
// than a request may be large.
func TestBombs(t *testing.T) {
	m := member(t, guard.Redact)
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: says(200, "", "")}},
		Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{"m"}, Input: []guard.Member{m}}},
		Record:    (&records{}).add,
		MaxBody:   1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, enc := range encodings {
		bomb := packed(t, enc, make([]byte, 100<<20))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp := sends(t, door, enc, bomb)
		runtime.ReadMemStats(&after)
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", enc, resp.StatusCode)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%s: %d bytes were allocated for %d", enc, n, len(bomb))
		}
	}
}

// TestEncodedAnswers are decoded though that was not asked, and judged as they
// come: what was flushed is shown before more is there.
func TestEncodedAnswers(t *testing.T) {
	for _, enc := range encodings {
		r, w := io.Pipe()
		door := open(t, guard.Redact, upstream(func(*http.Request) (*http.Response, error) {
			resp := response(200, "text/event-stream", r)
			resp.Header.Set("Content-Encoding", enc)
			return resp, nil
		}), (&records{}).add)
		first, more := make(chan struct{}), make(chan struct{})
		go func() {
			z := pack(t, enc, w)
			io.WriteString(z, chunk("all is well. ")+chunk("the key "+secret[:20])+chunk(secret[20:]+" ends. "))
			z.Flush()
			close(first)
			<-more
			io.WriteString(z, chatEnd)
			z.Close()
			w.Close()
		}()
		resp, err := door.RoundTrip(ask(context.Background(), t, chat, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		buf := make([]byte, 4096)
		for !bytes.Contains(got, []byte("ends. ")) {
			n, err := resp.Body.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				t.Fatalf("%s: %v after %s", enc, err, got)
			}
		}
		<-first
		close(more)
		rest, err := io.ReadAll(resp.Body)
		if got = append(got, rest...); err != nil || !bytes.HasSuffix(got, []byte("data: [DONE]\n\n")) || bytes.Contains(got, []byte(secret[:20])) {
			t.Errorf("%s: %v\n%s", enc, err, got)
		}
		resp.Body.Close()
	}
}
