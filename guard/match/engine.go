package match

import (
	"context"
	"sync"

	"github.com/stoplog/stoplog/guard"
)

// Engine is a set of compiled rules. It implements [guard.Guard]. All its
// screens share the automata that it builds; it is safe for use by several
// goroutines.
type Engine struct {
	name    string
	key     []byte
	limits  limits
	rules   []*rule
	classes *classes
	columns *columns
	fronts  [fronts]*front
	// What screens need now and then.
	prints   sync.Pool // of *print
	searches sync.Pool // of *search
	// disguise is what the engine reads through; nil if that is nothing.
	disguise *disguise
}

// Name implements [guard.Guard].
func (e *Engine) Name() string { return e.name }

// Open implements [guard.Guard]. The engine treats all channels alike.
func (e *Engine) Open(context.Context, guard.Channel) guard.Screen {
	if e.disguise != nil {
		return newProjected(e.open(), e.disguise)
	}
	return e.open()
}

// Constant implements [guard.Constant]: an engine is its rules, and they do not
// change.
func (e *Engine) Constant() bool { return true }

// Strictest is the severest verdict that a finding of the engine can have.
func (e *Engine) Strictest() guard.Verdict {
	v := guard.Allow
	for _, r := range e.rules {
		v = max(v, r.verdict)
		if _, cut := e.limits.of(r); cut && r.policy == DenyText {
			v = guard.Deny
		}
	}
	return v
}

// Bound says how much text the engine can hold: never more than bytes, where the
// text has none of the evasions that it reads through. Rules in cut can match more
// than the hold limit, where they are cut.
func (e *Engine) Bound() (bytes int, cut []string) {
	for _, r := range e.rules {
		hold, limited := e.limits.of(r)
		if limited {
			cut = append(cut, r.id)
		}
		bytes = max(bytes, hold)
	}
	return bytes, cut
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
