// Package cassette is an upstream on disk: provider exchanges that were recorded
// or written, replayed to whoever asks as the provider would be asked.
//
//	*.cassette ─► Parse ─► exchanges ─┐
//	                                  ├─ the first that matches and is free ─► its pieces
//	request ──────────────────────────┘  none: status 599, and what was nearest
//
// A [Cassette] is an http.RoundTripper and stands below everything that governs:
// to the rest of the program it is a provider. A [Recorder] stands in the same
// place, before a provider, and writes what passes:
//
//	request ──┬──────────► provider
//	answer ◄──┼─ as it comes ──┘
//	          └─ once it has ended ─► scrub ─► nothing is found in it,  ─► NAME.cassette
//	                                           and it answers its request
//
// # The file
//
// JSON, one value a line:
//
//	{"cassette":1,"about":"…","source":"written"}
//	{"request":{"method":"POST","path":"/v1/messages","match":{"model":"m"}},"repeat":true}
//	{"response":{"status":200,"header":{"content-type":"text/event-stream"}}}
//	{"ms":40,"data":"event: ping\n"}
//	{"base64":"…"}
//	{"end":true}
//
// and so on, from request to end, for each exchange. Blank lines are skipped.
// Data is UTF-8, base64 any bytes; a piece is what one read of the body gives. A
// piece comes `ms` milliseconds after the one before it. An exchange without an
// end is one whose connection breaks there. `repeat` may also stand inside the
// request.
//
// `match` is a part of the request's JSON body: an object matches one that has
// its members and perhaps more, an array one of the same length, and
// {"$has":"text"} a string that contains the text. Without it any body matches.
//
// # Laws
//
// Nothing in a file is passed over: an unknown key, a line out of its place,
// data that is not UTF-8 is an error with its line, and all of them are reported.
//
// The first exchange in the order of the files that matches and is free wins. An
// exchange is free until it was given out, and for ever if it says so.
//
// What is replayed is a function of the files and of the requests in their order:
// there is no clock but the pace that was asked for.
//
// Recording changes no answer and delays none, whatever becomes of the recording;
// what is not written is said.
//
// A recording holds no more than was scrubbed: a file in which the scrubbing
// chain would still find something is not written. Where it finds nothing the
// answer's bytes are those that came, in the pieces in which they came. (What a
// provider encrypts or signs, and what package wire therefore calls opaque, is in
// it as it came; what a request has in base64 is left out.)
//
// A recording answers the request from which it was made, whose secrets its
// `match` does not ask for. Of a request only the model, the stream, the system
// prompt and the messages are asked for, as far as they are in it: one that says
// nothing of a stream is told from one that asks for it by their order alone.
package cassette

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Cassette replays exchanges. It is safe for use by several goroutines.
type Cassette struct {
	// Pace says whether a body's pieces come when they did (or were written to),
	// or as fast as they are read. It is set before the first request.
	Pace Pace

	exchanges []exchange
	mu        sync.Mutex
	given     []int // how often each exchange was given out
}

// Pace is how fast bodies are replayed.
type Pace uint8

const (
	None Pace = iota // as fast as they are read
	Real             // piece by piece, each after its time
)

// ParsePace reads the word for a pace: none or real.
func ParsePace(s string) (Pace, error) {
	switch s {
	case "none":
		return None, nil
	case "real":
		return Real, nil
	}
	return None, fmt.Errorf("unknown pace %q: want none or real", s)
}

// exchange is one request and its answer.
type exchange struct {
	file   string
	line   int // of its request
	method string
	path   string
	match  pattern // nil: any body
	repeat bool
	status int
	header http.Header
	pieces []piece
	whole  bool // there is an end
}

// String names the exchange by its place in the file.
func (e *exchange) String() string {
	return fmt.Sprintf("%s:%d %s %s", e.file, e.line, e.method, e.path)
}

// piece is what one read of a body gives.
type piece struct {
	after time.Duration // since the piece before it
	data  []byte        // empty in the last one, if the end has a time of its own
}

// Open reads the files as one cassette, in their order. What is wrong in any of
// them is reported, as by [Parse]; a file that cannot be read is an error of its
// own.
func Open(files ...string) (*Cassette, error) {
	p := &parser{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("open cassette: %w", err)
		}
		p.parse(file, data)
	}
	return p.cassette()
}

// OpenFS is [Open] for files of a file system.
func OpenFS(fsys fs.FS, files ...string) (*Cassette, error) {
	p := &parser{}
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, fmt.Errorf("open cassette: %w", err)
		}
		p.parse(file, data)
	}
	return p.cassette()
}

// Parse reads data as a cassette; file stands in diagnostics. Its error is a
// diag.List.
func Parse(file string, data []byte) (*Cassette, error) {
	p := &parser{}
	p.parse(file, data)
	return p.cassette()
}

// Unused names the exchanges that were never given out, as FILE:LINE METHOD PATH.
func (c *Cassette) Unused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unused []string
	for i := range c.exchanges {
		if c.given[i] == 0 {
			unused = append(unused, c.exchanges[i].String())
		}
	}
	return unused
}

// take gives the first free exchange that matches, or what there is to say of
// the nearest.
func (c *Cassette) take(method, path string, body []byte) (*exchange, miss) {
	asked := decodeBody(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	var misses []miss
	for i := range c.exchanges {
		e := &c.exchanges[i]
		m := e.compare(method, path, asked)
		if m.differs == "" && c.given[i] > 0 && !e.repeat {
			m.differs = used
		}
		if m.differs == "" {
			c.given[i]++
			return e, miss{}
		}
		misses = append(misses, m)
	}
	return nil, slices.MaxFunc(misses, nearer) // a cassette has an exchange
}
