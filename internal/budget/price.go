package budget

import (
	"fmt"
	"math"
	"strings"
)

// Usage is what a call took, in tokens. Input is all of it, whatever was read
// from a cache or written to one, and Output is all of it, reasoning included:
// OpenAI's way of counting. (Anthropic reports input without what it cached.)
type Usage struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Estimated bool  `json:"estimated"` // not all of it was reported

	CacheRead    int64 `json:"cache_read,omitempty"`     // of Input: read from a cache
	CacheWrite   int64 `json:"cache_write,omitempty"`    // of Input: written to one, for five minutes
	CacheWrite1h int64 `json:"cache_write_1h,omitempty"` // of Input: written to one, for an hour
	Reasoning    int64 `json:"reasoning,omitempty"`      // of Output: not shown
}

// Plus is the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: plus(u.Input, v.Input), Output: plus(u.Output, v.Output), Estimated: u.Estimated || v.Estimated,
		CacheRead: plus(u.CacheRead, v.CacheRead), CacheWrite: plus(u.CacheWrite, v.CacheWrite), CacheWrite1h: plus(u.CacheWrite1h, v.CacheWrite1h),
		Reasoning: plus(u.Reasoning, v.Reasoning),
	}
}

// Tokens is what counts against a limit: all that was read and written.
func (u Usage) Tokens() int64 { return plus(max(u.Input, 0), max(u.Output, 0)) }

// Rate is a price: micro-dollars for a million tokens, which are pico-dollars
// for one.
type Rate int64

// ParseRate reads a price in dollars for a million tokens, with at most six
// digits behind the point.
func ParseRate(s string) (Rate, error) {
	n, err := parseDecimal(s, 6)
	if err != nil {
		return 0, fmt.Errorf("%q is not a price in dollars for a million tokens: %w", s, err)
	}
	return Rate(n), nil
}

// String gives dollars for a million tokens.
func (r Rate) String() string { return decimal(int64(r), 6) }

// Rates are the prices of a model.
type Rates struct {
	Input, CacheRead, CacheWrite, CacheWrite1h, Output Rate
}

// cost is the price of a usage. A part of a nano-dollar counts as a whole one.
func (r Rates) cost(u Usage) USD {
	cached := plus(plus(max(u.CacheRead, 0), max(u.CacheWrite, 0)), max(u.CacheWrite1h, 0))
	picos := int64(0)
	for _, part := range [...]struct {
		tokens int64
		rate   Rate
	}{
		{u.Input - cached, r.Input}, {u.CacheRead, r.CacheRead}, {u.CacheWrite, r.CacheWrite}, {u.CacheWrite1h, r.CacheWrite1h}, {u.Output, r.Output},
	} {
		picos = plus(picos, times(part.tokens, int64(part.rate)))
	}
	if picos == math.MaxInt64 {
		return math.MaxInt64
	}
	return USD((picos + 999) / 1000)
}

// highestInput is the dearest that a token of input may be.
func (r Rates) highestInput() Rate {
	return max(r.Input, r.CacheRead, r.CacheWrite, r.CacheWrite1h)
}

// Price is what a model costs, and where that is said.
type Price struct {
	// Model is a name without the date of a version; it stands for every dated
	// version too.
	Model string
	Rates
	// Above is the size of an input, in tokens, beyond which Long are the prices of
	// the whole call; 0 where there is no such size.
	Above int64
	Long  Rates
	// Date and Source say when, and on which page, the price was read; Note what is
	// to be known about that.
	Date, Source, Note string
}

// Cost is what a usage costs.
func (p Price) Cost(u Usage) USD { return p.at(u.Input).cost(u) }

// at are the rates for an input of a size.
func (p Price) at(input int64) Rates {
	if p.Above > 0 && input > p.Above {
		return p.Long
	}
	return p.Rates
}

// Prices is a price list by model.
type Prices map[string]Price

// Of returns the price of a model. A name that the list does not have is looked
// up without its date: NAME-YYYYMMDD, NAME-YYYY-MM-DD or NAME@YYYYMMDD. Names are
// otherwise taken as they are, since one that begins like another is another
// model.
func (p Prices) Of(model string) (Price, bool) {
	if price, ok := p[model]; ok {
		return price, true
	}
	price, ok := p[Undated(model)]
	return price, ok
}

// Cost is what a usage of a model costs, if the list has the model.
func (p Prices) Cost(model string, u Usage) Cost {
	price, ok := p.Of(Pinned(model))
	if !ok {
		return Cost{}
	}
	return Cost{USD: price.Cost(u), Known: true}
}

// With returns the list with others' entries in the place of its own.
func (p Prices) With(more Prices) Prices {
	all := Prices{}
	for _, list := range []Prices{p, more} {
		for name, price := range list {
			all[name] = price
		}
	}
	return all
}

// Undated is a model's name without the date of its version.
func Undated(model string) string {
	for _, form := range []string{"@dddddddd", "-dddddddd", "-dddd-dd-dd"} {
		at := len(model) - len(form)
		if at > 0 && isForm(model[at:], form) {
			return model[:at]
		}
	}
	return model
}

// Pinned is a model's name as it is sent: NAME@DATE is written NAME-DATE.
func Pinned(model string) string {
	if at := strings.LastIndexByte(model, '@'); at > 0 && isForm(model[at:], "@dddddddd") {
		return model[:at] + "-" + model[at+1:]
	}
	return model
}

// isForm reports whether s is form, in which d stands for a digit.
func isForm(s, form string) bool {
	for i := range len(form) {
		if form[i] == 'd' && (s[i] < '0' || s[i] > '9') || form[i] != 'd' && s[i] != form[i] {
			return false
		}
	}
	return true
}

// Cost is what something cost, if that is known.
type Cost struct {
	USD   USD
	Known bool
}

// MarshalJSON gives a number of dollars, or null where it is not known.
func (c Cost) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return c.USD.MarshalJSON()
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Cost) UnmarshalJSON(b []byte) error {
	*c = Cost{}
	if string(b) == "null" {
		return nil
	}
	c.Known = true
	return c.USD.UnmarshalJSON(b)
}

// String gives dollars, or "unknown".
func (c Cost) String() string {
	if !c.Known {
		return "unknown"
	}
	return "$" + c.USD.String()
}
