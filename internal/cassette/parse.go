package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stoplog/stoplog/internal/diag"
)

// The kinds of lines, each by the key that makes it one.
const (
	headerLine   = "cassette"
	requestLine  = "request"
	responseLine = "response"
	dataLine     = "data"
	base64Line   = "base64"
	endLine      = "end"
)

// kinds has the keys that a line of each kind may have.
var kinds = map[string][]string{
	headerLine:   {"cassette", "about", "source"},
	requestLine:  {"request", "repeat"},
	responseLine: {"response"},
	dataLine:     {"ms", "data"},
	base64Line:   {"ms", "base64"},
	endLine:      {"ms", "end"},
}

// next has what may follow a line of each kind. The end of an exchange may be
// missing.
var next = map[string][]string{
	headerLine:   {requestLine},
	requestLine:  {responseLine},
	responseLine: {dataLine, base64Line, endLine, requestLine},
	dataLine:     {dataLine, base64Line, endLine, requestLine},
	base64Line:   {dataLine, base64Line, endLine, requestLine},
	endLine:      {requestLine},
}

// parser reads files into exchanges and collects what is wrong with them.
type parser struct {
	exchanges []exchange
	list      diag.List

	file  string
	line  int
	wants []string // the kinds of lines that may come next
	lost  bool     // a line was out of its place: those up to the next request are skipped
}

func (p *parser) cassette() (*Cassette, error) {
	if err := p.list.Err(); err != nil {
		return nil, err
	}
	if len(p.exchanges) == 0 {
		return nil, errors.New("open cassette: no file is named")
	}
	return &Cassette{exchanges: p.exchanges, given: make([]int, len(p.exchanges))}, nil
}

func (p *parser) errorf(hint, format string, args ...any) { p.errorAt(1, hint, format, args...) }

func (p *parser) errorAt(col int, hint, format string, args ...any) {
	p.list = append(p.list, diag.Diagnostic{
		Span:    diag.Span{Pos: diag.Pos{File: p.file, Line: p.line, Col: col}},
		Message: fmt.Sprintf(format, args...),
		Hint:    hint,
	})
}

func (p *parser) parse(file string, data []byte) {
	p.file, p.line, p.wants, p.lost = file, 0, []string{headerLine}, false
	exchanges, mistakes := len(p.exchanges), len(p.list)
	for line := range bytes.Lines(data) {
		p.line++
		if len(bytes.TrimSpace(line)) > 0 {
			p.parseLine(line)
		}
	}
	p.line = max(p.line, 1)
	switch last := p.wants[0]; {
	case len(p.list) > mistakes: // of which this may be a consequence
	case last == headerLine || last == responseLine:
		p.errorf("", "the file ends where a line with %q must stand", last)
	case len(p.exchanges) == exchanges:
		p.errorf("", "the file has no exchange")
	}
}

func (p *parser) parseLine(line []byte) {
	if !utf8.Valid(line) {
		p.errorf("write such bytes as base64", "the line is not UTF-8")
		return
	}
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		col, reason := explain(line, err)
		p.errorAt(col, "", "not a JSON object: %s", reason)
		return
	}
	kind, ok := p.kind(o)
	if !ok || !p.inPlace(kind) {
		return
	}
	if err := p.read(kind, o, line); err != nil {
		p.errorf("", "%s", err)
	}
}

