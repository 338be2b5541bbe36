package guard

import "slices"

// A union is a run of findings that overlap: what is replaced, or stops the
// channel, as one span. It takes the rule of the finding that starts first and
// the severest verdict of all.
type union struct {
	members []waiting // in order; the first gives the name
	notes   []waiting // findings among them that ask for nothing
	out     bool      // its placeholder has left
}

func (u *union) start() int64 { return u.members[0].Start }

// end is the largest end of the members, and whether all are known.
func (u *union) end() (end int64, known bool) {
	known = true
	for _, m := range u.members {
		if m.End == Open {
			known = false
		}
		end = max(end, m.End)
	}
	return end, known
}

// close gives a note its end, with which it may ask for something.
func (u *union) close(note int, f Finding) {
	u.notes[note].Finding = f
	if f.Verdict == Allow {
		return
	}
	w := u.notes[note]
	u.notes = slices.Delete(u.notes, note, note+1)
	at := slices.IndexFunc(u.members, func(m waiting) bool { return w.compare(m) < 0 })
	if at < 0 {
		at = len(u.members)
	}
	u.members = slices.Insert(u.members, at, w)
}

func (u *union) verdict() Verdict {
	v := Allow
	for _, m := range u.members {
		v = max(v, m.Verdict)
	}
	return v
}

// lifted is the verdict where a person has approved what asks for approval.
func (u *union) lifted() Verdict {
	v := Allow
	for _, m := range u.members {
		if m.Verdict != RequireApproval {
			v = max(v, m.Verdict)
		}
	}
	return v
}

// early says whether the placeholder leaves before the end is known, and how
// many members were known then: where a finding was cut at its hold limit,
// and it and those that start no later only redact. The answer is the same
// whether the rest of the text has come or not.
func (u *union) early() (known int, ok bool) {
	cut := slices.IndexFunc(u.members, func(m waiting) bool { return m.wasOpen })
	if cut < 0 {
		return 0, false
	}
	for _, m := range u.members {
		if m.Start > u.members[cut].Start {
			break
		}
		if m.opened > Redact {
			return 0, false
		}
		known++
	}
	return known, true
}

// advance acts on every finding that starts before w, where all findings are
// known, and lets out the text around them.
func (s *Stream) advance(w int64) {
	for s.stop == nil {
		if s.union == nil {
			if len(s.pending) == 0 || s.pending[0].Start >= w {
				s.release(s.whole(w))
				return
			}
			if s.note() {
				continue
			}
			s.union = &union{members: []waiting{s.pending[0]}}
			s.pending = s.pending[1:]
			s.release(s.union.start())
		}
		s.grow(w)
		end, known := s.union.end()
		if known && end <= w {
			s.finish(end)
			continue
		}
		s.mask(w)
		return
	}
}

// grow takes the pending findings before w that overlap the union. Behind w one may
// yet come that starts before those that are pending.
func (s *Stream) grow(w int64) {
	for len(s.pending) > 0 && s.pending[0].Start < w {
		end, known := s.union.end()
		if known && s.pending[0].Start >= end {
			return
		}
		if s.pending[0].Verdict == Allow {
			s.union.notes = append(s.union.notes, s.pending[0])
		} else {
			s.union.members = append(s.union.members, s.pending[0])
		}
		s.pending = s.pending[1:]
	}
}

// note records the first pending finding if it asks for nothing: such a
// finding holds no text, and neither widens nor names a union. In a union it is
// recorded with it.
func (s *Stream) note() bool {
	if s.pending[0].Verdict != Allow {
		return false
	}
	s.decide(s.pending[0], s.pending[0].wasOpen)
	s.pending = s.pending[1:]
	return true
}

// mask lets the placeholder of a union out whose end is not known yet, and
// swallows its text up to w.
func (s *Stream) mask(w int64) {
	known, ok := s.union.early()
	if !ok || s.union.members[known-1].Start >= w {
		return
	}
	s.placehold(known, w)
}

// placehold replaces the union's text up to to, with the placeholder if it is
// not out yet.
func (s *Stream) placehold(known int, to int64) {
	text := ""
	if !s.union.out {
		s.union.out = true
		text = s.chain.placeholder(s.union.members[0].Rule)
		for _, m := range s.union.members[:known] {
			s.decide(m, m.wasOpen)
		}
	}
	if to > s.settled || text != "" {
		s.edits = append(s.edits, Edit{Start: s.settled, End: to, Text: text, Rule: s.union.members[0].Rule})
		s.release(to)
	}
}

// finish acts on a union that is complete.
func (s *Stream) finish(end int64) {
	u := s.union
	v := u.verdict()
	if v == RequireApproval && s.chain.lifted {
		v = u.lifted()
	}
	known, early := u.early()
	if early || v == Redact {
		if !early {
			known = len(u.members)
		}
		s.placehold(known, end)
	}
	notes := u.notes
	for i, m := range u.members {
		for len(notes) > 0 && notes[0].compare(m) < 0 {
			s.decide(notes[0], notes[0].wasOpen)
			notes = notes[1:]
		}
		if i >= known || m.wasOpen {
			s.decide(m, false)
		}
	}
	for _, n := range notes {
		s.decide(n, n.wasOpen)
	}
	s.union = nil
	if v > Redact {
		first := u.members[0]
		s.end(&Stop{Verdict: v, Guard: first.Guard, Rule: first.Rule, At: u.start()})
	}
}

// decide records a member of a union, as it was before its end was known if
// asked to.
func (s *Stream) decide(m waiting, open bool) {
	f := m.Finding
	if open {
		f.End, f.Fingerprint, f.Verdict = Open, "", m.opened
	}
	s.decisions = append(s.decisions, Decision{Finding: f, Mode: Enforce, Allowed: m.allowed})
}
