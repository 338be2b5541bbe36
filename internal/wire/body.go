package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

// A Body judges one unstreamed answer, in the channels that the streamed one
// would have had.
type Body struct {
	*judgement
	doc     []byte
	leaves  []leaf
	splices []splice
}

// Verdict is what became of a document.
type Verdict struct {
	// Doc is the document as it may leave; nil if it may not leave at all.
	Doc       []byte
	Decisions []Decision
	Outcome   Outcome
}

// Answer judges an unstreamed answer.
func (f *Format) Answer(opt Options, doc []byte) Verdict {
	return f.document(opt, doc, map[string]string{"openai-chat": "completion", "anthropic-messages": "message"}[f.name], f.body)
}

// Models judges a list of models.
func (f *Format) Models(opt Options, doc []byte) Verdict {
	return f.document(opt, doc, "models", func(b *Body, leaves []leaf) error { return b.fields(nil) })
}

func (f *Format) document(opt Options, doc []byte, name string, read func(*Body, []leaf) error) Verdict {
	b := &Body{judgement: newJudgement(opt.Context, opt.Chain, guard.Response), doc: doc}
	b.outcome.usage.Input, b.outcome.prior = opt.Input, opt.Redacted
	b.outcome.failure = opt.Failed
	var sc scanner
	leaves, err := sc.scan(doc, f.tables[name].root)
	switch b.leaves = leaves; {
	case err != nil:
		err = &errRefused{what: "the answer is not valid JSON: " + err.Error()}
	case !isObject(doc):
		err = &errRefused{what: "the answer is not a JSON object"}
	default:
		err = read(b, leaves)
	}
	if err != nil {
		b.outcome.failed(err.Error())
		var r *errRefused
		if errors.As(err, &r) && r.stop != nil {
			b.outcome.refused = true
			b.outcome.stopped("", r.stop)
		}
		return Verdict{Decisions: b.decisions, Outcome: b.outcome.result()}
	}
	out := applySplices(nil, doc, b.splices)
	o := b.outcome.result()
	if o.Status != Allowed {
		out = withMember(out, appendStoplog(nil, opt.Run, o))
	}
	return Verdict{Doc: out, Decisions: b.decisions, Outcome: o}
}

// fields screens what is no channel. channel says what else is none.
func (b *Body) fields(channel func(leaf) bool) error {
	for _, l := range b.leaves {
		switch l.kind {
		case Opaque, Copy, Alt, Bytes, JSON:
			continue
		case Text:
			if channel != nil && channel(l) {
				continue
			}
			l.kind, l.path = Unknown, l.node.path
		case Number:
			b.outcome.count(l.node.channel, b.doc[l.from:l.to])
		}
		sp, err := b.whole(b.doc, l)
		if err != nil {
			return err
		}
		if sp.to > 0 {
			b.splices = append(b.splices, sp)
		}
	}
	return nil
}

// text is a piece of a channel in a document.
type text struct {
	leaf
	name string
	kind guard.Kind
	tool string
	rank int
	elem span // what leaves the document if the text may not be in it at all,
	list span // an element of this array
}

// say judges texts in order and splices what findings change. It returns the
// index of the text that a stop cut, or -1. Texts of one name are one channel.
func (b *Body) say(texts []text) (stopped int) {
	for i := 0; i < len(texts); {
		n := i + 1
		for n < len(texts) && texts[n].name == texts[i].name {
			n++
		}
		if k := b.channelText(texts[i:n]); k >= 0 {
			return i + k
		}
		i = n
	}
	return -1
}

func (b *Body) channelText(texts []text) (stopped int) {
	ch := b.channel(texts[0].name, texts[0].kind, "assistant", texts[0].tool)
	ends := make([]int64, len(texts))
	for i, t := range texts {
		said := b.said(b.doc, t.leaf)
		b.outcome.textSize += int64(len(said))
		ch.write(said)
		ends[i] = ch.read
	}
	ch.close()
	from := int64(0)
	for i, t := range texts {
		to := ends[i]
		cut := ch.stop != nil && (to > ch.settled || ch.whole)
		if cut {
			to = max(from, ch.settled)
		}
		if cut && ch.whole {
			return i
		}
		if _, ok := covering(ch.edits, from, ends[i]); ok || cut {
			at, end, bare := t.from, t.to, t.token != '"'
			if !bare {
				at, end = at+1, end-1
			}
			said := appendEdited(nil, b.doc[at:end], bare, from, from, to, ch.edits)
			b.splices = append(b.splices, splice{at, end, said})
		}
		if cut {
			return i
		}
		from = to
	}
	return -1
}

