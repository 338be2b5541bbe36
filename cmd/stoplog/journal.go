package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// journalFlags are those of every command that has to do with the journal.
type journalFlags struct {
	Store string `placeholder:"FILE" help:"The journal, in place of the one that would be found."`
}

// journalHelp is for the help of those commands.
const journalHelp = `The journal is --store, else the configuration's store, else stoplog/stoplog.db in $XDG_STATE_HOME or ~/.local/state.`

// path is where the journal of a configuration is, or would be; nil is the
// configuration that is found.
func (f journalFlags) path(w *world, conf *config.Config) (string, error) {
	if f.Store != "" {
		return filepath.Abs(f.Store)
	}
	if conf == nil {
		var err error
		if conf, err = config.Load(config.Find("", w.getenv)); err != nil {
			return "", failf(exitUsage, "%w", err).hint("name a journal with --store")
		}
	}
	if conf.Store != "" {
		return filepath.Abs(conf.Store)
	}
	dir, err := stateDir(w.getenv)
	if err != nil {
		return "", failf(exitError, "%w", err).hint("name a journal with --store")
	}
	return filepath.Join(dir, "stoplog.db"), nil
}

// open opens a journal that is there.
func (f journalFlags) open(ctx context.Context, w *world) (*sqlite.Store, error) {
	path, err := f.path(w, nil)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, failf(exitError, "there is no journal %s: nothing has run yet", path).hint("begin with `stoplog chat`, or name another with --store")
	}
	ring, err := f.readerRing(w)
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqlite.Options{Seal: ring})
}

// socketOf is where the server of a journal listens.
func socketOf(path string) string { return path + ".sock" }

// reached is a client of the server that has the journal in hand.
type reached struct {
	*api.Client
	hangUp func()
}

// dialServer finds the server of a journal; false if there is none.
func dialServer(ctx context.Context, path string) (reached, bool) {
	way := dial.Socket(socketOf(path))
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+api.SocketHost+"/v1/runs?limit=1", nil)
	if err != nil {
		return reached{}, false
	}
	resp, err := way.RoundTrip(r)
	if err != nil {
		return reached{}, false
	}
	resp.Body.Close()
	return reached{&api.Client{Transport: way}, way.CloseIdleConnections}, true
}

// nobody is said where what was recorded waits for an engine.
func nobody(w *world, run journal.ID) {
	w.voice.sayf("no server has this journal in hand: the run goes on when one does")
	w.voice.sayf("hint: go on with `stoplog runs resume %s`", run)
}

// person is who acts: --by, else the user of this process.
func person(by string, w *world) (string, error) {
	if by != "" {
		return by, nil
	}
	if name := w.getenv("USER"); name != "" {
		return name, nil
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	return "", failf(exitUsage, "there is no telling who decides").hint("say so with --by NAME")
}

// refused gives what the server or the journal did not carry out its exit code.
func refused(err error) error {
	var own *api.Error
	if errors.As(err, &own) && (own.Code == api.BadRequest || own.Code == api.Ambiguous) {
		return failf(exitUsage, "%w", err)
	}
	var several *journal.AmbiguousError
	if errors.As(err, &several) {
		f := failf(exitUsage, "%w", err)
		for _, id := range several.IDs {
			f.hint("it may be %s", id)
		}
		return f
	}
	return err
}

// tell writes one line of a result.
func tell(w *world, format string, args ...any) error {
	_, err := fmt.Fprintf(w.stdout, format+"\n", args...)
	return err
}
