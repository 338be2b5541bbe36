package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/sse"
)

var openaiTables = loadTables("openai-chat.txt")

// OpenAIChat is OpenAI's chat completions, as OpenAI and others speak it.
var OpenAIChat = &Format{
	name:        "openai-chat",
	tables:      openaiTables,
	dialect:     func() dialect { return &openaiStream{} },
	body:        openaiBody,
	appendError: appendOpenAIError,
}

// maxChoices bounds the answers of one stream.
const maxChoices = 128

var openaiDone = []byte("[DONE]")

// openaiStream is the stream of chat completion chunks. A lane is a choice.
// What ends the answer (the last finish_reason, the usage, [DONE]) waits until
// all is known, since the last chunk says what happened.
type openaiStream struct {
	id, created, model []byte // as written in the first chunk
	choices            []*openaiChoice
	finished           int
	last               *frame // nothing but the end can follow it
	usage              *frame // the chunk that carries nothing else
	done               bool
	split              scanner
}

type openaiChoice struct {
	index    int64
	texts    map[string]*channel // by the role of their field, or by path
	calls    map[int64]*channel
	finished bool
}

func (d *openaiStream) complete() bool { return d.done }

func (d *openaiStream) table(payload, _ []byte) (*table, bool, error) {
	if bytes.Equal(bytes.TrimSpace(payload), openaiDone) {
		d.done = true
		return nil, true, nil
	}
	return openaiTables["chunk"], false, nil
}

func (d *openaiStream) read(s *Stream, f *frame, leaves []leaf) error {
	if choices := elements(leaves, "choice"); len(choices) > 1 {
		return d.readEach(s, f, leaves, choices)
	}
	lane := -1
	if i := find(leaves, "choice"); i >= 0 {
		var err error
		if lane, err = d.lane(s, f.payload, leaves); err != nil {
			return err
		}
	}
	if lane >= 0 && s.lanes[lane].stop {
		d.count(s, f, leaves)
		s.release(f)
		return nil
	}
	if err := d.screenFields(s, f, leaves); err != nil {
		return err
	}
	if i := find(leaves, "error"); i >= 0 {
		return d.upstreamError(s, f)
	}
	d.count(s, f, leaves)
	if lane < 0 {
		if find(leaves, "usage") >= 0 {
			d.usage = f
			f.own()
			return nil
		}
		s.queue(f, -1)
		return nil
	}
	if err := d.texts(s, f, leaves, lane); err != nil {
		return err
	}
	s.queue(f, lane)
	return nil
}

// readEach reads a chunk of several choices as one chunk for each.
func (d *openaiStream) readEach(s *Stream, f *frame, leaves []leaf, choices []span) error {
	array := leaves[find(leaves, "choices")]
	doc := slices.Clone(f.payload)
	event := string(f.event)
	s.release(f)
	for _, c := range choices {
		payload := slices.Concat(doc[:array.from], []byte("["), doc[c.from:c.to], []byte("]"), doc[array.to:])
		raw := sse.AppendEvent(nil, event, payload)
		leaves, err := d.split.scan(payload, openaiTables["chunk"].root)
		if err != nil {
			return err
		}
		at := bytes.Index(raw, payload)
		one := s.newFrame(sse.Frame{Raw: raw, Event: []byte(event), Data: payload, DataAt: at})
		if at >= 0 {
			one.payload = raw[at : at+len(payload)]
		}
		if err := d.read(s, one, leaves); err != nil {
			return err
		}
	}
	return nil
}

// lane is the lane of the choice that a chunk is about.
func (d *openaiStream) lane(s *Stream, doc []byte, leaves []leaf) (int, error) {
	var index int64
	if i := find(leaves, "index"); i >= 0 {
		index, _ = count(doc[leaves[i].from:leaves[i].to])
	}
	for i, c := range d.choices {
		if c.index == index {
			return i, nil
		}
	}
	if len(d.choices) == maxChoices {
		return 0, &errRefused{what: fmt.Sprintf("the answer has more than %d choices", maxChoices)}
	}
	d.choices = append(d.choices, &openaiChoice{index: index, texts: map[string]*channel{}, calls: map[int64]*channel{}})
	s.lane(len(d.choices) - 1)
	return len(d.choices) - 1, nil
}

// screenFields screens what is no channel, and notes what later chunks repeat.
func (d *openaiStream) screenFields(s *Stream, f *frame, leaves []leaf) error {
	failed := find(leaves, "error") >= 0 // then nothing in it is text of a choice
	for _, l := range leaves {
		switch l.kind {
		case Opaque, Copy, Alt, Bytes:
			continue
		case Text, JSON:
			if !failed {
				continue
			}
			if l.token == '{' {
				return &errRefused{what: "an error of the answer calls a tool"}
			}
			l.kind, l.path = Unknown, l.node.path
		case Unknown:
			if !failed && l.stream && l.token == '"' {
				continue
			}
		}
		if err := s.field(f, l); err != nil {
			return err
		}
	}
	if d.id == nil {
		d.identify(f, leaves)
	}
	return nil
}

