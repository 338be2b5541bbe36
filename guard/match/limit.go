package match

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// # The hold limit
//
// A match may go on for as long as the text does. So a search is looked at in
// the first place between two runes that is HoldLimit bytes or more behind the
// start of the earliest group of its threads and of its accepted match. If it is
// not decided there, it is cut: its text from that start on is masked, whatever
// the validators would have said, no other match of the rule starts, and what is
// masked ends where the search is decided: at the end of a match that nothing can
// change; else in front of the rune by which its last thread dies, which may be
// behind the end of a match that was accepted; else with the text. There the
// rule's next search starts.
//
// Where the mask itself has grown to SwallowLimit bytes, again in the first
// place between two runes, the rule's [Policy] says what happens.
//
// The mask is a finding that is reported as soon as its start is settled, with
// the end [guard.Open], and again when its end is. All this is stated by offsets
// of the text and so is no matter of its pieces. A rule that can have less than
// HoldLimit bytes between the start of its group and the end of its match is
// never cut.

// Policy says what happens where a mask has grown to the swallow limit.
type Policy uint8

const (
	// Inherit takes the policy of the options; theirs is then Release.
	Inherit Policy = iota
	// Release ends the mask there, and the rule's search goes on behind it.
	Release
	// MaskOpen masks the rest of the text.
	MaskOpen
	// DenyText ends the mask there with the verdict deny.
	DenyText
)

var policyNames = [...]string{"inherit", "release", "mask_open", "deny"}

func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParsePolicy reads what [Policy.String] writes.
func ParsePolicy(s string) (Policy, error) {
	if i := slices.Index(policyNames[:], s); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("unknown policy %q: want one of %q", s, policyNames)
}

// Limits of an engine, in bytes.
const (
	DefaultHoldLimit    = 512
	DefaultSwallowLimit = 16 << 10
	// LeastHoldLimit is the least that HoldLimit can be: more than any rune has
	// bytes, with room to spare.
	LeastHoldLimit = 16
)

// limits are what Options say of limits, with the defaults filled in.
type limits struct{ hold, swallow int64 }

func (o Options) limits() (limits, error) {
	l := limits{int64(o.HoldLimit), int64(o.SwallowLimit)}
	if l.hold == 0 {
		l.hold = DefaultHoldLimit
	}
	if l.swallow == 0 {
		l.swallow = max(DefaultSwallowLimit, l.hold)
	}
	switch {
	case l.hold < LeastHoldLimit:
		return l, fmt.Errorf("hold limit is %d bytes: the least is %d", l.hold, LeastHoldLimit)
	case l.swallow < l.hold:
		return l, fmt.Errorf("swallow limit is %d bytes, less than the hold limit of %d", l.swallow, l.hold)
	}
	return l, nil
}

// of says how many bytes are held for a rule at most, and whether that is so
// because the rule is cut.
func (l limits) of(r *rule) (hold int, cut bool) {
	if n := r.prog.bound; n >= 0 && int64(n)-utf8.UTFMax < l.hold {
		return n, false
	}
	return int(l.hold) + utf8.UTFMax - 1, true
}

// A mask is the text of a search that was cut, as far as it is read.
type mask struct {
	start int64
	blind bool // to the end of the text: nothing decides it any more
	print      // of the text from start on
}

// never is an offset that no text reaches.
const never = math.MaxInt64

// review looks at a search that is not decided at its check, the offset at, and
// sets the next check.
func (s *screen) review(r *rule, q *search, at int64) {
	if q.mask == nil {
		held := q.hold(at)
		if at-held < s.engine.limits.hold {
			q.check = held + s.engine.limits.hold
			return
		}
		s.cut(r, q, held, at)
		if q.at.over {
			s.unmask(r, q, at, r.verdict)
		}
		return
	}
	switch r.policy {
	case MaskOpen:
		q.mask.blind, q.check = true, never
	case DenyText:
		s.unmask(r, q, at, guard.Deny)
	default:
		s.unmask(r, q, at, r.verdict)
	}
}

// cut masks what a search holds at an offset, and what is to come.
func (s *screen) cut(r *rule, q *search, held, at int64) {
	q.mask = s.newMask(held, at)
	q.at, q.check = r.cut(q.at), held+s.engine.limits.swallow
	s.enter(finding{at: held, start: held, end: guard.Open, rule: r.index, verdict: r.verdict})
}

// unmask ends a search's mask where it is decided. The next search of the rule
// starts there.
func (s *screen) unmask(r *rule, q *search, end int64, v guard.Verdict) {
	q.mask.reach(s.text, s.base, end)
	s.enter(finding{at: end, start: q.mask.start, end: end, rule: r.index, verdict: v, fingerprint: q.mask.sum()})
	s.masks = slices.DeleteFunc(s.masks, func(m *mask) bool { return m == q.mask })
	s.spare = append(s.spare, q.mask)
	q.mask = nil
	s.again(q, end)
}

// newMask is a mask of the text from held to at.
func (s *screen) newMask(held, at int64) *mask {
	var m *mask
	if n := len(s.spare); n > 0 {
		m, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		m = &mask{print: newPrint(s.engine.key)}
	}
	m.start, m.blind = held, false
	m.begin(held)
	m.reach(s.text, s.base, at)
	s.masks = append(s.masks, m)
	return m
}

// cut returns the state of a search that is cut in state s.
func (r *rule) cut(s *state) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.intern(forget(slices.Clone(s.threads)), s.prev, cut)
}

// forget takes from threads where their groups are.
func forget(threads []thread) []thread {
	for i := range threads {
		threads[i].group = nowhere
	}
	return threads
}
