package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

var responsesTables = loadTables("openai-responses.txt")

// OpenAIResponses is OpenAI's responses, as OpenAI and others speak it.
var OpenAIResponses = &Format{
	name:        "openai-responses",
	tables:      responsesTables,
	dialect:     newResponsesStream,
	answer:      "response",
	body:        responsesBody,
	appendError: appendOpenAIError,
}

// responsesStream is the stream of a response's events. Its one lane is the
// response; each text of an item is a channel.
//
//	response.created
//	response.output_item.added        an item, as far as it is known
//	response.content_part.added       a part of a message
//	response.output_text.delta …      what a text says next
//	response.output_text.done         what it said: a copy
//	response.content_part.done        a copy
//	response.output_item.done         a copy
//	response.completed                all items again: a copy
//
// A copy that repeats what came becomes what has left. One that goes on with it
// adds to the channel, since some upstreams send no deltas; one that says
// something else is a text of its own.
type responsesStream struct {
	response int    // responses begun; a stream may hold several in a row
	open     bool   // one is under way
	failed   bool   // the upstream said so
	kind     string // of the event being read
	known    bool   // a table knows it
	id       []byte // of the response, as it is written
	created  []byte
	model    []byte
	items    []*responsesItem // in the order in which they came
	byIndex  map[int64]*responsesItem
	others   map[string]*responsesItem // of events of types that no table knows
	shift    int64                     // what is added to the upstream's sequence numbers
	next     int64                     // the next one that the client is sent
	expect   int64                     // the next one of the upstream
	numbered bool                      // it gives some
	done     bool                      // the end mark that some upstreams send was seen
	again    scanner
}

func newResponsesStream() dialect {
	return &responsesStream{byIndex: map[int64]*responsesItem{}, others: map[string]*responsesItem{}}
}

// about is what a frame of a response is about.
type about struct {
	kind      string // its type
	item      *responsesItem
	part      partKey
	response  span // the whole of it
	items     span // and the items in it
	sequence  span // its number
	number    int64
	logprobs  []copied
	positions []position
}

// A partKey is a part of an item: a content or a summary, by its number.
type partKey struct {
	list string
	n    int32
}

// copied is a place that repeats a channel's text.
type copied struct {
	at span
	ch *channel
}

// position is a number that counts runes of a channel's text.
type position struct {
	at  span
	n   int64
	end bool
	ch  *channel
}

func (d *responsesStream) complete() bool { return d.response > 0 && !d.open }

func (d *responsesStream) table(payload, event []byte) (*table, bool, error) {
	if bytes.Equal(bytes.TrimSpace(payload), openaiDone) {
		d.done = d.complete()
		return nil, d.done, d.early()
	}
	kind := payloadType(payload)
	if len(event) > 0 && !bytes.Equal(event, kind) {
		return nil, false, &errRefused{what: "an event of the answer has another name than its type"}
	}
	if d.kind != string(kind) { // the same as before, mostly
		d.kind = string(kind)
	}
	t := responsesTables[d.kind]
	if d.known = t != nil && t.root.members["type"] != nil && t.root.members["type"].channel == "type"; !d.known {
		t = responsesUnknown
	}
	return t, false, nil
}

// early is the error of an end mark, which some upstreams send, before the end.
func (d *responsesStream) early() error {
	if d.complete() {
		return nil
	}
	return &errRefused{what: "the answer ended before its response did"}
}

// responsesUnknown is an event of a type that no table knows: whatever it says
// may go on in the next one.
var responsesUnknown = func() *table {
	t := &table{names: []string{"unknown"}, root: &node{kind: Deltas}}
	t.add([]string{"type", "enum", "type"}, "")
	t.add([]string{"sequence_number", "number", "sequence"}, "")
	t.add([]string{"output_index", "number", "output-index"}, "")
	t.inherit()
	return t
}()

// ends are the events that end a response.
var ends = []string{"response.completed", "response.incomplete", "response.failed", "response.cancelled"}

func (d *responsesStream) read(s *Stream, f *frame, leaves []leaf) error {
	if len(f.event) == 0 {
		nameEvent(f, d.kind)
	}
	l := s.lane(0)
	for i := range leaves {
		if lf := &leaves[i]; lf.token == '0' && lf.node != nil {
			s.outcome.count(lf.node.channel, f.payload[lf.from:lf.to])
		}
	}
	ended := slices.Contains(ends, d.kind) || d.kind == "error"
	if l.stop {
		d.open = d.open && !ended
		s.release(f)
		return nil
	}
	if d.kind == "response.created" || d.response == 0 {
		d.begin(s)
	}
	d.note(f, leaves)
	if err := d.screenFields(s, f, leaves); err != nil {
		return err
	}
	d.expect = f.about.number + 1
	if err := d.texts(s, l, f, leaves); err != nil {
		return err
	}
	if ended {
		d.finish(s, l)
	}
	if d.kind == "error" || d.kind == "response.failed" {
		return d.upstreamError(s, f)
	}
	s.queue(f, 0)
	return nil
}

