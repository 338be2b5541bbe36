package match

import "github.com/stoplog/stoplog/guard"

// SetBudget sets what the states of each rule may take.
func SetBudget(e *Engine, bytes int) {
	for _, r := range e.rules {
		r.budget = bytes
	}
}

// Generation is how often the states of some rule were forgotten.
func Generation(e *Engine) int {
	n := 0
	for _, r := range e.rules {
		n = max(n, r.table.Load().generation)
	}
	return n
}

// Steps is the work that a screen has done: bytes read, by the wake tables and
// by every rule.
func Steps(s guard.Screen) int64 { return s.(*screen).steps }

// Kept is the room that a screen has for text.
func Kept(s guard.Screen) int { return cap(s.(*screen).kept) }
