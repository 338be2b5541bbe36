package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/flow"
)

// observe puts what a recorded run has of its steps to the playbook's observers.
func (p *play) observe(ctx context.Context, r flow.Request, id string) error {
	ref, err := runFlags{ID: id}.find(ctx, p.host.store)
	if err != nil {
		return err
	}
	book, err := flow.ReadBook(r.Tree, r.File)
	if err != nil {
		return err
	}
	seen, err := p.host.flow.Reobserve(ctx, ref, book)
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return failf(exitError, "no step that run %s has come through has an observer in %s", ref.Run, r.File)
	}
	table := tabwriter.NewWriter(p.w.stdout, 0, 0, 2, ' ', 0)
	for _, s := range seen {
		if p.json {
			if err := newEncoder(p.w.stdout).Encode(s); err != nil {
				return err
			}
			continue
		}
		then := "not observed then"
		if s.Recorded != "" {
			then = fmt.Sprintf("then %s", s.Recorded)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Step, s.Verdict, then, diag.Line(s.Why))
	}
	return table.Flush()
}
