package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/journal"
)

// Spend is what a run took of models: by its requests, and those of its children.
type Spend struct {
	// Requests is how many have ended, and Open how many have not.
	Requests int          `json:"requests"`
	Open     int          `json:"open,omitempty"`
	Usage    budget.Usage `json:"usage"`
	// Cost is null where the price of one of them is not known.
	Cost budget.Cost `json:"cost_usd"`
}

// String says it in a line, for people.
func (s Spend) String() string {
	line := fmt.Sprintf("%d tokens (%d in, %d out), cost %s", s.Usage.Tokens(), s.Usage.Input, s.Usage.Output, s.Cost)
	if s.Usage.Estimated {
		line += ", in part estimated"
	}
	if s.Open > 0 {
		line += fmt.Sprintf(", and %d requests under way", s.Open)
	}
	return line
}

// deepest is how many generations of children are looked through.
const deepest = 8

// SpendOf reads what a run took.
func SpendOf(ctx context.Context, s journal.Reader, ref journal.Ref) (Spend, error) {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return Spend{}, err
	}
	total := Spend{Cost: budget.Cost{Known: true}}
	err = total.add(ctx, s, row, 0)
	return total, err
}

func (t *Spend) add(ctx context.Context, s journal.Reader, row journal.Run, depth int) error {
	if row.Kind == journal.RequestRun {
		return t.addRequest(ctx, s, row)
	}
	if depth == deepest {
		return nil
	}
	const page = 100
	q := journal.RunQuery{Tenant: row.Tenant, Parent: row.Run, Limit: page}
	for {
		rows, err := s.Runs(ctx, q)
		if err != nil {
			return err
		}
		for _, child := range rows {
			if err := t.add(ctx, s, child, depth+1); err != nil {
				return err
			}
			q.Before = child.Run
		}
		if len(rows) < page {
			return nil
		}
	}
}

// addRequest adds what a request's log says that it took.
func (t *Spend) addRequest(ctx context.Context, s journal.Reader, row journal.Run) error {
	if !row.Status.Terminal() {
		t.Open++
		return nil
	}
	t.Requests++
	settled := journal.Settled{Usage: budget.Usage{Estimated: true}} // of one that was abandoned
	for rec, err := range s.Events(ctx, row.Ref, 0) {
		if err != nil {
			return err
		}
		if rec.Kind != journal.RequestSettled {
			continue
		}
		if err := rec.Decode(&settled); err != nil && !errors.Is(err, journal.ErrPurged) {
			return err
		}
	}
	t.Usage = t.Usage.Plus(settled.Usage)
	if t.Cost.Known = t.Cost.Known && settled.Cost.Known; !t.Cost.Known {
		t.Cost.USD = 0
		return nil
	}
	t.Cost.USD = budget.Amount{USD: t.Cost.USD}.Plus(budget.Amount{USD: settled.Cost.USD}).USD
	return nil
}
