package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// Decision is a guard's decision about a channel of a request or response.
type Decision struct {
	Channel string
	guard.Decision
}

// A channel is one text of a response: what a field says over all frames. Its
// offsets count the field's text as it came; for a JSON document that is the
// document, and what the guards judge is its projection.
type channel struct {
	name  string
	judge *judgement
	info  guard.Channel
	s     *guard.Stream
	proj  *projector // nil unless the text is a JSON document
	whole bool       // leaves complete or not at all
	ruled bool       // a tool call that a tool rule may stop: put to it at its end
	keeps bool       // what it says is kept for tool rules,
	args  []byte     // as it came

	high    rune // the first half of a surrogate pair, whose second has not come
	read    int64
	settled int64
	edits   []edit // those whose text has not left yet
	changed bool
	closed  bool
	stop    *guard.Stop
	gate    bool       // holds back a call until it is complete: says nothing, and is judged by nobody
	memory  *memory    // of a text that is repeated, what its copies need; its edits stay
	stand   *standing  // of a request whose redactions come back
	back    *restoring // of an answer that they come back in
	// original is the text as it came, and made what was changed of it, where it may
	// have to go back as it was.
	original []byte
	made     []edit

	// A channel that was closed because a later one began may go on after all.
	// It is then judged by a new stream, which is shown the end of what came
	// before: a finding that began there is replaced from here on.
	tail   []byte // the last of what the guards were shown
	shown  int64  // how much that was, in all
	base   int64  // where the stream's text starts in it
	resume int64  // what lies before was decided by an earlier stream
}

// tailBytes is how much of a closed channel its continuation is judged with.
const tailBytes = 1024

// A field is one that was screened whole and found clean.
type field struct {
	node *node
	said []byte // as it is written
}

// judgement is what the channels of one request or response share.
type judgement struct {
	ctx       context.Context
	chain     *guard.Chain
	side      guard.Side
	decisions []Decision
	found     int                 // findings, those that were decided before among them
	seen      map[string]screened // strings that were screened whole, and what came of it
	fields    []field             // by slot: what fields said last
	outcome   outcome
	buf       []byte // of content
	calls     Calls
	idle      []*guard.Stream
	stand     Stand
	places    *Placeholders
	thoughts  []Thought // that went out changed
	recalls   bool      // they are kept
}

func newJudgement(ctx context.Context, chain *guard.Chain, side guard.Side) *judgement {
	return &judgement{ctx: ctx, chain: chain, side: side, seen: map[string]screened{}}
}

// channel opens a channel. A tool call that a rule may stop is whole.
func (j *judgement) channel(name string, kind guard.Kind, role, tool string) *channel {
	c := j.listen(guard.Channel{Name: name, Kind: kind, Role: role, Tool: tool}, kind == guard.ToolArgs)
	if kind == guard.ToolArgs {
		c.ruled, c.whole = j.ruled(tool), j.leavesWhole(kind, tool)
		c.keeps = c.ruled
	}
	return c
}

// listen opens a channel of a text, or of a JSON document.
func (j *judgement) listen(info guard.Channel, document bool) *channel {
	info.Side = j.side
	c := &channel{name: info.Name, judge: j, info: info}
	if document {
		c.proj = &projector{}
	}
	if j.stand != nil {
		c.stand = &standing{stand: j.stand}
	}
	if j.places != nil {
		c.back = &restoring{known: j.places}
	}
	c.s = j.open(info)
	return c
}

// holdsCalls reports whether a rule may stop a tool call of an answer.
func (j *judgement) holdsCalls() bool {
	return j.side == guard.Response && j.chain.Strictest() > guard.Redact
}

// maxIdle is how many streams are kept to be used again.
const maxIdle = 4

// open begins a channel with a stream that another has done with, if there is
// one.
func (j *judgement) open(info guard.Channel) *guard.Stream {
	n := len(j.idle)
	if n == 0 {
		return j.chain.Open(j.ctx, info)
	}
	s := j.idle[n-1]
	j.idle = j.idle[:n-1]
	s.Reset(j.ctx, info)
	return s
}

// done takes a stream back that was closed.
func (j *judgement) done(s *guard.Stream) {
	if len(j.idle) < maxIdle {
		j.idle = append(j.idle, s)
	}
}

