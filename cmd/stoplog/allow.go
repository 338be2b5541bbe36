package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/allowance"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/journal"
)

type allowCommand struct {
	journalFlags
	Fingerprint string `arg:"" optional:"" help:"The fingerprint of what was found, as the record has it: 16 digits."`
	Rule        string `placeholder:"RULE" help:"The rule that found it."`
	Why         string `placeholder:"TEXT" help:"Why it is no fault."`
	Until       string `placeholder:"DATE" help:"To the end of which day: 2027-01-31; or for how long: 30d, 12h. At most a year."`
	Profile     string `default:"default" placeholder:"NAME" help:"The profile that it is for: ${default} if left out."`
	By          string `placeholder:"NAME" help:"Who allows it; without it, the user of this process."`
	List        bool   `help:"List what is allowed."`
	Remove      bool   `help:"Take back what was allowed."`
	Config      string `placeholder:"FILE" help:"The configuration, in place of the one that would be found."`
	JSON        bool   `help:"Give the result as JSON: what is allowed, one a line."`
}

func (*allowCommand) Help() string {
	return `Says that something a rule finds is no fault: one text, by its fingerprint, of one rule, under one profile, for some time. It is found and recorded as before, with who allowed it and why, and passes. A server that has the journal in hand lets it pass with the next text that it judges.

The fingerprint stands in the record: stoplog why RUN shows it. It is good for this journal alone, whose key it is made with; that of stoplog guard is another unless it is given the same key. A finding of more than 512 bytes cannot be allowed: it is replaced before it is known.

Allowances are written to a log in the journal that stays (stoplog audit export). They end by themselves.

` + journalHelp + `

Examples:

    stoplog allow 6a3492355ea2c756 --rule email --why "the address of our own support" --until 2027-06-30
    stoplog allow 6a3492355ea2c756 --rule email --why "a test" --until 12h --profile coding
    stoplog allow --list
    stoplog allow 6a3492355ea2c756 --rule email --remove

Exit codes: 0 done, 1 it could not be (nothing of the kind is allowed), 2 usage.`
}

func (c *allowCommand) Run(w *world) error {
	ctx := context.Background()
	if c.List {
		if c.Fingerprint != "" || c.Rule != "" || c.Why != "" || c.Until != "" || c.Remove {
			return failf(exitUsage, "--list goes with no other flag but --json and --store")
		}
		return c.list(ctx, w)
	}
	key, err := c.key(w)
	if err != nil {
		return err
	}
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	if c.Remove {
		return c.remove(ctx, w, allowance.Taken{Key: key, By: by})
	}
	until, err := parseUntil(c.Until, time.Now())
	if err != nil {
		return failf(exitUsage, "--until: %w", err).hint("write a day, such as --until 2027-01-31, or a time from now, such as --until 30d")
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	a := allowance.Allowance{Key: key, Allowance: guard.Allowance{By: by, Why: c.Why, Until: until}}
	if err := allowance.Give(ctx, store, journal.DefaultTenant, a); err != nil {
		return failf(exitUsage, "allow %s of rule %s: %w", key.Fingerprint, key.Rule, err)
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(a)
	}
	return nil
}

// key is what is to be allowed, or no more.
func (c *allowCommand) key(w *world) (allowance.Key, error) {
	if c.Fingerprint == "" || c.Rule == "" {
		return allowance.Key{}, failf(exitUsage, "an allowance is of a fingerprint and a rule").hint("see `stoplog why RUN` for both, and `stoplog allow --help`")
	}
	conf, err := loadConfig(c.Config, w)
	if err != nil {
		return allowance.Key{}, err
	}
	if _, ok := conf.Profile(c.Profile); !ok && !c.Remove {
		return allowance.Key{}, failf(exitUsage, "there is no profile %q", c.Profile).hint("`stoplog check-config` shows those that there are")
	}
	if known := conf.RuleIDs(); !slices.Contains(known, c.Rule) && !c.Remove {
		f := failf(exitUsage, "there is no rule %q", c.Rule)
		if near := diag.Suggest(c.Rule, known); near != "" {
			return allowance.Key{}, f.hint("did you mean --rule %s?", near)
		}
		return allowance.Key{}, f.hint("`stoplog guard --explain` shows those that are built in")
	}
	return allowance.Key{Profile: c.Profile, Rule: c.Rule, Fingerprint: strings.ToLower(c.Fingerprint)}, nil
}

func (c *allowCommand) remove(ctx context.Context, w *world, t allowance.Taken) error {
	if c.Why != "" || c.Until != "" {
		return failf(exitUsage, "--remove goes with neither --why nor --until")
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	err = allowance.Take(ctx, store, journal.DefaultTenant, t)
	if errors.Is(err, allowance.ErrNone) {
		return failf(exitError, "take back %s of rule %s under profile %s: %w", t.Fingerprint, t.Rule, t.Profile, err).hint("see `stoplog allow --list`")
	}
	return err
}

// list shows what is allowed, and what has been and has expired since.
func (c *allowCommand) list(ctx context.Context, w *world) error {
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := allowance.List(ctx, store, journal.DefaultTenant)
	if err != nil {
		return err
	}
	if c.JSON {
		enc := newEncoder(w.stdout)
		for _, a := range all {
			if err := enc.Encode(a); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, a := range all {
		until := "until " + a.Until.Format(time.RFC3339)
		if !a.Until.After(time.Now()) {
			until = "expired " + a.Until.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\tby %s\t%s\n", a.Fingerprint, diag.Line(a.Rule), diag.Line(a.Profile), until, diag.Line(a.By), diag.Line(a.Why))
	}
	return table.Flush()
}

// parseUntil reads the end of an allowance: a day, which it includes, an instant,
// or a time from now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, errors.New("an allowance has an end")
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.UTC().Add(time.Duration(n) * 24 * time.Hour).Truncate(time.Second), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.UTC().Add(d).Truncate(time.Second), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a day nor a time", text)
}
