package wire

import (
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

// texts files what a chunk says into its choice's channels.
func (d *openaiStream) texts(s *Stream, f *frame, leaves []leaf, lane int) error {
	c, l := d.choices[lane], s.lane(lane)
	d.order(leaves)
	for _, i := range d.said {
		ch, p, err := d.piece(s, c, l, f.payload, leaves, &leaves[i])
		if err != nil {
			return err
		}
		if ch == nil {
			continue
		}
		if err := s.write(l, f, ch, p, s.said(f.payload, &leaves[i])); err != nil {
			return err
		}
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

// order finds the leaves that are text, in the order of a choice's channels:
// reasoning, content, refusal, tool calls.
func (d *openaiStream) order(leaves []leaf) {
	d.said = d.said[:0]
	for i := range leaves {
		l := &leaves[i]
		switch {
		case l.kind == Text && l.token == '"',
			l.kind == JSON && (l.token == '"' || l.token == '{'),
			l.kind == Unknown && l.token == '"' && l.stream,
			l.kind == Inner && l.token == '{' && l.node.channel == "call":
			d.said = append(d.said, i)
		}
	}
	if len(d.said) > 1 {
		slices.SortStableFunc(d.said, func(a, b int) int { return openaiRank(&leaves[a]) - openaiRank(&leaves[b]) })
	}
}

func openaiRank(l *leaf) int {
	if l.node == nil {
		return 0
	}
	switch l.node.channel {
	case "content", "transcript":
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
func (d *openaiStream) piece(s *Stream, c *openaiChoice, l *lane, doc []byte, leaves []leaf, lf *leaf) (*channel, piece, error) {
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
		case role == "content", role == "transcript":
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
func (d *openaiStream) call(s *Stream, c *openaiChoice, l *lane, doc []byte, leaves []leaf, lf *leaf) (*channel, piece, error) {
	a := d.about(s, doc, leaves, lf)
	call := c.calls[a.index]
	if call == nil || len(a.id) > 0 && len(call.id) > 0 && a.id != call.id {
		if c.called == maxSeen {
			return nil, piece{}, &errRefused{what: "the answer has too many tool calls"}
		}
		call = &openaiCall{id: a.id, tool: a.tool, channel: s.channel(c.callName(a.index, call != nil), guard.ToolArgs, "assistant", a.tool)}
		c.calls[a.index] = call
		c.called++
		s.begin(l, call.channel)
	}
	if err := call.named(a.tool); err != nil {
		return nil, piece{}, err
	}
	p := piece{elem: a.elem, list: a.list, at: a.elem.from, end: a.elem.from}
	switch {
	case lf.token == '"':
		p.at, p.end = lf.from+1, lf.to-1
	case lf.kind == JSON: // a document as it is
		p.at, p.end, p.bare = lf.from, lf.to, true
	}
	return call.channel, p, nil
}

// callName is the name of a call's channel. Its number is its index, unless the
// upstream gives the same to each (as some do): then it is its place.
func (c *openaiChoice) callName(index int64, again bool) string {
	prefix := "choice/" + strconv.FormatInt(c.index, 10)
	switch {
	case index < 0:
		return prefix + "/function_call/arguments"
	case again:
		index = c.called
	}
	return prefix + "/tool/" + strconv.FormatInt(index, 10) + "/arguments"
}

// aboutCall is what a chunk says about a call beside its arguments.
type aboutCall struct {
	index      int64 // -1 of a function_call, the only one
	id, tool   string
	elem, list span
}

func (d *openaiStream) about(s *Stream, doc []byte, leaves []leaf, lf *leaf) aboutCall {
	a := aboutCall{index: -1}
	inCalls := lf.depth >= 2
	if inCalls {
		a.index = int64(lf.idx[1])
	}
	for i := range leaves {
		o := &leaves[i]
		if o.node == nil {
			continue
		}
		if o.node.channel == "calls" {
			a.list = span{o.from, o.to}
		}
		if inCalls != (o.depth >= 2) || inCalls && o.idx[1] != lf.idx[1] {
			continue
		}
		switch o.node.channel {
		case "call-index":
			if n, ok := count(doc[o.from:o.to]); ok {
				a.index = n
			}
		case "call-id":
			if o.token == '"' {
				a.id = string(s.content(doc, o))
			}
		case "call-name":
			if o.token == '"' {
				a.tool = string(s.content(doc, o))
			}
		case "call":
			a.elem = span{o.from, o.to}
		}
	}
	if !inCalls {
		a.list = span{}
	}
	return a
}
