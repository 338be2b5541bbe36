package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
)

// ticketDigest is what a ticket is one by: the same trouble in the same place.
func ticketDigest(playbook, step, kind string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d:%s", len(playbook), playbook, len(step), step, len(kind), kind))
	return hex.EncodeToString(sum[:])
}

// ticket files a ticket. What cannot be kept now is tried again by whoever goes on
// with the run: that a ticket is to be filed is on record.
func (t *hold) ticket(eff steps.FileTicket) func(context.Context) (steps.Event, error) {
	step, seen := t.step(eff.Step), t.state.Steps[eff.Step-1].Observed
	name := t.state.Book.Name
	return func(ctx context.Context) (steps.Event, error) {
		filed := steps.Filed{Stamp: now(), Step: eff.Step, Digest: ticketDigest(name, step.ID.Value, eff.Kind)}
		if t.h.Tickets == nil {
			return filed, nil
		}
		what := eff.What
		if seen.Why != "" {
			what += ": " + seen.Why
		}
		id, isNew, err := t.h.Tickets.File(ctx, Ticket{
			Digest: filed.Digest, Playbook: name, Step: step.ID.Value, Kind: eff.Kind,
			Run: t.row.Ref, What: what, Detail: string(seen.Output), At: time.Now().UTC(),
		})
		if err != nil {
			return nil, fmt.Errorf("file a ticket about step %s: %w", step.ID.Value, err)
		}
		filed.Ticket, filed.New = id, isNew
		return filed, nil
	}
}
