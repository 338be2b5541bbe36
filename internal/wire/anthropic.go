package wire

import (
	"bytes"
	"fmt"

	"github.com/stoplog/stoplog/internal/sse"
)

var anthropicTables = loadTables("anthropic-messages.txt")

// AnthropicMessages is Anthropic's messages.
var AnthropicMessages = &Format{
	name:        "anthropic-messages",
	tables:      anthropicTables,
	dialect:     newAnthropicStream,
	answer:      "message",
	body:        anthropicBody,
	appendError: appendAnthropicError,
}

// AnthropicCountTokens is the counting of a message's tokens before it is sent.
var AnthropicCountTokens = &Format{
	name:        "anthropic-count-tokens",
	tables:      anthropicTables,
	answer:      "count",
	body:        plainBody,
	appendError: appendAnthropicError,
}

// anthropicStream is the stream of a message's events. Its one lane is the
// message; a block is a channel, or several where it says several things.
type anthropicStream struct {
	message int // messages started; a stream may hold several in a row
	open    bool
	blocks  map[int64]*anthropicBlock
	current int64                      // the block that is being sent to the client, -1 if none
	kind    string                     // of the event being read
	others  map[string]*anthropicBlock // of events of types that no table knows
}

func newAnthropicStream() dialect {
	return &anthropicStream{current: -1, blocks: map[int64]*anthropicBlock{}, others: map[string]*anthropicBlock{}}
}

func (d *anthropicStream) complete() bool { return d.message > 0 && !d.open }

// table chooses by the type that the payload names. A payload of a type that
// is not known is judged like a delta's field that is not.
func (d *anthropicStream) table(payload, event []byte) (*table, bool, error) {
	kind := payloadType(payload)
	if len(event) > 0 && !bytes.Equal(event, kind) {
		return nil, false, &errRefused{what: "an event of the answer has another name than its type"}
	}
	if t := anthropicTables[string(kind)]; t != nil && t.root.members["type"] != nil && t != anthropicTables["message"] {
		d.kind = t.names[0]
		return t, false, nil
	}
	d.kind = string(kind)
	return anthropicUnknown, false, nil
}

// anthropicUnknown is an event of a type that no table knows: whatever it says
// may go on in the next one.
var anthropicUnknown = func() *table {
	t := &table{names: []string{"unknown"}, root: &node{kind: Deltas}}
	t.add([]string{"type", "enum", "type"}, "")
	t.inherit()
	return t
}()

// payloadType is the value of a payload's member type, empty if it has none. Of
// a payload that is no document it may be anything: that is found out later.
func payloadType(payload []byte) []byte {
	if rest, ok := bytes.CutPrefix(payload, []byte(`{"type":"`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`"`)); ok && bytes.IndexByte(name, '\\') < 0 {
			return name
		}
	}
	var s scanner
	leaves, err := s.scan(payload, anthropicTables["ping"].root)
	if err != nil {
		return nil
	}
	if i := find(leaves, "type"); i >= 0 && leaves[i].token == '"' {
		return unescape(nil, payload[leaves[i].from+1:leaves[i].to-1])
	}
	return nil
}

func (d *anthropicStream) read(s *Stream, f *frame, leaves []leaf) error {
	if len(f.event) == 0 {
		nameEvent(f, d.kind)
	}
	l := s.lane(0)
	if d.kind == "message_start" {
		s.outcome.nextMessage()
	}
	for i := range leaves {
		if lf := &leaves[i]; lf.token == '0' && lf.kind == Number {
			s.outcome.count(lf.node.channel, f.payload[lf.from:lf.to])
		}
	}
	if l.stop {
		d.open = d.open && d.kind != "message_stop"
		s.release(f)
		return nil
	}
	if d.kind == "message_start" {
		s.closeLane(0)
		clear(d.blocks)
		d.open = true
		d.message++
	}
	if err := d.screenFields(s, f, leaves); err != nil {
		return err
	}
	if l.stop { // what the new message closed
		s.release(f)
		return nil
	}
	switch d.kind {
	case "ping":
		s.emit(f, nil) // says nothing, and keeps the connection
		return nil
	case "error":
		return d.upstreamError(s, f)
	case "content_block_start", "content_block_delta", "content_block_stop":
		if err := d.block(s, f, leaves); err != nil {
			return err
		}
	case "message_start":
	case "message_delta", "message_stop":
		s.closeLane(0)
		d.open = d.open && d.kind != "message_stop"
	default:
		if err := d.other(s, f, leaves); err != nil {
			return err
		}
	}
	s.queue(f, 0)
	return nil
}

