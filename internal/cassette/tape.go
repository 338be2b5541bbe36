package cassette

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// recording is an exchange as it came.
type recording struct {
	id       string // by which recordings are in order of their requests
	began    time.Time
	upstream *Upstream

	method, path string
	asked        []byte // the request's body

	status   int
	header   string // the content type
	kind     string // the media type in it
	encoding string
	pieces   []piece
	size     int
	tooLong  bool // and so the pieces are not kept
	whole    bool // the body ended by itself, `last` after the last piece
	last     time.Duration
}

// The media types of models' answers.
const (
	eventStream = "text/event-stream"
	document    = "application/json"
)

// answered notes the head of an answer.
func (x *recording) answered(resp *http.Response) {
	x.status, x.header = resp.StatusCode, resp.Header.Get("Content-Type")
	x.kind, _, _ = mime.ParseMediaType(x.header)
	if x.encoding = strings.ToLower(resp.Header.Get("Content-Encoding")); x.encoding == "identity" {
		x.encoding = ""
	}
}

// tape is the body of an answer, heard as it is read.
type tape struct {
	recorder *Recorder
	body     io.ReadCloser

	mu        sync.Mutex // Close may come while a Read waits
	recording *recording
	at        time.Duration // of the last piece, in whole milliseconds since the request
	over      bool
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.heard(p[:n], err)
	return n, err
}

// Close ends the recording too: of a body that has more to say, as if it had
// broken off.
func (t *tape) Close() error {
	err := t.body.Close()
	t.heard(nil, errClosed)
	return err
}

// heard notes what a read gave.
func (t *tape) heard(p []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	x := t.recording
	if len(p) > 0 {
		t.add(p)
	}
	if err == nil {
		return
	}
	t.over = true
	if x.whole = err == io.EOF; x.whole {
		x.last = t.passed()
	}
	t.recorder.writing.Go(func() { t.recorder.keep(x) })
}

// add notes a piece. What comes at once of an answer that is not streamed is one
// piece, since who reads it decides how much that is.
func (t *tape) add(p []byte) {
	x := t.recording
	if x.size += len(p); x.tooLong || x.size > t.recorder.most {
		x.pieces, x.tooLong = nil, true
		return
	}
	after := t.passed()
	if n := len(x.pieces); n > 0 && after == 0 && x.kind != eventStream {
		x.pieces[n-1].data = append(x.pieces[n-1].data, p...)
		return
	}
	x.pieces = append(x.pieces, piece{after, append([]byte(nil), p...)})
}

// passed is the time since it was last asked, in whole milliseconds that add up.
func (t *tape) passed() time.Duration {
	now := time.Since(t.recording.began).Truncate(time.Millisecond)
	after := min(now-t.at, maxMS*time.Millisecond)
	t.at = now
	return after
}
