package match

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/stoplog/stoplog/guard"
)

// literalScreen looks for registered values in one channel. It reads each byte
// once and keeps no text:
//
//	text ─► last 8 bytes ─► filter ─► head? ─► a walk down its tree ─► finding
//
// The text as it stands is one reading of it; two more are that with JSON's
// escapes and that with percent-encoding undone. Those are only followed for as
// long as an escape may be part of a form (literal_escape.go).
type literalScreen struct {
	set     *Literals
	dict    *dictionary // during a call
	read    int64
	settled int64
	covered int64 // the end of what has been reported
	last    head  // the bytes before read
	walks   []path
	escapes [2]escapes
	pending []occurrence // by start, the longer first
	out     []guard.Finding
}

// A path is a form that the text may have, as far as it goes.
type path struct {
	start  int64
	branch *branch
	at     int // in the branch's text
	end    int64
	found  *entry // the longest form that ends before; nil if none does
}

// An occurrence is a form that the text has.
type occurrence struct {
	start, end int64
	entry      *entry
}

func newLiteralScreen(l *Literals) *literalScreen {
	s := &literalScreen{set: l}
	s.escapes[0].kind, s.escapes[1].kind = jsonEscapes, percentEscapes
	return s
}

// Reset implements [guard.Resetter].
func (s *literalScreen) Reset(context.Context, guard.Channel) {
	*s = literalScreen{set: s.set, walks: s.walks[:0], escapes: s.escapes, pending: s.pending[:0], out: s.out[:0]}
	for i := range s.escapes {
		s.escapes[i].reset()
	}
}

// Write implements [guard.Screen].
func (s *literalScreen) Write(p []byte) (guard.Progress, error) {
	s.more(p)
	if s.dict.forms == 0 && !s.busy() {
		s.settled = s.read
		return s.progress(s.settled), nil
	}
	s.settled = max(s.settled, s.hold())
	s.dict = nil
	return s.progress(s.settled), nil
}

// Close implements [guard.Screen].
func (s *literalScreen) Close() (guard.Progress, error) {
	s.dict = s.set.set.Load()
	for i := range s.escapes {
		s.escapes[i].close(s)
	}
	for i := range s.walks {
		s.finish(&s.walks[i])
	}
	s.walks, s.settled = s.walks[:0], s.read
	return s.progress(never), nil
}

// masked implements [judging]: no finding is ever reported without its end.
func (s *literalScreen) masked(int64) bool { return false }

// more implements [judging].
func (s *literalScreen) more(p []byte) {
	s.dict = s.set.set.Load()
	if s.dict.forms == 0 && !s.busy() {
		s.skip(p)
		return
	}
	if !s.escapes[0].busy() && !s.escapes[1].busy() && !marked(p) {
		s.plain(p)
		return
	}
	base := s.read
	for i := range s.escapes {
		s.escapes[i].begin(s, p)
	}
	for {
		// Up to the next escape there is one reading.
		at, next := len(p), -1
		for i := range s.escapes {
			if n := s.escapes[i].next(p, base, s.read); n < at {
				at, next = n, i
			}
		}
		s.plain(p[s.read-base : at])
		if next < 0 {
			break
		}
		s.escapes[next].take(s, p, base)
	}
	for i := range s.escapes {
		s.escapes[i].follow(s, p, base, s.read)
	}
}

// marked says whether a text has what escapes begin with.
func marked(p []byte) bool {
	if len(p) > 16 {
		return bytes.IndexByte(p, jsonEscapes.mark) >= 0 || bytes.IndexByte(p, percentEscapes.mark) >= 0
	}
	for _, c := range p {
		if c == jsonEscapes.mark || c == percentEscapes.mark {
			return true
		}
	}
	return false
}

// busy says whether anything goes on.
func (s *literalScreen) busy() bool {
	return len(s.walks) > 0 || s.escapes[0].busy() || s.escapes[1].busy()
}

// skip reads text in which nothing is looked for.
func (s *literalScreen) skip(p []byte) {
	s.read += int64(len(p))
	for _, c := range p[max(0, len(p)-headLength):] {
		s.last = s.last<<8 | head(c)
	}
}

