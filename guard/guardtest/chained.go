package guardtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/guard"
)

// output is what a chain made of a text.
type output struct {
	text      []byte
	after     map[int]int // how much of it had left, by how much was read
	decisions []guard.Decision
	stop      *guard.Stop
}

// through runs a chain over the pieces.
func (s *subject) through(pieces [][]byte, members ...guard.Member) output {
	f := guard.NewFilter(guard.NewChain(guard.Options{}, members...).Open(s.t.Context(), s.Channel))
	out := output{after: make(map[int]int)}
	read := 0
	note := func(step guard.Step) {
		out.decisions = append(out.decisions, step.Decisions...)
		out.stop = step.Stop
	}
	for _, piece := range pieces {
		var step guard.Step
		out.text, step = f.Write(out.text, piece)
		note(step)
		read += len(piece)
		out.after[read] = len(out.text)
	}
	var step guard.Step
	out.text, step = f.Close(out.text)
	note(step)
	return out
}

// differs compares what left, when, and what was decided.
func (o output) differs(want output) error {
	if !bytes.Equal(o.text, want.text) {
		return fmt.Errorf("%q leaves, not %q", o.text, want.text)
	}
	for read, n := range o.after {
		if m, ok := want.after[read]; ok && m != n {
			return fmt.Errorf("after %d bytes %d have left, not %d", read, n, m)
		}
	}
	same := func(a, b guard.Decision) bool { return a.Finding == b.Finding && a.Mode == b.Mode }
	if !slices.EqualFunc(o.decisions, want.decisions, same) {
		return fmt.Errorf("decisions are %+v, not %+v", o.decisions, want.decisions)
	}
	if (o.stop == nil) != (want.stop == nil) || o.stop != nil && *o.stop != *want.stop {
		return fmt.Errorf("the stop is %+v, not %+v", o.stop, want.stop)
	}
	return nil
}

// releases checks that the same text leaves, and is out after the same prefix,
// wherever the text is cut.
func (s *subject) releases() {
	s.t.Helper()
	member := guard.Member{Guard: verdict{s.Guard, guard.Redact}}
	want := s.through(s.every(1), member)
	for _, at := range s.cuts() {
		if err := s.through(s.pieces(at), member).differs(want); err != nil {
			s.errorf("cut at %d in a chain, %v; byte by byte it is so", at, err)
			return
		}
	}
}

// blocks checks that what leaves ends where the first finding starts if that
// denies.
func (s *subject) blocks(tr *trace) {
	s.t.Helper()
	if len(tr.reported) == 0 {
		return
	}
	start := tr.reported[0].Start
	for _, f := range tr.reported {
		start = min(start, f.Start)
	}
	for _, v := range []guard.Verdict{guard.Deny, guard.RequireApproval} {
		member := guard.Member{Guard: verdict{s.Guard, v}}
		for _, at := range s.cuts() {
			out := s.through(s.pieces(at), member)
			if !bytes.Equal(out.text, s.text[:start]) || out.stop == nil || out.stop.Verdict != v {
				s.errorf("cut at %d with verdict %s, %q leaves and the stop is %+v, not %q and a stop", at, v, out.text, out.stop, s.text[:start])
				return
			}
		}
	}
}

// fails checks that a guard that fails denies, whatever it said before, and
// lets nothing out that it had not settled.
func (s *subject) fails(tr *trace) {
	s.t.Helper()
	for _, panics := range []bool{false, true} {
		for _, at := range s.cuts() {
			broken := &breaks{Guard: verdict{s.Guard, guard.Allow}, after: at, panics: panics}
			out := s.through(s.every(1), guard.Member{Guard: broken})
			if out.stop == nil || out.stop.Verdict != guard.Deny || out.stop.Rule != guard.RuleGuardFailed {
				s.errorf("failing after %d bytes (panic: %t), the stop is %+v, not a denial", at, panics, out.stop)
				return
			}
			if settled := max(0, tr.settled[at]); int64(len(out.text)) > settled {
				s.errorf("failing after %d bytes (panic: %t), %d bytes leave, with %d settled", at, panics, len(out.text), settled)
				return
			}
		}
	}
}

