package wire

import (
	"sort"

	"github.com/stoplog/stoplog/guard"
)

// A projector turns a JSON document that comes in pieces into the text that
// guards judge: the document itself, with its strings decoded and the space
// between its tokens left out. What guards find there, it finds again in the
// document.
//
// It does not check the document: one that is no JSON is judged as it is, with
// what looks like a string decoded.
//
//	document    { "k" : "a\u0062c" , "n" : 41 }
//	projection  {"k":"abc","n":41}
//
// Redactions change strings, and replace a number by a string or null, so that
// the document stays one; between the tokens nothing changes.
type projector struct {
	src, out int64 // bytes of the document read, of the projection given
	inString bool
	depth    int    // of the objects and arrays that are open
	token    []byte // of a number or an escape that is not complete
	runs     []run  // in order; those before what is settled are dropped
	buf      []byte
}

// A run is a part of the document and its place in the projection.
type run struct {
	src, srcLen int64
	out, outLen int64
	class       byte
}

const (
	punct  byte = 'p' // changes never; length for length the same
	plain  byte = 's' // inside a string, length for length the same
	atom   byte = 'e' // an escape
	number byte = '0'
	space  byte = ' '
)

// maxToken is how long a number may get before it is taken for plain text.
const maxToken = 4096

// write takes the document's next piece and returns the projection's, which is
// good until the next call.
func (p *projector) write(b []byte) []byte {
	p.buf = p.buf[:0]
	for len(b) > 0 {
		b = b[p.next(b):]
	}
	return p.buf
}

// close ends the document.
func (p *projector) close() []byte {
	p.buf = p.buf[:0]
	for len(p.token) > 0 {
		p.flush()
	}
	return p.buf
}

// next takes one run, or one byte of a token, and returns its length.
func (p *projector) next(b []byte) int {
	for len(p.token) > 0 {
		if p.extends(b[0]) {
			p.token = append(p.token, b[0])
			return 1
		}
		p.flush()
	}
	c := b[0]
	switch {
	case p.inString && c == '\\', !p.inString && (c == '-' || c >= '0' && c <= '9'):
		p.token = append(p.token, c)
		return 1
	case c == '"':
		p.inString = !p.inString
		p.add(punct, b[:1], b[:1])
		return 1
	case p.inString:
		n := 1
		for n < len(b) && b[n] != '"' && b[n] != '\\' {
			n++
		}
		p.add(plain, b[:n], b[:n])
		return n
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		p.add(space, b[:1], nil)
		return 1
	}
	switch c {
	case '{', '[':
		p.depth++
	case '}', ']':
		p.depth--
	}
	p.add(punct, b[:1], b[:1])
	return 1
}

// open reports whether the document goes on: it has not begun, or something in
// it has not ended.
func (p *projector) open() bool {
	return p.out == 0 || p.inString || p.depth > 0 || len(p.token) > 0
}

// extends reports whether the token goes on with c.
func (p *projector) extends(c byte) bool {
	t := p.token
	if !p.inString {
		switch c {
		case '.', '+', '-', 'e', 'E', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			return len(t) < maxToken
		}
		return false
	}
	switch n := len(t); {
	case n == 1:
		return true
	case t[1] != 'u':
		return false
	case n < 6:
		return isHex(c)
	case n == 6:
		return c == '\\' && isHighSurrogate(t)
	case n == 7:
		return c == 'u'
	case n < 12:
		return isHex(c)
	}
	return false
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isHighSurrogate(t []byte) bool { r := hex4(t[2:6]); return r >= 0xd800 && r < 0xdc00 }

// flush adds what the token starts with. What follows a lone surrogate in it
// stays, as the start of the next one.
func (p *projector) flush() {
	t := p.token
	switch {
	case t[0] != '\\':
		p.add(number, t, t)
		p.token = t[:0]
	case escapeLen(t) == 0: // none after all: judged as it is
		p.add(plain, t, t)
		p.token = t[:0]
	default:
		var text [4]byte
		decoded, n := unit(text[:0], t)
		p.add(atom, t[:n], decoded)
		p.token = t[:copy(t, t[n:])]
	}
}

func (p *projector) add(class byte, src, out []byte) {
	n, m := int64(len(src)), int64(len(out))
	if k := len(p.runs) - 1; k >= 0 && p.runs[k].class == class && class != atom && class != number {
		p.runs[k].srcLen += n
		p.runs[k].outLen += m
	} else {
		p.runs = append(p.runs, run{p.src, n, p.out, m, class})
	}
	p.src += n
	p.out += m
	p.buf = append(p.buf, out...)
}

// find returns the edits of the document that an edit of the projection asks
// for.
func (p *projector) find(dst []edit, e guard.Edit) []edit {
	text := string(escape(nil, e.Text))
	first := sort.Search(len(p.runs), func(i int) bool { return p.runs[i].out+p.runs[i].outLen > e.Start })
	for _, r := range p.runs[first:] {
		if r.out >= e.End {
			break
		}
		switch r.class {
		case plain:
			from, to := max(e.Start, r.out)-r.out, min(e.End, r.out+r.outLen)-r.out
			dst = append(dst, edit{r.src + from, r.src + to, text})
		case atom:
			dst = append(dst, edit{r.src, r.src + r.srcLen, text})
		case number:
			if n := len(dst); n > 0 && dst[n-1].to > r.src {
				break // replaced already
			}
			with := "null"
			if text != "" {
				with = `"` + text + `"`
			}
			dst = append(dst, edit{r.src, r.src + r.srcLen, with})
		default:
			continue
		}
		text = ""
	}
	return dst
}

// settle returns how much of the document is settled when the projection is
// settled up to out, and forgets the runs before.
func (p *projector) settle(out int64) int64 {
	k := 0
	for k < len(p.runs) && p.runs[k].out+p.runs[k].outLen <= out {
		k++
	}
	settled := p.src
	if k < len(p.runs) {
		r := &p.runs[k]
		settled = r.src
		if n := out - r.out; n > 0 && (r.class == punct || r.class == plain) {
			settled += n
			r.src, r.srcLen, r.out, r.outLen = r.src+n, r.srcLen-n, out, r.outLen-n
		}
	}
	if k == len(p.runs) {
		p.runs = p.runs[:0]
	} else {
		p.runs = p.runs[k:]
	}
	return settled
}