// plain reads text as it stands.
func (s *literalScreen) plain(p []byte) {
	last, f := s.last, s.dict.filter
	for i := 0; i < len(p); i++ {
		if len(s.walks) > 0 {
			s.walks = s.step(s.walks, p[i], s.read+int64(i)+1)
		}
		last = last<<8 | head(p[i])
		if f.may(last, headLength) {
			s.walks = s.start(s.walks, last, s.read+int64(i)+1-headLength, s.read+int64(i)+1)
		}
	}
	s.last = last
	s.read += int64(len(p))
}

// start begins a walk behind a head.
func (s *literalScreen) start(walks []path, h head, from, to int64) []path {
	if from < s.settled { // it was not in the set while it came
		return walks
	}
	b := s.dict.behind(h)
	if b == nil {
		return walks
	}
	return s.went(append(walks, path{start: from, branch: b}), to)
}

// step takes walks on by a byte.
func (s *literalScreen) step(walks []path, c byte, to int64) []path {
	on := walks[:0]
	for _, w := range walks {
		switch {
		case w.at < len(w.branch.text) && w.branch.text[w.at] == c:
			w.at++
		case w.at == len(w.branch.text):
			i, ok := slices.BinarySearchFunc(w.branch.nexts, c, byFirst)
			if !ok {
				s.finish(&w)
				continue
			}
			w.branch, w.at = w.branch.nexts[i], 1
		default:
			s.finish(&w)
			continue
		}
		on = s.went(append(on, w), to)
	}
	return on
}

// went looks at where the last walk has come to, and ends it where it cannot go on.
func (s *literalScreen) went(walks []path, to int64) []path {
	w := &walks[len(walks)-1]
	if w.at < len(w.branch.text) {
		return walks
	}
	if len(w.branch.ends) > 0 {
		w.end, w.found = to, w.branch.ends[0]
	}
	if len(w.branch.nexts) == 0 {
		s.finish(w)
		return walks[:len(walks)-1]
	}
	return walks
}

// finish notes what a walk that has ended found.
func (s *literalScreen) finish(w *path) {
	if w.found == nil {
		return
	}
	o := occurrence{w.start, w.end, w.found}
	i, _ := slices.BinarySearchFunc(s.pending, o, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), byNumber(a.entry, b.entry))
	})
	s.pending = slices.Insert(s.pending, i, o)
}

// hold is the offset before which no form can begin that the text goes on with.
func (s *literalScreen) hold() int64 {
	at := s.read
	for i := range s.walks {
		at = min(at, s.walks[i].start)
	}
	at = s.begun(at, s.last, s.read, 1)
	for i := range s.escapes {
		at = s.escapes[i].hold(s, at)
	}
	return at
}

// begun looks for the beginning of a head among the last bytes before to; those of
// fewer than least bytes are not asked for.
func (s *literalScreen) begun(at int64, last head, to int64, least int) int64 {
	for n := headLength - 1; n >= least; n-- {
		if from := to - int64(n); from >= s.settled && from < at && s.dict.begins(last, n) {
			return from
		}
	}
	return at
}

// progress reports what starts before the offset to; all that does is known.
func (s *literalScreen) progress(to int64) guard.Progress {
	s.out = s.out[:0]
	if len(s.pending) == 0 {
		return guard.Progress{Settled: s.settled}
	}
	n := 0
	for ; n < len(s.pending) && s.pending[n].start < to; n++ {
		o := &s.pending[n]
		if o.end <= s.covered {
			continue
		}
		s.covered = o.end
		s.out = append(s.out, guard.Finding{
			Guard: s.set.opt.Name, Rule: o.entry.rule, Start: o.start, End: o.end,
			Severity: s.set.opt.Severity, Verdict: s.set.opt.Verdict, Fingerprint: o.entry.fingerprint,
		})
	}
	s.pending = slices.Delete(s.pending, 0, n)
	return guard.Progress{Settled: s.settled, Findings: s.out}
}
