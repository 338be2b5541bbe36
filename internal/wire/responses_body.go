package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// responsesBody judges an unstreamed response. A stop cuts the item that it is
// in if people read it, and takes it out if not; what is behind goes.
func responsesBody(b *document, leaves []leaf) error {
	if err := b.fields(func(l *leaf) bool { return l.node.channel != "" }); err != nil {
		return err
	}
	items := elements(nil, leaves, "item")
	if len(items) > maxSeenItems {
		return &errRefused{what: "the answer has too many items"}
	}
	list := span{}
	if i := find(leaves, "items"); i >= 0 {
		list = span{leaves[i].from, leaves[i].to}
	}
	rest := leaves
	for n, at := range items {
		var within []leaf
		within, rest = inside(rest, at)
		it := responsesAnswer{document: b, prefix: "item/" + strconv.Itoa(n) + "/", leaves: within, texts: map[textKey]*channel{}}
		stopped := it.judge()
		if !stopped {
			continue
		}
		from := span{from: at.to}
		if !isTold(it.kind) {
			from = at
		}
		cut := without(b.doc, list, from)
		if isTold(it.kind) {
			cut.from = max(cut.from, at.to)
		}
		b.splices = append(b.splices, cut)
		b.incomplete(leaves)
		return nil
	}
	return nil
}

// responsesAnswer is an item of an unstreamed response.
type responsesAnswer struct {
	*document
	prefix string
	leaves []leaf
	kind   string
	tool   string
	texts  map[textKey]*channel
	args   []byte // for tool rules
}

// judge judges an item, and reports whether it was stopped.
func (it *responsesAnswer) judge() bool {
	for i := range it.leaves {
		l := &it.leaves[i]
		if l.node == nil || l.token != '"' {
			continue
		}
		switch l.node.channel {
		case "item-type":
			it.kind = string(it.content(it.doc, l))
		case "call-name":
			it.tool = string(it.content(it.doc, l))
		}
	}
	stopped := false
	for _, l := range it.inOrder() {
		if it.text(l) {
			if stopped = true; isTold(it.kind) {
				it.cut(l)
			}
			break
		}
	}
	if !stopped && it.ruleItem(it.prefix, it.kind, it.tool, it.args) != nil {
		stopped = true
	}
	it.places()
	return stopped
}

// inOrder is the texts of an item as streams say them: those of a part before
// its annotations.
func (it *responsesAnswer) inOrder() []*leaf {
	var texts []*leaf
	for i := range it.leaves {
		l := &it.leaves[i]
		if l.kind == Text && l.token == '"' && l.node.channel != "" || l.kind == JSON && (l.token == '"' || l.token == '{') {
			texts = append(texts, l)
		}
	}
	part := func(l *leaf) int32 {
		if strings.HasPrefix(l.node.channel, "content[]") {
			return l.idx[1]
		}
		return -1
	}
	slices.SortStableFunc(texts, func(a, c *leaf) int {
		return cmp.Or(cmp.Compare(part(a), part(c)), cmp.Compare(strings.Count(a.node.channel, "[]"), strings.Count(c.node.channel, "[]")))
	})
	return texts
}

func (it *responsesAnswer) key(l *leaf) textKey {
	key := textKey{role: l.node.channel}
	for k := 1; k < int(l.depth) && k <= len(key.at); k++ {
		key.at[k-1] = l.idx[k]
	}
	return key
}

