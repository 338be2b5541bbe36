package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/diag"
)

type budgetCommand struct {
	journalFlags
	Config string   `placeholder:"FILE" help:"The configuration whose limits hold."`
	File   []string `placeholder:"FILE" help:"A budgets.yaml of a project, which may only tighten limits."`
	Day    string   `placeholder:"DATE" help:"A day of UTC, such as 2026-11-30; without it, today."`
	JSON   bool     `help:"Give the day as JSON."`
}

func (*budgetCommand) Help() string {
	return `Shows what was spent on a day, of the host, of each profile, model, key and playbook: tokens and dollars, with their limits, and what calls under way have reserved.

A cost is unknown where a model has no price (docs/prices.md; prices in stoplog.yaml): it is shown as such and never as zero. What no provider reported is an estimate; estimated says how many tokens are.

Limits are those of the configuration and of budgets.yaml in the state directory, which all processes of the host share; of one thing the tighter counts.

` + journalHelp + `

Examples:

    stoplog budget
    stoplog budget --day 2026-11-30 --json | jq '.budgets[] | select(.kind == "profile")'

Exit codes: 0, 1 the journal can't be read, 2 usage.`
}

func (c *budgetCommand) Run(w *world) error {
	ctx := context.Background()
	day := budget.DayOf(time.Now())
	if c.Day != "" {
		at, err := time.Parse(time.DateOnly, c.Day)
		if err != nil {
			return failf(exitUsage, "--day: %q is not a date: want one such as %s", c.Day, day)
		}
		day = budget.DayOf(at)
	}
	conf, err := loadConfig(c.Config, w)
	if err != nil {
		return err
	}
	limits, err := envelopes(w, conf, c.File...)
	if err != nil {
		return err
	}
	if c.Store == "" {
		if c.Store, err = c.path(w, conf); err != nil {
			return err
		}
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := api.BudgetsOf(ctx, store.Budgets(), limits, day)
	if err != nil {
		return err
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(list)
	}
	return showBudgets(w, list)
}

func showBudgets(w *world, list api.BudgetList) error {
	if len(list.Budgets) == 0 {
		w.voice.sayf("nothing was spent on %s, and nothing is limited", list.Day)
		return nil
	}
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OF\tTOKENS\tLIMIT\tUSD\tLIMIT\tRESERVED\tESTIMATED")
	for _, b := range list.Budgets {
		of := strings.TrimSpace(b.Kind + " " + diag.Line(b.Name))
		usd := strings.TrimPrefix(b.Spent.USD.String(), "$")
		if b.Spent.USD.Known && b.Spent.UnpricedTokens > 0 {
			usd += fmt.Sprintf(" and %d tokens of unknown price", b.Spent.UnpricedTokens)
		}
		tokens, dollars := "-", "-"
		if most := b.Limit.Tokens; most.Set {
			tokens = fmt.Sprint(most.Max)
		}
		if most := b.Limit.USD; most.Set {
			dollars = most.Max.String()
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%d\t%d\n", of, b.Spent.Tokens, tokens, usd, dollars, b.Reserved.Tokens, b.Spent.EstimatedTokens)
	}
	return table.Flush()
}
