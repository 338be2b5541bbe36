package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/gateway"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

type serveCommand struct {
	Config string `placeholder:"FILE" help:"The configuration, in place of the one that would be found."`
	Listen string `placeholder:"HOST:PORT" help:"Where to listen, in place of what the configuration says; port 0 is any free one."`
	Record string `placeholder:"DIR" help:"Keep each exchange with an upstream in this folder, scrubbed, as a cassette."`
	JSON   bool   `help:"Give the address as JSON."`
	journalFlags
}

func (*serveCommand) Help() string {
	return `Serves providers' own interfaces on loopback, and judges what goes through: point an SDK's base URL at it, and nothing else changes.

    OpenAI       base URL http://127.0.0.1:4180/openai/v1
    Anthropic    base URL http://127.0.0.1:4180/anthropic

Your own key passes through to the provider, unless the configuration has one. Without a configuration the built-in profile holds: secrets and credentials are redacted in answers, and in requests until the answer is back: the model sees [GITHUB_PAT_1], the caller what it stands for (stoplog check-config shows it).

What happened to a request is in the header Stoplog-Run and, unless it was plain allow, in a member "stoplog" of the answer. Its record is a run in the journal (stoplog runs, stoplog why RUN). ` + journalHelp + `

The same address serves agents (POST /chat/stream), runs and approvals (/v1/…), and so does a socket beside the journal, which the other commands use.

With --record DIR each exchange with an upstream is also written to DIR as a cassette, its secrets and people's data replaced; one from which they cannot be taken is not written, and that is said.
An upstream with ` + "`cassettes: [DIR/*.cassette]`" + ` in place of its address answers with them, with no key and no network.

It listens on loopback, where nobody needs a key. Beyond it (listen: 0.0.0.0:4180) everybody does, and it does not start before there is one (stoplog keys create); give it a certificate too (tls: {cert: FILE, key: FILE}).

The address is on stdout, one line, once it listens; SIGINT or SIGTERM ends it when the answers under way have ended, a second one at once.

Examples:

    stoplog serve
    stoplog serve --config examples/stoplog.yaml
    stoplog serve --record tapes
    OPENAI_BASE_URL=http://127.0.0.1:4180/openai/v1 python my_app.py

Exit codes: 0 ended by a signal, 1 it could not serve, 2 the configuration does not check.`
}

func (c *serveCommand) Run(w *world) error {
	conf, err := loadConfig(c.Config, w)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		if err := config.CheckListen(c.Listen); err != nil {
			return failf(exitUsage, "--listen: %w", err)
		}
		conf.Listen = c.Listen
	}
	path, err := c.path(w, conf)
	if err != nil {
		return err
	}
	var tapes func([]byte) (*cassette.Recorder, error)
	if c.Record != "" {
		tapes = func(key []byte) (*cassette.Recorder, error) {
			return openTapes(c.Record, key, func(line string) { w.voice.sayf("%s", line) })
		}
	}
	ring, err := hostRing(w, conf)
	if err != nil {
		return err
	}
	var at home
	h, err := openHost(context.Background(), path, ring, true, func(store *sqlite.Store) (house, func() error, error) {
		if at, err = openHome(w, conf, store, tapes); err != nil {
			return nil, nil, err
		}
		return at, at.close, nil
	})
	if err != nil {
		return err
	}
	switch {
	case h.lock == nil:
		w.voice.sayf("another server answers on the socket of %s: this one shares its journal", path)
	case h.server == nil:
		w.voice.sayf("the socket beside %s would have too long a name: other commands work on the journal itself", path)
	}
	for _, p := range conf.Profiles {
		input, output := at.door.Waits(p.Name)
		w.voice.sayf("profile %s: of requests, %s; of answers, %s", p.Name, input, output)
	}
	keys, err := openKeys(conf, h.store)
	if err != nil {
		return errors.Join(err, h.close())
	}
	return errors.Join(serve(w, c.JSON, conf, at.door, keys, h), h.close())
}

