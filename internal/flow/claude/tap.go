package claude

import (
	"bytes"
	"encoding/json"
	"io"
)

// mostBody is how much of an answer that is no stream is read for what it says of
// itself, and how long a line of one may be.
const mostBody = 4 << 20

// tap reads an answer while it passes, and changes nothing.
type tap struct {
	gate   *gate
	body   io.ReadCloser
	stream bool
	id     string // of the message, once it is known
	line   []byte // what came of the current line, or of the whole body
	closed bool
}

// frame is what is read of an answer: a stream's event, a message, an error.
type frame struct {
	Type    string   `json:"type"`
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Usage   *usage   `json:"usage"`
	Message *message `json:"message"`
	Delta   struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`
	} `json:"delta"`
	Stoplog *struct {
		Status string `json:"status"`
		Guard  string `json:"guard"`
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
	} `json:"stoplog"`
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	if n > 0 {
		t.gate.active()
		t.take(p[:n])
	}
	if err != nil {
		t.end()
	}
	return n, err
}

func (t *tap) Close() error {
	t.end()
	return t.body.Close()
}

// take takes in some of the answer.
func (t *tap) take(p []byte) {
	for t.stream {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		t.keep(p[:i])
		if data, ok := bytes.CutPrefix(t.line, []byte("data:")); ok {
			t.read(data)
		}
		t.line, p = t.line[:0], p[i+1:]
	}
	t.keep(p)
}

func (t *tap) keep(p []byte) {
	t.line = append(t.line, p[:min(len(p), mostBody-len(t.line))]...)
}

// end reads what is no stream, once.
func (t *tap) end() {
	if t.closed {
		return
	}
	t.closed = true
	if !t.stream {
		t.read(t.line)
		t.gate.meter.settled(t.id)
	}
}

// read reads a frame. What is none says nothing: the guards have judged it.
func (t *tap) read(data []byte) {
	var f frame
	if json.Unmarshal(data, &f) != nil {
		return
	}
	m := t.gate.meter
	switch {
	case f.Type == "message_start" && f.Message != nil:
		t.served(*f.Message)
	case f.Type == "message":
		t.served(message{f.ID, f.Model, f.Usage})
	case f.Type == "content_block_delta":
		if t.gate.show != nil && f.Delta.Text != "" {
			t.gate.show("text", f.Delta.Text)
		}
		m.streamed(t.id, len(f.Delta.Text)+len(f.Delta.Thinking)+len(f.Delta.JSON))
	case f.Type == "message_delta" && f.Usage != nil:
		m.reported(t.id, *f.Usage)
		m.settled(t.id)
	}
	if f.Stoplog != nil {
		t.gate.stopped(Stopped{f.Stoplog.Status, f.Stoplog.Guard, f.Stoplog.Rule, f.Stoplog.Reason})
	}
}

// served notes who answers.
func (t *tap) served(m message) {
	if m.ID != "" {
		t.id = m.ID
	}
	t.gate.mu.Lock()
	note(&t.gate.seen.Served, m.Model)
	t.gate.mu.Unlock()
	if m.Usage != nil {
		t.gate.meter.reported(t.id, *m.Usage)
	}
}

// stopped notes what policy says of a call, if it says that it goes no further.
func (g *gate) stopped(s Stopped) {
	switch s.Status {
	case "completed", "redacted", "upstream_failed", "cancelled":
		return // no policy stopped it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen.Stopped == nil {
		g.seen.Stopped = &s
	}
}
