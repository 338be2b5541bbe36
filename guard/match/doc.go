// Package match finds the rules' patterns in text that arrives in pieces.
//
// An [Engine] is a [guard.Guard] made of [Rule] values: RE2 patterns, each with
// at most one group to redact. It answers as if it had waited for the whole
// text, and holds back no more than it must while the text still flows.
//
// # Meaning
//
// The definition is a batch: for each rule, Go's leftmost-first,
// non-overlapping matches over the whole text; the finding's span is the rule's
// group, or the match; a match that a validator rejects is no finding, and still
// consumes its text. A byte that is not UTF-8 is one U+FFFD, as Go reads it.
// Findings are ordered by start, then by the order of the rules.
//
// There is one departure: a match that is not decided within the hold limit, 512
// bytes if the options do not say otherwise, is masked from there on, up to the
// place where it is decided, and no validator is asked (limit.go has the exact
// words).
//
// An engine may read through tricks that hide a token from patterns and not from
// people: then this is said of the text without them (evasion.go), and findings
// are still spans of the text as it came.
//
// # Laws
//
// Chunk invariance: what is settled and what has been reported after a prefix
// of the text is a function of that prefix, wherever it was cut, inside a rune
// too.
//
// Least hold-back: what is held begins at the earliest group of a match that
// may still come about. What a match needs before its group is read and let go;
// when no match is under way, nothing is held, and never more than the hold
// limit and an unfinished rune. `$`, `\z`, `\b` and `\B` wait
// for the rune that decides them, or for Close.
//
// Linear: each rule reads a byte once, and again only between the end of a
// match and the place where that match was decided. For patterns whose match can
// be followed by an unbounded tail that comes to nothing, such as `a(?:.*b)?`,
// that is as quadratic as it is in Go; no pattern of guard/rules is like that.
//
// # How
//
//	text ─► rune class ─► three fronts ─► rule 3 ─► finding ─► validators ─┐
//	        (one table,   (all rules,     rule 7                           ▼
//	        shared)       while young)    …only while a match   ordered, reported once
//	                                      is well under way     settled has passed it
//
// A rule's search is a Pike machine: ordered threads, so that leftmost-first
// priorities and lazy quantifiers are exact. A front steps the young searches of
// many rules at once, through a deterministic automaton that is built as it is
// walked (front.go). Its states are the threads of all of them, each with how
// many bytes ago its group began: so a state knows what must be held, and clean
// text costs one look-up a rune and front, with no registers. There are three of
// them, by how the patterns begin, since their states multiply.
//
// A search that grows older, or comes to a match, goes on in an automaton of its
// rule's own (table.go), with the threads that it has: nothing is read again. There
// a few numbered registers beside the state say where the threads' groups start.
// Each move says how registers are carried over, which is mostly not at all
// (state.go, closure.go). When it comes to rest the front looks after the rule
// again.
//
// States are shared by all streams of an engine: walking takes no lock, adding a
// state does, and states are dropped and built anew when they outgrow a fixed
// budget.
package match
