package wire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/stoplog/stoplog/internal/sse"
)

// A frame is an event on its way to the client.
type frame struct {
	raw     []byte // the whole frame as it came, mended
	dataAt  int    // where payload stands in raw, -1 if on several lines
	payload []byte
	event   []byte // its name
	owned   bool   // what it holds is its own, in store, not the scanner's
	store   []byte
	gone    bool // it has left, or never will

	seq      int64
	pieces   []piece  // in the order of their channels
	splices  []splice // made however the frame leaves
	text     []splice // of pieces, made as they leave
	apart    bool     // says nothing but a piece of text: it may leave in parts
	logprobs span     // dropped where the text changes; {0,0} if there are none
	padding  span     // what hides how long the text is; new where it changes
	atomic   bool     // of what it says nothing leaves unless all does
	about    *about   // what OpenAI responses know of it; nil elsewhere
	finish   span     // why the answer ended, where it says so
	// signs is the text that the frame's signature is of: if that changed the
	// frame never leaves, or without the signature if that has a place.
	signs     *channel
	signature span
}

// A piece is a part of a channel's text in a frame.
type piece struct {
	ch       *channel
	from, to int64 // in the channel
	at, end  int   // in the payload; inside the quotes
	bare     bool  // a document that stands in the payload as it is
	elem     span  // the tool call it belongs to,
	list     span  // in this array
	sent     int64 // what lies before has left already
}

// A splice replaces a part of a payload.
type splice struct {
	from, to int
	with     []byte
}

// own copies what belongs to the scanner.
func (f *frame) own() {
	if f.owned {
		return
	}
	f.owned = true
	n, m := len(f.raw), len(f.payload)
	f.store = append(append(append(f.store[:0], f.raw...), f.event...), f.payload...)
	if f.dataAt >= 0 {
		f.store = f.store[:len(f.store)-m]
		f.payload = f.store[f.dataAt : f.dataAt+m]
	} else {
		f.payload = f.store[len(f.store)-m:]
	}
	f.raw, f.event = f.store[:n], f.store[n:n+len(f.event)]
}

// ready reports whether everything in the frame may leave.
func (f *frame) ready() bool {
	if f.signs != nil && !f.signs.ready(f.signs.read) {
		return false
	}
	for _, p := range f.pieces {
		if !p.ch.ready(p.to) {
			return false
		}
	}
	return true
}

// stopped is the index of the first piece that a stop cuts, or -1.
func (f *frame) stopped() int {
	return slices.IndexFunc(f.pieces, func(p piece) bool {
		return p.ch.stop != nil && (p.to > p.ch.settled || p.ch.whole)
	})
}

// edited reports whether what the frame says has changed.
func (f *frame) edited() bool {
	for _, p := range f.pieces {
		if p.sent > p.from || touched(p.ch.edits, p.from, p.to) {
			return true
		}
	}
	return false
}

// appendTo appends the frame as it leaves: as it came, if nothing touched it,
// or with its payload changed. member is added to the payload if not nil.
func (f *frame) appendTo(dst []byte, member []byte) []byte {
	changed := f.edited()
	if changed {
		f.unlog()
	}
	if !changed && len(f.splices) == 0 && member == nil {
		for i := range f.pieces {
			p := &f.pieces[i]
			p.ch.leave(f.payload[p.at:p.end], p, p.to)
		}
		return append(dst, f.raw...)
	}
	for i := range f.pieces {
		f.edit(&f.pieces[i], f.pieces[i].to)
	}
	if changed {
		f.pad()
	}
	return f.spliced(dst, member)
}

// edit splices what leaves of a piece now, up to to.
func (f *frame) edit(p *piece, to int64) {
	raw := f.payload[p.at:p.end]
	text := appendEdited(nil, raw, p.bare, p.from, max(p.from, p.sent), to, p.ch.edits)
	f.text = append(f.text, splice{p.at, p.end, text})
	p.ch.leave(raw, p, to)
	p.sent = to
}

