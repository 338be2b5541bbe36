package disclosure

import (
	"encoding/hex"
	"hash"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// mostGap is how many bytes may part two words of a run: more than anybody writes.
const mostGap = 64

// run is a run of the text's words that the prompt has in that order.
type run struct {
	first, next int   // in the prompt: its first word, and the one that would go on
	start       int64 // in the text
}

// screen looks for the prompt in a channel's text. Its state is a function of the
// text so far.
type screen struct {
	guard  *Guard
	prompt *prompt

	read int64  // bytes that were looked at
	rest []byte // of a rune that is not whole, behind them

	word      []byte // what of a word has come, folded
	wordStart int64
	wordEnd   int64 // of the last rune of the word that shows
	gap       int64 // bytes since the last word
	runs      []run // by next, which no two share; none that can not become or extend a finding
	spare     []run

	// The finding that goes on, if from >= 0 says there is one.
	found    bool
	from, to int64
	open     bool // it was reported without its end

	text   []byte // from base on: what the fingerprint still wants
	base   int64
	hashed int64
	print  hash.Hash

	out []guard.Finding
}

// Write implements [guard.Screen].
func (s *screen) Write(p []byte) (guard.Progress, error) {
	s.out = s.out[:0]
	s.text = append(s.text, p...)
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
	}
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size <= 1 && !utf8.FullRune(p) {
			break
		}
		s.rune(r, int64(size))
		p = p[size:]
	}
	s.rest = append(s.rest[:0:0], p...)
	return s.progress(), nil
}

// Close implements [guard.Screen].
func (s *screen) Close() (guard.Progress, error) {
	s.out = s.out[:0]
	s.endWord()
	s.read += int64(len(s.rest))
	s.finish()
	return guard.Progress{Settled: s.read, Findings: s.out}, nil
}

// rune takes the text's next rune.
func (s *screen) rune(r rune, size int64) {
	switch kindOf(r) {
	case inWord:
		if len(s.word) == 0 {
			s.wordStart = s.read
		}
		if len(s.word) <= s.prompt.longest { // one byte more, and it is no word of the prompt
			s.word = utf8.AppendRune(s.word, folded(r))
		}
		s.wordEnd = s.read + size
		if s.found && !s.goesOn() {
			s.finish()
		}
	case alone:
		s.endWord()
		s.wordStart, s.wordEnd = s.read, s.read+size
		s.word = utf8.AppendRune(s.word[:0], folded(r))
		s.endWord()
	case apart:
		s.endWord()
		s.pass(size)
	case unseen:
		if len(s.word) == 0 {
			s.pass(size)
		}
	}
	s.read += size
}

// pass notes what parts words.
func (s *screen) pass(size int64) {
	if s.gap += size; s.gap > mostGap && len(s.runs) > 0 {
		s.runs = s.runs[:0]
		s.finish()
	}
}

// endWord takes the word that has ended, if one has.
func (s *screen) endWord() {
	if len(s.word) == 0 {
		return
	}
	places, canary := s.prompt.at[string(s.word)], s.prompt.isCanary(s.word)
	s.word, s.gap = s.word[:0], 0
	if canary {
		s.runs = s.runs[:0]
		s.finish()
		s.report(RuleCanary, s.wordStart, s.wordEnd)
		return
	}
	s.extend(places)
	for _, r := range s.runs {
		if s.prompt.complete(r.first, r.next) {
			s.disclosed(r.start)
		}
	}
	if s.found && !s.goesOn() {
		s.finish()
	}
}

// extend makes the runs that end at the places where the prompt has the word.
// Places and runs are in order, and go through each other once.
func (s *screen) extend(places []int) {
	next, i := s.spare[:0], 0
	for _, at := range places {
		for i < len(s.runs) && s.runs[i].next < at {
			i++
		}
		r := run{first: at, start: s.wordStart}
		if i < len(s.runs) && s.runs[i].next == at {
			r = s.runs[i]
		}
		if r.next = at + 1; s.prompt.room[r.first] {
			next = append(next, r)
		}
	}
	s.runs, s.spare = next, s.runs
}

