package budget

import (
	"fmt"
	"strconv"
	"time"
)

// Kind is what an envelope is about.
type Kind string

// The kinds that the product knows; a label of a key (team, app, user) is a kind
// of its own.
const (
	Host     Kind = "host" // all that is spent, by whomever
	Profile  Kind = "profile"
	Model    Kind = "model"
	Playbook Kind = "playbook"
	Key      Kind = "key"
	// Run is one run, whatever the days it takes.
	Run Kind = "run"
)

// Scope is a part of what is spent: a profile, a model, a key.
type Scope struct {
	Kind Kind
	Name string // empty for Host
}

// String is how people read it: "profile default".
func (s Scope) String() string {
	if s.Name == "" {
		return "the host"
	}
	return string(s.Kind) + " " + s.Name
}

// Envelope is a limit of a scope, for each day of UTC; of a run, for all of it.
type Envelope struct {
	Scope
	// Limit is what may be spent. A `*` in the name stands for any characters: all
	// those names share the limit.
	Limit Limit
}

// Limit is how much may be spent. The zero value limits nothing.
type Limit struct {
	Tokens Cap[int64]
	USD    Cap[USD]
}

// Cap is the most there may be of something. The zero value is no cap, which is
// not a cap of zero.
type Cap[T ~int64] struct {
	Set bool
	Max T
}

// AtMost is a cap.
func AtMost[T ~int64](n T) Cap[T] { return Cap[T]{Set: true, Max: n} }

// Tighter is the smaller of two caps.
func (c Cap[T]) Tighter(d Cap[T]) Cap[T] {
	if !c.Set || d.Set && d.Max < c.Max {
		return d
	}
	return c
}

// MarshalJSON gives the cap, or null where there is none.
func (c Cap[T]) MarshalJSON() ([]byte, error) {
	if !c.Set {
		return []byte("null"), nil
	}
	if usd, ok := any(c.Max).(USD); ok {
		return usd.MarshalJSON()
	}
	return strconv.AppendInt(nil, int64(c.Max), 10), nil
}

// Tighter is what both limits allow.
func (l Limit) Tighter(m Limit) Limit {
	return Limit{Tokens: l.Tokens.Tighter(m.Tokens), USD: l.USD.Tighter(m.USD)}
}

// None reports whether nothing is limited.
func (l Limit) None() bool { return !l.Tokens.Set && !l.USD.Set }

// counted is what of an amount the limit is about.
func (l Limit) counted(a Amount) Amount {
	if !l.Tokens.Set {
		a.Tokens = 0
	}
	if !l.USD.Set {
		a.USD = 0
	}
	return a
}

// amount is the limit itself, with nothing of what it is not about.
func (l Limit) amount() Amount { return Amount{l.Tokens.Max, l.USD.Max} }

// covers reports whether an amount has room for another in all that is limited.
func (l Limit) covers(free, need Amount) bool {
	return (!l.Tokens.Set || free.Tokens >= need.Tokens) && (!l.USD.Set || free.USD >= need.USD)
}

// Unite brings envelopes of one scope together: the tighter limit counts, so that
// a list that is added to another can only tighten it.
func Unite(lists ...[]Envelope) []Envelope {
	var all []Envelope
	at := map[Scope]int{}
	for _, list := range lists {
		for _, e := range list {
			if e.Kind == Model {
				e.Name = Pinned(e.Name)
			}
			i, ok := at[e.Scope]
			if !ok {
				at[e.Scope] = len(all)
				all = append(all, e)
				continue
			}
			all[i].Limit = all[i].Limit.Tighter(e.Limit)
		}
	}
	return all
}

// Day is a day of UTC, counted from 1970. The Day of what has no day is 0.
type Day int32

// DayOf is the day of a moment.
func DayOf(t time.Time) Day { return Day(t.Unix() / (24 * 60 * 60)) }

// Ends is the moment when the day has ended.
func (d Day) Ends() time.Time { return time.Unix((int64(d)+1)*24*60*60, 0).UTC() }

// String is the date: 2026-11-30; "all days" of what has no day.
func (d Day) String() string {
	if d == 0 {
		return "all days"
	}
	return time.Unix(int64(d)*24*60*60, 0).UTC().Format(time.DateOnly)
}

// ID is an envelope on one day: what the ledger keeps an account of.
type ID struct {
	Scope
	Day Day
}

func (id ID) String() string { return fmt.Sprintf("%s on %s", id.Scope, id.Day) }

// idOf is the account of a scope at a time.
func idOf(s Scope, at Day) ID {
	if s.Kind == Run {
		at = 0
	}
	return ID{s, at}
}
