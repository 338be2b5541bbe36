package match

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// slow is the definition of the hold limit as a program: for each rule a Pike
// machine with plain positions, that reads the text rune by rune and looks at
// nothing else. It shares with the engine how patterns are compiled, and no
// more.
type slow struct {
	*Engine
	alphabet []rune // a rune of each kind and class that the rules tell apart; nil for the engine's own samples
}

// way is a thread: where it is, and where its group started and ended.
type way struct {
	pc         uint32
	start, end int
}

const none = -1

// lone is one rule's search.
type lone struct {
	*slow
	*rule
	text    []byte
	threads []way
	prev    rune
	found   *way // its end is the group's
	over    int  // where found ends
	masked  int  // where the mask starts, or none
	blind   bool
	out     []finding
	read    int
	hold    []int64 // when so much was read first
}

// events are what the engine reports of a text, in order, and what is settled
// after each of its bytes.
func (s *slow) events(text []byte) (out []finding, settled []int64) {
	settled = make([]int64, len(text)+1)
	whole := make([]int, len(text)+1)
	for i := range settled {
		whole[i] = wholeRunes(text[:i])
		settled[i] = int64(whole[i])
	}
	for _, r := range s.rules {
		l := &lone{slow: s, rule: r, text: text, prev: -1, masked: none, hold: make([]int64, len(text)+1)}
		l.search()
		out = append(out, l.out...)
		for i := range settled {
			settled[i] = min(settled[i], l.hold[whole[i]])
		}
	}
	slices.SortFunc(out, finding.compare)
	return out, settled
}

// wholeRunes is the length of a text without a last rune that may go on.
func wholeRunes(text []byte) int {
	at := 0
	for at < len(text) && utf8.FullRune(text[at:]) {
		_, w := utf8.DecodeRune(text[at:])
		at += w
	}
	return at
}

func (l *lone) search() {
	for i := range l.hold {
		l.hold[i] = never
	}
	at := 0
	for at < len(l.text) {
		r, w := utf8.DecodeRune(l.text[at:])
		decided := l.take(r, at, at+w)
		at += w
		if decided >= 0 {
			at = l.restart(decided)
			continue
		}
		l.limit(&at)
	}
	for l.masked == none {
		for _, t := range l.closure(l.threads, l.prev, -1, false, at) {
			if l.match(t) {
				l.found, l.over = &t, at
			}
		}
		if l.found == nil {
			return
		}
		l.add(l.found.start, l.found.end)
		for at = l.restart(l.over); at < len(l.text); {
			r, w := utf8.DecodeRune(l.text[at:])
			decided := l.take(r, at, at+w)
			if at += w; decided >= 0 {
				at = l.restart(decided)
			} else if l.limit(&at); l.masked != none {
				break
			}
		}
	}
	l.unmask(len(l.text), l.verdict)
}

// take reads a rune and returns where the search is decided by it, or none.
func (l *lone) take(r rune, from, to int) int {
	l.read = max(l.read, to)
	fresh := l.found == nil && l.masked == none
	var next []way
	for _, t := range l.closure(l.threads, l.prev, r, fresh, from) {
		if l.match(t) {
			if l.masked == none {
				l.found, l.over = &t, from
			}
			break
		}
		if l.prog.inst[t.pc].MatchRune(r) {
			next = append(next, way{l.prog.inst[t.pc].Out, t.start, t.end})
		}
	}
	l.threads, l.prev = next, r
	l.threads = l.useful(to)
	if last := l.final(to); last != nil {
		l.found, l.over = last, to
		return l.decided(to)
	}
	if len(l.threads) == 0 && l.masked != none {
		return l.decided(from)
	}
	if len(l.threads) == 0 && l.found != nil {
		return l.decided(l.over)
	}
	l.note(to)
	return none
}

func (l *lone) decided(at int) int {
	if l.blind {
		return none
	}
	if l.masked != none {
		l.unmask(at, l.verdict)
	} else {
		l.add(l.found.start, l.found.end)
	}
	return at
}

func (l *lone) restart(at int) int {
	l.threads, l.found, l.masked, l.prev = nil, nil, none, -1
	if at > 0 {
		l.prev, _ = utf8.DecodeLastRune(l.text[:at])
	}
	l.hold[l.read] = never
	return at
}

// held is where what the search holds starts.
func (l *lone) held(at int) int {
	for _, t := range l.threads {
		if t.start != none {
			at = min(at, t.start)
		}
	}
	if l.found != nil {
		at = min(at, l.found.start)
	}
	return at
}