// text judges a text of the item, and reports whether it was stopped.
func (it *responsesAnswer) text(l *leaf) bool {
	said := it.said(it.doc, l)
	if len(said) == 0 {
		return false
	}
	key := it.key(l)
	ch := it.listen(guard.Channel{Name: it.prefix + key.name(0), Kind: responsesKind(it.kind, key.role), Role: "assistant", Tool: it.tool}, l.kind == JSON)
	ch.memory = &memory{told: isTold(it.kind) && partText(key.role)}
	it.texts[key] = ch
	it.outcome.textSize += int64(len(said))
	size := int64(len(said)) // said is good until the next call
	if ch.info.Kind == guard.ToolArgs && it.ruled(cmp.Or(it.tool, it.kind)) {
		it.args = append(it.args, said...)
	}
	ch.write(said)
	ch.close()
	to := size
	if ch.stop != nil {
		to = min(ch.settled, size)
	}
	p := piece{to: size, at: l.from, end: l.to, bare: l.token != '"'}
	if !p.bare {
		p.at, p.end = l.from+1, l.to-1
	}
	raw := it.doc[p.at:p.end]
	if to < size || touched(ch.edits, 0, size) {
		it.splices = append(it.splices, splice{p.at, p.end, appendEdited(nil, raw, p.bare, 0, 0, to, ch.edits)})
	}
	ch.memory.leave(raw, &p, to, ch.edits)
	return ch.stop != nil && to < size
}

// cut takes out of an item what is behind a stop in one of its texts.
func (it *responsesAnswer) cut(at *leaf) {
	var list, part, notes, note span
	for i := range it.leaves {
		l := &it.leaves[i]
		if l.token != '{' || l.node == nil {
			continue
		}
		where := span{l.from, l.to}
		holds := l.from < at.from && l.to >= at.to
		switch role := l.node.channel; {
		case role == "content" && l.kind == Inner && holds:
			list = where
		case role == "content" && l.kind == Inner && l.from > at.to: // what is said after the summary
			it.splices = append(it.splices, splice{l.from, l.to, []byte("[]")})
		case role == "part" && holds:
			part = where
		case role == "annotations" && part.to > 0 && l.to <= part.to:
			notes = where
		case role == "annotation" && holds:
			note = where
		}
	}
	switch {
	case note.to > 0:
		it.splices = append(it.splices, without(it.doc, notes, note))
	case notes.to > 0:
		it.splices = append(it.splices, splice{notes.from, notes.to, []byte("[]")})
	}
	if list.to > 0 {
		cut := without(it.doc, list, span{from: part.to})
		cut.from = max(cut.from, part.to)
		it.splices = append(it.splices, cut)
	}
	for i := range it.leaves {
		if l := &it.leaves[i]; l.node != nil && l.node.channel == "item-status" && l.token == '"' {
			it.splices = append(it.splices, splice{l.from, l.to, []byte(`"incomplete"`)})
		}
	}
}

// places mends what depends on how a part's text leaves: numbers that count its
// runes, and its logprobs.
func (it *responsesAnswer) places() {
	for i := range it.leaves {
		l := &it.leaves[i]
		if l.node == nil || l.depth < 2 {
			continue
		}
		ch := it.texts[textKey{role: "content[].text", at: [3]int32{l.idx[1]}}]
		changed := ch != nil && (ch.changed || ch.stop != nil)
		switch role := l.node.channel; {
		case l.kind == Number && (role == "place" || role == "place-end") && changed:
			if n, ok := count(it.doc[l.from:l.to]); ok {
				it.splices = append(it.splices, splice{l.from, l.to, strconv.AppendInt(nil, ch.memory.place(n, role == "place-end"), 10)})
			}
		case l.token == '{' && role == "logprobs":
			where := span{l.from, l.to}
			if changed || !faithfulPart(it.judgement, it.doc, it.leaves, where) {
				it.splices = append(it.splices, splice{l.from, l.to, []byte("[]")})
			}
		}
	}
}

// incomplete says of a response that it is not all there.
func (b *document) incomplete(leaves []leaf) {
	const details = `{"reason":"content_filter"}`
	told := false
	for i := range leaves {
		switch l := &leaves[i]; {
		case l.node == nil || l.depth > 0:
		case l.node.channel == "status":
			b.splices = append(b.splices, splice{l.from, l.to, []byte(`"incomplete"`)})
		case l.node.channel == "incomplete":
			b.splices = append(b.splices, splice{l.from, l.to, []byte(details)})
			told = true
		}
	}
	if !told {
		b.splices = append(b.splices, adding(b.doc, len(b.doc), `"incomplete_details":`+details))
	}
}
