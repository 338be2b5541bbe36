package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
)

// Budget is what was spent of something on a day, and what may be.
type Budget struct {
	Kind string `json:"kind"` // host, profile, model, key, playbook, run, or a label of keys
	Name string `json:"name,omitempty"`
	// Spent is by all processes; Reserved is what calls under way and processes
	// have taken and not spent.
	Spent    Spent         `json:"spent"`
	Reserved budget.Amount `json:"reserved"`
	// Limit has null for what is not limited.
	Limit BudgetLimit `json:"limit"`
}

// Spent is an amount. USD is null where no price is known; where the prices of
// some tokens are not, UnpricedTokens, it is what the others cost.
type Spent struct {
	Tokens          int64       `json:"tokens"`
	USD             budget.Cost `json:"usd"`
	EstimatedTokens int64       `json:"estimated_tokens"`
	EstimatedUSD    budget.USD  `json:"estimated_usd"`
	UnpricedTokens  int64       `json:"unpriced_tokens"`
}

// BudgetLimit is the most that may be spent.
type BudgetLimit struct {
	Tokens budget.Cap[int64]      `json:"tokens"`
	USD    budget.Cap[budget.USD] `json:"usd"`
}

// BudgetList is a day of UTC.
type BudgetList struct {
	Day     string    `json:"day"`
	Ends    time.Time `json:"ends"`
	Budgets []Budget  `json:"budgets"`
}

// BudgetsOf reads a day from a ledger: everything that was spent, and the
// envelopes of which nothing was.
func BudgetsOf(ctx context.Context, ledger budget.Ledger, envelopes []budget.Envelope, day budget.Day) (BudgetList, error) {
	accounts, err := ledger.Accounts(ctx, day)
	if err != nil {
		return BudgetList{}, err
	}
	limits := map[budget.Scope]budget.Limit{}
	for _, e := range envelopes {
		limits[e.Scope] = e.Limit
	}
	list := BudgetList{Day: day.String(), Ends: day.Ends(), Budgets: []Budget{}}
	for _, a := range accounts {
		list.Budgets = append(list.Budgets, budgetOf(a, limits[a.Scope]))
		delete(limits, a.Scope)
	}
	for s, l := range limits {
		list.Budgets = append(list.Budgets, budgetOf(budget.Account{ID: budget.ID{Scope: s, Day: day}}, l))
	}
	slices.SortFunc(list.Budgets, func(a, b Budget) int { return strings.Compare(a.Kind+"\x00"+a.Name, b.Kind+"\x00"+b.Name) })
	return list, nil
}

func budgetOf(a budget.Account, l budget.Limit) Budget {
	d := a.Spent
	return Budget{
		Kind: string(a.Kind), Name: a.Name, Reserved: a.Blocked, Limit: BudgetLimit{l.Tokens, l.USD},
		Spent: Spent{
			Tokens: d.Tokens, USD: budget.Cost{USD: d.USD, Known: d.Unpriced == 0 || d.Unpriced < d.Tokens},
			EstimatedTokens: d.Estimated.Tokens, EstimatedUSD: d.Estimated.USD, UnpricedTokens: d.Unpriced,
		},
	}
}

// listBudgets answers GET /v1/budgets.
func (s *Server) listBudgets(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "day")
	if err != nil {
		return err
	}
	if s.Ledger == nil {
		return failf(NotFound, "there are no budgets here")
	}
	day := budget.DayOf(time.Now())
	if said := q.Get("day"); said != "" {
		at, err := time.Parse(time.DateOnly, said)
		if err != nil {
			return failf(BadRequest, "day is a date such as %s, not %.40q", day, said)
		}
		day = budget.DayOf(at)
	}
	list, err := BudgetsOf(r.Context(), s.Ledger, s.Envelopes, day)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// Budgets shows a day; day is a date, or empty for today.
func (c *Client) Budgets(ctx context.Context, day string) (l BudgetList, err error) {
	path := "/v1/budgets"
	if day != "" {
		path += "?day=" + url.QueryEscape(day)
	}
	return l, c.call(ctx, http.MethodGet, path, nil, &l)
}