func (l *lone) note(at int) {
	if l.masked == none && at == l.read {
		l.hold[at] = int64(l.held(at))
	}
}

// limit looks at a search that is not decided.
func (l *lone) limit(at *int) {
	if start := l.held(*at); l.masked == none && *at-start >= int(l.limits.hold) {
		l.masked, l.found = start, nil
		if *at == l.read {
			l.hold[*at] = never
		}
		l.out = append(l.out, finding{at: int64(start), start: int64(start), end: guard.Open, rule: l.index, verdict: l.verdict})
		for i := range l.threads {
			l.threads[i] = way{l.threads[i].pc, none, none}
		}
		if l.final(*at) != nil {
			*at = l.restart(l.decided(*at))
		}
	}
	if l.masked != none && !l.blind && *at-l.masked >= int(l.limits.swallow) {
		switch l.policy {
		case MaskOpen:
			l.blind = true
		case DenyText:
			l.unmask(*at, guard.Deny)
			l.restart(*at)
		default:
			l.unmask(*at, l.verdict)
			l.restart(*at)
		}
	}
}

func (l *lone) add(start, end int) {
	if !slices.ContainsFunc(l.validators, func(v Validator) bool { return !v.Accept(l.text[start:end]) }) {
		l.out = append(l.out, finding{at: int64(start), start: int64(start), end: int64(end), rule: l.index, verdict: l.verdict})
	}
}

func (l *lone) unmask(end int, v guard.Verdict) {
	l.out = append(l.out, finding{at: int64(end), start: int64(l.masked), end: int64(end), rule: l.index, verdict: v})
}

func (l *lone) match(t way) bool { return l.prog.inst[t.pc].Op == syntax.InstMatch }

// closure follows threads, in order, to where they take a rune or match, between
// two runes at an offset. A -1 is no rune.
func (l *lone) closure(threads []way, prev, next rune, fresh bool, at int) (leaves []way) {
	seen := make(map[uint32]bool)
	cond := syntax.EmptyOpContext(prev, next)
	matched := false
	var follow func(t way)
	follow = func(t way) {
		if matched || seen[t.pc] {
			return
		}
		seen[t.pc] = true
		switch in := l.prog.inst[t.pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			follow(way{in.Out, t.start, t.end})
			follow(way{in.Arg, t.start, t.end})
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^cond == 0 {
				follow(way{in.Out, t.start, t.end})
			}
		case syntax.InstCapture:
			if in.Arg == l.prog.open {
				t.start = at
			} else if in.Arg == l.prog.close {
				t.end = at
			}
			if l.masked != none {
				t.start, t.end = none, none
			}
			follow(way{in.Out, t.start, t.end})
		case syntax.InstNop:
			follow(way{in.Out, t.start, t.end})
		case syntax.InstFail:
		default:
			leaves = append(leaves, t)
			matched = l.match(t)
		}
	}
	for _, t := range threads {
		follow(t)
	}
	if fresh {
		follow(way{l.prog.start, none, none})
	}
	return leaves
}

// ahead is what may come next: -1 for the end.
func (l *lone) ahead() []rune {
	if l.alphabet == nil {
		return append([]rune{-1}, l.samples[1:]...)
	}
	return append([]rune{-1}, l.alphabet...)
}

// SlowSettled is what is settled after each byte of a text by the definition.
func SlowSettled(e *Engine, text []byte) []int64 {
	_, settled := (&slow{Engine: e}).events(text)
	return settled
}

// useful are the threads that some rune, or the end, leads on.
func (l *lone) useful(at int) (out []way) {
	use := make(map[int]bool)
	for _, next := range l.ahead() {
		// Each thread after those before it, so that it is known whose a leaf is.
		n := 0
		for i := range l.threads {
			leaves := l.closure(l.threads[:i+1], l.prev, next, false, at)
			for _, t := range leaves[n:] {
				if l.match(t) || next >= 0 && l.prog.inst[t.pc].MatchRune(next) {
					use[i] = true
				}
			}
			n = len(leaves)
		}
	}
	for i, t := range l.threads {
		if use[i] {
			out = append(out, t)
		}
	}
	return out
}

// final is the match that ends here whatever comes next.
func (l *lone) final(at int) (last *way) {
	for _, next := range l.ahead() {
		leaves := slices.DeleteFunc(l.closure(l.threads, l.prev, next, false, at), func(t way) bool {
			return !l.match(t) && (next < 0 || !l.prog.inst[t.pc].MatchRune(next))
		})
		if len(leaves) == 0 || !l.match(leaves[0]) || last != nil && leaves[0] != *last {
			return nil
		}
		last = &leaves[0]
	}
	return last
}
