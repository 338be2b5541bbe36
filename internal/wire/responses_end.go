package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/internal/sse"
)

// leave emits an event, and notes what the client knows by it.
func (d *responsesStream) leave(s *Stream, f *frame) {
	a, kind := f.about, f.about.kind
	for _, at := range a.positions {
		if at.ch.changed || at.ch.stop != nil {
			f.splices = append(f.splices, splice{at.at.from, at.at.to, strconv.AppendInt(nil, at.ch.memory.place(at.n, at.end), 10)})
		}
	}
	for _, c := range a.logprobs {
		if c.ch == nil || c.ch.changed || c.ch.stop != nil {
			f.splices = append(f.splices, splice{c.at.from, c.at.to, []byte("[]")})
		}
	}
	var member []byte
	switch {
	case slices.Contains(ends, kind) && a.response.to > 0:
		if told := s.told(); told != nil {
			f.splices = append(f.splices, adding(f.payload, a.response.to, string(told)))
		}
	case kind == "error":
		member = s.told()
	}
	if s, ok := d.renumber(a); ok {
		f.splices = append(f.splices, s)
	}
	it, part := a.item, a.part
	before := len(s.out)
	if s.emit(f, member); it != nil {
		d.shown(it, part, kind, s.out[before:])
	}
}

// renumber makes an event follow those that were put in before it.
func (d *responsesStream) renumber(a *about) (splice, bool) {
	if a.sequence.to == 0 || d.shift == 0 {
		return splice{}, false
	}
	return splice{a.sequence.from, a.sequence.to, strconv.AppendInt(nil, a.number+d.shift, 10)}, true
}

func (d *responsesStream) cut(f *frame) {
	if s, ok := d.renumber(f.about); ok {
		f.text = append(f.text, s)
	}
}

func (d *responsesStream) sent(f *frame, part bool) {
	if f.about.sequence.to > 0 {
		d.next = f.about.number + d.shift + 1
	}
	if part {
		d.shift++ // the rest comes under the next number
	}
}

// shown notes what the client knows of an item by an event that it was sent.
func (d *responsesStream) shown(it *responsesItem, part partKey, kind string, event []byte) {
	switch {
	case kind == "response.output_item.added":
		it.added = true
	case kind == "response.output_item.done":
		it.done = d.inner(kind, event)
		it.parts = nil
		for _, c := range it.said {
			c.memory.said, c.memory.told = nil, false
		}
	case strings.HasSuffix(kind, "_part.added"):
		it.part(part).added = true
	case strings.HasSuffix(kind, "_part.done"):
		it.part(part).done = d.inner(kind, event)
	case kind == "response.output_text.annotation.added":
		p := it.part(part)
		p.annotations = append(p.annotations, d.inner(kind, event))
	case isTold(it.kind) && strings.HasSuffix(kind, ".done"):
		it.part(part).said = true
	}
}

// inner is the structure in an event that says what it is about.
func (d *responsesStream) inner(kind string, event []byte) []byte {
	in := sse.NewScanner(len(event) + 1)
	in.Write(event)
	f, ok, err := in.Next()
	if !ok || err != nil {
		return nil
	}
	leaves, err := d.again.scan(f.Data, responsesTables[kind].root)
	if err != nil {
		return nil
	}
	for _, role := range []string{"item", "part", "annotation"} {
		if i := find(leaves, role); i >= 0 {
			return slices.Clone(f.Data[leaves[i].from:leaves[i].to])
		}
	}
	return nil
}

func (it *responsesItem) part(key partKey) *responsesPart {
	for _, p := range it.parts {
		if p.key == key {
			return p
		}
	}
	p := &responsesPart{key: key}
	it.parts = append(it.parts, p)
	return p
}

// stopLane ends what the client is in the middle of.
func (d *responsesStream) stopLane(s *Stream, _ int) {
	for _, it := range d.items {
		if it.done == nil && isTold(it.kind) && (it.added || it.begun()) {
			d.closeItem(s, it)
		}
	}
}

// begun reports whether the client was sent text of an item, or would have been
// but for a stop.
func (it *responsesItem) begun() bool {
	return slices.ContainsFunc(it.said, func(c *channel) bool { return c.memory.told && (len(c.memory.said) > 0 || c.stop != nil) })
}

// closeItem ends an item of which a part has left. What of it has left in no
// event yet leaves first.
func (d *responsesStream) closeItem(s *Stream, it *responsesItem) {
	if len(it.id) == 0 {
		it.id = []byte(`""`)
	}
	if !it.added {
		d.write(s, "response.output_item.added", fmt.Appendf(nil, `{"type":"response.output_item.added"%s,"output_index":%d,"item":%s}`, d.numberMember(), it.index, it.document("in_progress", nil)))
	}
	it.speaking()
	for _, p := range it.parts {
		if p.done == nil {
			p.done = d.closePart(s, it, p)
		}
	}
	it.done = it.document("incomplete", it.parts)
	d.write(s, "response.output_item.done", fmt.Appendf(nil, `{"type":"response.output_item.done"%s,"output_index":%d,"item":%s}`, d.numberMember(), it.index, it.done))
}

// speaking gives the parts of an item their texts.
func (it *responsesItem) speaking() {
	for key, c := range it.texts {
		if !c.memory.told || len(c.memory.said) == 0 && c.stop == nil {
			continue
		}
		list, _, _ := strings.Cut(key.role, "[")
		p := it.part(partKey{list, key.at[0]})
		if p.text == nil || c.name < p.text.name {
			p.text, p.field = c, key.role[strings.LastIndexByte(key.role, '.')+1:]
		}
	}
	slices.SortFunc(it.parts, func(a, b *responsesPart) int {
		return cmp.Or(cmp.Compare(b.key.list, a.key.list), cmp.Compare(a.key.n, b.key.n)) // summary, content
	})
}

