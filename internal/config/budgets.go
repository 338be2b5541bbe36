package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/stoplog/stoplog/internal/budget"
)

// What a file says of money and tokens, before it means anything.
type (
	budgetsDecl struct {
		day    limitDecl
		scopes []scopeDecl
	}
	scopeDecl struct {
		kind  budget.Kind
		name  at[string]
		limit limitDecl
	}
	limitDecl struct {
		tokens at[int64]
		usd    at[budget.USD]
	}
	priceDecl struct {
		name at[string]
		said map[string]at[budget.Rate]
	}
)

// budgetKinds are what budgets are of, by the key under which they stand.
var budgetKinds = map[string]budget.Kind{
	"models": budget.Model, "playbooks": budget.Playbook, "keys": budget.Key, "teams": "team", "apps": "app", "users": "user",
}

// budgets reads limits by what they are of.
func (d decoder) budgets(members []member) (b budgetsDecl) {
	for _, m := range members {
		if m.Key == "day" {
			b.day = d.limit(m.Value)
			continue
		}
		kind, ok := budgetKinds[m.Key]
		if !ok || !d.is(m.Value, mapping, m.Key) {
			continue
		}
		for _, item := range d.unique(m.Value.Members) {
			name := at[string]{item.Key, item.Span, true}
			if !isBudgetName(item.Key) {
				d.Errorf(item.Span, "", "%q cannot be the name of what a budget is of", item.Key)
				continue
			}
			b.scopes = append(b.scopes, scopeDecl{kind, name, d.limit(item.Value)})
		}
	}
	return b
}

// isBudgetName reports whether something can have the name: models have colons
// and slashes, users have addresses.
func isBudgetName(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' })
}

// limit reads what may be spent on a day.
func (d decoder) limit(n node) (l limitDecl) {
	members, flawed := d.members(n, limitShape)
	for _, m := range members {
		switch m.Key {
		case "tokens":
			l.tokens = d.integer(m.Value, m.Key, 0, 1<<53)
		case "usd":
			l.usd = amount(d, m.Value, m.Key, budget.ParseUSD)
		}
	}
	if len(members) == 0 && !flawed {
		d.Errorf(n.Span, "write tokens, usd or both", "the budget limits nothing")
	}
	return l
}

// amount reads a decimal number of dollars.
func amount[T any](d decoder, n node, what string, parse func(string) (T, error)) at[T] {
	t := at[T]{span: n.Span}
	if !d.is(n, number, what) {
		return t
	}
	v, err := parse(n.Text)
	if err != nil {
		d.Errorf(n.Span, "write dollars as 12 or 12.5", "%s: %v", what, err)
		return t
	}
	t.value, t.set = v, true
	return t
}

func (l limitDecl) limit() (out budget.Limit) {
	if l.tokens.set {
		out.Tokens = budget.AtMost(l.tokens.value)
	}
	if l.usd.set {
		out.USD = budget.AtMost(l.usd.value)
	}
	return out
}

// over is the limit, with what it does not say as before.
func (l limitDecl) over(before budget.Limit) budget.Limit {
	said := l.limit()
	if !said.Tokens.Set {
		said.Tokens = before.Tokens
	}
	if !said.USD.Set {
		said.USD = before.USD
	}
	return said
}

func (b budgetsDecl) envelopes() (all []budget.Envelope) {
	if l := b.day.limit(); !l.None() {
		all = append(all, budget.Envelope{Scope: budget.Scope{Kind: budget.Host}, Limit: l})
	}
	for _, s := range b.scopes {
		all = append(all, budget.Envelope{Scope: budget.Scope{Kind: s.kind, Name: s.name.value}, Limit: s.limit.limit()})
	}
	return all
}

// prices reads what models cost, in dollars for a million tokens.
func (d decoder) prices(m member) (all []priceDecl) {
	if !d.is(m.Value, mapping, m.Key) {
		return nil
	}
	for _, item := range d.unique(m.Value.Members) {
		p := priceDecl{name: at[string]{item.Key, item.Span, true}, said: map[string]at[budget.Rate]{}}
		if !isBudgetName(item.Key) || strings.Contains(item.Key, "*") {
			d.Errorf(item.Span, "name one model", "%q is not the name of a model", item.Key)
			continue
		}
		members, flawed := d.members(item.Value, priceShape)
		for _, m := range members {
			p.said[m.Key] = amount(d, m.Value, m.Key, budget.ParseRate)
		}
		for _, needed := range []string{"input", "output"} {
			if !flawed && !p.said[needed].written() {
				d.Errorf(item.Span, "write input and output, in dollars for a million tokens; 0 is for what is free", "the price of %q has no %s", item.Key, needed)
			}
		}
		all = append(all, p)
	}
	return all
}

