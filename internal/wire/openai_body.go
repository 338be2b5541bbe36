package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

func openaiBody(b *document, leaves []leaf) error {
	if err := b.fields(func(*leaf) bool { return true }); err != nil {
		return err
	}
	choices := elements(nil, leaves, "choice")
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

// openaiAnswer judges one choice of an unstreamed answer.
func openaiAnswer(b *document, leaves []leaf) {
	before := len(b.splices)
	texts, calls := openaiTexts(b, leaves)
	if stopped := b.say(texts); stopped >= 0 {
		openaiStop(b, leaves, texts[stopped:], calls)
	}
	if i := find(leaves, "logprobs"); i >= 0 && leaves[i].token == '{' {
		at := span{leaves[i].from, leaves[i].to}
		if len(b.splices) > before || !faithful(b.judgement, b.doc, leaves, at) {
			b.splices = append(b.splices, splice{at.from, at.to, []byte("null")})
		}
	}
}

// openaiTexts is what a choice says, in the order of its channels, and where
// its tool calls stand.
func openaiTexts(b *document, leaves []leaf) (texts []text, calls span) {
	var index int64
	if i := find(leaves, "index"); i >= 0 {
		index, _ = count(b.doc[leaves[i].from:leaves[i].to])
	}
	prefix := "choice/" + strconv.FormatInt(index, 10) + "/"
	tools := map[int32]string{}
	for _, l := range leaves {
		if l.node != nil && l.node.channel == "call-name" && l.token == '"' && l.depth > 1 {
			tools[l.idx[1]] = string(b.content(b.doc, &l))
		}
	}
	var call span
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
		t := text{leaf: l, name: prefix + l.node.channel, kind: guard.Reasoning, rank: openaiRank(&l)}
		switch l.node.channel {
		case "content", "transcript":
			t.kind = guard.Text
		case "refusal":
			t.kind = guard.Refusal
		case "arguments":
			t.kind, t.name, t.elem = guard.ToolArgs, prefix+"function_call/arguments", call
			if l.depth > 1 {
				t.name = prefix + "tool/" + strconv.Itoa(int(l.idx[1])) + "/arguments"
				t.tool, t.list = tools[l.idx[1]], calls
			}
		}
		texts = append(texts, t)
	}
	slices.SortStableFunc(texts, func(a, c text) int { return cmp.Compare(a.rank, c.rank) })
	return texts, calls
}

// openaiStop takes out of a choice what stands behind a stop, which cut the
// first of the texts, and says how it ended.
func openaiStop(b *document, leaves []leaf, texts []text, calls span) {
	b.drop(texts, b.leavesWhole(texts[0].kind, texts[0].tool))
	if texts[0].rank < openaiCallRank && calls.to > 0 {
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
