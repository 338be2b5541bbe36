package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/internal/sse"
)

var openaiTables = loadTables("openai-chat.txt")

// OpenAIChat is OpenAI's chat completions, as OpenAI and others speak it.
var OpenAIChat = &Format{
	name:        "openai-chat",
	tables:      openaiTables,
	dialect:     func() dialect { return &openaiStream{} },
	answer:      "completion",
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
	spans              []span // of the chunk's choices
	said               []int  // of the chunk's leaves, in order
}

type openaiChoice struct {
	index    int64
	texts    map[string]*channel   // by the role of their field, or by path
	calls    map[int64]*openaiCall // by their index
	called   int64                 // how many there were
	finished bool
}

type openaiCall struct {
	id, tool string
	channel  *channel
}

// named takes the name of the tool that a chunk gives a call. Clients put names
// together as they do texts, and nobody would have judged the whole of one: a name
// comes in one piece, and before its call has ended.
func (c *openaiCall) named(tool string) error {
	if tool == "" || tool == c.tool {
		return nil
	}
	if c.tool != "" || c.channel.closed {
		return &errRefused{what: "the answer changed the name of a tool call that it had begun"}
	}
	c.tool, c.channel.info.Tool = tool, tool
	return nil
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
	if d.spans = elements(d.spans[:0], leaves, "choice"); len(d.spans) > 1 {
		return d.readEach(s, f, leaves, slices.Clone(d.spans))
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
	d.choices = append(d.choices, &openaiChoice{index: index, texts: map[string]*channel{}, calls: map[int64]*openaiCall{}})
	s.lane(len(d.choices) - 1)
	return len(d.choices) - 1, nil
}

// screenFields screens what is no channel, and notes what later chunks repeat.
func (d *openaiStream) screenFields(s *Stream, f *frame, leaves []leaf) error {
	failed := find(leaves, "error") >= 0 // then nothing in it is text of a choice
	for i := range leaves {
		l := &leaves[i]
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
			l = l.unknown()
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
	for i := range leaves {
		if l := &leaves[i]; l.token == '0' && l.kind == Number {
			s.outcome.count(l.node.channel, f.payload[l.from:l.to])
		}
	}
}

func (d *openaiStream) sent(*frame, bool) {}

func (d *openaiStream) cut(*frame) {}

func (d *openaiStream) stopLane(*Stream, int) {} // said at the end, with the usage
