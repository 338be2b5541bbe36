package wire

import (
	"errors"
	"slices"
	"sort"

	"github.com/stoplog/stoplog/guard"
)

// A document is a request or an unstreamed answer being judged, in the channels that the streamed one
// would have had.
type document struct {
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
	// Thoughts are those of an answer that it has changed.
	Thoughts []Thought
}

// Answer judges an unstreamed answer.
func (f *Format) Answer(opt Options, doc []byte) Verdict {
	return f.document(opt, doc, f.answer, f.body)
}

// Models judges a list of models, or one model.
func (f *Format) Models(opt Options, doc []byte) Verdict {
	return f.document(opt, doc, "models", plainBody)
}

// plainBody judges an answer that has no channels.
func plainBody(b *document, _ []leaf) error { return b.fields(nil) }

func (f *Format) document(opt Options, doc []byte, name string, read func(*document, []leaf) error) Verdict {
	b := &document{judgement: newJudgement(opt.Context, opt.Chain, guard.Response), doc: doc}
	b.places, b.calls = opt.Restore, opt.Calls
	b.outcome.approval, b.outcome.why = opt.Approval, opt.Why
	b.outcome.asked, b.outcome.prior = opt.Input, opt.Redacted
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
	out := doc
	if len(b.splices) > 0 {
		out = applySplices(make([]byte, 0, len(doc)), doc, b.splices)
	}
	o := b.outcome.result()
	if member := opt.told(o); member != nil {
		out = withMember(out, member)
	}
	return Verdict{Doc: out, Decisions: b.decisions, Outcome: o, Thoughts: b.thoughts}
}

// fields screens what is no channel. channel says what else is none.
func (b *document) fields(channel func(*leaf) bool) error {
	for i := range b.leaves {
		l := &b.leaves[i]
		switch l.kind {
		case Opaque, Copy, Alt, Bytes, JSON:
			continue
		case Text:
			if channel != nil && channel(l) {
				continue
			}
			l = l.unknown()
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
func (b *document) say(texts []text) (stopped int) {
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

func (b *document) channelText(texts []text) (stopped int) {
	ch := b.channel(texts[0].name, texts[0].kind, "assistant", texts[0].tool)
	ends := make([]int64, len(texts))
	for i, t := range texts {
		said := b.said(b.doc, &t.leaf)
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
		if cut || touched(ch.edits, from, ends[i]) {
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
func (b *document) changed(from, to int) bool {
	return slices.ContainsFunc(b.splices, func(s splice) bool { return s.from >= from && s.to <= to })
}

// drop takes out of the document what stands behind a stop: elements of
// arrays, other structures, and the words of strings. The text that the stop
// cut is the first; all of it goes if whole.
func (b *document) drop(texts []text, whole bool) {
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

// inside cuts leaves, which are in order, into those of a part of the document
// and those after it.
func inside(leaves []leaf, part span) (within, after []leaf) {
	from := sort.Search(len(leaves), func(i int) bool { return leaves[i].from >= part.from })
	to := sort.Search(len(leaves), func(i int) bool { return leaves[i].from >= part.to })
	return leaves[from:to], leaves[to:]
}

// Error returns the body of an error answer in the format's own words.
func (f *Format) Error(e Error) []byte { return f.appendError(nil, e) }
