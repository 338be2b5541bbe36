package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// A responsesItem is an item of a response: a message, reasoning, a call, …
type responsesItem struct {
	prefix string // of its channels' names
	index  int64  // the upstream's number of it
	kind   string
	tool   string
	texts  map[textKey]*channel
	said   []*channel // all of them, in the order in which they began
	gate   *channel   // of a call that leaves whole or not at all

	// What the client was sent of it.
	id    []byte // as it is written
	added bool
	done  []byte // the item, once it is complete
	parts []*responsesPart
}

// A textKey is a text of an item: its place, and the positions in the arrays on
// the way.
type textKey struct {
	role string
	at   [3]int32
}

// A responsesPart is a part of a message or of reasoning, as the client knows it.
type responsesPart struct {
	key         partKey
	text        *channel // nil if it says nothing
	field       string   // where its text stands
	added       bool
	said        bool     // the event that says its text again was sent
	done        []byte   // the part, once it is complete
	annotations [][]byte // as they were sent
}

// isCall reports whether an item asks for something to be done.
func isCall(kind string) bool {
	return strings.HasSuffix(kind, "_call") || kind == "program" || kind == "mcp_approval_request"
}

// isTold reports whether an item is for people to read, so that a part of it is
// worth something.
func isTold(kind string) bool { return kind == "message" || kind == "reasoning" }

// texts files what a frame says into the channels of the items it is about.
func (d *responsesStream) texts(s *Stream, l *lane, f *frame, leaves []leaf) error {
	if find(leaves, "items") >= 0 {
		return d.allTexts(s, l, f, leaves)
	}
	it, err := d.item(s, f, leaves)
	if err != nil || it == nil {
		return err
	}
	f.about.item = it
	d.gated(f, it)
	at := indices(f.payload, leaves)
	if strings.Contains(d.kind, "summary") {
		f.about.part = partKey{"summary", at[0]}
	} else {
		f.about.part = partKey{"content", at[0]}
	}
	explicit := 0
	for i := range leaves {
		if leaves[i].node != nil && leaves[i].node.channel == "at" {
			explicit++
		}
	}
	if err := d.itemTexts(s, l, f, it, leaves, at, explicit, 0); err != nil {
		return err
	}
	f.apart = strings.HasSuffix(d.kind, ".delta") && len(f.pieces) == 1 && !slices.ContainsFunc(leaves, func(l leaf) bool { return l.kind == Unknown || l.kind == JSON })
	if strings.HasSuffix(d.kind, ".done") {
		d.close(s, l, it, f)
	}
	return nil
}

// allTexts files what an event of the whole response repeats of its items.
func (d *responsesStream) allTexts(s *Stream, l *lane, f *frame, leaves []leaf) error {
	rest := leaves
	for n, at := range elements(nil, leaves, "item") {
		var within []leaf
		within, rest = inside(rest, at)
		if n == len(d.items) {
			if err := d.newItem(int64(n)); err != nil {
				return err
			}
		}
		it := d.items[n]
		if err := d.describe(s, f, it, within); err != nil {
			return err
		}
		d.gated(f, it)
		if err := d.itemTexts(s, l, f, it, within, [3]int32{}, 0, 1); err != nil {
			return err
		}
	}
	return nil
}

// item is the item that a frame is about, nil if it is about none.
func (d *responsesStream) item(s *Stream, f *frame, leaves []leaf) (*responsesItem, error) {
	if !d.known {
		return d.other(d.kind)
	}
	index := int64(-1)
	if i := find(leaves, "output-index"); i >= 0 {
		index, _ = count(f.payload[leaves[i].from:leaves[i].to])
	} else if find(leaves, "item") < 0 && !slices.ContainsFunc(leaves, isText) {
		return nil, nil
	}
	it := d.byIndex[index]
	if it == nil || d.kind == "response.output_item.added" && it.kind != "" {
		if err := d.newItem(index); err != nil {
			return nil, err
		}
		it = d.byIndex[index]
	}
	if it.kind == "" && strings.HasPrefix(d.kind, "response.reasoning") {
		it.kind = "reasoning"
	}
	return it, d.describe(s, f, it, leaves)
}

// isText reports whether a leaf is text of an item.
func isText(l leaf) bool {
	return (l.kind == Text || l.kind == JSON) && l.node.channel != "" || l.kind == Unknown && l.stream
}

func (d *responsesStream) newItem(index int64) error {
	if len(d.items) == maxSeenItems {
		return &errRefused{what: "the answer has too many items"}
	}
	it := &responsesItem{prefix: d.prefix("item", len(d.items)), index: index, texts: map[textKey]*channel{}}
	d.items = append(d.items, it)
	d.byIndex[index] = it
	return nil
}

