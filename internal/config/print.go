package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// WriteYAML writes the configuration as a file in which nothing is left to
// defaults and nothing is extended but what is built in. Read again it is the
// same configuration, if relative paths still mean the same and the long texts
// that profiles share, each written out, have not made it too large a file.
func (c *Config) WriteYAML(w io.Writer) error {
	var b bytes.Buffer
	block(&b, c.printed(), "")
	_, err := w.Write(b.Bytes())
	return err
}

// WriteJSON writes the same as JSON, on one line.
func (c *Config) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	write(&b, c.printed(), quoted)
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// object is a mapping that keeps its order. A value is an object, a []any, a
// []string, a string, an int64, a bare or a bool.
type object []field

type field struct {
	key   string
	value any
}

// printed gives the configuration in the shape of the file.
func (c *Config) printed() object {
	upstreams, guards, profiles, gateway := object{}, object{}, object{}, object{}
	for _, u := range c.Upstreams {
		upstreams = append(upstreams, field{u.Name, u.printed()})
	}
	for _, g := range c.Guards {
		o := object{{"rules", g.Rules}}
		if len(g.Literals) > 0 {
			var from []string
			for _, k := range g.Literals {
				from = append(from, k.String())
			}
			o = object{{"literals", from}}
		}
		if g.Judge != nil {
			key, judge := g.Judge.printed()
			o = object{{key, judge}}
		}
		if g.Verdict != guard.Allow || g.Labels {
			o = append(o, field{"verdict", g.Verdict.String()})
		}
		if g.Class != "" {
			o = append(o, field{"class", g.Class})
		}
		guards = append(guards, field{g.Name, o})
	}
	for _, p := range c.Profiles {
		profiles = append(profiles, field{p.Name, p.printed()})
	}
	if m := c.Gateway.OpenAI; m.Profile != "" {
		gateway = append(gateway, field{OpenAI, m.Choices})
	}
	if m := c.Gateway.Anthropic; m.Profile != "" {
		gateway = append(gateway, field{Anthropic, m.Choices})
	}
	o := object{{"version", int64(1)}, {"listen", c.Listen}, {"require_keys", c.KeysRequired()}}
	if c.TLS != (TLS{}) {
		o = append(o, field{"tls", object{{"cert", c.TLS.Cert}, {"key", c.TLS.Key}}})
	}
	if c.Store != "" {
		o = append(o, field{"store", "sqlite:" + c.Store})
	}
	if key := c.Seal.printed(); key != nil {
		o = append(o, field{"seal", object{{"key", key}}})
	}
	o = append(o, field{"max_body_bytes", c.MaxBodyBytes})
	if len(c.Packs) > 0 {
		var files []string
		for _, p := range c.Packs {
			files = append(files, literal.Replace(p.File))
		}
		o = append(o, field{"rules", files})
	}
	o = append(o,
		field{"upstreams", upstreams},
		field{"guards", guards},
		field{"profiles", profiles},
		field{"gateway", gateway},
	)
	if b := c.printedBudgets(); len(b) > 0 {
		o = append(o, field{"budgets", b})
	}
	if r := printedRates(c.Rates); len(r) > 0 {
		o = append(o, field{"rates", r})
	}
	if p := c.printedPrices(); len(p) > 0 {
		o = append(o, field{"prices", p})
	}
	if t := c.printedTickets(); len(t) > 0 {
		o = append(o, field{"tickets", t})
	}
	return o
}

func (u Upstream) printed() object {
	o := object{{"protocol", u.Protocol}}
	if len(u.Cassettes) > 0 {
		o = append(o, field{"cassettes", u.Cassettes}, field{"pace", u.Pace})
	} else {
		o = append(o, field{"base_url", u.BaseURL})
	}
	if key := u.Key.printed(); key != nil {
		o = append(o, field{"key", key})
	}
	o = append(o, field{"zone", u.Zone})
	if len(u.Cassettes) > 0 {
		return o
	}
	return append(o, u.Reach.printed()...)
}

// printed is where a key is, as a configuration says it; nil for none.
func (k Key) printed() any {
	switch {
	case len(k.Command) > 0:
		return object{{"command", k.Command}}
	case k.IsZero():
		return nil
	}
	return k.String()
}

