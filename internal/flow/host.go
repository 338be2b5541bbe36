package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/sandbox"
)

// Options of a host. Store, Profiles, Run and Judge must be set.
type Options struct {
	Store journal.Store
	// Profiles finds the profile that a run is under; an empty name is the default.
	Profiles func(name string) (Profile, error)
	// Run runs a program in a sandbox: sandbox.Run.
	Run   func(context.Context, sandbox.Spec) (sandbox.Result, error)
	Judge Judge
	// Tickets takes what observers find odd; nil: it is on record and nowhere else.
	Tickets Tickets
	// Dial gives the way to the hosts that a step may reach; nil: steps reach none.
	Dial func(hosts ...string) func(ctx context.Context, network, address string) (net.Conn, error)
	// Deny are places that no step sees, such as the state directory.
	Deny []string
	// Destroys says what a command would destroy, as the checks of playbooks see it;
	// empty: nothing that they know of. Nil: only what steps declare counts.
	Destroys func(argv []string) string
	// Log is for operators; nil: nothing is said.
	Log *slog.Logger
}

// Profile is what a profile has to say of playbooks.
type Profile struct {
	Name, Digest string
	Capture      journal.Capture
	Evaluator    engine.Evaluator
	// Guards judge what steps say.
	Guards []guard.Member
	// Expire is how long a question waits for a person; 0 is a day.
	Expire time.Duration
	// SecondPerson: whoever started the run may not decide what it asks.
	SecondPerson bool
	// Turn says with what a turn of an agent begins; nil: there are no agents.
	Turn func(text string, row journal.Run) (engine.Task, error)
}

// Engine is what holds the runs of a host, and runs turns. *engine.Engine is one.
type Engine interface {
	Begin(ctx context.Context, row journal.Run, first journal.Entry) (journal.Ref, error)
	Start(ctx context.Context, t engine.Task) (journal.Ref, error)
	Cancel(ctx context.Context, ref journal.Ref, by string) error
	NewID(p journal.Prefix) (journal.ID, error)
}

// Tickets takes tickets.
type Tickets interface {
	// File takes a ticket, and returns its id. It is kept when File returns,
	// whatever the sinks make of it. One with the digest of another that is open is
	// that one: isNew is false then.
	File(ctx context.Context, t Ticket) (id string, isNew bool, err error)
}

// Ticket is what was odd about a step.
type Ticket struct {
	Digest   string // of playbook, step and kind: hexadecimal SHA-256
	Playbook string
	Step     string
	Kind     string
	Run      journal.Ref
	What     string // in a sentence
	Detail   string // what the observer said, as JSON; may be empty
	At       time.Time
}

// Host runs playbooks. It is safe for use by several goroutines.
type Host struct {
	Options
	engine atomic.Pointer[Engine]
}

var _ engine.Other = (*Host)(nil)

// New returns a host. It advances nothing before it is attached to an engine, which
// is made with it as the Other of journal.PlaybookRun.
func New(o Options) (*Host, error) {
	if o.Store == nil || o.Profiles == nil || o.Run == nil || o.Judge == nil {
		return nil, errors.New("make a host of playbooks: it needs a store, profiles, a way to run programs and a judge")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Host{Options: o}, nil
}

// Attach gives the host its engine.
func (h *Host) Attach(e Engine) { h.engine.Store(&e) }

var errNotAttached = errors.New("the host of playbooks has no engine yet")

func (h *Host) attached() (Engine, error) {
	e := h.engine.Load()
	if e == nil {
		return nil, errNotAttached
	}
	return *e, nil
}

// Request is a run of a playbook that is to be started.
type Request struct {
	Tenant  string // empty: journal.DefaultTenant
	Profile string // empty: the default
	Starter string
	// Root is the folder that the playbook works in: absolute, without symbolic links.
	Root string
	// Tree is what lies there, and File the playbook in it.
	Tree   fs.FS
	File   string
	Inputs map[string]string
	From   string // the step to begin at; empty: at the beginning
}

// Start makes a run of a playbook, and has it advanced. The run is durable when
// Start returns.
func (h *Host) Start(ctx context.Context, r Request) (journal.Ref, error) {
	created, err := Prepare(r)
	if err != nil {
		return journal.Ref{}, err
	}
	p, err := h.Profiles(r.Profile)
	if err != nil {
		return journal.Ref{}, err
	}
	return h.begin(ctx, journal.Run{
		Ref:  journal.Ref{Tenant: cmp.Or(r.Tenant, journal.DefaultTenant)},
		Kind: journal.PlaybookRun, Profile: p.Name, ProfileDigest: p.Digest, Starter: r.Starter,
		Capture: p.Capture, Workdir: r.Root,
	}, created)
}

func (h *Host) begin(ctx context.Context, row journal.Run, created steps.Created) (journal.Ref, error) {
	e, err := h.attached()
	if err != nil {
		return row.Ref, err
	}
	first, err := entryOf(created)
	if err != nil {
		return row.Ref, err
	}
	return e.Begin(ctx, row, first)
}

// An InputError is a mistake in what a run is given.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Prepare reads what a run would begin with, and starts nothing.
func Prepare(r Request) (created steps.Created, err error) {
	book, err := ReadBook(r.Tree, r.File)
	if err != nil {
		return created, err
	}
	return prepare(book, r.Inputs, r.From)
}

func prepare(book steps.Book, given map[string]string, from string) (created steps.Created, err error) {
	s, err := open(book)
	if err != nil {
		return created, err
	}
	if book.Inputs, err = inputsOf(s.pb, given); err != nil {
		return created, &InputError{err}
	}
	created = steps.Created{Stamp: steps.At(time.Now()), Book: book}
	if created.Plan, err = planOf(s.pb); err != nil {
		return created, fmt.Errorf("plan %s: %w", book.File, err)
	}
	if from != "" {
		if created.From = (steps.State{Plan: created.Plan}).Find(from); created.From == 0 {
			return created, &InputError{fmt.Errorf("there is no step %q to begin at", from)}
		}
	}
	return created, steps.Check(steps.State{}, created)
}
