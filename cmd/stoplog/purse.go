package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/signal"
)

// envelopes are the budgets that hold in this process: those of the configuration,
// those of budgets.yaml in the state directory, which all processes of the host
// share, and those of more files. Of one scope the tighter limit counts, so no
// file loosens another's.
func envelopes(w *world, conf *config.Config, files ...string) ([]budget.Envelope, error) {
	lists := [][]budget.Envelope{conf.Envelopes()}
	if dir, err := stateDir(w.getenv); err == nil {
		shared := filepath.Join(dir, "budgets.yaml")
		if _, err := os.Lstat(shared); !errors.Is(err, fs.ErrNotExist) {
			files = append([]string{shared}, files...)
		}
	}
	for _, file := range files {
		more, err := config.LoadBudgets(file)
		if mistakes := (diag.List)(nil); errors.As(err, &mistakes) {
			return nil, failf(exitUsage, "%w", err)
		} else if err != nil {
			return nil, failf(exitError, "%w", err)
		}
		lists = append(lists, more)
	}
	return budget.Unite(lists...), nil
}

// openPurse takes this process's part of the budgets.
func openPurse(w *world, conf *config.Config, store *sqlite.Store, files ...string) (*budget.Purse, error) {
	limits, err := envelopes(w, conf, files...)
	if err != nil {
		return nil, err
	}
	p, err := budget.Open(context.Background(), store.Budgets(), budget.Options{Envelopes: limits, Prices: budget.List().With(conf.Prices)})
	if err != nil {
		return nil, failf(exitError, "%w", err)
	}
	return p, nil
}

// levels says how full the budgets are on which the runs of a profile draw, as the
// signal cost_budget is to judge them.
func levels(purse *budget.Purse, p config.Profile) func(context.Context) ([]signal.Level, error) {
	claim := budget.Claim{Scopes: []budget.Scope{{Kind: budget.Profile, Name: p.Name}}, Model: p.Model}
	return func(context.Context) ([]signal.Level, error) {
		full, err := purse.Levels(claim)
		var out []signal.Level
		for _, l := range full {
			if most := l.Limit.Tokens; most.Set {
				out = append(out, signal.Level{Budget: l.ID.Scope.String() + " in tokens", Spent: l.Spent.Tokens, Limit: most.Max})
			}
			if most := l.Limit.USD; most.Set {
				out = append(out, signal.Level{Budget: l.ID.Scope.String() + " in dollars", Spent: int64(l.Spent.USD), Limit: int64(most.Max)})
			}
		}
		return out, err
	}
}