// disclosed notes that the text from start to the end of the word is a finding.
func (s *screen) disclosed(start int64) {
	switch {
	case s.found && start < s.to:
		s.to = s.wordEnd
	case s.found:
		s.finish()
		fallthrough
	default:
		s.found, s.open, s.from, s.to = true, false, start, s.wordEnd
		s.hashed = start
		if s.print != nil {
			s.print.Reset()
		}
	}
	s.hash(s.to)
	if !s.open && s.to-s.from >= HoldLimit {
		s.open = true
		s.out = append(s.out, s.finding(RuleOverlap, s.from, guard.Open, ""))
	}
}

// goesOn reports whether a run may still make the finding longer.
func (s *screen) goesOn() bool {
	for _, r := range s.runs {
		if r.start < s.to && s.mayGoOn(r) {
			return true
		}
	}
	return false
}

// finish reports the finding that went on, if there is one.
func (s *screen) finish() {
	if s.found {
		s.found = false
		s.out = append(s.out, s.finding(RuleOverlap, s.from, s.to, s.sum()))
	}
}

// report reports a finding whose end is known.
func (s *screen) report(rule string, from, to int64) {
	s.hashed = from
	if s.print != nil {
		s.print.Reset()
	}
	s.hash(to)
	s.out = append(s.out, s.finding(rule, from, to, s.sum()))
}

func (s *screen) finding(rule string, from, to int64, print string) guard.Finding {
	return guard.Finding{
		Guard: s.guard.opt.Name, Rule: rule, Start: from, End: to,
		Severity: guard.High, Verdict: s.guard.opt.Verdict, Fingerprint: print,
	}
}

// hash takes the text up to an offset into the fingerprint.
func (s *screen) hash(to int64) {
	if s.print != nil && to > s.hashed {
		s.print.Write(s.text[s.hashed-s.base : to-s.base])
	}
	s.hashed = max(s.hashed, to)
}

func (s *screen) sum() string {
	if s.print == nil {
		return ""
	}
	return hex.EncodeToString(s.print.Sum(nil)[:8])
}

// idleText is how much text is kept before what nobody wants is dropped.
const idleText = 2048

// progress says what is settled, and drops what nobody wants any more.
func (s *screen) progress() guard.Progress {
	settled := s.settled()
	if len(s.text) < idleText {
		return guard.Progress{Settled: settled, Findings: s.out}
	}
	keep := settled
	if s.found {
		keep = min(keep, s.hashed)
	}
	for _, r := range s.runs {
		keep = min(keep, r.start)
	}
	if len(s.word) > 0 {
		keep = min(keep, s.wordStart)
	}
	if drop := int(keep - s.base); drop > len(s.text)/2 {
		s.text = s.text[:copy(s.text, s.text[drop:])]
		s.base = keep
	}
	return guard.Progress{Settled: settled, Findings: s.out}
}

// settled is where the first finding may start that is still to come.
func (s *screen) settled() int64 {
	switch {
	case s.found && s.open:
		return s.to
	case s.found:
		return s.from
	}
	at := s.read
	if len(s.word) > 0 && s.prompt.opens(string(s.word)) {
		at = s.wordStart
	}
	for _, r := range s.runs {
		if r.start < at && s.mayGoOn(r) {
			at = r.start
		}
	}
	return at
}

// mayGoOn reports whether the prompt's next word is one that the word under way
// may become.
func (s *screen) mayGoOn(r run) bool {
	if r.next >= len(s.prompt.words) || s.prompt.words[r.next] == barrier {
		return false
	}
	next := s.prompt.words[r.next]
	return len(s.word) <= len(next) && next[:len(s.word)] == string(s.word)
}