// write takes the channel's next text.
func (c *channel) write(p []byte) {
	if c.stop != nil || len(p) == 0 {
		return
	}
	if c.closed {
		c.reopen()
	}
	c.read += int64(len(p))
	if c.judge.recalls && c.info.Kind == guard.Reasoning {
		c.original = append(c.original, p...)
	}
	if c.memory != nil {
		c.memory.sum.Write(p)
	}
	if c.keeps {
		c.args = append(c.args, p...)
	}
	if c.proj != nil {
		p = c.proj.write(p)
	}
	c.show(p)
}

// halves joins a surrogate pair that the upstream cut in two: a piece may end
// with the first half, and the next one begin with the second. Both stay where
// they are; the rune they make comes between the pieces. It returns what the
// piece says beside them.
func (c *channel) halves(p *piece, raw, text []byte) []byte {
	if len(raw) == 0 {
		return text
	}
	if c.high != 0 {
		r := utf8.RuneError
		if low := surrogate(raw); low >= 0xdc00 {
			r = utf16.DecodeRune(c.high, low)
			p.at, raw, text = p.at+surrogateLen, raw[surrogateLen:], text[len("\ufffd"):]
		}
		c.high = 0
		if c.memory != nil {
			c.memory.between = append(c.memory.between, r)
		}
		c.write(utf8.AppendRune(nil, r))
	}
	if last := len(raw) - surrogateLen; last >= 0 && bytes.HasSuffix(text, []byte("\ufffd")) && unescaped(raw[:last]) {
		if high := surrogate(raw[last:]); high > 0 && high < 0xdc00 {
			c.high = high
			p.end, text = p.end-surrogateLen, text[:len(text)-len("\ufffd")]
		}
	}
	return text
}

// show gives the guards more text, but for what may become a placeholder.
func (c *channel) show(p []byte) {
	if c.back != nil {
		p = c.back.next(p)
	}
	c.judged(p)
}

func (c *channel) judged(p []byte) {
	if c.stand != nil {
		c.stand.text = append(c.stand.text, p...)
	}
	if n := len(p); n >= tailBytes {
		c.tail = append(c.tail[:0], p[n-tailBytes:]...)
	} else {
		if len(c.tail)+n > 2*tailBytes {
			c.tail = c.tail[:copy(c.tail, c.tail[len(c.tail)-tailBytes:])]
		}
		c.tail = append(c.tail, p...)
	}
	c.shown += int64(len(p))
	c.take(c.s.Write(p))
}

// close ends the channel's text, for all that is known.
func (c *channel) close() {
	if c.closed {
		return
	}
	if c.high != 0 {
		c.high = 0
		c.write([]byte("\ufffd"))
	}
	if c.proj != nil {
		if p := c.proj.close(); len(p) > 0 {
			c.show(p)
		}
	}
	if c.back != nil {
		c.judged(c.back.last())
	}
	c.closed = true
	c.take(c.s.Close())
	if c.judge.side == guard.Response { // of a request what is clean is not judged each time
		c.judge.outcome.wouldHold = max(c.judge.outcome.wouldHold, c.s.WouldHold())
	}
	c.judge.done(c.s)
	c.s = nil
	if c.ruled && c.stop == nil {
		c.rule()
	}
}

func (c *channel) reopen() {
	c.closed = false
	tail := c.tail[max(0, len(c.tail)-tailBytes):]
	c.base, c.resume = c.shown-int64(len(tail)), c.shown
	c.s = c.judge.open(c.info)
	c.take(c.s.Write(tail))
}

// take acts on what the chain says.
func (c *channel) take(step guard.Step) {
	for _, d := range step.Decisions {
		d.Start += c.base
		if d.End != guard.Open {
			d.End += c.base
		}
		if d.End <= c.resume && d.End != guard.Open && c.resume > 0 {
			continue // decided before
		}
		c.judge.decide(c.name, d)
	}
	settled, edits := step.Settled+c.base, step.Edits
	if c.stand != nil {
		if c.stand.take(step); !c.closed {
			settled, edits = 0, nil
		} else {
			edits = c.stand.replaced(c.within())
		}
	}
	for _, e := range edits {
		e.Start, e.End = max(e.Start+c.base, c.resume), e.End+c.base
		if e.Start >= e.End {
			continue
		}
		c.changed = true
		if c.back != nil {
			c.restore(c.back.before(e.Start))
			c.back.redacted(e.End)
		}
		c.replace(e)
	}
	if c.back != nil {
		c.restore(c.back.before(settled))
		settled = c.back.settled(settled)
	}
	if c.proj != nil {
		settled = c.proj.settle(settled)
	}
	c.settled = max(c.settled, settled)
	if step.Stop != nil && c.stop == nil {
		c.stop = step.Stop
		c.judge.outcome.stopped(c.name, step.Stop)
	}
}

