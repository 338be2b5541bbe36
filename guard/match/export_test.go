package match

import "github.com/stoplog/stoplog/guard"

// SetBudget sets what the states of each rule may take; a small budget makes
// fronts forget theirs all the time too.
func SetBudget(e *Engine, bytes int) {
	for _, r := range e.rules {
		r.budget = bytes
	}
	for _, f := range e.fronts {
		f.most = min(f.most, max(4, bytes/400))
	}
}

// Generation is how often the states of some rule, or of a front, were forgotten.
func Generation(e *Engine) int {
	n := 0
	for _, r := range e.rules {
		n = max(n, r.table.Load().generation)
	}
	for _, f := range e.fronts {
		n = max(n, f.table.Load().generation)
	}
	return n
}

// Steps is the work that a screen has done: bytes read, by the fronts and
// by every rule.
func Steps(s guard.Screen) int64 { return s.(*screen).steps }

// Kept is the room that a screen has for text.
func Kept(s guard.Screen) int { return cap(s.(*screen).kept) }

// Masks is how many searches of a screen are cut at present.
func Masks(s guard.Screen) int { return len(s.(*screen).masks) }

// Seed is what random texts start from.
func Seed() uint64 { return *seed }
