package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/flow"
)

// foresee shows what a run may come to.
func (c *runCommand) foresee(w *world, r flow.Request) error {
	created, err := flow.Prepare(r)
	if err != nil {
		return err
	}
	f, err := flow.Foresee(created, highestPrice)
	if err != nil {
		return err
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(f)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "playbook %s\n", diag.Line(f.Playbook))
	for _, in := range f.Inputs {
		fmt.Fprintf(&out, "input %s = %s\n", in.Name, diag.Line(string(in.Value)))
	}
	writeForecast(&out, f, "")
	fmt.Fprintf(&out, "\nat most %d tokens", f.Tokens)
	switch {
	case f.Tokens == 0:
	case f.USD == nil:
		fmt.Fprint(&out, ", and nobody knows what that costs: a price is not known")
	default:
		fmt.Fprintf(&out, ", $%.2f", *f.USD)
	}
	fmt.Fprintln(&out)
	for _, m := range f.Models {
		cost := "price not known"
		if m.USD != nil {
			cost = fmt.Sprintf("$%.2f", *m.USD)
		}
		fmt.Fprintf(&out, "  %s: %d tokens, %s\n", diag.Line(m.Model), m.Tokens, cost)
	}
	_, err = w.stdout.Write(out.Bytes())
	return err
}

// highestPrice is the most that a token of a model can cost.
func highestPrice(model string) (float64, bool) {
	p, ok := budget.List().Of(model)
	if !ok {
		return 0, false
	}
	const many = 1_000_000
	most := max(p.Cost(budget.Usage{Output: many}), p.Cost(budget.Usage{Input: many}))
	return float64(most) / float64(budget.Dollar) / many, true
}

func writeForecast(out *bytes.Buffer, f flow.Forecast, indent string) {
	for _, s := range f.Steps {
		fmt.Fprintf(out, "\n%s%s (%s)", indent, diag.Line(s.ID), s.Type)
		if s.Handler {
			fmt.Fprint(out, ", a handler")
		}
		fmt.Fprintln(out)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(t, "%s  %s\t%s\n", indent, name, diag.Line(value))
			}
		}
		field("after", strings.Join(s.After, ", "))
		field("when", s.When)
		field("runs", strings.Join(s.Command, " "))
		field("calls", s.Calls)
		field("effect", strings.Join(append(nonEmpty(s.Effect), s.Touches...), ", touches "))
		for _, part := range scopeLines(s.Scope) {
			field(part[0], part[1])
		}
		field("timeout", s.Timeout)
		if s.Times > 1 {
			field("at most", fmt.Sprintf("%d times", s.Times))
		}
		askField(field, "asks", s.Asks)
		askField(field, "observer", s.Observer)
		_ = t.Flush() // into memory
		if s.Part != nil {
			writeForecast(out, *s.Part, indent+"    ")
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func scopeLines(s flow.Scope) [][2]string {
	return [][2]string{
		{"may read", strings.Join(s.CanRead, " ")}, {"may write", strings.Join(s.CanWrite, " ")},
		{"may run", strings.Join(s.CanRun, " ")}, {"may reach", strings.Join(s.CanReach, " ")},
	}
}

func askField(field func(name, value string), name string, a *flow.ForecastAsk) {
	if a == nil {
		return
	}
	line := fmt.Sprintf("%s with %s, by %s: at most %d tokens and %ds", a.Model, a.Prompt, a.Via, a.MaxTokens, a.MaxLatency)
	if len(a.Verdicts) > 0 {
		line += "; says " + strings.Join(a.Verdicts, ", ")
	}
	field(name, line)
}
