package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"

	"github.com/stoplog/stoplog/internal/sse"
)

// An answer is what a client without any SDK understands of one.
type answer struct {
	Text    string         `json:"text"`
	Finish  string         `json:"finish_reason"`
	Stoplog map[string]any `json:"stoplog"` // null where nothing was to be said
	Error   string         `json:"error,omitempty"`

	released func(text string)
}

// status is the outcome that the answer names.
func (a answer) status() string {
	s, _ := a.Stoplog["status"].(string)
	return s
}

// same reports whether two answers say the same, and the same was said about
// them; they are two runs.
func (a answer) same(b answer) bool {
	without := func(m map[string]any) map[string]any {
		out := map[string]any{}
		for k, v := range m {
			if k != "run" {
				out[k] = v
			}
		}
		return out
	}
	return a.Text == b.Text && a.Finish == b.Finish && reflect.DeepEqual(without(a.Stoplog), without(b.Stoplog))
}

// chunk is a chunk of a stream, or an answer in one piece.
type chunk struct {
	Choices []struct {
		Delta, Message struct {
			Content string `json:"content"`
		}
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Stoplog map[string]any `json:"stoplog"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// read reads an answer to its end.
func (a *answer) read(resp *http.Response) error {
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		return a.take(body)
	}
	for f, err := range sse.Scan(resp.Body, 0) {
		if err != nil {
			return err
		}
		if f.Data == nil || bytes.Equal(f.Data, []byte("[DONE]")) {
			continue
		}
		if err := a.take(f.Data); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) take(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	for _, ch := range c.Choices {
		text := ch.Delta.Content + ch.Message.Content
		a.Text += text
		if text != "" && a.released != nil {
			a.released(text)
		}
		if ch.Finish != "" {
			a.Finish = ch.Finish
		}
	}
	if c.Stoplog != nil {
		a.Stoplog = c.Stoplog
	}
	if c.Error != nil {
		a.Error = c.Error.Message
	}
	return nil
}
