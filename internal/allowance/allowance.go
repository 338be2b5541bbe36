// Package allowance keeps what people have said of findings that are no fault.
//
//	stoplog allow ──► Give ──► a log in the journal ──► Book ──► guard.Allowed, for each channel
//	                  Take                               (a map, and who follows the log)
//
// An allowance is for a profile, a rule and a fingerprint: for one text that one
// rule finds. The finding is still made and recorded, with who allowed it, why, and
// until when; it asks for nothing.
//
// # Laws
//
// Nothing is allowed for ever: an allowance has an end, at most [Longest] away, and
// counts for nothing from then on, whether or not anybody looks.
//
// What is allowed is never more than a person said: of another profile, of another
// rule, under another key, the same text is found as before.
//
// All of it is one log of the journal, a run that never ends, of kind
// [journal.AllowancesRun]: who gave what and who took it back stands in its chain,
// and stays. The last word on an allowance is the one that counts.
package allowance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
)

// Key is what an allowance is of.
type Key struct {
	Profile     string `json:"profile"`
	Rule        string `json:"rule"`
	Fingerprint string `json:"fingerprint"` // of the text, under the store's key
}

// Allowance is a person's word that what a rule finds is no fault.
type Allowance struct {
	Key
	guard.Allowance
	At time.Time `json:"at,omitzero"` // when it was given
}

// Longest is how far an allowance reaches: whoever wants more looks again.
const Longest = 366 * 24 * time.Hour

// The events of the log: version 1, an Allowance, and a Taken; Structure.
const (
	kindAllowed    = "allowed"
	kindDisallowed = "disallowed"
)

// Taken is that somebody took an allowance back.
type Taken struct {
	Key
	By string `json:"by"`
}

// ErrNone: there is no such allowance in force.
var ErrNone = errors.New("nothing of the kind is allowed")

var fingerprintForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// check says what is wrong with an allowance that is given now.
func (a Allowance) check(now time.Time) error {
	switch {
	case !fingerprintForm.MatchString(a.Fingerprint):
		return fmt.Errorf("%q is not a fingerprint: it has 16 digits from 0 to f", a.Fingerprint)
	case a.Profile == "" || a.Rule == "" || a.By == "":
		return errors.New("an allowance names a profile, a rule, and who gives it")
	case strings.TrimSpace(a.Why) == "":
		return errors.New("an allowance says why")
	case strings.ContainsFunc(a.Why+a.By, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("why, and who, are one line of text")
	case !a.Until.After(now):
		return fmt.Errorf("%s is past", a.Until.Format(time.RFC3339))
	case a.Until.Sub(now) > Longest:
		return fmt.Errorf("%s is more than a year away", a.Until.Format(time.RFC3339))
	}
	return nil
}

// logID is the run that the log is: one for each tenant, older than any other.
const logID journal.ID = "run_00000000000000000000000000"

func logOf(tenant string) journal.Ref { return journal.Ref{Tenant: tenant, Run: logID} }

// Give writes an allowance down. It takes the place of one of the same key.
func Give(ctx context.Context, s journal.Store, tenant string, a Allowance) error {
	a.At = time.Time{} // the journal says
	if err := a.check(time.Now()); err != nil {
		return err
	}
	return write(ctx, s, tenant, kindAllowed, a)
}

// Take takes an allowance back. It fails with ErrNone if none is in force.
func Take(ctx context.Context, s journal.Store, tenant string, t Taken) error {
	all, err := List(ctx, s, tenant)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(a Allowance) bool { return a.Key == t.Key && a.Until.After(time.Now()) }) {
		return ErrNone
	}
	return write(ctx, s, tenant, kindDisallowed, t)
}

// hand is who holds the log for the time of a write. A claim, what it writes and
// its end are one transaction, so nobody else ever sees the log held.
var hand = journal.Worker{Owner: "allowances"}

func write(ctx context.Context, s journal.Store, tenant, kind string, v any) error {
	entry, err := journal.NewEntry(kind, 1, journal.Structure, v)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		ref := logOf(tenant)
		if _, err := tx.Run(ctx, ref); errors.Is(err, journal.ErrNotFound) {
			err = tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.AllowancesRun, Capture: journal.CaptureFull})
			if err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		lease, err := tx.Claim(ctx, ref, hand, time.Minute)
		if err != nil {
			return err
		}
		if _, err := tx.Append(ctx, lease, entry); err != nil {
			return err
		}
		return tx.SetStatus(ctx, lease, journal.Change{Status: journal.WaitingInput, Reason: "standing"})
	})
}

// List returns what was given and not taken back, by profile, rule and
// fingerprint, what has expired too.
func List(ctx context.Context, r journal.Reader, tenant string) ([]Allowance, error) {
	book := map[Key]Allowance{}
	if _, err := read(ctx, r, tenant, 0, book); err != nil {
		return nil, err
	}
	var all []Allowance
	for _, a := range book {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Allowance) int {
		return strings.Compare(a.Profile+"\x00"+a.Rule+"\x00"+a.Fingerprint, b.Profile+"\x00"+b.Rule+"\x00"+b.Fingerprint)
	})
	return all, nil
}

// read applies the log behind an event to a book, and returns the last one.
func read(ctx context.Context, r journal.Reader, tenant string, after uint64, book map[Key]Allowance) (uint64, error) {
	for rec, err := range r.Events(ctx, logOf(tenant), after) {
		if err != nil {
			return after, fmt.Errorf("read what is allowed: %w", err)
		}
		switch rec.Kind {
		case kindAllowed:
			var a Allowance
			if err := rec.Decode(&a); err != nil {
				return after, fmt.Errorf("read what is allowed: %w", err)
			}
			a.At = rec.At
			book[a.Key] = a
		case kindDisallowed:
			var t Taken
			if err := rec.Decode(&t); err != nil {
				return after, fmt.Errorf("read what is allowed: %w", err)
			}
			delete(book, t.Key)
		}
		after = rec.Seq
	}
	return after, nil
}
