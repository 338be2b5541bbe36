package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Make a key, and show it once."`
	List   keysListCommand   `cmd:"" help:"List keys, also those that are no longer good."`
	Revoke keysRevokeCommand `cmd:"" help:"End a key."`
}

func (*keysCommand) Help() string {
	return `Keys tell callers apart. Whoever calls the gateway or the control interface shows one as "Authorization: Bearer sl_…", as "x-api-key: sl_…", or, beside a provider's own key that passes through, as "Stoplog-Key: sl_…". A key has

    a role      app        call models through the gateway
                viewer     read runs, approvals and budgets
                approver   the same, and decide what runs ask
                operator   read, talk to agents, cancel runs, call models
                admin      all of it
    labels      team, app and user: they stand on all that it spends
    limits      requests and tokens a minute
    profiles    those that it may use

On loopback nobody needs a key, unless the configuration has "require_keys: true"; beyond it everybody does, and ` + "`stoplog serve`" + ` does not start before there is one. The socket beside the journal is its owner's and needs none.

` + journalHelp
}

type keysCreateCommand struct {
	journalFlags
	Name              string        `arg:"" help:"What the key is called; decisions made with it are recorded under this name."`
	Role              string        `default:"app" placeholder:"ROLE" help:"app, viewer, approver, operator or admin (${default})."`
	Team              string        `help:"Label: whose team."`
	App               string        `help:"Label: which app."`
	User              string        `help:"Label: which user."`
	Profile           []string      `placeholder:"NAME" help:"A profile that it may use; the first serves it where it names none. Without one it may use all."`
	RequestsPerMinute int64         `placeholder:"N" help:"The most requests it may send in a minute."`
	TokensPerMinute   int64         `placeholder:"N" help:"The most tokens it may use in a minute."`
	Expires           time.Duration `placeholder:"DURATION" help:"After how long it is no longer good, such as 720h."`
	By                string        `placeholder:"NAME" help:"Who makes it; without it, the user of this process."`
	JSON              bool          `help:"Give the key as JSON."`
}

func (*keysCreateCommand) Help() string {
	return `Makes a key and writes it to stdout, once: what is kept is a digest of it.

` + journalHelp + `

Examples:

    stoplog keys create ci --team platform --requests-per-minute 60
    stoplog keys create ann --role admin
    OPENAI_API_KEY=$(stoplog keys create my-app) python my_app.py

Exit codes: 0 made, 1 it could not be (a live key has the name), 2 usage.`
}

func (c *keysCreateCommand) Run(w *world) error {
	ctx := context.Background()
	role, err := auth.ParseRole(c.Role)
	if err != nil {
		return failf(exitUsage, "--role: %w", err)
	}
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	now := time.Now()
	k := auth.Key{
		Name: c.Name, Role: role, Profiles: c.Profile, CreatedBy: by,
		Labels: auth.Labels{Team: c.Team, App: c.App, User: c.User},
		Limits: auth.Limits{RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute},
	}
	if c.Expires != 0 {
		k.Expires = now.Add(c.Expires).UTC()
	}
	if err := k.Check(now); err != nil {
		return failf(exitUsage, "%w", err)
	}
	path, err := c.path(w, nil)
	if err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	k, token, err := auth.Create(ctx, s, digester(s), now, k)
	if err != nil {
		return failf(exitError, "%w", err).hint("end the other with `stoplog keys revoke %s`, or choose another name", c.Name)
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(struct {
			keyView
			Token string `json:"token"`
		}{viewOf(k, now), token})
	}
	w.voice.sayf("key %s (%s): it is shown this once", k.ID, k.Role)
	return tell(w, "%s", token)
}

// digester is how a store makes digests of keys.
func digester(s *sqlite.Store) auth.Digester {
	key := s.Key()
	return func(token []byte) [32]byte { return key.Digest(token) }
}

type keysListCommand struct {
	journalFlags
	JSON bool `help:"Give one key a line, as JSON."`
}

// keyView is a key as it is shown: nothing of its secret.
type keyView struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Role      auth.Role   `json:"role"`
	State     string      `json:"state"` // live, expired or revoked
	Labels    auth.Labels `json:"labels"`
	Limits    auth.Limits `json:"limits"`
	Profiles  []string    `json:"profiles,omitempty"`
	Created   time.Time   `json:"created"`
	CreatedBy string      `json:"created_by"`
	Expires   *time.Time  `json:"expires"`
	Revoked   *time.Time  `json:"revoked"`
	RevokedBy string      `json:"revoked_by,omitempty"`
}

func viewOf(k auth.Key, now time.Time) keyView {
	known := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return keyView{k.ID, k.Name, k.Role, k.State(now), k.Labels, k.Limits, k.Profiles, k.Created, k.CreatedBy, known(k.Expires), known(k.Revoked), k.RevokedBy}
}

func (c *keysListCommand) Run(w *world) error {
	ctx, now := context.Background(), time.Now()
	s, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer s.Close()
	keys, err := s.AuthKeys(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		e := newEncoder(w.stdout)
		for _, k := range keys {
			if err := e.Encode(viewOf(k, now)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(keys) == 0 {
		w.voice.sayf("there is no key yet: make one with `stoplog keys create NAME`")
		return nil
	}
	t := tabwriter.NewWriter(w.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tROLE\tSTATE\tLABELS\tLIMITS\tCREATED")
	for _, k := range keys {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s by %s\n", k.ID, k.Name, k.Role, k.State(now), labels(k.Labels), limits(k.Limits), k.Created.Format(time.DateOnly), k.CreatedBy)
	}
	return t.Flush()
}

func labels(l auth.Labels) string {
	var all []string
	for _, p := range [][2]string{{"team", l.Team}, {"app", l.App}, {"user", l.User}} {
		if p[1] != "" {
			all = append(all, p[0]+"="+p[1])
		}
	}
	return orDash(strings.Join(all, " "))
}

func limits(l auth.Limits) string {
	var all []string
	if l.RequestsPerMinute > 0 {
		all = append(all, fmt.Sprintf("%d requests/min", l.RequestsPerMinute))
	}
	if l.TokensPerMinute > 0 {
		all = append(all, fmt.Sprintf("%d tokens/min", l.TokensPerMinute))
	}
	return orDash(strings.Join(all, ", "))
}

type keysRevokeCommand struct {
	journalFlags
	Key string `arg:"" help:"Its name, or the beginning of its id."`
	By  string `placeholder:"NAME" help:"Who ends it; without it, the user of this process."`
}

func (*keysRevokeCommand) Help() string {
	return fmt.Sprintf(`Ends a key. Servers refuse it within %s; answers that are under way go on. Its name is free again, and the record of it stays.

%s

Exit codes: 0 it has ended (also if it had before), 1 there is no such key, 2 usage.`, auth.Fresh, journalHelp)
}

func (c *keysRevokeCommand) Run(w *world) error {
	ctx, now := context.Background(), time.Now()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	s, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer s.Close()
	keys, err := s.AuthKeys(ctx)
	if err != nil {
		return err
	}
	k, err := auth.Find(keys, now, c.Key)
	if err != nil {
		return failf(exitError, "%w", err).hint("see `stoplog keys list`")
	}
	revoked, err := s.RevokeAuthKey(ctx, k.ID, now, by)
	if err != nil {
		return err
	}
	if !revoked {
		w.voice.sayf("key %s (%s) was revoked before", k.ID, k.Name)
		return nil
	}
	return tell(w, "revoked key %s (%s)", k.ID, k.Name)
}