// openKeys makes the ring of keys by which callers are told apart. A server that
// others than this machine can reach does not start where nobody has one.
func openKeys(conf *config.Config, s *sqlite.Store) (*auth.Ring, error) {
	ring := &auth.Ring{Store: s, Digest: digester(s), Required: conf.KeysRequired()}
	if !ring.Required {
		return ring, nil
	}
	keys, err := s.AuthKeys(context.Background())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if !slices.ContainsFunc(keys, func(k auth.Key) bool { return k.State(now) == "live" }) {
		return nil, failf(exitError, "nobody has a key, and on %s everybody needs one", conf.Listen).
			hint("make one with `stoplog keys create NAME --role admin`, and one for each app with `stoplog keys create NAME`")
	}
	return ring, nil
}

// loadConfig reads the configuration and says what a person should know of it.
func loadConfig(name string, w *world) (*config.Config, error) {
	file := config.Find(name, w.getenv)
	conf, err := config.Load(file)
	if mistakes := (diag.List)(nil); errors.As(err, &mistakes) {
		return nil, failf(exitUsage, "%w", err).hint("see `stoplog check-config --help`")
	} else if err != nil {
		return nil, failf(exitError, "%w", err).hint("name a file that is there with --config, or leave it out for what is built in")
	}
	if file == "" {
		w.voice.sayf("no configuration file is found: the built-in profile holds")
	}
	if err := conf.Warnings.WriteText(w.voice.w); err != nil {
		return nil, err
	}
	return conf, nil
}

// serve listens until a signal comes.
func serve(w *world, asJSON bool, conf *config.Config, door http.RoundTripper, keys *auth.Ring, h *host) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return failf(exitError, "listen on %s: %w", conf.Listen, err).hint("choose another port with --listen 127.0.0.1:0")
	}
	g := gateway.New(door, mounts(conf)...)
	g.Keys = keys
	paths := append(g.Paths(), h.api.Paths()...)
	server := &http.Server{Handler: joined(g, h.api, keys), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	server.RegisterOnShutdown(h.api.End)
	ended := make(chan error, 1)
	scheme := "http"
	if conf.TLS != (config.TLS{}) {
		scheme = "https"
		cert, err := tls.LoadX509KeyPair(conf.TLS.Cert, conf.TLS.Key)
		if err != nil {
			return errors.Join(failf(exitError, "read the certificate %s and its key %s: %w", conf.TLS.Cert, conf.TLS.Key, err), listener.Close())
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		go func() { ended <- server.ServeTLS(listener, "", "") }()
	} else {
		go func() { ended <- server.Serve(listener) }()
	}
	if err := announce(w, asJSON, scheme, listener.Addr().String(), paths); err != nil {
		server.Close()
		<-ended
		return err
	}
	select {
	case err := <-ended:
		return failf(exitError, "serve: %w", err)
	case <-ctx.Done():
	}
	stop() // a second signal ends the process
	w.voice.sayf("ending: waiting for the answers under way")
	err = server.Shutdown(context.Background())
	if serr := <-ended; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// joined is the gateway, and beside it the control interface.
func joined(g *gateway.Gateway, control *api.Server, keys *auth.Ring) http.Handler {
	behind := control.Behind(keys)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, prefix := range control.Prefixes() {
			if strings.HasPrefix(r.URL.Path, prefix) {
				behind.ServeHTTP(w, r)
				return
			}
		}
		g.ServeHTTP(w, r)
	})
}

// announce says where it listens, for people or for programs.
func announce(w *world, asJSON bool, scheme, address string, paths []string) error {
	if asJSON {
		return newEncoder(w.stdout).Encode(struct {
			Address string   `json:"address"`
			Served  []string `json:"served"`
		}{address, paths})
	}
	_, err := fmt.Fprintf(w.stdout, "listening on %s://%s\n", scheme, address)
	return err
}
