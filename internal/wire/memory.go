package wire

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"
)

// A memory is what an answer's copies of a text need to know of it: whether they
// repeat it, what of it has left, and where a place in it is now.
type memory struct {
	sum     maphash.Hash // of the text as it came
	left    int64        // how much of it has left
	between []rune       // runes whose halves stand in two pieces, and lie between them

	told   bool   // what has left is kept, and its runes are counted
	said   []byte // the text as it has left, as the inside of a JSON string
	unsent int    // how much of said no event has said: it was cut out of a copy
	runes  int64  // of the text as it came, as far as it has left
	moves  []move
	buf    []byte
}

// A move is an edit in runes: [from, to) of the text as it came is size runes now.
type move struct{ from, to, size int64 }

// repeats reports whether text begins with the n bytes that came.
func (m *memory) repeats(text []byte, n int64) bool {
	if int64(len(text)) < n {
		return false
	}
	var h maphash.Hash
	h.SetSeed(m.sum.Seed())
	h.Write(text[:n])
	return h.Sum64() == m.sum.Sum64()
}

// leave notes that of a piece, which is written as raw, all before to has left.
func (m *memory) leave(raw []byte, p *piece, to int64, edits []edit) {
	if to <= m.left {
		return
	}
	if !m.told || p.bare {
		m.left = to
		return
	}
	if p.from > m.left && len(m.between) > 0 {
		m.said = utf8.AppendRune(m.said, m.between[0])
		m.between = m.between[1:]
		m.runes++
	}
	m.left = max(m.left, p.from)
	m.said = appendEdited(m.said, raw, false, p.from, m.left, to, edits)
	text := raw
	if bytes.IndexByte(raw, '\\') >= 0 {
		m.buf = unescape(m.buf[:0], raw)
		text = m.buf
	}
	m.count(text[m.left-p.from:to-p.from], edits)
	m.left = to
}

// count counts the runes of text, which is the next that leaves, and of what the
// edits put in its place.
func (m *memory) count(text []byte, edits []edit) {
	at, end := m.left, m.left+int64(len(text))
	for _, e := range after(edits, at) {
		if e.from >= end {
			break
		}
		from, to := max(e.from, at), min(e.to, end)
		m.runes += int64(utf8.RuneCount(text[at-m.left : from-m.left]))
		if e.from >= m.left {
			m.moves = append(m.moves, move{m.runes, m.runes, int64(utf8.RuneCountInString(e.text))})
		}
		n := int64(utf8.RuneCount(text[from-m.left : to-m.left]))
		m.runes += n
		m.moves[len(m.moves)-1].to += n
		at = to
	}
	m.runes += int64(utf8.RuneCount(text[at-m.left:]))
}

// place is where a place of the text is now, in runes. One inside what was
// replaced is at its start, or at its end.
func (m *memory) place(i int64, end bool) int64 {
	moved := int64(0)
	for _, v := range m.moves {
		switch {
		case i >= v.to:
			moved += v.size - (v.to - v.from)
		case i > v.from && end:
			return v.from + moved + v.size
		case i > v.from:
			return v.from + moved
		default:
			return i + moved
		}
	}
	return i + moved
}
