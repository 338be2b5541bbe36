package match

import (
	"math/bits"
	"unicode/utf8"
)

// columns are those of the fronts' tables: one for each class of ASCII runes,
// and one for each class and length of the others, since a state knows how many
// bytes a group has.
type columns struct {
	ascii [utf8.RuneSelf]uint32
	wide  [][utf8.UTFMax + 1]uint32 // by class and length
	n     int
	hold  uint32 // … and one that says how much is held, see frontTable
	shift int    // of a row: 1 << shift is n or more
}

func newColumns(c *classes, shared int) *columns {
	cols := &columns{wide: make([][utf8.UTFMax + 1]uint32, shared)}
	ids := make(map[class]uint32)
	for r := range cols.ascii {
		id, ok := ids[c.of(rune(r))]
		if !ok {
			id = uint32(cols.n)
			cols.n++
			ids[c.of(rune(r))] = id
		}
		cols.ascii[r] = id
	}
	add := func(c class, width int) {
		if cols.wide[c][width] == 0 {
			cols.wide[c][width] = uint32(cols.n)
			cols.n++
		}
	}
	add(c.of(utf8.RuneError), 1) // a byte that is no UTF-8
	done := make(map[[2]int]bool)
	for i, page := range c.page {
		width := utf8.RuneLen(rune(i << pageBits))
		if key := [2]int{int(page), width}; i > 0 && !done[key] && width > 0 {
			done[key] = true
			for _, class := range c.class[page] {
				add(class, width)
			}
		}
	}
	cols.hold = uint32(cols.n)
	cols.n++
	cols.shift = bits.Len(uint(cols.n - 1))
	return cols
}