// closePart ends a part and returns it.
func (d *responsesStream) closePart(s *Stream, it *responsesItem, p *responsesPart) []byte {
	kind, names := it.partNames(p)
	var said, unsent []byte
	if p.text != nil {
		said = p.text.memory.said
		unsent = said[len(said)-p.text.memory.unsent:]
	}
	event := func(name, format string, args ...any) {
		doc := fmt.Appendf(nil, `{"type":"%s"%s,"item_id":%s,"output_index":%d,"%s_index":%d,`, name, d.numberMember(), it.id, it.index, p.key.list, p.key.n)
		d.write(s, name, append(fmt.Appendf(doc, format, args...), '}'))
	}
	if !p.added {
		event(names.part+".added", `"part":%s`, p.document(kind, nil))
		unsent = said
	}
	if len(unsent) > 0 {
		event(names.text+".delta", `"delta":"%s"`+names.logprobs, unsent)
	}
	if !p.said {
		event(names.text+".done", `"%s":"%s"`+names.logprobs, p.field, said)
	}
	doc := p.document(kind, said)
	event(names.part+".done", `"part":%s`, doc)
	return doc
}

// partNames is how a part and its events are called.
type partNames struct{ text, part, logprobs string }

func (it *responsesItem) partNames(p *responsesPart) (kind string, names partNames) {
	if p.field == "" {
		p.field = "text"
	}
	const part = "response.content_part"
	switch {
	case p.key.list == "summary":
		return "summary_text", partNames{"response.reasoning_summary_text", "response.reasoning_summary_part", ""}
	case it.kind == "reasoning":
		return "reasoning_text", partNames{"response.reasoning_text", part, ""}
	case p.field == "refusal":
		return "refusal", partNames{"response.refusal", part, ""}
	case p.field == "transcript":
		return "output_audio", partNames{"response.audio.transcript", part, ""}
	}
	return "output_text", partNames{"response.output_text", part, `,"logprobs":[]`}
}

// document is the part, with what it has said as the inside of a JSON string.
func (p *responsesPart) document(kind string, said []byte) []byte {
	doc := fmt.Appendf(nil, `{"type":"%s"`, kind)
	if kind == "output_text" {
		doc = append(doc, `,"annotations":[`...)
		doc = append(append(doc, bytes.Join(p.annotations, []byte(","))...), `],"logprobs":[]`...)
	}
	return fmt.Appendf(doc, `,"%s":"%s"}`, p.field, said)
}

// document is an item that is not complete, with the parts that it has.
func (it *responsesItem) document(status string, parts []*responsesPart) []byte {
	lists := map[string][][]byte{}
	for _, p := range parts {
		lists[p.key.list] = append(lists[p.key.list], p.done)
	}
	doc := fmt.Appendf(nil, `{"id":%s,"type":"%s","status":"%s"`, it.id, it.kind, status)
	if it.kind == "reasoning" {
		doc = fmt.Appendf(doc, `,"summary":[%s]`, bytes.Join(lists["summary"], []byte(",")))
		if len(lists["content"]) == 0 {
			return append(doc, '}')
		}
	} else {
		doc = append(doc, `,"role":"assistant"`...)
	}
	return fmt.Appendf(doc, `,"content":[%s]}`, bytes.Join(lists["content"], []byte(",")))
}

// output is the items that the client was sent whole, and those that end early.
func (d *responsesStream) output() []byte {
	var items [][]byte
	for _, it := range d.items {
		if it.done != nil {
			items = append(items, it.done)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
}

// end says, where a stop ended the response, that it is not complete.
func (d *responsesStream) end(s *Stream) {
	if s.lane(0).ended {
		d.incomplete(s, "content_filter")
	}
	if d.done {
		s.out = sse.AppendEvent(s.out, "", openaiDone)
	}
}

func (d *responsesStream) incomplete(s *Stream, reason string) {
	u := s.Outcome().Usage
	raw := func(b []byte, otherwise string) string {
		if b == nil {
			return otherwise
		}
		return string(b)
	}
	doc := fmt.Appendf(nil, `{"type":"response.incomplete"%s,"response":{"id":%s,"object":"response","created_at":%s,"status":"incomplete","error":null,`+
		`"incomplete_details":{"reason":"%s"},"instructions":null,"max_output_tokens":null,"model":%s,"output":%s,`+
		`"parallel_tool_calls":true,"previous_response_id":null,"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,`+
		`"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d},"user":null,"metadata":{}`,
		d.numberMember(), raw(d.id, `""`), raw(d.created, "0"), reason, raw(d.model, `""`), d.output(), u.Input, u.CacheRead, u.Output, u.Reasoning, u.Input+u.Output)
	if told := s.told(); told != nil {
		doc = append(append(doc, ','), told...)
	}
	d.write(s, "response.incomplete", append(doc, "}}"...))
}

// write sends an event of our own.
func (d *responsesStream) write(s *Stream, event string, doc []byte) {
	s.out = sse.AppendEvent(s.out, event, doc)
}

// exhaust ends the response as one that came to its length; one that a verdict
// ended ends as that.
func (d *responsesStream) exhaust(s *Stream) {
	switch {
	case d.response == 0:
		d.fail(s, s.outcome.spentOut.Reason)
	case s.lane(0).ended && s.lane(0).stop:
		d.end(s)
	case d.open:
		d.stopLane(s, 0)
		d.incomplete(s, "max_output_tokens")
	}
}
