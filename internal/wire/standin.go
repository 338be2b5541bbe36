package wire

import (
	"slices"

	"github.com/stoplog/stoplog/guard"
)

// A Stand says what stands in a request for what a guard redacts there, so that it
// can be put back in the answer.
type Stand interface {
	// Reversible reports whether what a guard redacts may come back.
	Reversible(guard string) bool
	// Placeholder is what stands for a value that a rule found: for the same value
	// the same, whenever it is found. Empty: nothing does, and it is redacted for
	// good.
	Placeholder(rule, value string) string
}

// maxStand is the longest value that a placeholder stands for, in bytes.
const maxStand = 64 << 10

// standing is a channel of a request, whose redactions are decided once all of it
// is known: what is to come back must be known whole.
type standing struct {
	stand     Stand
	text      []byte // what the guards were shown
	edits     []guard.Edit
	decisions []guard.Decision
}

func (s *standing) take(step guard.Step) {
	s.edits = append(s.edits, step.Edits...)
	s.decisions = append(s.decisions, step.Decisions...)
}

// spans is replaced for a text that is no document.
func (s *standing) spans() []guard.Edit {
	if s.stand == nil {
		return s.edits
	}
	return s.replaced(nil)
}

// replaced is the edits, each of one span, with a placeholder where one may stand.
// within reports whether a span lies in one value of a document; nil where there
// is none.
func (s *standing) replaced(within func(from, to int64) bool) []guard.Edit {
	var spans []guard.Edit
	for _, e := range s.edits {
		if n := len(spans); n > 0 && e.Text == "" && e.Start == spans[n-1].End {
			spans[n-1].End = e.End
			continue
		}
		spans = append(spans, e)
	}
	for i := range spans {
		e := &spans[i]
		if e.End-e.Start > maxStand || !s.reversible(e) || within != nil && !within(e.Start, e.End) {
			continue
		}
		if p := s.stand.Placeholder(e.Rule, string(s.text[e.Start:e.End])); p != "" {
			e.Text = p
		}
	}
	return spans
}

// reversible reports whether every guard that redacts in a span lets it come back.
func (s *standing) reversible(e *guard.Edit) bool {
	return !slices.ContainsFunc(s.decisions, func(d guard.Decision) bool {
		return d.Mode == guard.Enforce && d.Verdict == guard.Redact && d.Start < e.End && (d.End > e.Start || d.End == guard.Open) &&
			!s.stand.Reversible(d.Guard)
	})
}

// single reports whether a span of the projection lies in one string of the
// document, or is one number. The runs must all be there.
func (p *projector) single(from, to int64) bool {
	for _, r := range p.runs {
		switch {
		case r.out+r.outLen <= from || r.out >= to:
		case r.class == plain || r.class == atom:
		case r.class == number && r.out == from && r.out+r.outLen == to:
		default:
			return false
		}
	}
	return true
}
