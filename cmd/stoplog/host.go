package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/engine/deferred"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/keep"
	"github.com/stoplog/stoplog/internal/seal"
)

// A house is what a profile needs to run agents: the engine's side of it, and how
// a turn of the profile begins.
type house interface {
	engine.Agents
	// Task says with what a turn begins. It fails with chat.ErrProfile.
	Task(s chat.Start) (engine.Task, error)
}

// host is a server that has a journal in hand: an engine, and the control
// interface before it, on the socket beside the journal.
type host struct {
	store   *sqlite.Store
	pool    *sql.DB // of the queue
	jobs    *deferred.Jobs[*sql.Tx]
	engine  *engine.Engine
	flow    *flow.Host // nil: no playbooks are run here
	api     *api.Server
	server  *http.Server
	house   func() error // closes it
	lock    *os.File
	started bool // the queue is worked at
	ended   chan error
}

// openHost takes the journal in hand, if nobody has; else it fails with errTaken,
// or, if it may share, is one more process that advances runs, without a socket.
func openHost(ctx context.Context, path string, ring *seal.Ring, share bool, open func(*sqlite.Store) (house, func() error, error)) (_ *host, err error) {
	h := &host{ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.store, err = sqlite.Open(ctx, path, sqlite.Options{Seal: ring}); err != nil {
		return nil, err
	}
	if h.lock, err = lockSocket(h.store.Path()); err != nil && !(share && errors.Is(err, errTaken)) {
		return nil, err
	}
	agents, closeHouse, err := open(h.store)
	if err != nil {
		return nil, err
	}
	h.house = closeHouse
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this machine: %w", err)
	}
	if err := h.openQueue(ctx); err != nil {
		return nil, err
	}
	options := engine.Options{Store: h.store, Agents: agents, Jobs: h.jobs, Host: name}
	if player, ok := agents.(interface{ Playbooks() *flow.Host }); ok && player.Playbooks() != nil {
		h.flow = player.Playbooks()
		options.Others = map[journal.RunKind]engine.Other{journal.PlaybookRun: h.flow}
	}
	if known, ok := agents.(interface{ Names() []string }); ok {
		options.Profiles = known.Names()
	}
	if h.engine, err = engine.New(options); err != nil {
		return nil, err
	}
	if h.flow != nil {
		h.flow.Attach(h.engine)
	}
	if held, ok := agents.(interface{ Hold(journal.Worker) }); ok {
		held.Hold(h.engine.Worker())
	}
	if err := h.jobs.Start(context.WithoutCancel(ctx), h.engine.Wake); err != nil {
		return nil, err
	}
	h.started = true
	h.api = h.handler(agents)
	if h.lock == nil || share && len(socketOf(h.store.Path())) > maxSocketPath {
		return h, nil
	}
	listener, err := listen(socketOf(h.store.Path()))
	if err != nil {
		return nil, err
	}
	h.server = &http.Server{Handler: h.api, ReadHeaderTimeout: 10 * time.Second}
	go func() { h.ended <- h.server.Serve(listener) }()
	return h, nil
}

// openQueue opens the queue of what is deferred, in the journal's own file.
func (h *host) openQueue(ctx context.Context) (err error) {
	if h.pool, err = h.store.Pool(); err != nil {
		return err
	}
	driver := riversqlite.New(h.pool)
	if err := h.store.Locked(func() error { return deferred.Migrate(ctx, driver) }); err != nil {
		return err
	}
	h.jobs, err = deferred.New(driver, sqlite.SQL, nil)
	return err
}

// handler is the control interface.
func (h *host) handler(agents house) *api.Server {
	options := api.Options{
		Store: h.store, Engine: conductor{h.engine, agents}, Live: liveText{h.engine},
		IDs: journal.NewIDs(time.Now, rand.Reader), Ledger: h.store.Budgets(),
	}
	if limited, ok := agents.(interface{ Envelopes() []budget.Envelope }); ok {
		options.Envelopes = limited.Envelopes()
	}
	if k, ok := agents.(interface{ Withheld() *keep.Answers }); ok {
		options.Answers = given{k.Withheld()}
	}
	return api.New(options)
}

// closeIn is how long tool calls that are under way may take when the host ends.
const closeIn = 5 * time.Second

