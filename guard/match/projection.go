package match

import (
	"context"
	"encoding/binary"
	"sort"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// projected is a screen that judges the projection of a text, and says of the
// text what that screen says of it.
//
//	text        g h ZWSP p _ ESC[1m 1 2 …      settled, findings
//	             │         │                        ▲
//	             ▼         ▼                        │ marks
//	projection  g h   p _          1 2 …  ────► screen
type projected struct {
	screen   judging
	disguise *disguise
	rest     []byte // the start of what may be hidden, not read yet
	hidden   int    // bytes that were left out behind the last rune
	coloured bool   // the last of them an escape sequence
	text     []byte // of the projection, during a call
	length   int64  // of the projection
	marks    []mark
	cut      []opened // findings whose end is not known
	out      []guard.Finding
}

// A mark is a place in the projection, and where in the text the rune before it
// ends and the rune behind it starts. From there to the next mark both go on alike.
// What is before the first mark is settled.
type mark struct{ at, end, start int64 }

// opened is a finding that was reported without its end.
type opened struct {
	rule     string
	at, from int64 // its start in the projection and in the text
}

// judging is the screen of a projection.
type judging interface {
	guard.Screen
	guard.Resetter
	// more takes text of which nothing is said before the next call.
	more(p []byte)
	// masked says whether what is settled is all that was read, and a finding goes
	// on there.
	masked(settled int64) bool
}

// mostMarks is how many marks a screen keeps room for that has none.
const mostMarks = 256

func newProjected(s judging, d *disguise) *projected {
	return &projected{screen: s, disguise: d, marks: make([]mark, 1, 4)}
}

// Reset implements [guard.Resetter].
func (p *projected) Reset(ctx context.Context, ch guard.Channel) {
	p.screen.Reset(ctx, ch)
	p.rest, p.hidden, p.coloured, p.text, p.length = p.rest[:0], 0, false, p.text[:0], 0
	p.marks, p.cut = append(p.marks[:0], mark{}), p.cut[:0]
}

// Write implements [guard.Screen].
func (p *projected) Write(text []byte) (guard.Progress, error) {
	if len(p.rest) == 0 && p.disguise.skip(text, 0) == len(text) {
		p.length += int64(len(text))
		if len(text) > 0 {
			p.hidden, p.coloured = 0, false
		}
		said, err := p.screen.Write(text)
		return p.back(said), err
	}
	p.out = p.out[:0]
	for {
		n := min(len(text), blockSize)
		said, err := p.block(text[:n])
		text = text[n:]
		if len(text) == 0 && len(p.out) == 0 {
			return said, err
		}
		p.out = append(p.out, said.Findings...)
		said.Findings = p.out
		if len(text) == 0 || err != nil {
			return said, err
		}
	}
}

// block is Write of a text that is not long.
func (p *projected) block(text []byte) (guard.Progress, error) {
	p.text = p.text[:0]
	if before := len(p.rest); before > 0 {
		more := min(len(text), MostHidden) // enough to tell
		p.rest = append(p.rest, text[:more]...)
		read := p.project(p.rest, false)
		if more == len(text) {
			p.rest = p.rest[:copy(p.rest, p.rest[read:])]
			text = nil
		} else {
			p.rest, text = p.rest[:0], text[read-before:]
		}
	}
	if len(text) > 0 {
		read := p.project(text, false)
		p.rest = append(p.rest, text[read:]...)
	}
	said, err := p.screen.Write(p.text)
	return p.back(said), err
}

// Close implements [guard.Screen].
func (p *projected) Close() (guard.Progress, error) {
	p.text = p.text[:0]
	p.project(p.rest, true)
	p.screen.more(p.text)
	said, err := p.screen.Close()
	return p.back(said), err
}

// project appends the projection of text to p.text and says how much it has read:
// all, but for the start of what more text may complete.
func (p *projected) project(text []byte, last bool) int {
	d := p.disguise
	for i := 0; i < len(text); {
		n := d.skip(text, i) - i
		if p.keep(text[i : i+n]); i+n == len(text) {
			break
		}
		i += n
		as, n := d.at(text[i:], p.coloured)
		if n == 0 && !last {
			return i
		}
		if n == 0 || as == hidden && p.hidden+n > MostHidden {
			as = 0
			_, n = utf8.DecodeRune(text[i:])
		}
		switch as {
		case 0:
			p.keep(text[i : i+n])
		case hidden:
			p.hide(n)
			p.coloured = text[i] == escape
		default:
			p.stand(byte(as), n)
		}
		i += n
	}
	return len(text)
}

// plain is the projection of a whole text.
func (d *disguise) plain(text string) string {
	p := newProjected(nil, d)
	p.project([]byte(text), true)
	return string(p.text)
}

// keep adds text that stands for itself.
func (p *projected) keep(text []byte) {
	if len(text) == 0 {
		return
	}
	p.text = append(p.text, text...)
	p.length += int64(len(text))
	p.hidden, p.coloured = 0, false
}

// stand adds an ASCII character that stands for n bytes.
func (p *projected) stand(as byte, n int) {
	end := p.end().start + int64(n)
	p.text = append(p.text, as)
	p.length++
	p.hidden, p.coloured = 0, false
	p.marks = append(p.marks, mark{p.length, end, end})
}

// hide leaves n bytes out.
func (p *projected) hide(n int) {
	p.hidden += n
	m := p.end()
	if last := len(p.marks) - 1; p.marks[last].at == p.length {
		p.marks[last].start += int64(n)
		return
	}
	m.start += int64(n)
	p.marks = append(p.marks, m)
}

// end is the mark of the projection's end.
func (p *projected) end() mark { return p.find(p.length, len(p.marks)-1) }

// find is the mark of a place that the mark i is not behind.
func (p *projected) find(at int64, i int) mark {
	if m := p.marks[i]; at > m.at {
		along := m.start + at - m.at
		return mark{at, along, along}
	}
	return p.marks[i]
}

// mark is that of a place in what is not settled.
func (p *projected) mark(at int64) mark {
	i := sort.Search(len(p.marks), func(i int) bool { return p.marks[i].at > at })
	return p.find(at, max(0, i-1))
}

// back says of the text what is said of the projection.
func (p *projected) back(said guard.Progress) guard.Progress {
	for i := range said.Findings {
		p.findings(&said.Findings[i])
	}
	if len(p.marks) == 1 && p.marks[0] == (mark{}) {
		return said
	}
	m := p.mark(said.Settled)
	first := 0
	for first+1 < len(p.marks) && p.marks[first+1].at <= said.Settled {
		first++
	}
	if first > 0 {
		p.marks = p.marks[:copy(p.marks, p.marks[first:])]
		if cap(p.marks) > mostMarks && len(p.marks) < mostMarks/2 {
			p.marks = append(make([]mark, 0, len(p.marks)+4), p.marks...)
		}
	}
	said.Settled = m.start
	if p.screen.masked(m.at) {
		said.Settled = m.end // where the mask ends if nothing goes on with it
	}
	return said
}

// findings takes a finding back to the text.
func (p *projected) findings(f *guard.Finding) {
	for i, o := range p.cut {
		if f.End != guard.Open && o.at == f.Start && o.rule == f.Rule {
			f.Start, f.End = o.from, p.mark(f.End).end
			p.cut = append(p.cut[:i], p.cut[i+1:]...)
			return
		}
	}
	at := f.Start
	f.Start = p.mark(at).start
	if f.End == guard.Open {
		p.cut = append(p.cut, opened{f.Rule, at, f.Start})
		return
	}
	f.End = p.mark(f.End).end
}

// skip returns where, from i on, the first byte is that may begin what is not
// itself.
func (d *disguise) skip(text []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		x := binary.LittleEndian.Uint64(text[i:])
		esc := x ^ escape*ones
		if x&tops != 0 || (esc-ones)&^esc&tops != 0 {
			for n := i + 8; i < n; i++ {
				if d.stop[text[i]] {
					return i
				}
			}
			i -= 8
		}
	}
	for ; i < len(text); i++ {
		if d.stop[text[i]] {
			return i
		}
	}
	return i
}

