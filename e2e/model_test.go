package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// said is what a model says to one question: a call of a tool, a text in pieces,
// or a text that does not end.
type said struct {
	tool, args string
	pieces     []string
	endless    bool
}

// model is a model on loopback, in Anthropic's protocol, that was written: it says
// its turns, one a question, the last again and again.
type model struct {
	server *httptest.Server

	mu    sync.Mutex
	turns []said
	heard []string // the bodies of the questions
}

func newModel(t *testing.T, turns []said) *model {
	m := &model{turns: turns}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	m.mu.Lock()
	m.heard = append(m.heard, string(body))
	n, turn := len(m.heard), m.turns[0]
	if len(m.turns) > 1 {
		m.turns = m.turns[1:]
	}
	m.mu.Unlock()

	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, format string, args ...any) error {
		_, err := fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, fmt.Sprintf(format, args...))
		return err
	}
	event("message_start", `"message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`, n)
	if turn.endless {
		event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
		for event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"and so on and on and on "}`) == nil {
			http.NewResponseController(w).Flush()
		}
		return
	}
	if len(turn.pieces) > 0 {
		event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
		for _, piece := range turn.pieces {
			event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":%q}`, piece)
		}
		event("content_block_stop", `"index":0`)
		event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":10}`)
		io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		return
	}
	args, err := json.Marshal(turn.args)
	if err != nil {
		panic(err)
	}
	event("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}`, n, turn.tool)
	event("content_block_delta", `"index":0,"delta":{"type":"input_json_delta","partial_json":%s}`, args)
	event("content_block_stop", `"index":0`)
	event("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":10}`)
	io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// asked is how many questions came.
func (m *model) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.heard)
}

// neverHeard wants a text to be in no question.
func (m *model) neverHeard(t *testing.T, text string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.heard {
		if strings.Contains(q, text) {
			t.Errorf("the model was told %q", text)
		}
	}
}