// replace notes an edit of what the guards were shown.
func (c *channel) replace(e guard.Edit) {
	if c.proj != nil {
		c.edits = c.proj.find(c.edits, e)
	} else {
		c.edits = append(c.edits, edit{e.Start, e.End, e.Text})
		if c.original != nil {
			c.made = append(c.made, edit{e.Start, e.End, e.Text})
		}
	}
}

// within is how to tell whether a span lies in one value; nil of plain text.
func (c *channel) within() func(from, to int64) bool {
	if c.proj == nil {
		return nil
	}
	return c.proj.single
}

// leave notes that text has left up to to, of a piece that is written as raw.
func (c *channel) leave(raw []byte, p *piece, to int64) {
	if c.memory != nil {
		c.memory.leave(raw, p, to, c.edits)
		return
	}
	n := 0
	for n < len(c.edits) && c.edits[n].to <= to {
		n++
	}
	c.edits = c.edits[n:]
}

// leaveUnsent is leave for text that the frame it came in does not bring.
func (c *channel) leaveUnsent(raw []byte, p *piece, to int64) {
	if m := c.memory; m != nil {
		before := len(m.said)
		m.leave(raw, p, to, c.edits)
		m.unsent += len(m.said) - before
	}
}

// ready reports whether the channel's text before to may leave.
func (c *channel) ready(to int64) bool {
	return c.settled >= to && (!c.whole || c.closed)
}

// decide notes a decision.
func (j *judgement) decide(name string, d guard.Decision) {
	j.decisions = append(j.decisions, Decision{Channel: name, Decision: d})
	j.found++
	if d.Mode == guard.Enforce && d.Verdict == guard.Redact {
		j.outcome.redacted(name, d.Finding)
	}
}

// A screened text is what is to be done with it: nothing, edits, or a stop.
type screened struct {
	found       bool // anything, by any guard
	edits       []edit
	stop        *guard.Stop
	guard, rule string // of the first finding that asks for either
}

// What is remembered of strings that were screened whole: ids and the like come
// with every frame, and what was found in one is not found again in its copies.
const (
	maxSeen     = 64
	maxFound    = 1024
	maxSeenText = 256 // longer ones are remembered by their digest
)

// screen judges a text on its own. A text that comes again is judged, and its
// decisions recorded, once.
func (j *judgement) screen(name string, text []byte) screened {
	if len(text) == 0 {
		return screened{}
	}
	key := text
	var digest [sha256.Size]byte
	if len(text) > maxSeenText {
		digest = sha256.Sum256(text)
		key = digest[:]
	}
	if s, ok := j.seen[string(key)]; ok {
		if s.found {
			j.found++
		}
		return s
	}
	s := j.open(guard.Channel{Name: name, Side: j.side, Kind: guard.Field})
	var out screened
	shown := j.places.blank(text)
	stand := &standing{stand: j.stand, text: shown}
	j.note(&out, stand, name, s.Write(shown))
	j.note(&out, stand, name, s.Close())
	for _, e := range stand.spans() {
		out.edits = append(out.edits, edit{e.Start, e.End, e.Text})
	}
	out.stop = s.Stopped()
	j.done(s)
	if len(j.seen) < maxSeen || out.found && len(j.seen) < maxFound {
		j.seen[string(key)] = out
	}
	return out
}

// note adds to what is to be done with a text.
func (j *judgement) note(out *screened, stand *standing, name string, st guard.Step) {
	for _, d := range st.Decisions {
		out.found = true
		j.decide(name, d)
		if out.rule == "" && d.Mode == guard.Enforce && d.Verdict > guard.Allow {
			out.guard, out.rule = d.Guard, d.Rule
		}
	}
	stand.take(st)
}