// changed reports whether what the document says between two places changed.
func (b *Body) changed(from, to int) bool {
	return slices.ContainsFunc(b.splices, func(s splice) bool { return s.from >= from && s.to <= to })
}

// drop takes out of the document what stands behind a stop: elements of
// arrays, other structures, and the words of strings. The text that the stop
// cut is the first; all of it goes if whole.
func (b *Body) drop(texts []text, whole bool) {
	for i, t := range texts {
		switch {
		case i == 0 && !whole:
		case t.list.to > 0:
			b.splices = append(b.splices, without(b.doc, t.list, t.elem))
		case t.elem.to > 0:
			b.splices = append(b.splices, splice{t.elem.from, t.elem.to, []byte("null")})
		case t.token == '"':
			b.splices = append(b.splices, splice{t.from + 1, t.to - 1, nil})
		}
	}
}

func openaiBody(b *Body, leaves []leaf) error {
	if err := b.fields(func(leaf) bool { return true }); err != nil {
		return err
	}
	choices := elements(leaves, "choice")
	if len(choices) > maxChoices {
		return &errRefused{what: fmt.Sprintf("the answer has more than %d choices", maxChoices)}
	}
	for _, c := range choices {
		var within []leaf
		within, leaves = inside(leaves, c)
		openaiAnswer(b, within)
	}
	return nil
}

// inside cuts leaves, which are in order, into those of a part of the document
// and those after it.
func inside(leaves []leaf, part span) (within, after []leaf) {
	from := sort.Search(len(leaves), func(i int) bool { return leaves[i].from >= part.from })
	to := sort.Search(len(leaves), func(i int) bool { return leaves[i].from >= part.to })
	return leaves[from:to], leaves[to:]
}

// openaiAnswer judges one choice of an unstreamed answer.
func openaiAnswer(b *Body, leaves []leaf) {
	var index int64
	if i := find(leaves, "index"); i >= 0 {
		index, _ = count(b.doc[leaves[i].from:leaves[i].to])
	}
	prefix := "choice/" + strconv.FormatInt(index, 10) + "/"
	var texts []text
	var calls, call span
	tool := map[int32]string{}
	for _, l := range leaves {
		if l.node != nil && l.node.channel == "call-name" && l.token == '"' && l.depth > 1 {
			tool[l.idx[1]] = string(b.content(b.doc, l))
		}
	}
	for _, l := range leaves {
		if l.node == nil {
			continue
		}
		switch l.node.channel {
		case "calls":
			calls = span{l.from, l.to}
		case "call":
			call = span{l.from, l.to}
		}
		if l.kind != Text && l.kind != JSON || l.token != '"' && l.token != '{' {
			continue
		}
		t := text{leaf: l, name: prefix + l.node.channel, kind: guard.Reasoning, rank: openaiRank(l)}
		switch l.node.channel {
		case "content":
			t.kind = guard.Text
		case "refusal":
			t.kind = guard.Refusal
		case "arguments":
			t.kind, t.name, t.elem = guard.ToolArgs, prefix+"function_call/arguments", call
			if l.depth > 1 {
				t.name = prefix + "tool/" + strconv.Itoa(int(l.idx[1])) + "/arguments"
				t.tool, t.list = tool[l.idx[1]], calls
			}
		}
		texts = append(texts, t)
	}
	slices.SortStableFunc(texts, func(a, c text) int { return cmp.Compare(a.rank, c.rank) })
	before := len(b.splices)
	stopped := b.say(texts)
	if stopped >= 0 {
		whole := texts[stopped].kind == guard.ToolArgs && b.chain.Strictest() > guard.Redact
		b.drop(texts[stopped:], whole)
		if texts[stopped].rank < openaiCallRank && calls.to > 0 {
			b.splices = append(b.splices, splice{calls.from, calls.to, []byte("null")})
		}
		for _, l := range leaves {
			if l.kind == Unknown && l.token == '"' {
				b.splices = append(b.splices, splice{l.from + 1, l.to - 1, nil})
			}
		}
		if i := find(leaves, "finish"); i >= 0 {
			b.splices = append(b.splices, splice{leaves[i].from, leaves[i].to, []byte(`"content_filter"`)})
		}
	}
	if i := find(leaves, "logprobs"); i >= 0 && leaves[i].token == '{' {
		at := span{leaves[i].from, leaves[i].to}
		if len(b.splices) > before || !faithful(b.judgement, b.doc, leaves, at) {
			b.splices = append(b.splices, splice{at.from, at.to, []byte("null")})
		}
	}
}

