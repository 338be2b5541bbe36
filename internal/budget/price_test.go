package budget_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/stoplog/stoplog/internal/budget"
)

var update = flag.Bool("update", false, "write docs/prices.md anew")

const pricesPage = "../../docs/prices.md"

// The page for people is what the list says.
func TestPricesPage(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(`# Prices

Generated from internal/budget/prices.txt by ` + "`go generate ./internal/budget`" + `. What the budgets count money with:
US dollars for a million tokens, the list prices of the providers' own APIs at their standard tier. Batch, flex, priority and
fast tiers, regional surcharges and what is charged by the call (searches, containers) are not in it.

A name stands for its dated versions too (NAME-YYYYMMDD, NAME-YYYY-MM-DD). A model that is not listed has no price: its cost
is unknown, never zero, and a profile whose budget limits money refuses it. ` + "`prices:`" + ` in stoplog.yaml adds to the list
and replaces what is in it:

` + "```yaml" + `
prices:
  my-model: {input: 0.5, output: 1.5}                   # caches cost what input does
  claude-opus-4-5: {input: 5, cache_read: 0.5, cache_write: 6.25, cache_write_1h: 10, output: 25}
` + "```" + `

"Cache write" is for the shorter, "longer" for the longer time that the provider offers. Where a second row says "above", it
is the price of a whole call whose input has more tokens. "Read on" is the day on which the page was read: from a stored
copy, or by those whose published reading we took. Nobody compared the list with the live pages since; prices change, so do
that before you rely on it.
`)
	list := slices.SortedFunc(maps.Values(List()), func(a, b Price) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Model, b.Model))
	})
	source := ""
	row := func(name string, r Rates, more ...string) {
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s | %s | %s |\n", name, r.Input, r.CacheRead, r.CacheWrite, r.CacheWrite1h, r.Output, strings.Join(more, " | "))
	}
	for _, p := range list {
		if p.Source != source {
			source = p.Source
			fmt.Fprintf(&page, "\n## %s\n\n| model | input | cache read | cache write | longer | output | read on | note |\n|---|---|---|---|---|---|---|---|\n", source)
		}
		row("`"+p.Model+"`", p.Rates, p.Date, p.Note)
		if p.Above > 0 {
			row(fmt.Sprintf("above %d", p.Above), p.Long, "", "")
		}
	}
	if *update {
		if err := os.WriteFile(pricesPage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(pricesPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Error("docs/prices.md is not what the list says: run go generate ./internal/budget")
	}
}

// Every entry says where and when, is dated in a form that can be compared, and
// has prices in the order that all providers keep.
func TestList(t *testing.T) {
	for name, p := range List() {
		r := p.Rates
		if p.Model != name || !strings.HasPrefix(p.Source, "https://") || len(p.Date) != len("2026-11-30") {
			t.Errorf("%s: %+v", name, p)
		}
		if r.Input == 0 || r.CacheRead > r.Input || r.CacheWrite < r.Input || r.CacheWrite1h < r.CacheWrite {
			t.Errorf("%s: %+v", name, r)
		}
		if p.Above > 0 && (p.Long.Input <= r.Input || p.Long.Output <= r.Output) {
			t.Errorf("%s: a long call is no dearer: %+v", name, p)
		}
	}
	l := List()
	l["claude-opus-4-1"] = Price{}
	if List()["claude-opus-4-1"].Model == "" {
		t.Error("the list can be changed by those who have it")
	}
}

func TestPriceOf(t *testing.T) {
	for model, want := range map[string]string{
		"claude-sonnet-4-5":          "claude-sonnet-4-5",
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5",
		"claude-sonnet-4-5@20250929": "claude-sonnet-4-5",
		"gpt-4o-2024-08-06":          "gpt-4o",
		"gpt-4o-2024-05-13":          "gpt-4o-2024-05-13",
		"gpt-4o-audio-preview":       "",
		"gpt-5-mini-2":               "",
		"gpt":                        "",
		"":                           "",
		"-20250929":                  "",
	} {
		if p, ok := List().Of(model); p.Model != want || ok != (want != "") {
			t.Errorf("the price of %q is %q's, %v; want %q's", model, p.Model, ok, want)
		}
	}
}

// Costs, by hand, in nano-dollars.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		model string
		usage Usage
		want  USD
	}{
		{"claude-sonnet-4-5", Usage{Input: 1000, Output: 100}, 3_000_000 + 1_500_000},
		{"claude-sonnet-4-5", Usage{Input: 1310, Output: 9, CacheRead: 1000, CacheWrite: 100, CacheWrite1h: 200}, 30_000 + 300_000 + 375_000 + 1_200_000 + 135_000},
		{"claude-sonnet-4-5", Usage{Input: 200_000}, 600_000_000},
		{"claude-sonnet-4-5", Usage{Input: 200_001, Output: 1}, 1_200_006_000 + 22_500},
		{"gpt-5", Usage{Input: 100, Output: 50, CacheRead: 80, Reasoning: 40}, 25_000 + 10_000 + 500_000},
		{"gpt-5-nano", Usage{Input: 1, CacheRead: 1}, 5},
		{"claude-haiku-5-5", Usage{Input: 1, CacheRead: 1}, 10},
		{"claude-3-haiku", Usage{}, 0},
		{"gpt-5", Usage{Input: -5, Output: -7}, 0},
		{"gpt-5", Usage{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
	} {
		p, ok := List().Of(c.model)
		if got := p.Cost(c.usage); !ok || got != c.want {
			t.Errorf("%s %+v costs %d, want %d", c.model, c.usage, got, c.want)
		}
	}
	odd := Price{Rates: Rates{Input: 1}} // pico-dollars
	if got := odd.Cost(Usage{Input: 1}); got != 1 {
		t.Errorf("a part of a nano-dollar is %d", got)
	}
}

func TestUSD(t *testing.T) {
	for text, want := range map[string]USD{
		"0": 0, "5": 5 * Dollar, "0.5": Dollar / 2, "12.50": 12*Dollar + Dollar/2, "0.000000001": 1, "007.1": 7*Dollar + Dollar/10,
	} {
		if got, err := ParseUSD(text); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "5.", ".5", "-1", "+1", "1e3", "0x1", "1_000", "0.0000000001", "9300000000", "NaN", "∞", "1 "} {
		if got, err := ParseUSD(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for usd, want := range map[USD]string{0: "0.00", Dollar / 2: "0.50", 1: "0.000000001", -3 * Dollar: "-3.00", 1234567890: "1.23456789"} {
		if usd.String() != want {
			t.Errorf("%d reads %s, want %s", usd, usd, want)
		}
	}
	for cost, want := range map[Cost]string{{}: "null", {Known: true}: "0", {USD: 1_500_000, Known: true}: "0.0015"} {
		b, err := json.Marshal(cost)
		var back Cost
		if err2 := json.Unmarshal(b, &back); err != nil || err2 != nil || string(b) != want || back != cost {
			t.Errorf("%+v is written %s, %v, and read %+v, %v", cost, b, err, back, err2)
		}
	}
}
