package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// explained is what --explain says of a rule.
type explained struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Verdict  string `json:"verdict"`
	// Hold is the most text in bytes that the rule alone can hold back; null
	// where a match can go on for ever.
	Hold *int `json:"hold"`
}

// explain says which rules run and what each may hold back: a table, or a JSON
// object a line.
func (c *guardCommand) explain(out io.Writer, selected []match.Rule) error {
	var rows []explained
	for _, r := range selected {
		engine, err := match.Compile([]match.Rule{r}, match.Options{Name: guardName})
		if err != nil {
			return err
		}
		row := explained{Rule: r.ID, Severity: r.Severity.String(), Verdict: c.verdict().String()}
		if hold, cut := engine.Bound(); len(cut) == 0 {
			row.Hold = &hold
		}
		rows = append(rows, row)
	}
	if c.Format == "ndjson" {
		enc := newEncoder(out)
		for _, row := range rows {
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "RULE\tSEVERITY\tVERDICT\tHOLDS AT MOST\n")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", row.Rule, row.Severity, row.Verdict, row.holds())
	}
	return table.Flush()
}

func (e explained) holds() string {
	if e.Hold == nil {
		return fmt.Sprintf("a match as long as it is; past %d bytes the text is denied", guard.DefaultMaxHold)
	}
	return fmt.Sprintf("%d bytes", *e.Hold)
}