func anthropicBody(b *Body, leaves []leaf) error {
	inBlock := func(l leaf) bool {
		switch l.node.channel {
		case "text", "thinking", "citation", "result":
			return true
		}
		return false
	}
	if err := b.fields(inBlock); err != nil {
		return err
	}
	content := span{}
	if i := find(leaves, "content"); i >= 0 {
		content = span{leaves[i].from, leaves[i].to}
	}
	rest := leaves
	for n, block := range elements(leaves, "block") {
		var within []leaf
		within, rest = inside(rest, block)
		if anthropicBlockBody(b, n, within, inBlock, block, content) {
			cut := without(b.doc, content, span{from: block.to})
			cut.from = max(cut.from, block.to)
			b.splices = append(b.splices, cut)
			b.refusal(leaves)
			return nil
		}
	}
	return nil
}

// anthropicBlockBody judges a block, and reports whether it was stopped.
func anthropicBlockBody(b *Body, n int, leaves []leaf, inBlock func(leaf) bool, block, content span) bool {
	prefix := "block/" + strconv.Itoa(n) + "/"
	var texts []text
	var cite, cites span
	tool, citations := "", 0
	for _, l := range leaves {
		if l.node == nil {
			continue
		}
		switch l.node.channel {
		case "call-name":
			if l.token == '"' {
				tool = string(b.content(b.doc, l))
			}
		case "citations":
			cites = span{l.from, l.to}
		}
		if l.node.channel == "citation" && l.token == '{' {
			cite = span{l.from, l.to}
		}
		t := text{leaf: l, name: prefix + l.node.channel, kind: guard.Text}
		switch {
		case l.kind == JSON && (l.token == '{' || l.token == '"'):
			t.kind, t.elem, t.list = guard.ToolArgs, block, content
		case l.kind != Text || l.token != '"' || !inBlock(l) || l.to-l.from == 2:
			continue
		case l.node.channel == "thinking":
			t.kind = guard.Reasoning
		case l.node.channel == "result":
			t.kind = guard.ToolResult
		case l.node.channel == "citation":
			t.kind, t.rank, t.elem, t.list = guard.Document, -1, cite, cites
			t.name = prefix + "citation/" + strconv.Itoa(citations)
			citations++
		}
		texts = append(texts, t)
	}
	slices.SortStableFunc(texts, func(a, c text) int { return cmp.Compare(a.rank, c.rank) })
	for i := range texts {
		texts[i].tool = tool
	}
	stopped := b.say(texts)
	if stopped >= 0 {
		t := texts[stopped]
		b.drop(texts[stopped:], t.kind == guard.Document || t.kind == guard.ToolArgs && b.chain.Strictest() > guard.Redact)
	}
	if i := find(leaves, "signature"); i >= 0 && leaves[i].token == '"' && b.changed(block.from, block.to) {
		b.splices = append(b.splices, splice{leaves[i].from, leaves[i].to, []byte(`""`)})
	}
	return stopped >= 0
}

// refusal makes the answer end as one that was refused.
func (b *Body) refusal(leaves []leaf) {
	for _, l := range leaves {
		switch {
		case l.node == nil:
		case l.node.channel == "finish":
			b.splices = append(b.splices, splice{l.from, l.to, []byte(`"refusal"`)})
		case l.node.channel == "stop_sequence":
			b.splices = append(b.splices, splice{l.from, l.to, []byte("null")})
		}
	}
}

// Error returns the body of an error answer in the format's own words.
func (f *Format) Error(e Error) []byte { return f.appendError(nil, e) }
