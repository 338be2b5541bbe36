package wire

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

func anthropicBody(b *document, leaves []leaf) error {
	if err := b.fields(inBlock); err != nil {
		return err
	}
	content := span{}
	if i := find(leaves, "content"); i >= 0 {
		content = span{leaves[i].from, leaves[i].to}
	}
	rest := leaves
	for n, block := range elements(nil, leaves, "block") {
		var within []leaf
		within, rest = inside(rest, block)
		if anthropicBlockBody(b, n, within, block, content) {
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
func anthropicBlockBody(b *document, n int, leaves []leaf, block, content span) bool {
	texts := anthropicTexts(b, n, leaves, block, content)
	stopped := b.say(texts)
	if stopped >= 0 {
		kind := texts[stopped].kind
		b.drop(texts[stopped:], b.leavesWhole(kind, texts[stopped].tool))
	}
	if i := find(leaves, "signature"); i >= 0 && leaves[i].token == '"' && b.changed(block.from, block.to) {
		b.remember(leaves, &leaves[i])
		b.splices = append(b.splices, splice{leaves[i].from, leaves[i].to, []byte(`""`)})
	}
	return stopped >= 0
}

// anthropicTexts is what a block says. Citations come before the text, as they
// do in streams.
func anthropicTexts(b *document, n int, leaves []leaf, block, content span) (texts []text) {
	prefix := "block/" + strconv.Itoa(n) + "/"
	var cite, cites span
	tool, citations := "", 0
	for _, l := range leaves {
		if l.node == nil {
			continue
		}
		role := l.node.channel
		switch {
		case role == "call-name" && l.token == '"':
			tool = string(b.content(b.doc, &l))
		case role == "citations":
			cites = span{l.from, l.to}
		case role == "citation" && l.token == '{':
			cite = span{l.from, l.to}
		}
		t := text{leaf: l, name: prefix + role, kind: guard.Text}
		switch {
		case l.kind == JSON && (l.token == '{' || l.token == '"'):
			t.kind, t.elem, t.list = guard.ToolArgs, block, content
		case l.kind != Text || l.token != '"' || !inBlock(&l) || l.to-l.from == len(`""`):
			continue
		case role == "thinking":
			t.kind = guard.Reasoning
		case role == "result":
			t.kind = guard.ToolResult
		case role == "citation":
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
	return texts
}

// refusal makes the answer end as one that was refused.
func (b *document) refusal(leaves []leaf) {
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