// maxSeenItems bounds the items of a response, maxTexts the texts of one.
const (
	maxSeenItems = 4096
	maxTexts     = 4096
)

// other is what stands for the item of events of a type that no table knows.
func (d *responsesStream) other(kind string) (*responsesItem, error) {
	it := d.others[kind]
	if it == nil {
		if len(d.others) == maxSeen {
			return nil, &errRefused{what: "the answer has too many types of events that are not known"}
		}
		it = &responsesItem{prefix: "event/" + strconv.Itoa(len(d.others)) + "/", texts: map[textKey]*channel{}}
		d.others[kind] = it
	}
	return it, nil
}

// describe notes what leaves say about an item.
func (d *responsesStream) describe(s *Stream, f *frame, it *responsesItem, leaves []leaf) error {
	for i := range leaves {
		lf := &leaves[i]
		if lf.node == nil || lf.token != '"' {
			continue
		}
		switch lf.node.channel {
		case "item-type":
			kind := string(s.content(f.payload, lf))
			if it.kind != "" && it.kind != kind {
				return &errRefused{what: "the answer changed the type of an item that it had begun"}
			}
			it.kind = kind
		case "item-id":
			it.id = append(it.id[:0], f.payload[lf.from:lf.to]...)
		case "call-name":
			tool := string(s.content(f.payload, lf))
			if it.tool != "" && it.tool != tool {
				return &errRefused{what: "the answer changed the name of a tool call that it had begun"}
			}
			it.tool = tool
		}
	}
	if it.gate == nil && isCall(it.kind) && (s.holdsCalls() || s.ruled(cmp.Or(it.tool, it.kind))) {
		it.gate = &channel{whole: true, gate: true}
	}
	return nil
}

// gated holds a frame back with the call that it is about.
func (d *responsesStream) gated(f *frame, it *responsesItem) {
	if it.gate != nil {
		f.pieces = append(f.pieces, piece{ch: it.gate})
	}
}

// indices are the positions that an event gives by members of its own.
func indices(doc []byte, leaves []leaf) (at [3]int32) {
	k := 0
	for i := range leaves {
		if lf := &leaves[i]; lf.node != nil && lf.node.channel == "at" && k < len(at) {
			n, _ := count(doc[lf.from:lf.to])
			at[k] = int32(min(n, 1<<30))
			k++
		}
	}
	return at
}

// itemTexts files what leaves say of an item. The positions of its texts are
// those that the event gives, and after them those of the arrays in the item,
// which begins base arrays deep.
func (d *responsesStream) itemTexts(s *Stream, l *lane, f *frame, it *responsesItem, leaves []leaf, at [3]int32, explicit, base int) error {
	for i := range leaves {
		lf := &leaves[i]
		key := textKey{at: at}
		for k := base; k < int(lf.depth) && explicit+k-base < len(key.at); k++ {
			key.at[explicit+k-base] = lf.idx[k]
		}
		switch {
		case lf.kind == Text && lf.token == '"' && lf.node.channel != "",
			lf.kind == JSON && (lf.token == '"' || lf.token == '{'):
			key.role = lf.node.channel
		case lf.kind == Unknown && lf.token == '"' && lf.stream:
			key.role = "?" + lf.path
		default:
			continue
		}
		if err := d.text(s, l, f, it, lf, key); err != nil {
			return err
		}
	}
	d.places(s, f, it, leaves, at, explicit, base)
	return nil
}

// text files a leaf into its channel.
func (d *responsesStream) text(s *Stream, l *lane, f *frame, it *responsesItem, lf *leaf, key textKey) error {
	text := s.said(f.payload, lf)
	p := piece{at: lf.from + 1, end: lf.to - 1}
	if lf.token == '{' {
		if p.at, p.end, p.bare = lf.from, lf.to, true; len(bytes.TrimSpace(text[1:len(text)-1])) == 0 {
			return nil // stands for what is to come
		}
	}
	if len(text) == 0 {
		return nil
	}
	c := it.texts[key]
	if c == nil {
		if len(it.texts) == maxTexts {
			return &errRefused{what: "an item of the answer says too many things"}
		}
		c = d.channel(s, it, key, it.prefix+key.name(len(it.texts)), lf.kind == JSON)
	}
	if strings.HasSuffix(d.kind, ".delta") || lf.kind == Unknown {
		if err := s.write(l, f, c, p, text); err != nil {
			return err
		}
	} else if err := d.copy(s, l, f, it, c, key, p, text); err != nil {
		return err
	}
	d.stopGates(l)
	return nil
}

