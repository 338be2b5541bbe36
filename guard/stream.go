package guard

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A Stream is a chain at work on one channel. It is used by one goroutine.
//
// Only text that the enforcing guards let through is shown to the others: what
// a guard in shadow finds is thereby as independent of cuts as all else, and
// its view ends where a stop ended the channel.
type Stream struct {
	chain     *Chain
	enforcing []*judge
	watching  []*judge
	allowed   Allowed

	read    int64  // bytes of text so far
	settled int64  // what Step.Settled says
	text    []byte // ends at read; holds at least what waits, and what the current call let out
	pending []waiting
	union   *union
	stop    *Stop
	closed  bool

	edits     []Edit
	decisions []Decision
}

// waiting is a finding that has not been acted on.
type waiting struct {
	Finding
	wasOpen bool    // it was first reported without its end
	opened  Verdict // and with this verdict; its end may bring a severer one
	allowed *Allowance
}

// compare orders findings as they are acted on.
func (w waiting) compare(o waiting) int {
	return cmp.Or(cmp.Compare(w.Start, o.Start), cmp.Compare(w.Guard, o.Guard))
}

// Held returns how many bytes of the text wait for a verdict.
func (s *Stream) Held() int64 { return s.read - s.settled }

// Stopped returns why the channel was stopped, nil if it was not.
func (s *Stream) Stopped() *Stop { return s.stop }

// Write judges the next piece of the text, which the stream does not keep.
// After a stop it does nothing.
func (s *Stream) Write(p []byte) Step {
	s.begin()
	for len(p) > 0 && s.stop == nil && !s.closed {
		// Cut where the text's length is a multiple of the stride: the hold
		// limit is looked at there and nowhere else.
		n := min(int64(len(p)), s.chain.stride-s.read%s.chain.stride)
		s.feed(p[:n])
		p = p[n:]
		if s.stop == nil && s.read%s.chain.stride == 0 && s.Held() > s.chain.maxHold {
			s.overflow()
		}
	}
	return s.step()
}

// Close marks the end of the text, however it came about: everything that is
// held is decided. It is called once on every stream, also after a stop.
func (s *Stream) Close() Step {
	s.begin()
	if s.closed {
		return s.step()
	}
	s.closed = true
	if s.stop == nil {
		s.judge((*judge).close)
	}
	for _, j := range s.watching {
		fs, err := j.close()
		s.observe(j, fs, err)
	}
	return s.step()
}

func (s *Stream) step() Step {
	return Step{Settled: s.settled, Edits: s.edits, Decisions: s.decisions, Stop: s.stop}
}

// feed shows a piece to the enforcing guards and lets out what they settle.
func (s *Stream) feed(p []byte) {
	s.read += int64(len(p))
	s.text = append(s.text, p...)
	s.judge(func(j *judge) ([]Finding, error) { return j.write(p) })
}

// judge asks every enforcing guard, and acts on what is known then.
func (s *Stream) judge(ask func(*judge) ([]Finding, error)) {
	var failed *judge
	for _, j := range s.enforcing {
		fs, err := ask(j)
		s.add(fs)
		if err != nil && failed == nil {
			failed = j
		}
	}
	s.advance(s.watermark())
	if failed != nil && s.stop == nil {
		s.fail(failed)
	}
}

// watermark is the offset before which every finding is known.
func (s *Stream) watermark() int64 {
	w := s.read
	for _, j := range s.enforcing {
		w = min(w, j.settled)
	}
	return w
}

// add queues findings in the order in which they are acted on: by start, then
// guard, then as reported. It closes those reported open before.
func (s *Stream) add(fs []Finding) {
	for _, f := range fs {
		if f.End != Open && s.closeOpen(f) {
			continue
		}
		if f.Verdict == Allow && f.Start < s.settled {
			continue // the end of a finding that was noted when it was cut
		}
		allowed := s.allow(&f)
		s.pending = append(s.pending, waiting{Finding: f, wasOpen: f.End == Open, opened: f.Verdict, allowed: allowed})
	}
	if len(fs) > 0 {
		slices.SortStableFunc(s.pending, waiting.compare)
	}
}

// closeOpen gives an open finding its end.
func (s *Stream) closeOpen(f Finding) bool {
	same := func(o waiting) bool {
		return o.End == Open && o.Start == f.Start && o.Rule == f.Rule && o.Guard == f.Guard
	}
	if i := slices.IndexFunc(s.pending, same); i >= 0 {
		s.pending[i].Finding = f
		return true
	}
	if s.union != nil {
		if i := slices.IndexFunc(s.union.members, same); i >= 0 {
			s.union.members[i].Finding = f
			return true
		}
		if i := slices.IndexFunc(s.union.notes, same); i >= 0 {
			s.union.close(i, f)
			return true
		}
	}
	return false
}