// price is what was said of a model, in force. What goes through a cache costs
// what input does, unless it is said.
func (p priceDecl) price() budget.Price {
	said := func(key string) budget.Rate {
		if r := p.said[key]; r.set {
			return r.value
		}
		return p.said["input"].value
	}
	write := said("cache_write")
	long := write
	if r := p.said["cache_write_1h"]; r.set {
		long = r.value
	}
	return budget.Price{Model: budget.Pinned(p.name.value), Rates: budget.Rates{
		Input: said("input"), CacheRead: said("cache_read"), CacheWrite: write, CacheWrite1h: long, Output: p.said["output"].value,
	}}
}

// budgets puts what is said of money and tokens into c, and warns of limits that
// let nothing through.
func (s *resolver) budgets(c *Config) {
	c.Prices = budget.Prices{}
	for _, p := range s.doc.prices {
		price := p.price()
		c.Prices[price.Model] = price
	}
	known := budget.List().With(c.Prices)
	for _, d := range s.doc.budgets.scopes {
		if _, ok := known.Of(budget.Pinned(d.name.value)); d.kind == budget.Model && d.limit.usd.set && !ok && !strings.Contains(d.name.value, "*") {
			s.warnf(d.name.span, "give it one under prices", "the price of %q is not known: its budget refuses every call", d.name.value)
		}
	}
	c.Budgets = s.doc.budgets.envelopes()
}

// profileBudget is what a profile says of its budget, over what it extends.
func (s *resolver) profileBudget(p *Profile, d profileDecl) {
	p.Budget = d.budget.over(p.Budget)
	if d.reserve.set {
		p.ReserveTokens = d.reserve.value
	}
	known := budget.List()
	for _, own := range s.doc.prices {
		known[budget.Pinned(own.name.value)] = own.price()
	}
	if _, ok := known.Of(budget.Pinned(p.Model)); p.Model != "" && p.Budget.USD.Set && !ok {
		s.warnf(cmp.Or(d.budget.usd.span, d.name.span), "give it one under prices", "the price of %q is not known: the budget of profile %q refuses every call to it", p.Model, p.Name)
	}
}

// Envelopes are all budgets of the configuration: those of profiles, too.
func (c *Config) Envelopes() []budget.Envelope {
	all := append([]budget.Envelope(nil), c.Budgets...)
	for _, p := range c.Profiles {
		if !p.Budget.None() {
			all = append(all, budget.Envelope{Scope: budget.Scope{Kind: budget.Profile, Name: p.Name}, Limit: p.Budget})
		}
	}
	return all
}

// LoadBudgets reads a file of budgets, such as budgets.yaml in the state
// directory. Its limits are for each day, UTC. What is wrong in it is a
// [diag.List]; if it cannot be read at all, the error is that of the operating
// system.
func LoadBudgets(file string) ([]budget.Envelope, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	return ParseBudgets(file, data)
}

// ParseBudgets reads data as the content of a file of budgets of that name. Its
// error is a [diag.List].
func ParseBudgets(file string, data []byte) ([]budget.Envelope, error) {
	r := newReader(file)
	d := decoder{reader: r}
	root := r.Read(data)
	members, flawed := d.members(root, budgetFileShape)
	version := false
	for _, m := range members {
		if m.Key == "version" {
			version = true
			d.version(m.Value)
		}
	}
	if !version && !flawed {
		d.Errorf(root.Span, "write `version: 1` first", "the file has no version")
	}
	b := d.budgets(members)
	r.List.Sort()
	if err := r.List.Err(); err != nil {
		return nil, err
	}
	return b.envelopes(), nil
}

// printed is a limit in the shape of the file.
func printedLimit(l budget.Limit) object {
	o := object{}
	if l.Tokens.Set {
		o = append(o, field{"tokens", l.Tokens.Max})
	}
	if l.USD.Set {
		o = append(o, field{"usd", bare(l.USD.Max.String())})
	}
	return o
}

// bare is a value that is written as it is.
type bare string

// printedBudgets are the budgets that are no profile's, in the shape of the file.
func (c *Config) printedBudgets() object {
	o := object{}
	for _, key := range budgetsShape.keys {
		of := object{}
		for _, e := range c.Budgets {
			switch {
			case key == "day" && e.Kind == budget.Host:
				o = append(o, field{key, printedLimit(e.Limit)})
			case e.Kind == budgetKinds[key] && e.Kind != "":
				of = append(of, field{e.Name, printedLimit(e.Limit)})
			}
		}
		if len(of) > 0 {
			o = append(o, field{key, of})
		}
	}
	return o
}

// printedPrices are the configuration's own prices, in the shape of the file.
func (c *Config) printedPrices() object {
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		r := c.Prices[name].Rates
		o = append(o, field{name, object{
			{"input", bare(r.Input.String())}, {"cache_read", bare(r.CacheRead.String())}, {"cache_write", bare(r.CacheWrite.String())},
			{"cache_write_1h", bare(r.CacheWrite1h.String())}, {"output", bare(r.Output.String())},
		}})
	}
	return o
}