// begin begins a response.
func (d *responsesStream) begin(s *Stream) {
	s.closeLane(0)
	s.outcome.nextMessage()
	d.items, d.id, d.shift, d.next = nil, nil, 0, 0
	clear(d.byIndex)
	d.open = true
	d.response++
}

// finish ends the texts of a response, and lets its calls go.
func (d *responsesStream) finish(s *Stream, l *lane) {
	s.closeLane(0)
	d.stopGates(l)
	for _, it := range d.items {
		if it.gate != nil && !l.stop {
			d.letGo(s, l, it)
		}
	}
	d.stopGates(l)
	d.open = false
}

// stopGates withholds the calls that a stop is in, or has left incomplete.
func (d *responsesStream) stopGates(l *lane) {
	if !l.stop {
		return
	}
	for _, it := range d.items {
		if it.gate == nil || it.gate.stop != nil {
			continue
		}
		if !it.gate.closed {
			it.gate.stop = &guard.Stop{}
		}
		for _, c := range it.said {
			if c.stop != nil {
				it.gate.stop = c.stop
			}
		}
	}
}

// note notes what a frame is about, and what our own events are to repeat.
func (d *responsesStream) note(f *frame, leaves []leaf) {
	if f.about == nil {
		f.about = &about{}
	}
	a := f.about
	*a = about{kind: d.kind, positions: a.positions[:0], logprobs: a.logprobs[:0]}
	f.atomic = !strings.HasSuffix(d.kind, ".delta")
	for i := range leaves {
		lf := &leaves[i]
		if lf.node == nil || lf.token == 'n' {
			continue
		}
		at := span{lf.from, lf.to}
		switch lf.node.channel {
		case "sequence":
			if n, ok := count(f.payload[lf.from:lf.to]); ok {
				a.sequence, a.number, d.numbered = at, n, true
			}
		case "obfuscation":
			f.padding = at
		case "response":
			a.response = at
		case "items":
			a.items = at
		case "response-id":
			d.id = slices.Clone(f.payload[lf.from:lf.to])
		case "created":
			d.created = slices.Clone(f.payload[lf.from:lf.to])
		case "model":
			d.model = slices.Clone(f.payload[lf.from:lf.to])
		}
	}
}

// screenFields screens what is no text of an item.
func (d *responsesStream) screenFields(s *Stream, f *frame, leaves []leaf) error {
	for i := range leaves {
		lf := &leaves[i]
		switch lf.kind {
		case Opaque, Copy, Alt, Bytes:
			continue
		case Text, JSON:
			if lf.node.channel != "" || lf.token != '"' {
				continue
			}
			lf = lf.unknown()
		case Unknown:
			if lf.stream && lf.token == '"' {
				continue
			}
		case Number:
			if a := f.about; lf.from == a.sequence.from && a.number == d.expect && a.number > 0 {
				continue // it says nothing that the one before did not
			}
		}
		if err := s.field(f, lf); err != nil {
			return err
		}
	}
	return nil
}

// upstreamError passes on an event by which the upstream says that it failed.
// One may follow another.
func (d *responsesStream) upstreamError(s *Stream, f *frame) error {
	s.outcome.failed("the upstream ended the answer with an error")
	d.failed = true
	s.closeAll()
	s.lane(0).abandon()
	s.flush()
	if s.allStopped() {
		s.release(f)
		return nil
	}
	if s.lane(0).ended && d.kind == "response.failed" { // a call of it was withheld
		f.pieces = f.pieces[:0]
		f.splices = append(f.splices, splice{f.about.items.from, f.about.items.to, d.output()})
	}
	d.leave(s, f)
	return nil
}

func (d *responsesStream) fail(s *Stream, reason string) {
	if d.failed {
		return // the client was told
	}
	o := s.Outcome()
	doc := []byte(`{"type":"error"` + d.numberMember() + `,"code":`)
	doc = append(quote(doc, string(o.Status)), `,"message":`...)
	doc = append(quote(doc, reason), `,"param":null,`...)
	body := appendOpenAIError(nil, Error{Message: reason, Type: failType(o), Code: string(o.Status), Run: s.opt.Run, Outcome: &o})
	d.write(s, "error", append(doc, body[1:]...))
}

// numberMember is the sequence number of an event of our own.
func (d *responsesStream) numberMember() string {
	if !d.numbered && d.next > 0 {
		return ""
	}
	d.next++
	return fmt.Sprintf(`,"sequence_number":%d`, d.next-1)
}

// prefix is the start of the names of an item's channels.
func (d *responsesStream) prefix(kind string, n int) string {
	p := kind + "/" + strconv.Itoa(n) + "/"
	if d.response > 1 {
		p = "response/" + strconv.Itoa(d.response-1) + "/" + p
	}
	return p
}