// at says what stands for what text begins with, and how long that is; 0 if more
// text must tell.
func (d *disguise) at(text []byte, coloured bool) (as int8, n int) {
	if text[0] == escape {
		switch n := sequence(text, coloured); {
		case n > 0:
			return hidden, n
		case n == 0:
			return 0, 0
		}
		return 0, 1
	}
	if !utf8.FullRune(text) {
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	return d.of(r), n
}

// sequence is the length of the escape sequence that text begins with: 0 if more
// text must tell, -1 if it begins with none. It is one that colours what follows, with
// a number at least, of at most four digits so that none is a finding of its own; or,
// directly behind one, that which grep writes there. Of any other the last character
// could be the first of a token: who does not look at a terminal has all of it.
func sequence(text []byte, coloured bool) int {
	switch {
	case len(text) < 2:
		return 0
	case text[1] != '[':
		return -1
	case len(text) > 2 && text[2] == 'K' && coloured:
		return 3
	}
	digits, numbers := 0, 0
	for i, c := range text[2:] {
		switch {
		case i+2 == MostHidden:
			return -1
		case c >= '0' && c <= '9' && digits < 4:
			digits++
			numbers++
		case (c == ';' || c == ':') && numbers > 0:
			digits = 0
		case c == 'm' && numbers > 0:
			return i + 3
		default:
			return -1
		}
	}
	if len(text) >= MostHidden {
		return -1
	}
	return 0
}