// kind says what a line is, by its keys, and reports keys that it cannot have.
func (p *parser) kind(o object) (string, bool) {
	var found []string
	for kind := range kinds {
		if _, ok := o[kind]; ok {
			found = append(found, kind)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		p.unknownKeys(o, "a line with "+quoted(found), kinds[found[0]])
		return found[0], true
	case 0:
		p.errorf("", "an unknown line: want one with %s", quoted(p.wants))
	default:
		p.errorf("", "a line has %s: want one of them", quoted(found))
	}
	return "", false
}

// inPlace says whether a line of this kind is to be read. Of lines that are out
// of place the first is reported; a request is where reading resumes.
func (p *parser) inPlace(kind string) bool {
	switch {
	case p.lost && kind != requestLine:
		return false
	case !p.lost && !slices.Contains(p.wants, kind):
		p.errorf("", "a line with %q is out of place: want one with %s", kind, quoted(p.wants))
		p.lost = kind != requestLine
		if p.lost {
			return false
		}
	}
	p.lost, p.wants = false, next[kind]
	return true
}

func (p *parser) unknownKeys(o object, where string, known []string) {
	for _, key := range o.keys() {
		if slices.Contains(known, key) {
			continue
		}
		hint := "the keys here are " + quoted(known)
		if near := diag.Suggest(key, known); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		p.errorf(hint, "unknown key %q in %s", key, where)
	}
}

// read reads a line that is in its place: there is an exchange that it belongs to
// or that it begins.
func (p *parser) read(kind string, o object, line []byte) error {
	switch kind {
	case headerLine:
		return readHeader(o)
	case requestLine:
		p.exchanges = append(p.exchanges, exchange{file: p.file, line: p.line})
		return p.readRequest(&p.exchanges[len(p.exchanges)-1], o)
	case responseLine:
		return p.readResponse(&p.exchanges[len(p.exchanges)-1], o)
	}
	return readPiece(&p.exchanges[len(p.exchanges)-1], kind, o, line)
}

func readHeader(o object) error {
	var version int
	var about, source string
	err := errors.Join(o.get("cassette", &version), o.get("about", &about), o.get("source", &source))
	switch {
	case err != nil:
		return err
	case version != 1:
		return fmt.Errorf(`"cassette" is %d: this program reads version 1`, version)
	case strings.TrimSpace(about) == "":
		return errors.New(`"about" is empty: say what the cassette shows`)
	case source != "written" && source != "recorded":
		return fmt.Errorf(`"source" is %q: want "written" or "recorded"`, source)
	}
	return nil
}

func (p *parser) readRequest(e *exchange, o object) error {
	var r object
	if err := errors.Join(o.get("request", &r), o.get("repeat", &e.repeat)); err != nil {
		return err
	}
	p.unknownKeys(r, "a request", []string{"method", "path", "match", "repeat"})
	if err := errors.Join(r.get("method", &e.method), r.get("path", &e.path), r.get("repeat", &e.repeat)); err != nil {
		return err
	}
	if e.method == "" || !strings.HasPrefix(e.path, "/") {
		return errors.New(`a request needs a "method", and a "path" that begins with /`)
	}
	raw, ok := r["match"]
	if !ok {
		return nil
	}
	v, err := decode(raw)
	if err != nil {
		return err
	}
	if _, ok := v.(map[string]any); !ok {
		return errors.New(`"match" must be an object`)
	}
	e.match, err = compile(v)
	return err
}

func (p *parser) readResponse(e *exchange, o object) error {
	var r object
	if err := o.get("response", &r); err != nil {
		return err
	}
	p.unknownKeys(r, "a response", []string{"status", "header"})
	var header map[string]string
	if err := r.get("status", &e.status); err != nil {
		return err
	}
	if r.get("header", &header) != nil {
		return errors.New(`"header" must be an object whose values are strings`)
	}
	if e.status < 200 || e.status > 599 {
		return fmt.Errorf(`"status" is %d: want 200 to 599`, e.status)
	}
	e.header = http.Header{}
	for name, value := range header {
		e.header.Set(name, value)
	}
	return nil
}

// maxMS is the longest that a piece may take: an hour.
const maxMS = 3_600_000

// readPiece reads a line of data, or the end.
func readPiece(e *exchange, kind string, o object, line []byte) error {
	var ms int
	if err := o.get("ms", &ms); err != nil {
		return err
	}
	if ms < 0 || ms > maxMS {
		return fmt.Errorf(`"ms" is %d: want 0 to %d`, ms, maxMS)
	}
	next := piece{after: time.Duration(ms) * time.Millisecond}
	switch kind {
	case dataLine:
		text, err := o.text("data", line)
		if err != nil {
			return err
		}
		next.data = []byte(text)
	case base64Line:
		if err := o.get("base64", &next.data); err != nil {
			return err
		}
	case endLine:
		if err := o.get("end", &e.whole); err != nil {
			return err
		}
		if !e.whole {
			return errors.New(`"end" must be true: leave the line out where the connection breaks`)
		}
	}
	if kind != endLine && len(next.data) == 0 {
		return fmt.Errorf("%q is empty", kind)
	}
	e.pieces = append(e.pieces, next)
	return nil
}