// appendStopped appends what leaves of a frame of which a stop cut the piece
// k: the text before it, and nothing if there is none.
func (f *frame) appendStopped(dst []byte, k int) []byte {
	if p := f.pieces[k]; p.ch.whole && p.list.to == 0 && p.elem.to == 0 {
		return dst // the frame stands for what may not leave
	}
	if f.atomic {
		for i := range f.pieces[:k+1] { // what it says up to the stop, the end will say
			p := &f.pieces[i]
			p.ch.leaveUnsent(f.payload[p.at:p.end], p, min(p.to, p.ch.settled))
		}
		return dst
	}
	size := 0
	for i := range f.pieces {
		p := &f.pieces[i]
		to := p.to
		if i == k {
			to = min(p.to, max(p.from, p.ch.settled))
		}
		if i > k || i == k && p.ch.whole {
			to = p.from
			if p.list.to > 0 {
				f.text = append(f.text, without(f.payload, p.list, p.elem))
			} else {
				f.null(p.elem)
			}
		}
		f.edit(p, to)
		size += len(f.text[len(f.text)-1].with)
	}
	if size == 0 {
		return dst
	}
	f.null(f.finish)
	f.unlog()
	f.pad()
	return f.spliced(dst, nil)
}

// unlog drops the logprobs of a text that changed.
func (f *frame) unlog() {
	if at := f.logprobs; at.to > 0 && f.payload[at.from] == '[' {
		f.text = append(f.text, splice{at.from, at.to, []byte("[]")}) // as a client wants them
		return
	}
	f.null(f.logprobs)
}

// padded is the length that padding brings texts to a multiple of.
const padded = 16

// pad makes new padding for a text that changed: the old one says how long the
// text was.
func (f *frame) pad() {
	if f.padding.to == 0 {
		return
	}
	size := 0
	for _, s := range f.text {
		size += len(s.with)
	}
	f.text = append(f.text, splice{f.padding.from + 1, f.padding.to - 1, bytes.Repeat([]byte("0"), padded-size%padded)})
}

// null puts null in the place of a value, if it is there.
func (f *frame) null(at span) {
	if at.to > 0 {
		f.text = append(f.text, splice{at.from, at.to, []byte("null")})
	}
}

// without removes from an array the elements from one on.
func without(doc []byte, list, elem span) splice {
	from := elem.from
	for from > list.from+1 && (doc[from-1] == ',' || isSpace(doc[from-1])) {
		from--
	}
	return splice{from, list.to - 1, nil}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// spliced appends the frame with its splices made, and uses up those of the
// text that leaves with it.
func (f *frame) spliced(dst []byte, member []byte) []byte {
	f.text = append(f.text, f.splices...)
	payload := applySplices(nil, f.payload, f.text)
	f.text = f.text[:0]
	if member != nil {
		payload = withMember(payload, member)
	}
	if f.dataAt < 0 {
		return sse.AppendEvent(dst, string(f.event), payload)
	}
	dst = append(dst, f.raw[:f.dataAt]...)
	dst = append(dst, payload...)
	return append(dst, f.raw[f.dataAt+len(f.payload):]...)
}

// applySplices appends doc with the splices made. They do not overlap, unless
// one lies in another: then the outer is made.
func applySplices(dst, doc []byte, splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	at := 0
	for _, s := range splices {
		if s.from < at {
			continue
		}
		dst = append(dst, doc[at:s.from]...)
		dst = append(dst, s.with...)
		at = s.to
	}
	return append(dst, doc[at:]...)
}

// partial reports whether a part of the frame could leave before the rest.
func (f *frame) partial() bool {
	if !f.apart || len(f.pieces) != 1 {
		return false
	}
	p := &f.pieces[0]
	return p.ch.settled > max(p.from, p.sent) && p.ch.settled < p.to
}

// appendPart appends the part that is settled; the rest stays.
func (f *frame) appendPart(dst []byte) []byte {
	f.edit(&f.pieces[0], f.pieces[0].ch.settled)
	f.unlog()
	f.pad()
	return f.spliced(dst, nil)
}
