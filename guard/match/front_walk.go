package match

import (
	"sync/atomic"
	"unicode/utf8"
)

// at is where a front is while text is read.
type at struct {
	*front
	t   *frontTable
	row uint32
}

func (f *front) enterAt(s *standing) at {
	t, row := f.resume(s)
	return at{f, t, row}
}

// scan walks all fronts over text[from:].
func (s *screen) scan(from int) {
	text, cols, classes := s.text, s.engine.columns, s.engine.classes
	var a [fronts]at
	for i, f := range s.engine.fronts {
		a[i] = f.enterAt(&s.fronts[i])
	}
	for i := from; i < len(text); {
		i = walkAll(&a, &cols.ascii, text, i)
		if i == len(text) {
			break
		}
		// A rune that is not ASCII, or leads one of them to what is not plain.
		r, w := rune(text[i]), 1
		column := uint32(0)
		if r < utf8.RuneSelf {
			column = cols.ascii[r]
		} else {
			r, w = utf8.DecodeRune(text[i:])
			column = cols.wide[classes.of(r)][w]
		}
		for k := range a {
			a[k].move(s, column, r, w, i)
		}
		i += w
	}
	for i := range a {
		s.fronts[i] = a[i].t.stand(a[i].row, cols.hold)
	}
}

// walkAll walks the fronts from text[i] as long as there is nothing to do but to
// walk, and returns where it came to. The look-ups do not wait for each other.
func walkAll(a *[fronts]at, columns *[utf8.RuneSelf]uint32, text []byte, i int) int {
	x, y, z := a[0].t.cells, a[1].t.cells, a[2].t.cells
	p, q, r := a[0].row, a[1].row, a[2].row
	for i < len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			break
		}
		column := columns[c]
		u, v, w := atomic.LoadUint32(&x[p+column]), atomic.LoadUint32(&y[q+column]), atomic.LoadUint32(&z[r+column])
		if u&v&w&1 == 0 {
			break
		}
		p, q, r = u>>1, v>>1, w>>1
		i++
	}
	a[0].row, a[1].row, a[2].row = p, q, r
	return i
}

// move takes a front over the rune at text[i].
func (a *at) move(s *screen, column uint32, r rune, width, i int) {
	for {
		cell := atomic.LoadUint32(&a.t.cells[a.row+column])
		switch {
		case cell == 0:
			a.t, a.row = a.learn(a.t.at(a.row), column, r, width)
		case cell&1 != 0:
			a.row = cell >> 1
			return
		case int(cell>>1) >= len(a.t.moves): // it is newer than the table
			a.t, a.row = a.enter(a.t.at(a.row))
		default:
			m := a.t.moves[cell>>1]
			for _, n := range m.hits {
				s.promote(a.front, a.t.at(a.row), n, i)
			}
			a.row = m.to.row
			return
		}
	}
}
