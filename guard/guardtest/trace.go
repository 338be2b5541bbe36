package guardtest

import (
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/guard"
)

// A trace is what a screen said of a text.
type trace struct {
	reported []guard.Finding
	// settled and known, by how much of the text had been read: the offset and
	// the number of findings reported by then; -1 where no piece ended.
	settled []int64
	known   []int
}

// trace runs a screen over the pieces and checks what it says against the
// contract.
func (s *subject) trace(pieces [][]byte) (*trace, error) {
	return s.traceOf(s.Guard.Open(s.t.Context(), s.Channel), pieces)
}

// traceOf is trace of a screen that is at the start of a text.
func (s *subject) traceOf(screen guard.Screen, pieces [][]byte) (*trace, error) {
	tr := &trace{settled: make([]int64, len(s.text)+1), known: make([]int, len(s.text)+1)}
	for i := range tr.settled {
		tr.settled[i], tr.known[i] = -1, -1
	}
	read, last := 0, guard.Progress{}
	for _, piece := range pieces {
		lent := slices.Clone(piece)
		p, err := screen.Write(lent)
		for i := range lent {
			lent[i] = '#' // a screen that kept the piece will trip over this
		}
		read += len(piece)
		if err == nil {
			err = tr.take(s, p, last, read)
		}
		if err != nil {
			return nil, fmt.Errorf("after %d bytes: %w", read, err)
		}
		last.Settled = p.Settled
		tr.settled[read], tr.known[read] = p.Settled, len(tr.reported)
	}
	p, err := screen.Close()
	if err == nil {
		err = tr.take(s, p, last, read)
	}
	if err == nil && p.Settled != int64(read) {
		err = fmt.Errorf("settled is %d of %d bytes", p.Settled, read)
	}
	if err == nil && slices.ContainsFunc(tr.reported, func(f guard.Finding) bool { return f.End == guard.Open && !tr.closed(f) }) {
		err = fmt.Errorf("a finding has no end")
	}
	if err != nil {
		return nil, fmt.Errorf("at the end: %w", err)
	}
	return tr, nil
}

// take checks a progress against the one before it.
func (tr *trace) take(s *subject, p, last guard.Progress, read int) error {
	if p.Settled < last.Settled || p.Settled > int64(read) {
		return fmt.Errorf("settled is %d, after %d", p.Settled, last.Settled)
	}
	start := int64(0)
	for _, f := range p.Findings {
		switch {
		case f.Guard != s.Guard.Name():
			return fmt.Errorf("a finding of guard %q", f.Guard)
		case f.Rule == "":
			return fmt.Errorf("a finding of no rule at %d", f.Start)
		case f.Start < 0 || f.End > int64(read) || f.End != guard.Open && f.End <= f.Start:
			return fmt.Errorf("%s at [%d, %d)", f.Rule, f.Start, f.End)
		case slices.Contains(tr.reported, f):
			return fmt.Errorf("%s at [%d, %d) is reported twice", f.Rule, f.Start, f.End)
		case tr.opened(f):
			tr.reported = append(tr.reported, f)
			continue // the end of one that was reported before
		case f.Start < last.Settled:
			return fmt.Errorf("%s at %d is reported after %d was settled", f.Rule, f.Start, last.Settled)
		case f.Start < start:
			return fmt.Errorf("%s at %d is reported after one at %d", f.Rule, f.Start, start)
		}
		start = f.Start
		tr.reported = append(tr.reported, f)
	}
	return nil
}

// opened says whether f is the end of a finding that was reported without.
func (tr *trace) opened(f guard.Finding) bool {
	return f.End != guard.Open && slices.ContainsFunc(tr.reported, func(o guard.Finding) bool {
		return o.End == guard.Open && o.Rule == f.Rule && o.Start == f.Start
	})
}

// closed says whether the end of an open finding came.
func (tr *trace) closed(open guard.Finding) bool {
	return slices.ContainsFunc(tr.reported, func(f guard.Finding) bool {
		return f.End != guard.Open && f.Rule == open.Rule && f.Start == open.Start
	})
}

// bytewise is the trace that all others are compared with.
func (s *subject) bytewise() (*trace, bool) {
	s.t.Helper()
	tr, err := s.trace(s.every(1))
	if err != nil {
		s.errorf("byte by byte, %v", err)
		return nil, false
	}
	return tr, true
}

// splits compares the trace of the text cut in two at every place, in pieces of
// several sizes, and with empty pieces in between.
func (s *subject) splits(want *trace) {
	s.t.Helper()
	try := func(name string, pieces [][]byte) bool {
		s.t.Helper()
		got, err := s.trace(pieces)
		if err == nil {
			err = got.differs(want)
		}
		if err != nil {
			s.errorf("%s, %v", name, err)
		}
		return err == nil
	}
	for _, at := range s.cuts() {
		if !try(fmt.Sprintf("cut at %d", at), s.pieces(at)) {
			return
		}
	}
	for _, n := range []int{2, 3, 4, 7, 64} {
		if !try(fmt.Sprintf("in pieces of %d", n), s.every(n)) {
			return
		}
	}
	var gaps [][]byte
	for _, p := range s.every(5) {
		gaps = append(gaps, nil, p)
	}
	try("with empty pieces", append(gaps, nil))
}

// resets looks at a screen that begins anew, after every part of the text and
// after its end: it is as one that was just opened.
func (s *subject) resets(want *trace) {
	s.t.Helper()
	screen := s.Guard.Open(s.t.Context(), s.Channel)
	r, ok := screen.(guard.Resetter)
	if !ok {
		return
	}
	for _, at := range append(s.cuts(), len(s.text)) {
		if _, err := screen.Write(s.text[:at]); err != nil {
			return // looked at elsewhere
		}
		r.Reset(s.t.Context(), s.Channel)
		got, err := s.traceOf(screen, s.every(7))
		if err == nil {
			err = got.differs(want)
		}
		if err != nil {
			s.errorf("reset after %d bytes, %v", at, err)
			return
		}
		r.Reset(s.t.Context(), s.Channel)
	}
}

// differs compares a trace with that of the same text byte by byte.
func (tr *trace) differs(want *trace) error {
	if !slices.Equal(tr.reported, want.reported) {
		return fmt.Errorf("findings are %+v, byte by byte %+v", tr.reported, want.reported)
	}
	for i := range tr.settled {
		if tr.known[i] >= 0 && want.known[i] >= 0 && (tr.settled[i] != want.settled[i] || tr.known[i] != want.known[i]) {
			return fmt.Errorf("after %d bytes %d are settled and %d findings known, byte by byte %d and %d",
				i, tr.settled[i], tr.known[i], want.settled[i], want.known[i])
		}
	}
	return nil
}

// bound looks for a prefix after which too much is held.
func (s *subject) bound(want *trace) {
	s.t.Helper()
	for read, settled := range want.settled {
		if held := int64(read) - settled; s.Bound > 0 && settled >= 0 && held > int64(s.Bound) {
			s.errorf("after %d bytes %d are held, more than %d", read, held, s.Bound)
			return
		}
	}
}