// copy files a leaf that says all of a text so far.
func (d *responsesStream) copy(s *Stream, l *lane, f *frame, it *responsesItem, c *channel, key textKey, p piece, text []byte) error {
	if c.high != 0 { // half a rune that stays one
		c.high = 0
		c.write([]byte("\ufffd"))
	}
	if !c.memory.repeats(text, c.read) {
		c = d.channel(s, it, key, c.name+"/again", c.proj != nil)
	}
	if rest := text[c.read:]; len(rest) > 0 {
		s.begin(l, c)
		if !l.stop {
			s.outcome.textSize += int64(len(rest))
			c.write(rest)
			l.stopped(c)
		}
	}
	p.ch, p.to = c, int64(len(text))
	f.pieces = append(f.pieces, p)
	return nil
}

// channel opens a channel of an item.
func (d *responsesStream) channel(s *Stream, it *responsesItem, key textKey, name string, document bool) *channel {
	c := s.listen(guard.Channel{Name: name, Kind: responsesKind(it.kind, key.role), Role: "assistant", Tool: it.tool}, document)
	c.memory = &memory{told: isTold(it.kind) && partText(key.role)}
	c.keeps = c.info.Kind == guard.ToolArgs && s.ruled(cmp.Or(it.tool, it.kind))
	it.texts[key], it.said = c, append(it.said, c)
	return c
}

// name is a text's place as channels are named by it: content/0/text.
func (k textKey) name(n int) string {
	if strings.HasPrefix(k.role, "?") {
		return "unknown/" + strconv.Itoa(n)
	}
	var out []byte
	i := 0
	for part := range strings.SplitSeq(k.role, ".") {
		name, isArray := strings.CutSuffix(part, "[]")
		if out = append(append(out, '/'), name...); isArray {
			out = strconv.AppendInt(append(out, '/'), int64(k.at[i]), 10)
			i++
		}
	}
	return string(out[1:])
}

// partText reports whether a role is the text of a message or of reasoning.
func partText(role string) bool {
	return role == "content[].text" || role == "content[].refusal" || role == "content[].transcript" || role == "summary[].text"
}

// responsesKind is what a text of an item is.
func responsesKind(item, role string) guard.Kind {
	first, _, _ := strings.Cut(role, ".")
	switch {
	case role == "content[].refusal":
		return guard.Refusal
	case strings.HasPrefix(role, "content[].annotations"):
		return guard.Document
	case item == "reasoning":
		return guard.Reasoning
	}
	switch strings.TrimSuffix(first, "[]") {
	case "arguments", "input", "code", "action", "actions", "operation", "queries":
		return guard.ToolArgs
	case "output", "outputs", "results", "tools", "error":
		return guard.ToolResult
	}
	return guard.Text
}

// close ends the texts that a frame says all of: one text, or an item.
func (d *responsesStream) close(s *Stream, l *lane, it *responsesItem, f *frame) {
	whole := d.kind == "response.output_item.done"
	for _, c := range it.said {
		if whole || slices.ContainsFunc(f.pieces, func(p piece) bool { return p.ch == c }) {
			l.end(c)
		}
	}
	if whole && it.gate != nil && !l.stop {
		d.letGo(s, l, it)
	}
	d.stopGates(l)
}

// letGo lets a call go that is all there, unless a tool rule stops it.
func (d *responsesStream) letGo(s *Stream, l *lane, it *responsesItem) {
	if it.gate.closed {
		return
	}
	it.gate.closed = true
	var args []byte
	for _, c := range it.said {
		args = append(args, c.args...)
	}
	if stop := s.ruleItem(it.prefix, it.kind, it.tool, args); stop != nil {
		it.gate.stop = stop
		l.stopped(&channel{stop: stop, closed: true})
	}
}

// places notes what in a frame depends on how a part's text leaves: numbers that
// count its runes, and its logprobs.
func (d *responsesStream) places(s *Stream, f *frame, it *responsesItem, leaves []leaf, at [3]int32, explicit, base int) {
	for i := range leaves {
		lf := &leaves[i]
		if lf.node == nil {
			continue
		}
		role := lf.node.channel
		isPlace := lf.kind == Number && (role == "place" || role == "place-end")
		if !isPlace && !(lf.token == '{' && role == "logprobs") {
			continue
		}
		key := textKey{role: "content[].text", at: [3]int32{at[0]}}
		if base < int(lf.depth) && explicit == 0 {
			key.at[0] = lf.idx[base]
		}
		where, c := span{lf.from, lf.to}, it.texts[key]
		switch {
		case isPlace:
			if n, ok := count(f.payload[lf.from:lf.to]); ok && c != nil {
				f.about.positions = append(f.about.positions, position{where, n, role == "place-end", c})
			}
		case !faithfulPart(s.judgement, f.payload, leaves, where):
			f.splices = append(f.splices, splice{where.from, where.to, []byte("[]")})
		case c == nil:
		case strings.HasSuffix(d.kind, ".delta"):
			f.logprobs = where
		default:
			f.about.logprobs = append(f.about.logprobs, copied{where, c})
		}
	}
}