// identify notes what our own chunks are to repeat. Some upstreams begin with a
// chunk that has no id yet.
func (d *openaiStream) identify(f *frame, leaves []leaf) {
	i := find(leaves, "id")
	if i < 0 || leaves[i].to-leaves[i].from <= len(`""`) {
		return
	}
	raw := func(role string, otherwise []byte) []byte {
		if i := find(leaves, role); i >= 0 {
			return slices.Clone(f.payload[leaves[i].from:leaves[i].to])
		}
		return otherwise
	}
	d.id, d.created, d.model = raw("id", nil), raw("created", []byte("0")), raw("model", []byte(`""`))
}

// count reads the usage.
func (d *openaiStream) count(s *Stream, f *frame, leaves []leaf) {
	for _, l := range leaves {
		if l.token == '0' && l.node != nil {
			s.outcome.count(l.node.channel, f.payload[l.from:l.to])
		}
	}
}

// texts files what a chunk says into its choice's channels.
func (d *openaiStream) texts(s *Stream, f *frame, leaves []leaf, lane int) error {
	c, l := d.choices[lane], s.lane(lane)
	for _, i := range d.order(leaves) {
		ch, p, err := d.piece(s, c, l, f.payload, leaves, leaves[i])
		if err != nil {
			return err
		}
		if ch == nil {
			continue
		}
		if p, err = s.write(l, ch, p, s.said(f.payload, leaves[i])); err != nil {
			return err
		}
		f.pieces = append(f.pieces, p)
	}
	f.apart = !slices.ContainsFunc(leaves, func(l leaf) bool {
		return l.kind == Unknown || l.kind == JSON || l.kind == Text && l.depth > 1 || l.kind == Enum && l.node.channel == "finish" && l.token == '"'
	})
	d.logprobs(s, f, leaves)
	if i := find(leaves, "finish"); i >= 0 && leaves[i].token == '"' {
		f.finish = span{leaves[i].from, leaves[i].to}
		if !c.finished {
			c.finished = true
			d.finished++
		}
		s.closeLane(lane)
	}
	return nil
}

// order is the leaves that are text, in the order of a choice's channels:
// reasoning, content, refusal, tool calls.
func (d *openaiStream) order(leaves []leaf) []int {
	var order []int
	for i, l := range leaves {
		switch {
		case l.kind == Text && l.token == '"',
			l.kind == JSON && (l.token == '"' || l.token == '{'),
			l.kind == Unknown && l.token == '"' && l.stream,
			l.kind == Inner && l.token == '{' && l.node.channel == "call":
			order = append(order, i)
		}
	}
	if len(order) > 1 {
		slices.SortStableFunc(order, func(a, b int) int { return openaiRank(leaves[a]) - openaiRank(leaves[b]) })
	}
	return order
}

func openaiRank(l leaf) int {
	if l.node == nil {
		return 0
	}
	switch l.node.channel {
	case "content":
		return 1
	case "refusal":
		return 2
	case "arguments", "call":
		return openaiCallRank
	}
	return 0
}

// openaiCallRank is the rank of tool calls, the last.
const openaiCallRank = 3

// piece finds the channel of a leaf, and where the piece stands. A field that
// has said nothing so far is no channel yet.
func (d *openaiStream) piece(s *Stream, c *openaiChoice, l *lane, doc []byte, leaves []leaf, lf leaf) (*channel, piece, error) {
	role := lf.path
	if lf.node != nil {
		role = lf.node.channel
	}
	if role == "arguments" || role == "call" {
		return d.call(s, c, l, doc, leaves, lf)
	}
	ch := c.texts[role]
	if ch == nil && lf.to-lf.from == len(`""`) {
		return nil, piece{}, nil
	}
	if ch == nil {
		name, kind := "choice/"+strconv.FormatInt(c.index, 10)+"/", guard.Text
		switch {
		case lf.node == nil:
			name += "unknown/" + strconv.Itoa(len(c.texts))
		case role == "refusal":
			name, kind = name+role, guard.Refusal
		case role == "content":
			name += role
		default:
			name, kind = name+role, guard.Reasoning
		}
		if len(c.texts) == maxSeen {
			return nil, piece{}, &errRefused{what: "the answer has too many fields that are not known"}
		}
		ch = s.channel(name, kind, "assistant", "")
		c.texts[role] = ch
	}
	return ch, piece{at: lf.from + 1, end: lf.to - 1}, nil
}