// orders checks that it does not matter in which order guards are given.
func (s *subject) orders() {
	s.t.Helper()
	for _, v := range []guard.Verdict{guard.Redact, guard.RequireApproval, guard.Deny} {
		a := guard.Member{Guard: verdict{s.Guard, guard.Redact}}
		b := guard.Member{Guard: digits{v}}
		one := s.through(s.every(3), a, b)
		two := s.through(s.every(3), b, a)
		if err := one.differs(two); err != nil {
			s.errorf("before a guard whose verdict is %s, %v; behind it, it is so", v, err)
			return
		}
	}
}

// shadows checks that the guard changes nothing in shadow, failing too, and is
// recorded.
func (s *subject) shadows(tr *trace) {
	s.t.Helper()
	for _, at := range s.cuts() {
		alone := s.through(s.pieces(at))
		out := s.through(s.pieces(at), guard.Member{Guard: s.Guard, Mode: guard.Shadow})
		decisions := out.decisions
		out.decisions = nil
		if err := out.differs(alone); err != nil {
			s.errorf("in shadow, cut at %d, %v; without the guard it is so", at, err)
			return
		}
		if len(decisions) != len(tr.reported) {
			s.errorf("in shadow, cut at %d, %d decisions are recorded for %d findings", at, len(decisions), len(tr.reported))
			return
		}
	}
	out := s.through(s.every(1), guard.Member{Guard: &breaks{Guard: s.Guard, after: len(s.text) / 2, panics: true}, Mode: guard.Shadow})
	if !bytes.Equal(out.text, s.text) || out.stop != nil {
		s.errorf("failing in shadow: %q leaves and the stop is %+v", out.text, out.stop)
	}
}

// verdict is a guard whose findings all have one verdict.
type verdict struct {
	guard.Guard
	verdict guard.Verdict
}

func (v verdict) Open(ctx context.Context, ch guard.Channel) guard.Screen {
	return &verdictScreen{v.Guard.Open(ctx, ch), v.verdict}
}

type verdictScreen struct {
	guard.Screen
	verdict guard.Verdict
}

func (s *verdictScreen) Write(p []byte) (guard.Progress, error) { return s.set(s.Screen.Write(p)) }
func (s *verdictScreen) Close() (guard.Progress, error)         { return s.set(s.Screen.Close()) }

func (s *verdictScreen) set(p guard.Progress, err error) (guard.Progress, error) {
	p.Findings = slices.Clone(p.Findings)
	for i := range p.Findings {
		p.Findings[i].Verdict = s.verdict
	}
	return p, err
}

// breaks is a guard that fails once it has read so many bytes.
type breaks struct {
	guard.Guard
	after  int
	panics bool
}

func (b *breaks) Open(ctx context.Context, ch guard.Channel) guard.Screen {
	return &breaksScreen{Screen: b.Guard.Open(ctx, ch), breaks: b}
}

type breaksScreen struct {
	guard.Screen
	*breaks
	read    int
	settled int64
}

func (b *breaksScreen) Write(p []byte) (guard.Progress, error) {
	if b.read += len(p); b.read > b.after {
		return b.fail()
	}
	pr, err := b.Screen.Write(p)
	b.settled = pr.Settled
	return pr, err
}

func (b *breaksScreen) Close() (guard.Progress, error) { return b.fail() }

var errBroken = errors.New("the guard is made to fail")

func (b *breaksScreen) fail() (guard.Progress, error) {
	if b.panics {
		panic(errBroken)
	}
	return guard.Progress{Settled: b.settled}, errBroken
}

// digits is a guard that finds each ASCII digit.
type digits struct{ verdict guard.Verdict }

func (digits) Name() string { return "digits" }

func (d digits) Open(context.Context, guard.Channel) guard.Screen {
	return &digitScreen{verdict: d.verdict}
}

type digitScreen struct {
	verdict guard.Verdict
	read    int64
}

func (d *digitScreen) Write(p []byte) (guard.Progress, error) {
	var found []guard.Finding
	for i, b := range p {
		if '0' <= b && b <= '9' {
			at := d.read + int64(i)
			found = append(found, guard.Finding{Guard: "digits", Rule: "digit", Start: at, End: at + 1, Verdict: d.verdict})
		}
	}
	d.read += int64(len(p))
	return guard.Progress{Settled: d.read, Findings: found}, nil
}

func (d *digitScreen) Close() (guard.Progress, error) { return d.Write(nil) }
