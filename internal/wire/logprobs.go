package wire

import "bytes"

// logprobs judges what a chunk says about its tokens. They repeat the chunk's
// text, so they are not judged again: they pass where they do repeat it and it
// leaves as it came; otherwise null stands in for them. Alternatives that were
// not chosen are screened, each on its own.
func (d *openaiStream) logprobs(s *Stream, f *frame, leaves []leaf) {
	i := find(leaves, "logprobs")
	if i < 0 || leaves[i].token != '{' {
		return
	}
	at := span{leaves[i].from, leaves[i].to}
	if faithful(s.judgement, f.payload, leaves, at) {
		f.logprobs = at
		return
	}
	f.splices = append(f.splices, splice{at.from, at.to, []byte("null")})
}

// faithful reports whether the logprobs at a place repeat the text of the
// document's fields content and refusal, and nothing in them has a finding.
func faithful(j *judgement, doc []byte, leaves []leaf, at span) bool {
	return repeats(j, doc, leaves, at, "content", "content") && repeats(j, doc, leaves, at, "refusal", "refusal") &&
		cleanAlternatives(j, doc, leaves, at)
}

// faithfulPart is faithful for the text of a part of a response's item. Copies
// of a text may come without their logprobs: they have no tokens then.
func faithfulPart(j *judgement, doc []byte, leaves []leaf, at span) bool {
	if string(doc[at.from:at.to]) == "[]" {
		return true
	}
	for i := range leaves {
		if l := &leaves[i]; l.token == '{' && l.node.channel == "part" && l.from < at.from && l.to >= at.to {
			leaves, _ = inside(leaves, span{l.from, l.to})
			break
		}
	}
	return repeats(j, doc, leaves, at, "content[].text", "said") && cleanAlternatives(j, doc, leaves, at)
}

// repeats reports whether tokens, and their bytes, at a place repeat a text.
func repeats(j *judgement, doc []byte, leaves []leaf, at span, of, by string) bool {
	var text, tokens, codes []byte
	told := false // the tokens are there, their bytes too
	coded := false
	for _, l := range leaves {
		if l.node == nil || l.node.channel != of && l.node.channel != by {
			continue
		}
		inside := l.from >= at.from && l.to <= at.to
		switch {
		case l.kind == Text && l.token == '"' && !inside:
			text = append(text, j.content(doc, &l)...)
		case l.kind == Copy && inside:
			told = true
			tokens = append(tokens, j.content(doc, &l)...)
		case l.kind == Bytes && inside:
			coded = true
			n, ok := count(doc[l.from:l.to])
			if !ok || n > 255 {
				return false
			}
			codes = append(codes, byte(n))
		}
	}
	return (!told || bytes.Equal(tokens, text)) && (!coded || bytes.Equal(codes, text))
}

func cleanAlternatives(j *judgement, doc []byte, leaves []leaf, at span) bool {
	var codes []byte
	clean := func(text []byte) bool {
		r := j.screen("logprobs", text)
		return r.stop == nil && r.edits == nil
	}
	for _, l := range leaves {
		if l.from < at.from || l.to > at.to || l.node == nil || l.node.channel != "" {
			continue
		}
		switch l.kind {
		case Alt:
			if l.token == '"' && !clean(j.content(doc, &l)) {
				return false
			}
		case Bytes:
			n, ok := count(doc[l.from:l.to])
			if !ok || n > 255 {
				return false
			}
			if l.idx[l.depth-1] == 0 {
				if !clean(codes) {
					return false
				}
				codes = codes[:0]
			}
			codes = append(codes, byte(n))
		}
	}
	return clean(codes)
}