// call finds the channel of a tool call's arguments.
func (d *openaiStream) call(s *Stream, c *openaiChoice, l *lane, doc []byte, leaves []leaf, lf leaf) (*channel, piece, error) {
	index, name, tool := int64(-1), "function_call", ""
	var elem, list span
	inCalls := lf.depth >= 2
	if inCalls {
		index = int64(lf.idx[1])
	}
	for _, o := range leaves {
		if o.node == nil {
			continue
		}
		if o.node.channel == "calls" {
			list = span{o.from, o.to}
		}
		if inCalls && (o.depth < 2 || o.idx[1] != lf.idx[1]) {
			continue
		}
		switch o.node.channel {
		case "call-index":
			if n, ok := count(doc[o.from:o.to]); ok {
				index = n
			}
		case "call-name":
			if o.token == '"' {
				tool = string(s.content(doc, o))
			}
		case "call":
			elem = span{o.from, o.to}
		}
	}
	ch := c.calls[index]
	if ch == nil {
		if inCalls {
			name = "tool/" + strconv.FormatInt(index, 10)
		}
		if len(c.calls) == maxSeen {
			return nil, piece{}, &errRefused{what: "the answer has too many tool calls"}
		}
		ch = s.channel("choice/"+strconv.FormatInt(c.index, 10)+"/"+name+"/arguments", guard.ToolArgs, "assistant", tool)
		c.calls[index] = ch
		s.begin(l, ch)
	}
	p := piece{elem: elem, list: list, at: elem.from, end: elem.from}
	switch {
	case lf.token == '"':
		p.at, p.end = lf.from+1, lf.to-1
	case lf.kind == JSON: // a document as it is
		p.at, p.end, p.bare = lf.from, lf.to, true
	}
	return ch, p, nil
}

// leave emits a chunk, or keeps it if it may be the last.
func (d *openaiStream) leave(s *Stream, f *frame) {
	d.emitLast(s, nil)
	if d.finished+d.stopped(s) >= s.opt.Choices {
		d.last = f
		return
	}
	s.emit(f, nil)
}

func (d *openaiStream) emitLast(s *Stream, member []byte) {
	if d.last != nil {
		s.emit(d.last, member)
		d.last = nil
	}
}

// stopped counts the choices that a verdict ended.
func (d *openaiStream) stopped(s *Stream) int {
	n := 0
	for i, c := range d.choices {
		if s.lanes[i].ended && !c.finished {
			n++
		}
	}
	return n
}

func (d *openaiStream) sent(*frame)           {}
func (d *openaiStream) stopLane(*Stream, int) {} // said at the end, with the usage

func (d *openaiStream) end(s *Stream) {
	var member []byte
	if o := s.Outcome(); o.Status != Allowed {
		member = appendStoplog(nil, s.opt.Run, o)
	}
	var tails [][]byte // chunks of our own
	for i, c := range d.choices {
		if s.lanes[i].ended {
			tails = append(tails, d.chunk(`{"index":`+strconv.FormatInt(c.index, 10)+`,"delta":{},"logprobs":null,"finish_reason":"content_filter"}`))
		}
	}
	usage := d.usage
	if !s.opt.Usage {
		usage = nil
	}
	if d.last == nil && tails == nil && usage == nil && member != nil {
		tails = append(tails, d.chunk(""))
	}
	if usage != nil || len(tails) > 0 {
		d.emitLast(s, nil)
	} else {
		d.emitLast(s, member)
	}
	for i, t := range tails {
		if i == len(tails)-1 && usage == nil && member != nil {
			t = withMember(t, member)
		}
		s.out = sse.AppendEvent(s.out, "", t)
	}
	if usage != nil {
		s.emit(usage, member)
	}
	s.out = sse.AppendEvent(s.out, "", openaiDone)
}

// chunk is a chunk of our own with the given choice, if any.
func (d *openaiStream) chunk(choice string) []byte {
	if d.id == nil {
		d.id, d.created, d.model = []byte(`""`), []byte("0"), []byte(`""`)
	}
	return fmt.Appendf(nil, `{"id":%s,"object":"chat.completion.chunk","created":%s,"model":%s,"choices":[%s]}`, d.id, d.created, d.model, choice)
}

func (d *openaiStream) fail(s *Stream, reason string) {
	d.emitLast(s, nil)
	o := s.Outcome()
	s.out = sse.AppendEvent(s.out, "", appendOpenAIError(nil, Error{Message: reason, Type: failType(o), Code: string(o.Status), Run: s.opt.Run, Outcome: &o}))
}

// upstreamError passes on an error that the upstream sent in place of a chunk.
func (d *openaiStream) upstreamError(s *Stream, f *frame) error {
	s.outcome.failed("the upstream ended the answer with an error")
	s.closeAll()
	s.flush()
	s.ended = true
	if s.allStopped() {
		d.end(s)
		return nil
	}
	d.emitLast(s, nil)
	s.emit(f, appendStoplog(nil, s.opt.Run, s.Outcome()))
	return nil
}

// appendOpenAIError appends an error body: error {message, type, param, code}.
func appendOpenAIError(dst []byte, e Error) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = quote(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"param":null,"code":`...)
	dst = quote(dst, e.Code)
	dst = append(dst, '}')
	if e.Outcome != nil {
		dst = appendStoplog(append(dst, ','), e.Run, *e.Outcome)
	}
	return append(dst, '}')
}

func failType(o Outcome) string {
	if o.Status == UpstreamFailed {
		return "api_error"
	}
	return "invalid_request_error"
}
