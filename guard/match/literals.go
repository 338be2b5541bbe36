package match

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stoplog/stoplog/guard"
)

// # Literals
//
// A rule knows what a secret looks like. Literals know the secrets themselves:
// those of a vault, of the environment, of a redaction that is to be undone. They
// are registered and taken back while streams flow, by the thousand, and cost a
// stream no more than one.
//
// A value is found verbatim and in these forms: base64 in either alphabet,
// wherever in the encoded text it begins; hexadecimal in lower and in upper case;
// and each of these, and the value itself, with any of its bytes percent-encoded,
// or any of its characters escaped as in a JSON string. The finding is the form's
// text. (In base64 the first and the last character may hold bits of the bytes
// beside the value; such a character is left.)
//
// Every occurrence is found, also those that overlap; one that lies in another is
// not reported. Two forms that start together are one finding, the longer.
//
// A value longer than a piece is registered as pieces that overlap: so no more is
// held for it, and a part of it is found too.

// Literals is a guard of registered values. It and its screens keep the laws of
// package guard as long as no value is added or removed. A value that is added
// counts from the first byte of each channel's next piece on; one that is removed
// may still be found where its text has begun.
//
// It is safe for use by several goroutines.
type Literals struct {
	opt      LiteralOptions
	disguise *disguise // nil if nothing is read through
	print    func(value string) string

	mu   sync.Mutex // held to change the set
	set  atomic.Pointer[dictionary]
	last int // of the numbers given to values
	n    int
}

// LiteralOptions are what registered values share.
type LiteralOptions struct {
	// Name is the guard's name.
	Name string
	// Key keys the fingerprints of findings, which are of the value, whatever the
	// form that was found. Without a key they are left empty.
	Key []byte
	// Verdict of each finding; Allow stands for Redact.
	Verdict guard.Verdict
	// Severity of each finding; Low stands for Critical.
	Severity guard.Severity
	// Least is the length in bytes of the shortest value that is taken; the least
	// it can be, and 0, is LeastLiteral.
	Least int
	// Evasions are the tricks that the guard reads through.
	Evasions Evasion
}

// LeastLiteral is the length in bytes of the shortest value that can be registered:
// a shorter one is a word that any text may have.
const LeastLiteral = headLength

// MostLiteral is the length of the longest.
const MostLiteral = 64 << 10

// leastDistinct is how many different bytes a value has at least.
const leastDistinct = 4

// ErrLiteral is why a value is not registered. The error says more, and never the
// value.
var ErrLiteral = errors.New("not a value to look for")

// NewLiterals returns a guard of no values.
func NewLiterals(opt LiteralOptions) *Literals {
	if opt.Verdict == guard.Allow {
		opt.Verdict = guard.Redact
	}
	if opt.Severity == guard.Low {
		opt.Severity = guard.Critical
	}
	opt.Least = max(opt.Least, LeastLiteral)
	l := &Literals{opt: opt, disguise: newDisguise(opt.Evasions, func(rune) bool { return false })}
	l.print = func(value string) string {
		p := newPrint(opt.Key)
		p.begin(0)
		p.reach([]byte(value), 0, int64(len(value)))
		return p.sum()
	}
	l.set.Store(newDictionary(0))
	return l
}

// A Literal is a value that is registered.
type Literal struct {
	of    *Literals
	forms []string
	entry *entry
}

// An entry is what is reported where one of a value's forms is found.
type entry struct {
	number      int // in the order of registration
	rule        string
	fingerprint string
}

// Add registers a value, which findings call rule. The same value may be registered
// under several names; the first that is still registered is reported.
func (l *Literals) Add(rule, value string) (*Literal, error) {
	if rule == "" {
		return nil, fmt.Errorf("register a literal: %w: it has no name", ErrLiteral)
	}
	if err := checkLiteral(value, l.opt.Least); err != nil {
		return nil, fmt.Errorf("register literal %q: %w", rule, err)
	}
	forms := formsOf(value)
	if l.disguise != nil {
		// What is read through in a text is not there to be found in a value.
		plain := l.disguise.plain(value)
		if err := checkLiteral(plain, LeastLiteral); err != nil {
			return nil, fmt.Errorf("register literal %q: without what is read through: %w", rule, err)
		}
		if plain != value {
			forms = withPieces(forms, plain)
		}
	}
	lit := &Literal{of: l, forms: forms, entry: &entry{rule: rule, fingerprint: l.print(value)}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.n++
	lit.entry.number = l.last
	l.set.Store(l.set.Load().with(lit.forms, lit.entry))
	return lit, nil
}

// CheckLiteral says why a value cannot be registered where Least is left as it is.
func CheckLiteral(value string) error { return checkLiteral(value, LeastLiteral) }

func checkLiteral(value string, least int) error {
	switch {
	case len(value) < least:
		return fmt.Errorf("%w: it has %d bytes, and may not have fewer than %d", ErrLiteral, len(value), least)
	case len(value) > MostLiteral:
		return fmt.Errorf("%w: it has %d bytes, and may not have more than %d", ErrLiteral, len(value), MostLiteral)
	case distinct(value) < leastDistinct:
		return fmt.Errorf("%w: it has fewer than %d different bytes", ErrLiteral, leastDistinct)
	}
	return nil
}

// Remove takes the value back. Calling it again does nothing.
func (lit *Literal) Remove() {
	l := lit.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if lit.forms == nil {
		return
	}
	l.set.Store(l.set.Load().without(lit.forms, lit.entry))
	l.n--
	lit.forms = nil
}

// Len is how many values are registered.
func (l *Literals) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// Name implements [guard.Guard].
func (l *Literals) Name() string { return l.opt.Name }

// Open implements [guard.Guard]. All channels are treated alike.
func (l *Literals) Open(context.Context, guard.Channel) guard.Screen {
	s := newLiteralScreen(l)
	if l.disguise != nil {
		return newProjected(s, l.disguise)
	}
	return s
}

// Strictest implements [guard.Strict].
func (l *Literals) Strictest() guard.Verdict { return l.opt.Verdict }

// Bound is how much text the guard can hold, in bytes, where it has none of the
// evasions that the guard reads through.
func (l *Literals) Bound() int { return mostForm*mostEscape + mostPair }

func distinct(value string) int {
	var seen [256]bool
	n := 0
	for i := range len(value) {
		if !seen[value[i]] {
			seen[value[i]] = true
			n++
		}
	}
	return n
}
