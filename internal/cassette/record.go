package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

// maxRecorded is the largest answer that is recorded, in bytes: as large as the
// door takes one that is not streamed.
const maxRecorded = 64 << 20

// A Recorder writes what upstreams are asked and answer as cassettes, a file for
// each exchange. It is safe for use by several goroutines.
type Recorder struct {
	dir   string
	scrub *guard.Chain
	say   func(string)
	most  int // bytes of an answer

	writing sync.WaitGroup
	turn    sync.Mutex // one exchange is scrubbed at a time: serving comes first
}

// NewRecorder returns a recorder into a folder, which is made if it is not there.
// What scrub finds is replaced in what is written; its guards should redact, for
// an exchange in which one denies is not written. say is told, in a line, of each
// exchange that could not be kept, and why.
func NewRecorder(dir string, scrub *guard.Chain, say func(line string)) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record into %s: %w", dir, err)
	}
	probe, err := os.CreateTemp(dir, unfinished)
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return nil, fmt.Errorf("record into %s: %w", dir, err)
	}
	return &Recorder{dir: dir, scrub: scrub, say: say, most: maxRecorded}, nil
}

// Close waits until what was heard is written. It is called when every answer
// has been read to its end or closed.
func (r *Recorder) Close() { r.writing.Wait() }

// Upstream is what a recorder listens to.
type Upstream struct {
	Name   string
	Format *wire.Format
	// BaseURL is what the format's paths are appended to. A cassette has the
	// paths of the provider itself, whatever stands before them here.
	BaseURL string
	Next    http.RoundTripper
}

// Upstream returns the upstream with the recorder between it and whoever asks:
// requests and answers pass as they are, when they come. An exchange is kept in
// memory until its answer has ended, and is scrubbed and written after that, on a
// goroutine that [Recorder.Close] waits for.
func (r *Recorder) Upstream(u Upstream) http.RoundTripper { return &recorded{r, u} }

type recorded struct {
	recorder *Recorder
	upstream Upstream
}

func (u *recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &recording{
		id: strings.ToLower(ulid.Make().String()), began: time.Now(), upstream: &u.upstream,
		method: req.Method, path: u.upstream.path(req.URL.Path),
	}
	var err error
	if x.asked, err = readBody(req); err != nil {
		return nil, fmt.Errorf("record an exchange: read the request: %w", err)
	}
	sent := req.Clone(req.Context())
	if sent.Body = http.NoBody; len(x.asked) > 0 {
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.asked)), nil }
		sent.Body, _ = sent.GetBody()
	}
	resp, err := u.upstream.Next.RoundTrip(sent)
	if err != nil || resp.StatusCode == statusMiss { // a cassette that has no answer says nothing to keep
		return resp, err
	}
	x.answered(resp)
	resp.Body = &tape{recorder: u.recorder, recording: x, body: resp.Body}
	return resp, nil
}

// path is where a cassette is asked for what this upstream is asked for at p.
func (u *Upstream) path(p string) string {
	base, err := url.Parse(u.BaseURL)
	if err != nil {
		return p
	}
	rest, ok := strings.CutPrefix(p, strings.TrimRight(base.Path, "/"))
	switch {
	case !ok:
		return p
	case u.Format == wire.OpenAIChat: // whose base has the version
		return "/v1" + rest
	}
	return rest
}

// keep scrubs an exchange and writes it, or says why not.
func (r *Recorder) keep(x *recording) {
	r.turn.Lock()
	defer r.turn.Unlock()
	defer func() {
		if p := recover(); p != nil { // what is served must not end for what is recorded
			r.refuse(x, fmt.Errorf("it made the program panic: %v", p))
		}
	}()
	name, file, err := x.file(scrubber{chain: r.scrub, format: x.upstream.Format.At(x.path)})
	if err == nil {
		err = write(r.dir, name, file)
	}
	if err != nil {
		r.refuse(x, err)
	}
}

func (r *Recorder) refuse(x *recording, why error) {
	r.say(fmt.Sprintf("the recording of %s %s, upstream %s, is not written: %v", x.method, x.path, x.upstream.Name, why))
}
