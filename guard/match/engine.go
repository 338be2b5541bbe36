package match

import (
	"context"

	"github.com/stoplog/stoplog/guard"
)

// Engine is a set of compiled rules. It implements [guard.Guard]. All its
// screens share the automata that it builds; it is safe for use by several
// goroutines.
type Engine struct {
	name    string
	key     []byte
	rules   []*rule
	classes *classes
	banks   []*bank
}

// Name implements [guard.Guard].
func (e *Engine) Name() string { return e.name }

// Open implements [guard.Guard]. The engine treats all channels alike.
func (e *Engine) Open(context.Context, guard.Channel) guard.Screen { return e.open() }

// Strictest is the severest verdict that a finding of the engine can have.
func (e *Engine) Strictest() guard.Verdict {
	v := guard.Allow
	for _, r := range e.rules {
		v = max(v, r.verdict)
	}
	return v
}

// Bound says how much text the engine can hold: never more than bytes, but for
// the rules in unbounded, whose matches can grow as long as the text.
func (e *Engine) Bound() (bytes int, unbounded []string) {
	for _, r := range e.rules {
		if r.prog.bound < 0 {
			unbounded = append(unbounded, r.id)
		}
		bytes = max(bytes, r.prog.bound)
	}
	return bytes, unbounded
}

// count returns the number of findings in a text.
func (e *Engine) count(text string) (int, error) {
	s := e.open()
	p, err := s.Write([]byte(text))
	n := len(p.Findings)
	if err != nil {
		return n, err
	}
	p, err = s.Close()
	return n + len(p.Findings), err
}
