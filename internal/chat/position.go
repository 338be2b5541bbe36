package chat

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in a run's story: behind an event. The zero Position is
// before all of them, and the place of what has none.
//
// It is written as the number of the event's record, with the event's own number
// behind it where the record has more events to follow: 11, 12.1, 12.2, 12.
type Position struct {
	Seq  uint64 // of the record
	Part int    // of its events; 0: the last of them
}

func (p Position) String() string {
	if p.Part == 0 {
		return strconv.FormatUint(p.Seq, 10)
	}
	return fmt.Sprintf("%d.%d", p.Seq, p.Part)
}

// IsZero reports whether p is before everything.
func (p Position) IsZero() bool { return p == Position{} }

// After reports whether p comes after q.
func (p Position) After(q Position) bool {
	switch {
	case p.Seq != q.Seq:
		return p.Seq > q.Seq
	case p.Part == 0 || q.Part == 0:
		return p.Part == 0 && q.Part != 0
	}
	return p.Part > q.Part
}

// ParsePosition reads what String writes; the empty string is the zero Position.
func ParsePosition(s string) (p Position, err error) {
	if s == "" {
		return Position{}, nil
	}
	seq, part, parts := strings.Cut(s, ".")
	p.Seq, err = strconv.ParseUint(seq, 10, 63)
	if err == nil && parts {
		p.Part, err = strconv.Atoi(part)
	}
	if err != nil || p.Part < 0 || p.String() != s {
		return Position{}, fmt.Errorf("%.40q is not an event's id: want 12 or 12.1", s)
	}
	return p, nil
}