// fail ends the channel for a guard that enforces and failed.
func (s *Stream) fail(j *judge) {
	s.decisions = append(s.decisions, Decision{
		Finding: Finding{Guard: j.name, Rule: RuleGuardFailed, Start: s.settled, End: s.settled, Severity: Critical, Verdict: Deny},
		Mode:    Enforce, Err: j.failed,
	})
	s.end(&Stop{Verdict: Deny, Guard: j.name, Rule: RuleGuardFailed, At: s.settled})
}

// overflow ends a channel that holds more than it may.
func (s *Stream) overflow() {
	most := s.enforcing[0]
	for _, j := range s.enforcing {
		if j.settled < most.settled {
			most = j
		}
	}
	s.decisions = append(s.decisions, Decision{
		Finding: Finding{Guard: most.name, Rule: RuleMaxHold, Start: s.settled, End: s.read, Severity: High, Verdict: Deny},
		Mode:    Enforce,
	})
	s.end(&Stop{Verdict: Deny, Guard: most.name, Rule: RuleMaxHold, At: s.settled})
}

func (s *Stream) end(stop *Stop) {
	s.stop = stop
	if s.union != nil {
		for _, n := range s.union.notes {
			s.decide(n, n.wasOpen)
		}
	}
	s.pending, s.union = nil, nil
}

// held is the text that waits: from settled to read.
func (s *Stream) held() []byte { return s.text[len(s.text)-int(s.read-s.settled):] }

// begin starts a call: what the last one gave out is the stream's again. The
// text that has left is dropped when it is the larger part, so that each byte
// is moved about once.
func (s *Stream) begin() {
	s.edits, s.decisions = reuse(s.edits, idleItems), reuse(s.decisions, idleItems)
	if s.stop != nil {
		s.text = reuse(s.text, idleText)
		return
	}
	waiting := len(s.held())
	if waiting == 0 {
		s.text = reuse(s.text, idleText)
		return
	}
	if gone := len(s.text) - waiting; gone >= waiting {
		s.text = s.text[:copy(s.text, s.text[gone:])]
	}
}

// release lets the text before to out, to the guards that only watch and to
// the caller.
func (s *Stream) release(to int64) {
	n := to - s.settled
	if n <= 0 {
		return
	}
	for _, j := range s.watching {
		s.show(j, s.held()[:n])
	}
	s.settled = to
}

// lookEvery is how often it is looked at how much a guard in shadow would hold:
// where the length of the text that it was shown is a multiple of this, so that
// the answer does not depend on cuts.
const lookEvery = 256

// show gives a guard that only watches the text that was let through.
func (s *Stream) show(j *judge, text []byte) {
	for len(text) > 0 {
		n := len(text)
		if j.mode == Shadow && j.failed == nil {
			n = min(n, lookEvery-int(j.read%lookEvery))
		}
		fs, err := j.write(text[:n])
		s.observe(j, fs, err)
		if j.mode == Shadow && j.failed == nil && j.read%lookEvery == 0 {
			j.most = max(j.most, j.read-j.settled)
		}
		text = text[n:]
	}
}

// WouldHold returns the most bytes that a guard in shadow would have held back, as
// far as that was looked at: every 256 bytes of what was let through.
func (s *Stream) WouldHold() int64 {
	most := int64(0)
	for _, j := range s.watching {
		most = max(most, j.most)
	}
	return most
}

// observe records what a guard that only watches found.
func (s *Stream) observe(j *judge, fs []Finding, err error) {
	for _, f := range fs {
		allowed := s.allow(&f)
		s.decisions = append(s.decisions, Decision{Finding: f, Mode: j.mode, Allowed: allowed})
	}
	if err != nil {
		s.decisions = append(s.decisions, Decision{
			Finding: Finding{Guard: j.name, Rule: RuleGuardFailed, Start: j.settled, End: j.read, Severity: High, Verdict: Allow},
			Mode:    j.mode, Err: err,
		})
	}
}

// whole is the largest offset not after w that cuts no rune in two: a rune
// that came whole, or may yet, leaves whole.
func (s *Stream) whole(w int64) int64 {
	if s.closed && w == s.read {
		return w
	}
	held := s.held()
	before := held[:w-s.settled]
	for i := 1; i <= min(utf8.UTFMax-1, len(before)); i++ {
		at := len(before) - i
		if !utf8.RuneStart(before[at]) {
			continue
		}
		rest := held[at:]
		if !utf8.FullRune(rest) {
			return s.settled + int64(at)
		}
		if _, size := utf8.DecodeRune(rest); size > i {
			return s.settled + int64(at)
		}
		break
	}
	return w
}
