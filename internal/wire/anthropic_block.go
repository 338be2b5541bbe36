package wire

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

type anthropicBlock struct {
	prefix    string
	texts     map[string]*channel
	tool      string
	citations int
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
		b.tool = string(s.content(f.payload, &leaves[i]))
	}
	return d.texts(s, l, b, f, leaves)
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
	return d.texts(s, s.lane(0), b, f, leaves)
}

func (d *anthropicStream) texts(s *Stream, l *lane, b *anthropicBlock, f *frame, leaves []leaf) error {
	for i := range leaves {
		if err := d.text(s, l, b, f, &leaves[i]); err != nil {
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

// text files one text of a block.
func (d *anthropicStream) text(s *Stream, l *lane, b *anthropicBlock, f *frame, lf *leaf) error {
	switch {
	case lf.kind == Opaque && lf.node.channel == "signature":
		d.signature(s, b, f, lf)
		return nil
	case lf.kind == JSON && (lf.token == '"' || lf.token == '{'):
	case lf.kind == Text && lf.token == '"' && inBlock(lf):
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
	if err := s.write(l, f, ch, p, text); err != nil {
		return err
	}
	if once {
		s.closeLane(0)
	}
	return nil
}

// signature ties a frame to the thinking that it signs. A signature in the
// frame that begins a block goes alone: the block is there all the same.
func (d *anthropicStream) signature(s *Stream, b *anthropicBlock, f *frame, lf *leaf) {
	if th := b.texts["thinking"]; th != nil && lf.to-lf.from > len(`""`) {
		s.closeLane(0)
		f.signs = th
		if d.kind == "content_block_start" {
			f.signature = span{lf.from, lf.to}
		}
	}
}

// channel opens a channel of a block.
func (d *anthropicStream) channel(s *Stream, b *anthropicBlock, role string, lf *leaf) *channel {
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
