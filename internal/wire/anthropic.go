package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/sse"
)

var anthropicTables = loadTables("anthropic-messages.txt")

// AnthropicMessages is Anthropic's messages.
var AnthropicMessages = &Format{
	name:        "anthropic-messages",
	tables:      anthropicTables,
	dialect:     newAnthropicStream,
	body:        anthropicBody,
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

type anthropicBlock struct {
	prefix    string
	texts     map[string]*channel
	tool      string
	citations int
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
		d.kind = t.name
		return t, false, nil
	}
	d.kind = string(kind)
	return anthropicUnknown, false, nil
}

// anthropicUnknown is an event of a type that no table knows: whatever it says
// may go on in the next one.
var anthropicUnknown = func() *table {
	t := &table{name: "unknown", root: &node{kind: Deltas}}
	t.add([]string{"type", "enum", "type"})
	t.root.inherit()
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
	if len(f.event) == 0 { // clients choose by it
		raw := sse.AppendEvent(nil, d.kind, f.payload)
		if f.dataAt >= 0 {
			f.dataAt = bytes.Index(raw, f.payload)
		}
		f.raw, f.event = raw, []byte(d.kind)
		if f.dataAt >= 0 {
			f.payload = raw[f.dataAt : f.dataAt+len(f.payload)]
		}
	}
	l := s.lane(0)
	for _, lf := range leaves {
		if lf.token == '0' && lf.node != nil {
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

// screenFields screens what is no channel of a block.
func (d *anthropicStream) screenFields(s *Stream, f *frame, leaves []leaf) error {
	for _, lf := range leaves {
		switch lf.kind {
		case JSON, Opaque:
			continue
		case Text:
			if lf.token != '"' || d.inBlock(lf) {
				continue
			}
			lf.kind, lf.path = Unknown, lf.node.channel
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

func (d *anthropicStream) inBlock(lf leaf) bool {
	switch lf.node.channel {
	case "text", "thinking", "citation", "result":
		return true
	}
	return false
}

// block files what an event says about a block.
func (d *anthropicStream) block(s *Stream, f *frame, leaves []leaf) error {
	index := int64(-1)
	if i := find(leaves, "index"); i >= 0 {
		index, _ = count(f.payload[leaves[i].from:leaves[i].to])
	}
	l := s.lane(0)
	b := d.blocks[index]
	if b == nil || d.kind == "content_block_start" {
		if len(d.blocks) == maxSeen*8 {
			return &errRefused{what: "the answer has too many blocks"}
		}
		b = &anthropicBlock{prefix: d.prefix(index), texts: map[string]*channel{}}
		d.blocks[index] = b
	}
	if d.kind == "content_block_stop" {
		s.closeLane(0)
		return nil
	}
	if i := find(leaves, "call-name"); i >= 0 && leaves[i].token == '"' {
		b.tool = string(s.content(f.payload, leaves[i]))
	}
	return d.leaves(s, l, b, f, leaves)
}

// other files what an event says that no table knows.
func (d *anthropicStream) other(s *Stream, f *frame, leaves []leaf) error {
	b := d.others[d.kind]
	if b == nil {
		if len(d.others) == maxSeen {
			return &errRefused{what: "the answer has too many types of events that are not known"}
		}
		b = &anthropicBlock{prefix: "event/" + strconv.Itoa(len(d.others)) + "/", texts: map[string]*channel{}}
		d.others[d.kind] = b
	}
	return d.leaves(s, s.lane(0), b, f, leaves)
}

func (d *anthropicStream) leaves(s *Stream, l *lane, b *anthropicBlock, f *frame, leaves []leaf) error {
	for _, lf := range leaves {
		if err := d.leaf(s, l, b, f, lf); err != nil {
			return err
		}
	}
	f.apart = d.kind == "content_block_delta" && !slices.ContainsFunc(leaves, func(l leaf) bool {
		return l.kind == Unknown || l.kind == JSON || l.kind == Text && l.node.channel == "citation"
	})
	return nil
}

// prefix is the start of the names of a block's channels.
func (d *anthropicStream) prefix(index int64) string {
	p := "block/" + strconv.FormatInt(index, 10) + "/"
	if d.message > 1 {
		p = "message/" + strconv.Itoa(d.message-1) + "/" + p
	}
	return p
}

// leaf files one text of a block.
func (d *anthropicStream) leaf(s *Stream, l *lane, b *anthropicBlock, f *frame, lf leaf) error {
	switch {
	case lf.kind == Opaque && lf.node.channel == "signature":
		d.signature(s, b, f, lf)
		return nil
	case lf.kind == JSON && (lf.token == '"' || lf.token == '{'):
	case lf.kind == Text && lf.token == '"' && d.inBlock(lf):
	case lf.kind == Unknown && lf.token == '"' && lf.stream:
	default:
		return nil
	}
	role := lf.path
	if lf.node != nil {
		role = lf.node.channel
	}
	text := s.said(f.payload, lf)
	p := piece{at: lf.from + 1, end: lf.to - 1}
	if lf.token == '{' {
		p.at, p.end, p.bare = lf.from, lf.to, true
		if d.kind == "content_block_start" && len(bytes.TrimSpace(text[1:len(text)-1])) == 0 {
			text, p.end = nil, p.at // stands for what the deltas will say
		}
	}
	once := role == "citation" || role == "result"
	ch := b.texts[role]
	if ch == nil || once {
		if len(text) == 0 && lf.kind != JSON {
			return nil // has said nothing so far
		}
		ch = d.channel(s, b, role, lf)
		s.begin(l, ch)
	}
	p, err := s.write(l, ch, p, text)
	if err != nil {
		return err
	}
	f.pieces = append(f.pieces, p)
	if once {
		s.closeLane(0)
	}
	return nil
}

// signature ties a frame to the thinking that it signs. A signature in the
// frame that begins a block goes alone: the block is there all the same.
func (d *anthropicStream) signature(s *Stream, b *anthropicBlock, f *frame, lf leaf) {
	if th := b.texts["thinking"]; th != nil && lf.to-lf.from > len(`""`) {
		s.closeLane(0)
		f.signs = th
		if d.kind == "content_block_start" {
			f.signature = span{lf.from, lf.to}
		}
	}
}

// channel opens a channel of a block.
func (d *anthropicStream) channel(s *Stream, b *anthropicBlock, role string, lf leaf) *channel {
	name, kind := b.prefix+role, guard.Text
	switch {
	case lf.node == nil:
		name = b.prefix + "unknown/" + strconv.Itoa(len(b.texts))
	case role == "thinking":
		kind = guard.Reasoning
	case role == "input":
		kind = guard.ToolArgs
	case role == "result":
		kind = guard.ToolResult
	case role == "citation":
		name, kind = b.prefix+"citation/"+strconv.Itoa(b.citations), guard.Document
		b.citations++
	}
	ch := s.channel(name, kind, "assistant", b.tool)
	ch.whole = ch.whole || kind == guard.Document // half a quotation is none
	b.texts[role] = ch
	return ch
}

func (d *anthropicStream) leave(s *Stream, f *frame) {
	var member []byte
	if o := s.Outcome(); string(f.event) == "message_delta" && o.Status != Allowed {
		member = appendStoplog(nil, s.opt.Run, o)
	}
	s.emit(f, member)
}

func (d *anthropicStream) sent(f *frame) {
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
	o := s.Outcome()
	delta := fmt.Appendf(nil, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":%d}}`, o.Usage.Output)
	s.out = sse.AppendEvent(s.out, "message_delta", withMember(delta, appendStoplog(nil, s.opt.Run, o)))
	s.out = sse.AppendEvent(s.out, "message_stop", []byte(`{"type":"message_stop"}`))
}

func (d *anthropicStream) fail(s *Stream, reason string) {
	o := s.Outcome()
	s.out = sse.AppendEvent(s.out, "error", appendAnthropicError(nil, Error{Message: reason, Type: anthropicFailType(o), Run: s.opt.Run, Outcome: &o}))
}

// upstreamError passes on an error that the upstream sent in place of an event.
func (d *anthropicStream) upstreamError(s *Stream, f *frame) error {
	s.outcome.failed("the upstream ended the answer with an error")
	s.closeAll()
	s.flush()
	s.ended = true
	if s.allStopped() {
		d.end(s)
		return nil
	}
	s.emit(f, appendStoplog(nil, s.opt.Run, s.Outcome()))
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
