package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
)

// addRequests adds what guards found in the requests of a run, which have logs of
// their own, where it belongs in time.
func (a *Account) addRequests(ctx context.Context, s journal.Reader, ref journal.Ref) error {
	q := journal.RunQuery{Tenant: ref.Tenant, Kind: journal.RequestRun, Parent: ref.Run}
	found := false
	for {
		rows, err := s.Runs(ctx, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			q.Before = row.Run
			entries, err := verdictsOf(ctx, s, row.Ref)
			if err != nil {
				return err
			}
			found = found || len(entries) > 0
			a.Entries = append(a.Entries, entries...)
		}
	}
	if found {
		slices.SortStableFunc(a.Entries, func(a, b Entry) int { return a.At.Compare(b.At) })
	}
	return nil
}

// verdictsOf are the verdicts of a request.
func verdictsOf(ctx context.Context, s journal.Reader, ref journal.Ref) (all []Entry, err error) {
	for rec, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return nil, err
		}
		if rec.Kind != journal.RequestVerdict || !rec.Purged.IsZero() {
			continue
		}
		var v journal.Verdict
		if err := rec.Decode(&v); err != nil {
			return nil, err
		}
		all = append(all, Entry{Seq: rec.Seq, At: rec.At, What: rec.Kind, Text: sayVerdict(v), Request: string(ref.Run)})
	}
	return all, nil
}

// sayVerdict says a verdict in a line, with what is needed to allow the finding.
func sayVerdict(v journal.Verdict) string {
	text := fmt.Sprintf("guard %s (%s): rule %s, %s, in %s", v.Guard, v.Mode, v.Rule, v.Verdict, v.Channel)
	if v.Fingerprint != "" {
		text += ", fingerprint " + v.Fingerprint
	}
	if a := v.Allowed; a != nil {
		text += fmt.Sprintf(": allowed by %s until %s: %s", a.By, a.Until.Format(time.RFC3339), a.Why)
	}
	return text
}
