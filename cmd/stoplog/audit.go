package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/journal"
)

type auditCommand struct {
	Verify auditVerifyCommand `cmd:"" help:"Check that nothing was altered, left out or cut off."`
	Export auditExportCommand `cmd:"" help:"Give runs and their events as JSON lines."`
}

func (*auditCommand) Help() string {
	return `Each event of a run is chained to the one before it by a hash under the store's own key, and the last link stands on the run's row.

` + journalHelp
}

// auditFlags are those of both.
type auditFlags struct {
	journalFlags
	Runs []string `arg:"" optional:"" name:"run" help:"The runs, by id or the beginning of one; without any, all of them."`
}

// refs are the runs that are meant, the oldest first.
func (f auditFlags) refs(ctx context.Context, s journal.Reader) (refs []journal.Ref, err error) {
	for _, id := range f.Runs {
		ref, err := runFlags{ID: id}.find(ctx, s)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	if len(f.Runs) > 0 {
		return refs, nil
	}
	q := journal.RunQuery{Tenant: journal.DefaultTenant, Limit: 1000}
	for {
		page, err := s.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			slices.Reverse(refs)
			return refs, nil
		}
		for _, row := range page {
			refs = append(refs, row.Ref)
			q.Before = row.Run
		}
	}
}

type auditVerifyCommand struct {
	auditFlags
	Expect string `placeholder:"HEAD" help:"A last link from before, as this command or runs show gave it: the log must come by it. With one run."`
	JSON   bool   `help:"Give a JSON object for each run."`
}

func (*auditVerifyCommand) Help() string {
	return `Reads every event and follows the chain. The result is a line for each run: its id, how many events fit, the last link, and the first break if there is one.

The chain is of what was sealed, not of how: it holds under new keys, and without any; what no key here opens is counted, and its payload not checked.

A log that was cut off at its end together with its row does not show in itself: keep a last link elsewhere, and give it as --expect.

Examples:

    stoplog audit verify
    stoplog audit verify run_01kc --expect 3f0c…

Exit codes: 0 all of them are whole, 1 one is broken or there is no such run, 2 usage.`
}

// verified is what was found of a run.
type verified struct {
	Run    journal.ID `json:"run"`
	Whole  bool       `json:"whole"`
	Events uint64     `json:"events"`
	Purged uint64     `json:"purged"`
	Sealed uint64     `json:"sealed,omitempty"` // that no key here opens
	Head   string     `json:"head"`
	Broken string     `json:"broken,omitempty"`
}

func (c *auditVerifyCommand) Run(w *world) error {
	ctx := context.Background()
	var expect journal.Link
	if c.Expect != "" {
		var err error
		if expect, err = journal.ParseLink(c.Expect); err != nil {
			return failf(exitUsage, "--expect: %w", err)
		}
		if len(c.Runs) != 1 {
			return failf(exitUsage, "--expect is the link of one run: name it")
		}
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	refs, err := c.refs(ctx, store)
	if err != nil {
		return err
	}
	broken, sealed := 0, uint64(0)
	for _, ref := range refs {
		rep, err := journal.Verify(ctx, store, ref, expect)
		if err != nil {
			return err
		}
		v := verified{Run: ref.Run, Whole: rep.Broken == nil, Events: rep.Events, Purged: rep.Purged, Sealed: rep.Sealed, Head: rep.Tail.Link.String()}
		if rep.Broken != nil {
			broken++
			v.Broken = rep.Broken.Error()
		}
		sealed += rep.Sealed
		if err := c.say(w, v); err != nil {
			return err
		}
	}
	if sealed > 0 {
		w.voice.sayf("sealed under keys that are not here: %s; the links fit, what they hold was not checked", count(int(sealed), "payload"))
	}
	if broken > 0 {
		return failf(exitError, "%s of %s broken", count(broken, "chain"), count(len(refs), "run"))
	}
	return nil
}

func (c *auditVerifyCommand) say(w *world, v verified) error {
	switch {
	case c.JSON:
		return newEncoder(w.stdout).Encode(v)
	case v.Whole:
		return tell(w, "%s  whole   %6d  %s", v.Run, v.Events, v.Head)
	}
	return tell(w, "%s  broken  %6d  %s  %s", v.Run, v.Events, v.Head, diag.Line(v.Broken))
}

type auditExportCommand struct{ auditFlags }

func (*auditExportCommand) Help() string {
	return `Gives the row of each run, and behind it its events, as JSON lines: {"run": …}, then {"event": …} with the payload as it was chained, its keyed digest and its link. Of a purged payload only the digest is left.

Examples:

    stoplog audit export > audit.jsonl
    stoplog audit export run_01kc | jq -c 'select(.event.kind == "decided")'

Exit codes: 0, 1 there is no such run or the journal can't be read, 2 usage.`
}

// exported is an event as it leaves.
type exported struct {
	Run     journal.ID      `json:"run"`
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Sealed  bool            `json:"sealed,omitempty"` // no key here opens it
	Purged  time.Time       `json:"purged,omitzero"`
	Digest  journal.Digest  `json:"digest"`
	Link    string          `json:"link"`
}

func (c *auditExportCommand) Run(w *world) error {
	ctx := context.Background()
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	refs, err := c.refs(ctx, store)
	if err != nil {
		return err
	}
	enc := newEncoder(w.stdout)
	for _, ref := range refs {
		if err := export(ctx, enc, store, ref); err != nil {
			return err
		}
	}
	return nil
}

func export(ctx context.Context, enc *json.Encoder, s journal.Reader, ref journal.Ref) error {
	row, err := s.Run(ctx, ref)
	if err != nil {
		return err
	}
	if err := enc.Encode(map[string]api.Run{"run": api.RunOf(row)}); err != nil {
		return err
	}
	for r, err := range s.Events(ctx, ref, 0) {
		if err != nil {
			return err
		}
		e := exported{Run: r.Run, Seq: r.Seq, At: r.At, Kind: r.Kind, Payload: r.Payload, Sealed: r.Unread != nil, Purged: r.Purged, Digest: r.Digest, Link: r.Link.String()}
		if err := enc.Encode(map[string]exported{"event": e}); err != nil {
			return err
		}
	}
	return nil
}
