package match

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// blockSize is the most text that is scanned at once.
const blockSize = 64 << 10

// screen is an engine at work on one channel.
type screen struct {
	engine  *Engine
	fronts  [fronts]standing // where each is
	active  []*search        // those that go on in their own tables, and in a call those that did
	on      ruleSet          // the rules of active
	resting *search          // to be used again

	kept   []byte // what may yet be needed: from settled on, sometimes a little more
	base   int64  // where it starts
	text   []byte // during a call: what was kept and what came, whole runes
	done   int64  // the text before it has been scanned
	before kind   // of the rune before done

	pending []finding // known, not yet reported; in order
	out     []guard.Finding
	masks   []*mask // of the searches that are cut
	spare   []*mask
	steps   int64 // bytes read by the fronts and by every rule, and moved
}

// finding is a guard.Finding in the making.
type finding struct {
	at          int64 // it is reported when what is settled is behind: its start, but for the end of a mask
	start, end  int64
	rule        int
	verdict     guard.Verdict
	fingerprint string
}

// A ruleSet is a set of rules, by their index.
type ruleSet []uint64

func (s ruleSet) has(rule int) bool { return s[rule>>6]>>(rule&63)&1 != 0 }
func (s ruleSet) set(rule int)      { s[rule>>6] |= 1 << (rule & 63) }
func (s ruleSet) clear(rule int)    { s[rule>>6] &^= 1 << (rule & 63) }

// compare orders findings as they are reported: the end of a mask comes before
// what starts there.
func (f finding) compare(g finding) int {
	return cmp.Or(cmp.Compare(f.at, g.at), cmp.Compare(f.begins(), g.begins()),
		cmp.Compare(f.rule, g.rule), cmp.Compare(f.end, g.end))
}

// begins is 0 for the end of a mask, else 1.
func (f finding) begins() int {
	if f.at > f.start {
		return 0
	}
	return 1
}

func (e *Engine) open() *screen {
	return &screen{
		engine: e, on: make(ruleSet, (len(e.rules)+63)/64), before: edge,
	}
}

// Reset implements [guard.Resetter].
func (s *screen) Reset(context.Context, guard.Channel) {
	for _, q := range s.active {
		q.mask = nil
		s.on.clear(q.rule.index)
		s.letRest(q)
	}
	s.spare = append(s.spare, s.masks...)
	s.active, s.masks, s.fronts = s.active[:0], s.masks[:0], [fronts]standing{}
	s.kept = s.kept[:0]
	if cap(s.kept) > blockSize {
		s.kept = nil
	}
	s.base, s.text, s.done, s.before, s.steps = 0, nil, 0, edge, 0
	s.pending, s.out = s.pending[:0], s.out[:0]
}

// Write implements [guard.Screen].
func (s *screen) Write(p []byte) (guard.Progress, error) {
	for len(p) > blockSize {
		s.block(p[:blockSize], false)
		p = p[blockSize:]
	}
	settled := s.block(p, false)
	return s.progress(settled, settled), nil
}

// more implements [judging].
func (s *screen) more(p []byte) { s.block(p, false) }

// masked implements [judging].
func (s *screen) masked(settled int64) bool { return settled == s.done && len(s.masks) > 0 }

// Close implements [guard.Screen].
func (s *screen) Close() (guard.Progress, error) {
	settled := s.block(nil, true)
	return s.progress(settled, never), nil
}

// block scans the next piece, and at the end of the text what is left. It
// returns what is settled.
func (s *screen) block(p []byte, last bool) int64 {
	own := len(s.kept) > 0
	all := p
	if own {
		s.kept = append(s.kept, p...)
		all = s.kept
	}
	whole := len(all)
	if !last {
		whole -= unfinished(all)
	}
	s.text = all[:whole]
	from := int(s.done - s.base)
	for _, q := range s.active {
		s.run(q, from)
	}
	s.scan(from)
	if last {
		s.finish()
	}
	s.steps += int64(whole - from)
	if whole > from {
		s.before = s.kindBefore(whole)
	}
	s.done = s.base + int64(whole)
	s.retire()
	for _, m := range s.masks {
		m.reach(s.text, s.base, s.done)
	}
	settled := s.done
	if !last {
		settled = s.settled()
	}
	s.keep(all, int(settled-s.base), own)
	s.text = nil // it may be the caller's
	return settled
}

// unfinished returns how many bytes at the end of text are the beginning of a
// rune that more text may complete.
func unfinished(text []byte) int {
	if n := len(text); n == 0 || text[n-1] < utf8.RuneSelf {
		return 0
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if rest := text[len(text)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRune(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// kindBefore is the kind of the rune that ends at text[i], which is one of this
// block or the last of the one before.
func (s *screen) kindBefore(i int) kind {
	if s.base+int64(i) == s.done {
		return s.before
	}
	if c := s.text[i-1]; c < utf8.RuneSelf {
		return kindOf(rune(c))
	}
	return other
}

// settled is the offset before which nothing can be part of a finding that is
// not yet decided.
func (s *screen) settled() int64 {
	settled := s.done
	for _, q := range s.active {
		settled = q.hold(settled)
	}
	for i := range s.fronts {
		at := &s.fronts[i]
		if at.hold == 0 || s.done-int64(at.hold) >= settled {
			continue
		}
		if len(s.active) == 0 {
			settled = s.done - int64(at.hold)
			continue
		}
		for _, h := range at.state.holds {
			if !s.on.has(h.rule) {
				settled = min(settled, s.done-int64(h.age))
				break
			}
		}
	}
	return settled
}

// keep drops the text before from, which is text[0:] of all, and keeps the
// rest. What is already kept is moved when that pays, so that each byte is
// moved about once.
func (s *screen) keep(all []byte, from int, own bool) {
	switch {
	case !own:
		s.kept = append(s.kept, all[from:]...)
	case from == len(all) && cap(all) > blockSize:
		s.kept = nil
	case from > len(all)/2 || from == len(all):
		s.kept = all[:copy(all, all[from:])]
	default:
		return
	}
	s.base += int64(from)
	s.steps += int64(len(all) - from)
}

// progress reports the findings that are before the offset to; all that are so
// are known.
func (s *screen) progress(settled, to int64) guard.Progress {
	s.out = s.out[:0]
	n := 0
	for ; n < len(s.pending) && s.pending[n].at < to; n++ {
		f := &s.pending[n]
		r := s.engine.rules[f.rule]
		s.out = append(s.out, guard.Finding{
			Guard: s.engine.name, Rule: r.id, Start: f.start, End: f.end,
			Severity: r.severity, Verdict: f.verdict, Fingerprint: f.fingerprint,
		})
	}
	if n > 0 {
		s.pending = slices.Delete(s.pending, 0, n)
	}
	return guard.Progress{Settled: settled, Findings: s.out}
}

// add takes a match that is decided: a finding, unless a validator says no.
func (s *screen) add(r *rule, m accepted) {
	text := s.text[m.start-s.base : m.end-s.base]
	for _, v := range r.validators {
		if !v.Accept(text) {
			return
		}
	}
	p := s.engine.prints.Get().(*print)
	p.begin(m.start)
	p.reach(s.text, s.base, m.end)
	s.enter(finding{at: m.start, start: m.start, end: m.end, rule: r.index, verdict: r.verdict, fingerprint: p.sum()})
	s.engine.prints.Put(p)
}

// enter puts a finding where it belongs among those that are not reported.
func (s *screen) enter(f finding) {
	i, _ := slices.BinarySearchFunc(s.pending, f, finding.compare)
	s.pending = slices.Insert(s.pending, i, f)
}
