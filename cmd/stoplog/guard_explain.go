package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/stoplog/stoplog/guard/match"
)

// explained is what --explain says of a rule.
type explained struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Verdict  string `json:"verdict"`
	// Hold is the most text in bytes that the rule can hold back.
	Hold int `json:"hold"`
	// Cut says why its matches can be longer, how long a mask of one is at most,
	// and what happens then; left out where they can't.
	Cut *explainedCut `json:"cut,omitempty"`
}

type explainedCut struct {
	Because string `json:"because"`
	At      int    `json:"at"`
	Policy  string `json:"policy"`
}

// explain says which rules run and what each may hold back: a table and what
// holds for all of them, or a JSON object a line.
func (c *guardCommand) explain(out io.Writer, selected []match.Rule) error {
	engine, err := match.Compile(selected, match.Options{Name: guardName, Evasions: match.Evasions, Verdict: c.verdict()})
	if err != nil {
		return err
	}
	cert := engine.Certificate()
	if c.Format == "ndjson" {
		enc := newEncoder(out)
		for i, r := range cert.Rules {
			row := explained{Rule: r.Rule, Severity: selected[i].Severity.String(), Verdict: c.verdictOf(selected[i]).String(), Hold: r.Hold}
			if r.Cut {
				row.Cut = &explainedCut{r.Grows, cert.SwallowLimit, r.Policy.String()}
			}
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "RULE\tSEVERITY\tVERDICT\tHOLDS AT MOST\n")
	for i, r := range cert.Rules {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Rule, selected[i].Severity, c.verdictOf(selected[i]), holds(r, cert))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return cert.Write(out)
}

func holds(r match.RuleCertificate, c match.Certificate) string {
	if !r.Cut {
		return fmt.Sprintf("%d bytes", r.Hold)
	}
	return fmt.Sprintf("%d bytes, then masked: unbounded because of %s, at %d bytes %s", r.Hold, r.Grows, c.SwallowLimit, r.Policy)
}
