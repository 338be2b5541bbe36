package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// file is an exchange as a cassette, with the name it is written under: scrubbed,
// and such that the very request it was recorded from is answered by it.
func (x *recording) file(s scrubber) (name string, file []byte, err error) {
	switch {
	case x.tooLong:
		return "", nil, fmt.Errorf("the answer has %d bytes, more than are kept", x.size)
	case x.encoding != "":
		return "", nil, fmt.Errorf("the answer came in Content-Encoding %q, and cannot be scrubbed so", x.encoding)
	case x.status < 300 && x.kind != eventStream && x.kind != document:
		// A model's words may be in it, cut in whatever way; the door refuses it too.
		return "", nil, fmt.Errorf("the answer is of type %q, and cannot be scrubbed", x.kind)
	}
	if err := s.ask(x.asked); err != nil {
		return "", nil, err
	}
	a, _, err := s.answer(x.kind, heard{pieces: x.pieces, whole: x.whole})
	if err != nil {
		return "", nil, err
	}
	model, match := "", map[string]any(nil)
	if s.request != nil {
		model = s.request.Model
		if match, err = question(x.asked, s.request.Doc); err != nil {
			return "", nil, fmt.Errorf("read the request: %w", err)
		}
	}
	name, file = x.name(model), x.encode(model, match, a)
	if err := s.left(x.kind, a, file); err != nil {
		return "", nil, err
	}
	return name, file, x.playable(name, file)
}

// playable says what is wrong with a recording that would not play.
func (x *recording) playable(name string, file []byte) error {
	c, err := Parse(name, file)
	if err != nil {
		return fmt.Errorf("it could not be read back: %w", err)
	}
	if e, nearest := c.take(x.method, x.path, x.asked); e == nil {
		return fmt.Errorf("it would not answer its own request: %s differs", nearest.differs)
	}
	return nil
}

// encode writes the file.
func (x *recording) encode(model string, match map[string]any, a heard) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	line := func(v any) {
		if err := e.Encode(v); err != nil {
			panic(err) // such values have a JSON form
		}
	}
	type request struct {
		Method string         `json:"method"`
		Path   string         `json:"path"`
		Match  map[string]any `json:"match,omitempty"`
	}
	type response struct {
		Status int               `json:"status"`
		Header map[string]string `json:"header"`
	}
	type data struct {
		MS     int64  `json:"ms"`
		Data   string `json:"data,omitempty"`
		Base64 []byte `json:"base64,omitempty"`
	}
	header := map[string]string{}
	if x.header != "" {
		header["content-type"] = x.header
	}
	line(struct {
		Version int    `json:"cassette"`
		About   string `json:"about"`
		Source  string `json:"source"`
	}{1, x.about(model), "recorded"})
	line(map[string]request{requestLine: {x.method, x.path, match}})
	line(map[string]response{responseLine: {x.status, header}})
	for _, p := range a.pieces {
		d := data{MS: p.after.Milliseconds()}
		if utf8.Valid(p.data) {
			d.Data = string(p.data)
		} else {
			d.Base64 = p.data
		}
		line(d)
	}
	if a.whole {
		line(struct {
			MS  int64 `json:"ms,omitempty"`
			End bool  `json:"end"`
		}{x.last.Milliseconds(), true})
	}
	return b.Bytes()
}

// about says, for people, what the recording is.
func (x *recording) about(model string) string {
	of := ""
	if model != "" {
		of = ", model " + model
	}
	if x.kind == eventStream {
		of += ", streamed"
	}
	return fmt.Sprintf("%s %s of the upstream %s%s: %d %s. Recorded %s.",
		x.method, x.path, x.upstream.Name, of, x.status, http.StatusText(x.status), x.began.UTC().Format(time.RFC3339))
}

// maxName is how much of a model's name a file's has.
const maxName = 64

// name is a file's name: in the order of the requests, and of no other request.
func (x *recording) name(model string) string {
	if model == "" {
		model = path.Base(x.path)
	}
	safe := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, model)
	return x.id + "-" + safe[:min(len(safe), maxName)] + ".cassette"
}

// unfinished is the pattern of a file's name while it is written. A glob for
// cassettes does not match it.
const unfinished = ".recording-*"

// write writes a file that only its owner may read, all of it or nothing.
func write(dir, name string, data []byte) error {
	f, err := os.CreateTemp(dir, unfinished) // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
