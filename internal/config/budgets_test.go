package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/diag"
)

func scoped(kind budget.Kind, name string, l budget.Limit) budget.Envelope {
	return budget.Envelope{Scope: budget.Scope{Kind: kind, Name: name}, Limit: l}
}

// A configuration's envelopes are its budgets and those of its profiles; what a
// profile does not say it has of the one that it extends.
func TestEnvelopes(t *testing.T) {
	c, err := config.Parse("a.yaml", []byte(`version: 1
profiles:
  default: {budget: {tokens: 10, usd: 1.5}}
  other: {extends: default, budget: {usd: 0}}
  free: {}
gateway: {openai: [default, other, free]}
budgets: {day: {usd: 2}, models: {"m@20261130": {tokens: 5}}, keys: {k1: {tokens: 0}}}
prices: {m: {input: 1, output: 2, cache_write: 3}}
`))
	if err != nil {
		t.Fatal(err)
	}
	usd := budget.Dollar
	want := []budget.Envelope{
		scoped(budget.Host, "", budget.Limit{USD: budget.AtMost(2 * usd)}),
		scoped(budget.Model, "m@20261130", budget.Limit{Tokens: budget.AtMost[int64](5)}),
		scoped(budget.Key, "k1", budget.Limit{Tokens: budget.AtMost[int64](0)}),
		scoped(budget.Profile, "default", budget.Limit{Tokens: budget.AtMost[int64](10), USD: budget.AtMost(usd * 3 / 2)}),
		scoped(budget.Profile, "other", budget.Limit{Tokens: budget.AtMost[int64](10), USD: budget.AtMost(budget.USD(0))}),
	}
	if diff := cmp.Diff(want, c.Envelopes()); diff != "" {
		t.Errorf("envelopes (-want +got):\n%s", diff)
	}
	rates := budget.Rates{Input: 1e6, CacheRead: 1e6, CacheWrite: 3e6, CacheWrite1h: 3e6, Output: 2e6}
	if got := c.Prices["m"].Rates; got != rates {
		t.Errorf("rates %+v, want %+v", got, rates)
	}
}

// A file of budgets is read as strictly as the configuration.
func TestParseBudgets(t *testing.T) {
	got, err := config.ParseBudgets("budgets.yaml", []byte(`version: 1
day: {tokens: 100, usd: 5}
models: {claude-sonnet-4-5@20250929: {usd: 1}}
playbooks: {deploy-gate: {tokens: 50}}
`))
	want := []budget.Envelope{
		scoped(budget.Host, "", budget.Limit{Tokens: budget.AtMost[int64](100), USD: budget.AtMost(5 * budget.Dollar)}),
		scoped(budget.Model, "claude-sonnet-4-5@20250929", budget.Limit{USD: budget.AtMost(budget.Dollar)}),
		scoped(budget.Playbook, "deploy-gate", budget.Limit{Tokens: budget.AtMost[int64](50)}),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for src, want := range map[string]string{
		"day: {usd: 5}\n":                                "budgets.yaml:1:1: the file has no version",
		"version: 2\n":                                   "budgets.yaml:1:10: version 2 is not known to this program, which reads version 1",
		"version: 1\ndays: {usd: 5}\n":                   `budgets.yaml:2:1: unknown key "days" in the file`,
		"version: 1\nday: {usd: five}\n":                 "budgets.yaml:2:12: usd must be a number, not a string",
		"version: 1\nplaybooks: {a: {minutes: 5}}\n":     `budgets.yaml:2:17: unknown key "minutes" in a budget`,
		"version: 1\nday: {usd: 5}\nday: {usd: 6}\n":     `budgets.yaml:3:1: key "day" is set twice, first on line 2`,
		"version: 1\n---\nversion: 1\nday: {usd: 5}\n":   "budgets.yaml:2:1: a second document; a configuration is one",
		"version: 1\nprofiles: {default: {tokens: 5}}\n": `budgets.yaml:2:1: "profiles" does not belong in the file: it is a key of the top level`,
	} {
		_, err := config.ParseBudgets("budgets.yaml", []byte(src))
		var list diag.List
		if !errors.As(err, &list) || len(list) == 0 {
			t.Errorf("%q: %v", src, err)
			continue
		}
		if d := list[0]; d.Span.Pos.String()+": "+d.Message != want {
			t.Errorf("%q: %s: %s\nwant %s", src, d.Span.Pos, d.Message, want)
		}
	}
}