// close gives the journal out of hand. Runs that have not ended are left for
// whoever takes it up.
func (h *host) close() error {
	var errs []error
	if h.api != nil {
		h.api.End()
	}
	if h.server != nil {
		errs = append(errs, h.server.Close())
		if err := <-h.ended; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	if h.started {
		errs = append(errs, h.jobs.Stop(context.Background()))
	}
	if h.engine != nil {
		ctx, stop := context.WithTimeout(context.Background(), closeIn)
		errs = append(errs, h.engine.Close(ctx))
		stop()
	}
	if h.house != nil {
		errs = append(errs, h.house())
	}
	if h.lock != nil {
		errs = append(errs, h.lock.Close())
	}
	if h.pool != nil {
		errs = append(errs, h.pool.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	return errors.Join(errs...)
}

// errTaken: another server has the journal in hand.
var errTaken = errors.New("another server has this journal in hand")

// lockSocket takes the right to listen on a journal's socket, for as long as the
// file is open. A socket that is there without it was left by a server that died.
func lockSocket(path string) (*os.File, error) {
	f, err := os.OpenFile(socketOf(path)+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errTaken
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxSocketPath is what the kernel takes of a name (108 bytes, less what listen adds).
const maxSocketPath = 90

// listen listens on a socket that is its owner's alone.
func listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, failf(exitError, "the socket %s has too long a name (%d bytes; %d are possible)", path, len(path), maxSocketPath).hint("name a journal in another folder with --store")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// Made in a folder that is closed, and then moved: at no time can others
	// connect.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// reach gives a client of the server that has the journal in hand; without one,
// one is started for as long as the client is used.
func reach(ctx context.Context, w *world, f journalFlags, file string) (*api.Client, func(), error) {
	var conf *config.Config
	if file != "" {
		var err error
		if conf, err = config.Load(file); err != nil {
			return nil, nil, failf(exitUsage, "%w", err)
		}
	}
	path, err := f.path(w, conf)
	if err != nil {
		return nil, nil, err
	}
	for range 2 {
		if server, ok := dialServer(ctx, path); ok {
			return server.Client, server.hangUp, nil
		}
		ring, err := foundRing(w, conf)
		if err != nil {
			return nil, nil, err
		}
		h, err := openHost(ctx, path, ring, false, func(s *sqlite.Store) (house, func() error, error) { return w.house(w, file, s) })
		if errors.Is(err, errTaken) {
			continue // it began in between
		}
		if err != nil {
			return nil, nil, err
		}
		way := dial.Socket(socketOf(path))
		return &api.Client{Transport: way}, func() {
			way.CloseIdleConnections()
			if err := h.close(); err != nil {
				w.voice.sayf("%v", err)
			}
		}, nil
	}
	return nil, nil, failf(exitError, "%w, and does not answer on %s", errTaken, socketOf(path))
}

// foundRing is the ring of a configuration; nil is the one that is found.
func foundRing(w *world, conf *config.Config) (*seal.Ring, error) {
	if conf == nil {
		var err error
		if conf, err = config.Load(config.Find("", w.getenv)); err != nil {
			return nil, failf(exitUsage, "%w", err)
		}
	}
	return hostRing(w, conf)
}

// conductor is an engine as the control interface sees it.
type conductor struct {
	*engine.Engine
	agents house
}

// Start implements [chat.Engine].
func (c conductor) Start(ctx context.Context, s chat.Start) (journal.Ref, error) {
	task, err := c.agents.Task(s)
	if err != nil {
		return journal.Ref{}, err
	}
	return c.Engine.Start(ctx, task)
}

// Resume implements [chat.Engine]: a run that another worker has in hand, or that
// has ended meanwhile, is as good as resumed.
func (c conductor) Resume(ctx context.Context, ref journal.Ref) error {
	err := c.Engine.Resume(ctx, ref)
	var leased *journal.LeasedError
	var settled *journal.SettledError
	if errors.As(err, &leased) || errors.As(err, &settled) {
		return nil
	}
	return err
}

// Resolve implements [api.Engine].
func (c conductor) Resolve(ctx context.Context, ref journal.Ref, r api.Resolution) error {
	return c.Engine.Resolve(ctx, ref, engine.Resolution(r))
}

// share takes a journal in hand, or shares it with whoever has, and advances runs.
func (f journalFlags) share(ctx context.Context, w *world, file string) (*host, error) {
	conf, err := loadConfig(file, w)
	if err != nil {
		return nil, err
	}
	path, err := f.path(w, conf)
	if err != nil {
		return nil, err
	}
	ring, err := foundRing(w, conf)
	if err != nil {
		return nil, err
	}
	return openHost(ctx, path, ring, true, func(s *sqlite.Store) (house, func() error, error) {
		h, err := openHome(w, conf, s, nil)
		return h, h.close, err
	})
}
