package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

var (
	// ErrAhead: a reader names an event that there is not yet.
	ErrAhead = errors.New("there is no such event")
	// ErrBusy: the session's last turn has not ended.
	ErrBusy = errors.New("the session has a turn that has not ended")
	// ErrNotTurn: the run is not a turn of a conversation.
	ErrNotTurn = errors.New("the run is not a turn of a conversation")
	// ErrProfile: there is no profile of that name. Engines say so.
	ErrProfile = errors.New("there is no such profile")
	// ErrNoModel: the profile names no model for its runs. Engines say so.
	ErrNoModel = errors.New("the profile names no model")
	// ErrEmpty: a turn has a message.
	ErrEmpty = errors.New("a turn has a message")
)

// Engine starts runs and takes them up again.
type Engine interface {
	// Start makes the run of a turn and advances it, whatever becomes of ctx.
	Start(ctx context.Context, s Start) (journal.Ref, error)
	// Resume takes up a run that waits and for which somebody has decided, or
	// that nobody advances; for any other it does nothing. That another worker
	// advances the run, or that it has ended meanwhile, is no error.
	Resume(ctx context.Context, ref journal.Ref) error
}

// Start is what the run of a turn begins with.
type Start struct {
	Tenant  string
	Session journal.ID
	Profile string // empty: the default one
	Task    string
	By      string // who says it
}

// Exchange is a turn that has ended: what was said, and the answer to it.
type Exchange struct {
	Task   string
	Answer string // what was shown of it; empty if nothing was
}

// Turns takes what people say and makes runs of it. Engine and IDs must be set.
type Turns struct {
	Source
	Engine Engine
	IDs    *journal.IDs
	Tenant string
}

// Message is what somebody says.
type Message struct {
	Session string // the conversation that it continues; empty: a new one
	Profile string // empty: the conversation's, or the default one
	Text    string
	By      string
}

// Begin makes the message a turn and returns its run.
func (t *Turns) Begin(ctx context.Context, m Message) (journal.Ref, error) {
	if strings.TrimSpace(m.Text) == "" {
		return journal.Ref{}, ErrEmpty
	}
	s := Start{Tenant: t.Tenant, Session: journal.ID(m.Session), Profile: m.Profile, Task: m.Text, By: m.By}
	if s.Session == "" {
		var err error
		if s.Session, err = t.IDs.New(journal.SessionPrefix); err != nil {
			return journal.Ref{}, err
		}
		return t.Engine.Start(ctx, s)
	}
	last, err := t.last(ctx, s.Session)
	if err != nil {
		return journal.Ref{}, fmt.Errorf("session %s: %w", s.Session, err)
	}
	s.Profile = cmp.Or(s.Profile, last.Profile)
	return t.Engine.Start(ctx, s)
}

// last returns the session's newest turn, which has ended.
func (t *Turns) last(ctx context.Context, session journal.ID) (journal.Run, error) {
	rows, err := t.Store.Runs(ctx, journal.RunQuery{Tenant: t.Tenant, Session: session, Kind: journal.TurnRun, Limit: 1})
	switch {
	case err != nil:
		return journal.Run{}, err
	case len(rows) == 0:
		return journal.Run{}, journal.ErrNotFound
	case !rows[0].Status.Terminal():
		return journal.Run{}, fmt.Errorf("%w: run %s is %s", ErrBusy, rows[0].Run, rows[0].Status)
	}
	return rows[0], nil
}

// Going is where the reader who was left at a run's last pause goes on.
type Going struct {
	Ref   journal.Ref
	After Position // the last pause; zero if there was none
	// Waits is set if the run still waits for people: there is nothing to follow,
	// and this says what for.
	Waits *Done
}

// GoOn takes up a turn's run.
func (t *Turns) GoOn(ctx context.Context, id string) (g Going, err error) {
	if g.Ref, err = Find(ctx, t.Store, t.Tenant, id); err != nil {
		return g, err
	}
	for {
		r, paused, err := Read(ctx, t.Store, g.Ref)
		if err != nil {
			return g, err
		}
		g.After = paused
		switch {
		case r.row.Kind != journal.TurnRun:
			return g, fmt.Errorf("resume %s: %w", g.Ref.Run, ErrNotTurn)
		case r.row.Status.Terminal():
			return g, nil
		case r.state.Phase != run.Waiting:
			return g, t.Engine.Resume(ctx, g.Ref)
		}
		decided, err := t.decided(ctx, r)
		if err != nil {
			return g, err
		}
		if decided {
			return g, t.Engine.Resume(ctx, g.Ref)
		}
		// A decision may have been taken since, by whoever has the run in hand: then
		// its log has gone on.
		row, err := t.Store.Run(ctx, g.Ref)
		if err != nil {
			return g, err
		}
		if row.Tail == r.row.Tail {
			d := r.done(r.outcome())
			g.Waits = &d
			return g, nil
		}
	}
}

// decided reports whether somebody has said something that a waiting run has yet
// to take.
func (t *Turns) decided(ctx context.Context, r *Reader) (bool, error) {
	for _, q := range r.state.Questions {
		row, err := t.Store.Question(ctx, t.Tenant, journal.ID(q.ID))
		if err != nil {
			return false, err
		}
		if row.State != journal.QuestionPending && row.Used.IsZero() {
			return true, nil
		}
	}
	return r.row.CancelBy != "", nil
}

// Find returns the run that a person means by an id or the beginning of one.
func Find(ctx context.Context, s journal.Reader, tenant, typed string) (journal.Ref, error) {
	partial, err := journal.Partial(journal.RunPrefix, typed)
	if err != nil {
		return journal.Ref{}, err
	}
	id, err := s.Find(ctx, tenant, partial)
	if err != nil {
		return journal.Ref{}, fmt.Errorf("run %s: %w", typed, err)
	}
	return journal.Ref{Tenant: tenant, Run: id}, nil
}

// Before returns what was said in a turn's session before it, the oldest first:
// what the model is to know of the conversation. What was purged is left out.
func Before(ctx context.Context, s journal.Reader, turn journal.Run) (said []Exchange, err error) {
	if turn.Session == "" {
		return nil, nil
	}
	q := journal.RunQuery{Tenant: turn.Tenant, Session: turn.Session, Kind: journal.TurnRun, Before: turn.Run}
	for {
		page, err := s.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			slices.Reverse(said)
			return said, nil
		}
		for _, row := range page {
			r, _, err := Read(ctx, s, row.Ref)
			if err != nil {
				return nil, err
			}
			if r.state.Task != "" {
				said = append(said, Exchange{Task: r.state.Task, Answer: r.text})
			}
			q.Before = row.Run
		}
	}
}