// nameEvent adds the event: line that clients choose by.
func nameEvent(f *frame, kind string) {
	f.raw, f.event = sse.AppendEvent(nil, kind, f.payload), []byte(kind)
	if f.dataAt >= 0 {
		f.dataAt = bytes.Index(f.raw, f.payload)
		f.payload = f.raw[f.dataAt : f.dataAt+len(f.payload)]
	}
}

// screenFields screens what is no channel of a block.
func (d *anthropicStream) screenFields(s *Stream, f *frame, leaves []leaf) error {
	for i := range leaves {
		lf := &leaves[i]
		switch lf.kind {
		case JSON, Opaque:
			continue
		case Text:
			if lf.token != '"' || inBlock(lf) {
				continue
			}
			lf = lf.unknown()
		case Unknown:
			if lf.stream && lf.token == '"' {
				continue
			}
		}
		if err := s.field(f, lf); err != nil {
			return err
		}
	}
	return nil
}

// inBlock reports whether a text is one of a block's.
func inBlock(l *leaf) bool {
	switch l.node.channel {
	case "text", "thinking", "citation", "result":
		return true
	}
	return false
}

func (d *anthropicStream) leave(s *Stream, f *frame) {
	var member []byte
	if string(f.event) == "message_delta" {
		member = s.told()
	}
	s.emit(f, member)
}

func (d *anthropicStream) cut(*frame) {}

func (d *anthropicStream) sent(f *frame, part bool) {
	if part {
		return
	}
	switch string(f.event) {
	case "content_block_start":
		d.current = blockIndex(f)
	case "content_block_stop":
		d.current = -1
	}
}

// blockIndex reads the index of a frame again: frames leave later than they
// are read.
func blockIndex(f *frame) int64 {
	var sc scanner
	leaves, err := sc.scan(f.payload, anthropicTables["content_block_stop"].root)
	if err != nil {
		return -1
	}
	if i := find(leaves, "index"); i >= 0 {
		n, _ := count(f.payload[leaves[i].from:leaves[i].to])
		return n
	}
	return -1
}

func (d *anthropicStream) stopLane(s *Stream, _ int) { d.closeBlock(s) }

// closeBlock ends the block that the client is in.
func (d *anthropicStream) closeBlock(s *Stream) {
	if d.current >= 0 {
		s.out = sse.AppendEvent(s.out, "content_block_stop", fmt.Appendf(nil, `{"type":"content_block_stop","index":%d}`, d.current))
		d.current = -1
	}
}

func (d *anthropicStream) end(s *Stream) {
	if !s.lane(0).ended {
		return // what came was the end
	}
	d.finish(s, "refusal")
}

func (d *anthropicStream) fail(s *Stream, reason string) {
	o := s.Outcome()
	s.out = sse.AppendEvent(s.out, "error", appendAnthropicError(nil, Error{Message: reason, Type: anthropicFailType(o), Run: s.opt.Run, Outcome: &o}))
}

// upstreamError passes on an error that the upstream sent in place of an event.
func (d *anthropicStream) upstreamError(s *Stream, f *frame) error {
	s.outcome.failed("the upstream ended the answer with an error")
	s.decide(true)
	if s.allStopped() {
		d.end(s)
		return nil
	}
	s.emit(f, s.told())
	return nil
}

func anthropicFailType(o Outcome) string {
	if o.Status == UpstreamFailed {
		return "api_error"
	}
	return "invalid_request_error"
}

// appendAnthropicError appends an error body: type error, error {type, message}.
func appendAnthropicError(dst []byte, e Error) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = quote(dst, e.Message)
	dst = append(dst, '}')
	if e.Outcome != nil {
		dst = appendStoplog(append(dst, ','), e.Run, *e.Outcome)
	}
	return append(dst, '}')
}