func (p Profile) printed() object {
	o := object{{"upstream", p.Upstreams}}
	if p.Model != "" {
		o = append(o, field{"model", p.Model})
	}
	builtin := Builtin().Profiles[0]
	o = append(o,
		field{"models", p.Models},
		field{"input", uses(p.Input, builtin.Input)},
		field{"output", uses(p.Output, builtin.Output)},
		field{"max_hold_bytes", int64(p.MaxHoldBytes)},
	)
	if p.MaxRuleHoldBytes > 0 {
		o = append(o, field{"max_rule_hold_bytes", int64(p.MaxRuleHoldBytes)})
	}
	if p.Media != (Media{}) {
		o = append(o, field{"media", p.Media.printed()})
	}
	o = append(o, field{"capture", p.Capture})
	if !p.Budget.None() {
		o = append(o, field{"budget", printedLimit(p.Budget)})
	}
	if p.ReserveTokens > 0 {
		o = append(o, field{"reserve_tokens", p.ReserveTokens})
	}
	ceilings, calls := object{}, object{}
	for _, c := range p.Ceilings {
		ceilings = append(ceilings, field{c.Zone, c.Class})
	}
	for _, r := range p.Calls {
		calls = append(calls, field{r.Tool, printedClauses(r.Clauses)})
	}
	o = append(o, field{"data_class", p.DataClass}, field{"ceilings", ceilings})
	if len(calls) > 0 {
		o = append(o, field{"calls", calls})
	}
	return append(o, p.Loop.printed()...)
}

// printed is how a guard works, as a configuration says it.
func (u Use) printed() string {
	if u.Reversible {
		return reversible
	}
	return u.Mode.String()
}

// uses gives the guards of one side, and those that are off though the built-in
// profile has them on.
func uses(in, builtin []Use) object {
	o := object{}
	for _, use := range in {
		o = append(o, field{use.Guard, use.printed()})
	}
	for _, use := range builtin {
		if !slices.ContainsFunc(in, func(u Use) bool { return u.Guard == use.Guard }) {
			o = append(o, field{use.Guard, off})
		}
	}
	return o
}

// block writes a mapping with a line for each member; one that holds no further
// mapping is written on one line.
func block(b *bytes.Buffer, o object, indent string) {
	for _, f := range o {
		b.WriteString(indent + word(f.key) + ":")
		inner, _ := f.value.(object)
		if slices.ContainsFunc(inner, func(f field) bool { _, ok := f.value.(object); return ok }) {
			b.WriteByte('\n')
			block(b, inner, indent+"  ")
			continue
		}
		b.WriteByte(' ')
		write(b, f.value, word)
		b.WriteByte('\n')
	}
}

// write writes a value on one line, in YAML's flow style or in JSON, which
// differ in how a string is written.
func write(b *bytes.Buffer, value any, str func(string) string) {
	switch v := value.(type) {
	case object:
		b.WriteByte('{')
		for i, f := range v {
			comma(b, i)
			b.WriteString(str(f.key) + ": ")
			write(b, f.value, str)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			comma(b, i)
			write(b, item, str)
		}
		b.WriteByte(']')
	case []string:
		b.WriteByte('[')
		for i, s := range v {
			comma(b, i)
			b.WriteString(str(s))
		}
		b.WriteByte(']')
	case string:
		b.WriteString(str(v))
	case bare:
		b.WriteString(string(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	}
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

// plain are strings that YAML reads as strings without quotes.
var (
	plain   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*$`)
	special = regexp.MustCompile(`(?i)^(true|false|null|yes|no|y|n|on)$`)
)

func word(s string) string {
	if plain.MatchString(s) && !special.MatchString(s) {
		return s
	}
	return quoted(s)
}

// quoted is a JSON string, which YAML reads too.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // no string fails
	}
	return escapeReordering(strings.TrimSuffix(b.String(), "\n"))
}

// escapeReordering escapes the characters that no file of ours has as they are.
func escapeReordering(s string) string {
	if !strings.ContainsFunc(s, yamltree.Reorders) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if yamltree.Reorders(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
